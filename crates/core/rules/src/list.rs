//! Rules as `auditctl -l` prints them.
//!
//! Source: print_rule() in audit-userspace src/auditctl-listing.c.

use std::fmt;

use abi::{Arch, Compare, Field, PermLists, RecordType};

use crate::field::{arch_name, is_known_arch};
use crate::{Action, Condition, Dialect, List, Op, Rule, SyscallSet, Value};

/// Style in which rules are printed.
#[derive(Clone, Copy, Debug)]
pub struct ListStyle {
    /// The version of auditctl whose oddities are kept: 3.0.9 prints `exe!=` as `exe=`.
    pub dialect: Dialect,
    /// Print as `auditctl -l -i`: names of architectures, `unset`, lower-case hexadecimal. Call
    /// arguments (`a0=` …) are not interpreted further.
    pub is_interpreted: bool,
    /// Print text that reads back as the same rule, unlike auditctl: always `-a`, blanks escaped,
    /// nothing left out.
    pub is_reloadable: bool,
    /// The machine that the rules are for.
    pub host: Arch,
}

impl Default for ListStyle {
    /// `auditctl -l` of audit 3.0.9 on this machine.
    fn default() -> Self {
        ListStyle {
            dialect: Dialect::V3,
            is_interpreted: false,
            is_reloadable: false,
            host: Arch::native(),
        }
    }
}

/// One rule, without a line end.
pub fn list_rule(rule: &Rule, style: &ListStyle) -> String {
    Listing { style, arch: None }.rule(rule)
}

/// Several rules, one per line. As in auditctl, the calls of a rule without `arch=` are named by
/// the architecture of the last rule that had one.
pub fn list_rules<'a>(rules: impl IntoIterator<Item = &'a Rule>, style: &ListStyle) -> String {
    let mut listing = Listing { style, arch: None };
    let mut text = String::new();
    for rule in rules {
        text.push_str(&listing.rule(rule));
        text.push('\n');
        if style.is_reloadable {
            listing.arch = None;
        }
    }
    text
}

impl fmt::Display for Rule {
    /// Prints the rule as `auditctl -l` of audit 3.0.9 does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&list_rule(self, &ListStyle::default()))
    }
}

impl List {
    /// The name in `-a action,list`.
    pub const fn name(self) -> &'static str {
        match self {
            List::User => "user",
            List::Task => "task",
            List::Exit => "exit",
            List::Exclude => "exclude",
            List::Filesystem => "filesystem",
            List::IoUring => "io_uring",
        }
    }

    /// Whether rules on this list are about system calls or io_uring operations.
    pub const fn has_syscalls(self) -> bool {
        matches!(self, List::Exit | List::IoUring)
    }
}

impl Action {
    /// The name in `-a action,list`.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Never => "never",
            Action::Always => "always",
        }
    }
}

struct Listing<'a> {
    style: &'a ListStyle,
    /// `AUDIT_ARCH_*` of the last `arch=`, of this rule or an earlier one.
    arch: Option<u32>,
}

