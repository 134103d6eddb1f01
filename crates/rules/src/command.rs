//! What a line of a rules file, or a call of auditctl, asks for.

use crate::{Rule, RuleError};

/// Which auditctl's acceptance and listing is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// audit 3.0.9, as Debian 12 ships it: no io_uring list, few fields on the exclude list.
    V3,
    /// audit 4.x, which takes everything that 3.0.9 takes. Unlike 4.x itself, `perm=` with `arch=`
    /// does not narrow a rule to a list of calls: that selects the same events.
    #[default]
    V4,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// `-a`, `-w`: add a rule at the end.
    Append(Rule),
    /// `-A`: add a rule at the beginning.
    Prepend(Rule),
    /// `-d`, `-W`: delete the rule that is the same.
    Delete(Rule),
    /// `-D`, `-D -k key`: delete all rules, or those whose key contains the text.
    DeleteAll {
        /// What the key has to contain.
        key: Option<Vec<u8>>,
    },
    /// `-e`: 0 off, 1 on, 2 on and locked until reboot.
    Enabled(u32),
    /// `-f`: 0 silent, 1 printk, 2 panic.
    Failure(u32),
    /// `-b`: how many records may wait; 0 is no limit.
    Backlog(u32),
    /// `-r`: records per second; 0 is no limit.
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
        /// What is to be treated like it.
        subtree: Vec<u8>,
    },
    /// `-m`: log this text.
    Message(String),
    /// `-s`, `-s -i`: print the status.
    Status {
        /// With names for numbers.
        is_interpreted: bool,
    },
    /// `-l`, `-l -i`, `-l -k key`: list the rules.
    List {
        /// With names for numbers.
        is_interpreted: bool,
        /// What the key of a rule has to contain.
        key: Option<Vec<u8>>,
    },
    /// `--signal`: the signal's name without `SIG`: `TERM`, `HUP`, `USR1`, `USR2`, `CONT`.
    Signal(&'static str),
    /// `-R file` as the only words on a command line.
    ReadFile(Vec<u8>),
    /// Several things that stood on one line, in order; only [`parse_line`](crate::parse_line)
    /// makes this.
    Several(Vec<Command>),
    /// `-v`
    Version,
    /// `-h`
    Help,
}

/// What one line held.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// What to do, in order. Usually one thing; `-b 8192 -f 1` are two. Nothing if there is an
    /// error.
    pub commands: Vec<Command>,
    /// What auditctl would print and go on.
    pub warnings: Vec<RuleError>,
    /// The first thing that is wrong.
    pub error: Option<RuleError>,
}
