//! The commands that a line of a rules file, or a call of auditctl, consists of.

use crate::{Rule, RuleError};
use abi::Arch;

/// The version of auditctl whose syntax and listing are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// audit 3.0.9, as Debian 12 ships it: no io_uring list, few fields on the exclude list.
    V3,
    /// audit 4.x, which accepts everything that 3.0.9 accepts. One thing differs: 4.x narrows a rule
    /// with `perm=` and `arch=` to a list of calls. Here it keeps all calls and selects the same
    /// events.
    #[default]
    V4,
    /// Dialect of `*.tarsier` files: audit 4.x with Tarsier's own fields, such as `unit=`.
    Tarsier,
}

impl Dialect {
    /// Whether this version of auditctl knows the name of a system call. audit 3.0.9 knows the calls up to Linux 5.17,
    /// which left out the numbers that x86-64 has from 335 to 423.
    pub fn knows_call(self, arch: Arch, nr: u32) -> bool {
        let is_later = nr > 450 || arch == Arch::X86_64 && (335..424).contains(&nr);
        self != Dialect::V3 || !is_later
    }
}

/// One command.
#[derive(Clone, Debug)]
pub enum Command {
    /// `-a`, `-w`: add a rule at the end.
    Append(Rule),
    /// `-A`: add a rule at the beginning.
    Prepend(Rule),
    /// `-d`, `-W`: delete the rule that equals this one.
    Delete(Rule),
    /// `-D`, `-D -k key`: delete all rules, or those whose key contains `key`.
    DeleteAll {
        /// The text that the key of a rule has to contain; `None` for all rules.
        key: Option<Vec<u8>>,
    },
    /// `-e`: 0 off, 1 on, 2 on and locked until reboot.
    Enabled(u32),
    /// `-f`: 0 silent, 1 printk, 2 panic.
    Failure(u32),
    /// `-b`: how many records may wait in the kernel's queue; 0 means no limit.
    Backlog(u32),
    /// `-r`: the most records per second; 0 means no limit.
    Rate(u32),
    /// `--backlog_wait_time`, in the kernel's clock ticks.
    BacklogWaitTime(u32),
    /// `--loginuid-immutable`
    LoginuidImmutable,
    /// `--reset-lost`
    ResetLost,
    /// `--reset_backlog_wait_time_actual`
    ResetBacklogWaitTimeActual,
    /// `-i`: later errors do not stop loading.
    IgnoreErrors,
    /// `-c`: later errors do not stop loading, but make it fail at the end.
    ContinueOnError,
    /// `-t`: forget parts of watched trees that were unmounted.
    Trim,
    /// `-q mount,subtree`: watch the subtree wherever the mount is watched.
    MakeEquivalent {
        /// A mount point.
        mount: Vec<u8>,
        /// The directory that is watched wherever the mount point is.
        subtree: Vec<u8>,
    },
    /// `-m`: log this text.
    Message(String),
    /// `-s`, `-s -i`: print the status.
    Status {
        /// Whether names are printed instead of numbers.
        is_interpreted: bool,
    },
    /// `-l`, `-l -i`, `-l -k key`: list the rules.
    List {
        /// Whether names are printed instead of numbers.
        is_interpreted: bool,
        /// The text that the key of a listed rule has to contain; `None` for all rules.
        key: Option<Vec<u8>>,
    },
    /// `--signal`: the signal's name without `SIG`: `TERM`, `HUP`, `USR1`, `USR2`, `CONT`.
    Signal(&'static str),
    /// `-R file` as the only words on a command line.
    ReadFile(Vec<u8>),
    /// Several commands of one line, in order. Only [`parse_line`](crate::parse_line) makes this.
    Several(Vec<Command>),
    /// `-v`
    Version,
    /// `-h`
    Help,
}

/// The commands, warnings and error of one line.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The commands, in order. Usually one; `-b 8192 -f 1` makes two. Empty if there is an error.
    pub commands: Vec<Command>,
    /// Warnings: auditctl prints them and goes on.
    pub warnings: Vec<RuleError>,
    /// The first error.
    pub error: Option<RuleError>,
}