impl Listing<'_> {
    fn rule(&mut self, rule: &Rule) -> String {
        let is_watch = !self.style.is_reloadable && is_watch(rule);
        let mut text = String::new();
        let mut first = 0;
        if !is_watch {
            text = format!("-a {},{}", rule.action.name(), rule.list.name());
            first = self.arches(rule, &mut text);
            text.push_str(&self.syscalls(rule));
        }

        for condition in &rule.conditions[first..] {
            let is_printed = condition.field != Field::Arch || self.style.is_reloadable;
            if is_printed {
                text.push_str(&self.condition(rule, condition, is_watch));
            }
        }

        text
    }

    /// Prints the `arch=` conditions, which come before `-S`. Reloadable text keeps the order of
    /// conditions, so everything up to the last `arch=` is printed. Returns the index of the first
    /// condition that the caller has to print.
    fn arches(&mut self, rule: &Rule, text: &mut String) -> usize {
        let is_arch = |condition: &Condition| condition.field == Field::Arch;
        let last = rule
            .conditions
            .iter()
            .rposition(is_arch)
            .map_or(0, |at| at + 1);

        for condition in &rule.conditions[..last] {
            if is_arch(condition) || self.style.is_reloadable {
                text.push_str(&self.condition(rule, condition, false));
            }
        }

        if self.style.is_reloadable {
            last
        } else {
            0
        }
    }

    fn syscalls(&self, rule: &Rule) -> String {
        if !rule.list.has_syscalls() {
            return String::new();
        }
        if rule.syscalls.is_all() {
            return " -S all".to_owned();
        }

        let known = self.arch.map(Arch::from_audit_arch);
        let arch = known.unwrap_or(Some(self.style.host));
        let name = |nr| match rule.list {
            List::IoUring => abi::uring_op_name(nr),
            _ => arch
                .filter(|arch| self.style.dialect.knows_call(*arch, nr))
                .and_then(|arch| abi::syscall_name(arch, nr)),
        };

        let expanded = match rule.list {
            List::IoUring => rule.syscalls.clone(),
            _ => rule
                .syscalls
                .expand_classes(self.style.host, PermLists::default()),
        };

        let set: &SyscallSet = if self.style.is_reloadable {
            &rule.syscalls
        } else {
            &expanded
        };

        let names: Vec<String> = set
            .iter()
            .map(|nr| name(nr).map_or_else(|| nr.to_string(), str::to_owned))
            .collect();
        match (names.is_empty(), self.style.is_reloadable) {
            (true, false) => String::new(),
            (true, true) => " -S ,".to_owned(),
            (false, _) => format!(" -S {}", names.join(",")),
        }
    }

    fn condition(&mut self, rule: &Rule, condition: &Condition, is_watch: bool) -> String {
        let Condition { field, op, value } = condition;
        match value {
            Value::Text(text) => self.text(*field, *op, text, is_watch),
            Value::Number(number) if *field == Field::Arch => self.arch(*op, *number),
            Value::Number(number) if *field == Field::FieldCompare => {
                compare(*op, *number, self.style.is_reloadable)
            }
            Value::Number(number) if *field == Field::Perm && is_watch => {
                format!(" -p {}", perm(*number))
            }
            Value::Number(number) if *field == Field::LoginuidSet => {
                self.loginuid_set(*op, *number)
            }
            Value::Number(number) => {
                let text = self.number(rule, *field, *number);
                format!(" -F {}{}{text}", field.name(), op.symbol())
            }
        }
    }

    fn arch(&mut self, op: Op, number: u32) -> String {
        self.arch = Some(number);
        let bits = if number & 0x8000_0000 != 0 {
            "b64"
        } else {
            "b32"
        };

        let is_exact =
            || Arch::from_bits(bits, self.style.host).map(Arch::audit_arch) == Some(number);
        let known_name = if is_known_arch(number) {
            arch_name(number)
        } else {
            None
        };
        let name = match known_name {
            None => format!("0x{number:X}"),
            Some(name) if self.style.is_interpreted => name.to_owned(),
            Some(name) if self.style.is_reloadable && !is_exact() => name.to_owned(),
            Some(_) => bits.to_owned(),
        };

        format!(" -F arch{}{name}", op.symbol())
    }

    fn loginuid_set(&self, op: Op, number: u32) -> String {
        if !self.style.is_reloadable {
            // auditctl has no name for this field.
            return format!(" f{}{}{number}", Field::LoginuidSet.number(), op.symbol());
        }
        let is_unset = (number == 0) == (op == Op::Eq);
        format!(" -F auid{}unset", if is_unset { "=" } else { "!=" })
    }

    fn text(&self, field: Field, op: Op, text: &[u8], is_watch: bool) -> String {
        let shown = |text: &[u8]| {
            let text = String::from_utf8_lossy(text).into_owned();
            if self.style.is_reloadable {
                text.replace('\\', "\\\\").replace(' ', "\\ ")
            } else {
                text
            }
        };

        match field {
            Field::FilterKey => text
                .split(|&byte| byte == 1)
                .filter(|part| !part.is_empty())
                .map(|part| {
                    if is_watch {
                        format!(" -k {}", shown(part))
                    } else {
                        format!(" -F key={}", shown(part))
                    }
                })
                .collect(),
            Field::Watch | Field::Dir if is_watch => format!("-w {}", shown(text)),
            Field::Watch | Field::Dir | Field::Exe
                if self.style.dialect == Dialect::V3 && !self.style.is_reloadable =>
            {
                format!(" -F {}={}", field.name(), shown(text))
            }
            _ => format!(" -F {}{}{}", field.name(), op.symbol(), shown(text)),
        }
    }

    fn number(&self, rule: &Rule, field: Field, number: u32) -> String {
        let signed = number as i32;
        match field {
            Field::Perm => perm(number),
            Field::Msgtype => {
                let name = RecordType(signed).name();
                name.map_or_else(|| signed.to_string(), str::to_owned)
            }
            Field::Inode => number.to_string(),
            Field::Arg0 | Field::Arg1 | Field::Arg2 | Field::Arg3 => {
                let is_lower = self.style.is_interpreted
                    && !rule.syscalls.is_all()
                    && rule.syscalls.iter().nth(1).is_none();
                if is_lower {
                    format!("0x{number:x}")
                } else {
                    format!("0x{number:X}")
                }
            }
            Field::Exit => match abi::errno_name(signed.saturating_neg()) {
                Some(name) if signed < 0 => format!("-{name}"),
                _ => signed.to_string(),
            },
            Field::Fstype => match abi::fs_type_name(number) {
                Some(name) if self.knows_fs_type(name) => name.to_owned(),
                _ if self.style.is_reloadable => number.to_string(),
                _ => signed.to_string(),
            },
            Field::Loginuid | Field::Sessionid if number == u32::MAX => {
                let is_named = self.style.is_interpreted || self.style.is_reloadable;
                if is_named { "unset" } else { "-1" }.to_owned()
            }
            Field::Filetype if self.style.is_reloadable => {
                abi::file_type_name(number).map_or_else(|| number.to_string(), str::to_owned)
            }
            _ if self.style.is_reloadable => number.to_string(),
            _ => signed.to_string(),
        }
    }

    fn knows_fs_type(&self, name: &str) -> bool {
        self.style.dialect != Dialect::V3
            || self.style.is_reloadable
            || matches!(name, "tracefs" | "debugfs")
    }
}

