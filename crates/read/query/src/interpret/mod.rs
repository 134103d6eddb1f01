//! Meanings of the values of fields, in the words of ausearch's `-i`.
//!
//! * [`FieldType`]: the kind of value that a field has, by record type and name.
//! * [`Interpreter`]: turns a value into its meaning.
//! * [`RecordFields`]: a record as names and values.
//! * [`Interpretations`]: the names that ENRICHED wrote beside a record.
//!
//! ```
//! use query::{Context, Dialect, Escape, Interpreter, MachineNames};
//! let interpreter = Interpreter::new(Dialect::Own, Escape::Tty, MachineNames::none());
//! let context = Context::of_kind(1300);
//! assert_eq!(interpreter.value(&context, b"exit", b"-13"), b"EACCES(Permission denied)");
//! assert_eq!(interpreter.value(&context, b"comm", b"612062"), b"a b");
//! ```

mod address;
mod arguments;
mod escape;
mod fields;
mod flags;
mod ids;
mod kinds;
mod paths;
mod plain;
mod terminal;

pub(crate) use address::decoded;
pub use escape::Escape;
pub use fields::{Field, Interpretations, RecordFields};
pub(crate) use ids::call_name;
pub use kinds::{field_type, FieldType};
pub(crate) use paths::escaped;
pub(crate) use terminal::keystrokes;

use crate::number::{unsigned, OutOfRange};
use crate::Dialect;
use abi::Arch;
use ids::IdNames;
use paths::Paths;
use std::cell::Cell;

/// Functions that name ids of this machine, usually those of the C library.
#[derive(Debug, Clone, Copy)]
pub struct MachineNames {
    /// Name of a user.
    pub user: fn(u32) -> Option<Vec<u8>>,
    /// Name of a group.
    pub group: fn(u32) -> Option<Vec<u8>>,
    /// Name of an internet protocol.
    pub protocol: fn(i32) -> Option<Vec<u8>>,
    /// Name of a network interface.
    pub interface: fn(u32) -> Option<Vec<u8>>,
    /// Id of a user by name.
    pub user_id: fn(&[u8]) -> Option<u32>,
}

impl MachineNames {
    /// A machine without users, groups, protocols and interfaces.
    pub fn none() -> MachineNames {
        MachineNames {
            user: |_| None,
            group: |_| None,
            protocol: |_| None,
            interface: |_| None,
            user_id: |_| None,
        }
    }
}

/// The table of calls that the numbers of a record belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Machine {
    /// The record does not say.
    #[default]
    Unset,
    /// An architecture with tables.
    Known(Arch),
    /// Operations of io_uring.
    Uring,
    /// An architecture, by its `arch=`, on which Tarsier does not run.
    Other(u32),
}

impl Machine {
    /// The machine of an `arch=`.
    pub fn of_elf(number: u32) -> Machine {
        match Arch::from_audit_arch(number) {
            Some(arch) => Machine::Known(arch),
            None if ids::other_machine(number).is_some() => Machine::Other(number),
            None => Machine::Unset,
        }
    }
}

/// Facts besides its field on which a value's meaning depends.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'c> {
    /// Record type.
    pub kind: i32,
    /// Table of the call numbers.
    pub machine: Machine,
    /// Number of the call or operation; -1 if not known.
    pub syscall: i32,
    /// First argument.
    pub a0: u64,
    /// Second argument.
    pub a1: u64,
    /// Working directory, as its record has it. Relative paths are joined to it.
    pub cwd: Option<&'c [u8]>,
    /// The names of ENRICHED.
    pub names: Option<&'c Interpretations<'c>>,
    /// Number of fields of the same name before it in its record. `--compat` takes the first name for all of them.
    pub nth: usize,
}

impl<'c> Context<'c> {
    /// A record of type `kind` of which nothing else is known.
    pub fn of_kind(kind: i32) -> Context<'c> {
        Context {
            kind,
            syscall: -1,
            ..Context::default()
        }
    }

    fn call(&self, dialect: Dialect) -> Option<&'static str> {
        ids::call_name(self.machine, self.syscall, dialect)
    }
}

/// A `fan_type` without meaning.
const FAN_TYPE_UNKNOWN: u8 = 2;

/// Says what values mean.
pub struct Interpreter {
    dialect: Dialect,
    escape: Escape,
    names: IdNames,
    paths: Paths,
    /// `fan_type`, on which the meaning of `fan_info` depends.
    fan_type: Cell<u8>,
}

impl Interpreter {
    /// An interpreter that asks `names` about ids.
    pub fn new(dialect: Dialect, escape: Escape, names: MachineNames) -> Interpreter {
        Interpreter {
            dialect,
            escape,
            names: IdNames::new(names),
            paths: Paths::default(),
            fan_type: Cell::new(FAN_TYPE_UNKNOWN),
        }
    }

    /// The program whose behaviour it follows.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Characters that are escaped.
    pub fn escape(&self) -> Escape {
        self.escape
    }

    /// Forgets, without `--compat`, what the meaning of a value may depend on: ausearch remembers it from event to event.
    pub(crate) fn begin_event(&self) {
        if self.dialect == Dialect::Own {
            self.fan_type.set(FAN_TYPE_UNKNOWN);
        }
    }

    /// Id of a user of this machine.
    pub fn user_id(&self, name: &[u8]) -> Option<u32> {
        self.names.user_id(name)
    }

    /// The name of a user of this machine, `unset`, or `unknown(ID)`.
    pub fn user_name(&self, id: u32) -> Vec<u8> {
        self.names.user(id)
    }

