//! The verdict that a filter returns.

use std::fmt;

/// The 32-bit value that a filter returns: an action in the upper half, data in the lower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Verdict(pub u32);

/// Action of the kernel (SECCOMP_RET_* of linux/seccomp.h), strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Kill the process with SIGSYS. Actions that the kernel does not know count as this one.
    KillProcess,
    /// Kill the thread with SIGSYS.
    KillThread,
    /// Send SIGSYS; the data goes to `si_errno`.
    Trap,
    /// Do not run the call; the data is the errno.
    Errno,
    /// Ask a supervisor.
    UserNotif,
    /// Ask a tracer; ENOSYS without one.
    Trace,
    /// Run the call and log it.
    Log,
    /// Run the call.
    Allow,
}

impl Action {
    /// Every action, strictest first.
    pub const EVERY: [Action; 8] = [
        Action::KillProcess,
        Action::KillThread,
        Action::Trap,
        Action::Errno,
        Action::UserNotif,
        Action::Trace,
        Action::Log,
        Action::Allow,
    ];

    /// The upper half of the verdict; the lower half is 0.
    pub const fn value(self) -> u32 {
        match self {
            Action::KillProcess => 0x8000_0000,
            Action::KillThread => 0,
            Action::Trap => 0x0003_0000,
            Action::Errno => 0x0005_0000,
            Action::UserNotif => 0x7fc0_0000,
            Action::Trace => 0x7ff0_0000,
            Action::Log => 0x7ffc_0000,
            Action::Allow => 0x7fff_0000,
        }
    }

    /// The name without `SECCOMP_RET_`.
    pub const fn name(self) -> &'static str {
        match self {
            Action::KillProcess => "KILL_PROCESS",
            Action::KillThread => "KILL_THREAD",
            Action::Trap => "TRAP",
            Action::Errno => "ERRNO",
            Action::UserNotif => "USER_NOTIF",
            Action::Trace => "TRACE",
            Action::Log => "LOG",
            Action::Allow => "ALLOW",
        }
    }
}

impl Verdict {
    /// Run the call. The only verdict that the kernel's bitmap can hold.
    pub const ALLOW: Verdict = Verdict(Action::Allow.value());

    /// An action with its data.
    pub const fn new(action: Action, data: u16) -> Verdict {
        Verdict(action.value() | data as u32)
    }

    /// The action that the kernel takes (`SECCOMP_RET_ACTION_FULL`).
    pub fn action(self) -> Action {
        let value = self.0 & 0xffff_0000;
        Action::EVERY
            .into_iter()
            .find(|action| action.value() == value)
            .unwrap_or(Action::KillProcess)
    }

    /// The lower half (`SECCOMP_RET_DATA`).
    pub const fn data(self) -> u16 {
        self.0 as u16
    }

    /// The number by which the kernel orders the verdicts of a chain, strictest first
    /// (kernel/seccomp.c, `ACTION_ONLY`). The data does not matter.
    pub const fn order(self) -> i32 {
        (self.0 & 0xffff_0000) as i32
    }

    /// This verdict, or that of an older filter if it is strictly stricter.
    pub const fn or_stricter(self, older: Verdict) -> Verdict {
        if older.order() < self.order() {
            older
        } else {
            self
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = self.action();
        if action.value() != self.0 & 0xffff_0000 {
            return write!(f, "{:#010x} (unknown: KILL_PROCESS)", self.0);
        }
        match (action, self.data()) {
            (Action::Errno, data) => match abi::errno_name(i32::from(data)) {
                Some(name) => write!(f, "ERRNO({data} {name})"),
                None => write!(f, "ERRNO({data})"),
            },
            (_, 0) => f.write_str(action.name()),
            (_, data) => write!(f, "{}({data})", action.name()),
        }
    }
}