/// Whether auditctl prints a rule as a watch: it applies to every call, has a perm, and no other
/// conditions than path, dir, perm and key.
fn is_watch(rule: &Rule) -> bool {
    let fields = || rule.conditions.iter().map(|condition| condition.field);
    let is_fine = |field| {
        matches!(
            field,
            Field::Perm | Field::FilterKey | Field::Dir | Field::Watch
        )
    };
    fields().all(is_fine)
        && fields().any(|field| field == Field::Perm)
        && (rule.syscalls.is_all() || !rule.list.has_syscalls())
}

fn perm(bits: u32) -> String {
    let letters = [
        (abi::PERM_READ, 'r'),
        (abi::PERM_WRITE, 'w'),
        (abi::PERM_EXEC, 'x'),
        (abi::PERM_ATTR, 'a'),
    ];
    letters
        .into_iter()
        .filter(|row| bits & row.0 != 0)
        .map(|row| row.1)
        .collect()
}

/// A `-C` condition. Like auditctl, omits comparisons that are unknown, except from reloadable text.
fn compare(op: Op, number: u32, is_reloadable: bool) -> String {
    let symbol = op.symbol();
    match Compare::from_number(number) {
        Some(compare) => format!(
            " -C {}{symbol}{}",
            compare.left.name(),
            compare.right.name()
        ),
        None if is_reloadable => format!(" -F field_compare{symbol}{number}"),
        None => String::new(),
    }
}