    /// The meaning of `value` of the field `name`.
    pub fn value(&self, context: &Context<'_>, name: &[u8], value: &[u8]) -> Vec<u8> {
        let field = field_type(context.kind, name, value);
        self.value_of_type(field, context, name, value)
    }

    /// The meaning of `value` of the field `name`, which is of the type `field`.
    pub fn value_of_type(
        &self,
        field: FieldType,
        context: &Context<'_>,
        name: &[u8],
        value: &[u8],
    ) -> Vec<u8> {
        let nth = if self.dialect.is_compat() {
            0
        } else {
            context.nth
        };
        if let Some(known) = context.names.and_then(|names| names.nth(name, nth)) {
            // A name that was unknown then may be known now.
            if !known.starts_with(b"unknown-") {
                return match field {
                    FieldType::Uid | FieldType::Gid => paths::escaped(known, self.dialect),
                    _ => known.to_vec(),
                };
            }
        }

        let text = self.meaning(field, context, value);
        match field {
            FieldType::EscapedKey => escape::keys(&text, self.escape),
            // The text that C prints for none.
            FieldType::TtyData if value.len() < 2 && text != value => text,
            _ => escape::text(text, self.escape),
        }
    }

    fn meaning(&self, field: FieldType, context: &Context<'_>, value: &[u8]) -> Vec<u8> {
        use FieldType::*;

        // To C, a text without digits is the number 0: root, read(2), or no error.
        if self.dialect == Dialect::Own && is_missing(value) {
            return value.to_vec();
        }

        let converted = match field {
            Uid => self.names.uid(value, 10),
            Gid => self.names.gid(value, 10),
            Arch => ids::arch(value, self.dialect),
            Exit => ids::exit(value),
            Errno => ids::errno(value),
            Perm => plain::permissions(value),
            Mode => plain::mode(value, 8),
            ModeShort => plain::mode_short(value, 8),
            Flags => flags::lookup(value),
            Promiscuous => plain::promiscuous(value),
            Capability => plain::capability(value, 10),
            CapBitmap => plain::capabilities(value),
            Success => plain::success(value),
            Signal => plain::signal(value, 10, self.dialect),
            List => plain::list(value),
            NetfilterProtocol => plain::named(
                value,
                10,
                abi::names::NETFILTER_PROTOCOLS,
                "unknown-netfilter-protocol",
            ),
            IcmpType => plain::named(value, 10, abi::names::ICMP_TYPES, "unknown-icmp-type"),
            Protocol => self.names.protocol(value),
            Personality => flags::personality(value),
            Seccomp => plain::seccomp(value, self.dialect),
            OpenFlags => flags::open(value, 0),
            Mmap => flags::mmap(value),
            Hook => plain::named(value, 16, abi::names::NETFILTER_HOOKS, "unknown-hook"),
            NetAction => plain::named(value, 16, abi::names::NETFILTER_ACTIONS, "unknown-action"),
            MacProtocol => plain::ethernet(value),
            IoctlRequest => plain::ioctl(value),
            Fanotify => plain::fanotify(value),
            MulticastGroup => plain::multicast_group(value),
            Resolve => flags::resolve(value),
            FanInfo => self.fan_info(value),
            A0 => arguments::first(self, context, value),
            A1 => arguments::second(self, context, value),
            A2 => arguments::third(self, context, value),
            A3 => arguments::fourth(self, context, value),
            Syscall => Ok(ids::syscall(context, value, self.dialect)),
            Escaped | EscapedFile => Ok(self.paths.path(context, value, self.dialect)),
            EscapedKey => Ok(paths::escaped(value, self.dialect)),
            Sockaddr => Ok(address::socket_address(
                value,
                self.dialect,
                self.names.machine(),
            )),
            TtyData => Ok(terminal::keystrokes(value)),
            Session if value == b"4294967295" => Ok(b"unset".to_vec()),
            Proctitle => Ok(paths::proctitle(value, self.dialect)),
            Trust => Ok(plain::trust(value).to_vec()),
            FanType => Ok(self.take_fan_type(value).to_vec()),
            Session | Address | MacLabel | Unclassified => Ok(value.to_vec()),
        };

        converted.unwrap_or_else(|OutOfRange| conversion_error(value, field == FieldType::Arch))
    }

    fn take_fan_type(&self, value: &[u8]) -> &'static [u8] {
        let (number, name): (u8, &[u8]) = match value {
            b"0" => (0, b"none"),
            b"1" => (1, b"rule_info"),
            _ => (FAN_TYPE_UNKNOWN, b"unknown"),
        };
        self.fan_type.set(number);
        name
    }

    fn fan_info(&self, value: &[u8]) -> Result<Vec<u8>, OutOfRange> {
        match self.fan_type.get() {
            1 => Ok(unsigned(value, 16)?.to_string().into_bytes()),
            _ => Ok(value.to_vec()),
        }
    }
}

/// Whether a value says that the record has none.
pub(crate) fn is_missing(value: &[u8]) -> bool {
    matches!(
        value,
        b"?" | b"(null)" | b"(none)" | b"n/a" | b"unset" | b"unknown"
    )
}

fn conversion_error(value: &[u8], has_blank: bool) -> Vec<u8> {
    let end: &[u8] = if has_blank { b") " } else { b")" };
    [b"conversion error(", value, end].concat()
}

/// A number that has no name: `prefix(VALUE)`.
fn unknown(prefix: &str, value: &[u8]) -> Vec<u8> {
    [prefix.as_bytes(), b"(", value, b")"].concat()
}
