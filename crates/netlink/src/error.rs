//! What can go wrong on the audit socket.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// A request to the kernel's audit system failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// This kernel has no audit, or hides it from this namespace.
    #[error("the kernel's audit is not available here ({0}): no CONFIG_AUDIT, audit=off, or not the initial namespaces")]
    Unavailable(Errno),
    /// The caller may not do this.
    #[error("{what}: not permitted ({errno}): CAP_AUDIT_CONTROL (or CAP_AUDIT_WRITE for messages) in the initial namespaces is needed, and audit must not be locked (enabled 2)")]
    NotPermitted {
        /// What was asked.
        what: &'static str,
        /// EPERM or EACCES.
        errno: Errno,
    },
    /// Another process is registered as the audit daemon.
    #[error("another audit daemon (pid {pid}) owns the audit socket")]
    AnotherDaemon {
        /// Its process id; 0 if it could not be found out.
        pid: u32,
    },
    /// The kernel refused the request.
    #[error("{what}: the kernel answered {errno}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// Its answer.
        errno: Errno,
    },
    /// A system call on the socket failed.
    #[error("{what}: {call} on the audit socket: {errno}")]
    Io {
        /// What was asked.
        what: &'static str,
        /// The system call.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// No answer in time.
    #[error("{what}: the kernel did not answer within {timeout_ms} ms")]
    Timeout {
        /// What was asked.
        what: &'static str,
        /// How long was waited.
        timeout_ms: u64,
    },
    /// The answer is not what the protocol says.
    #[error("{what}: the kernel's answer is too short ({len} bytes)")]
    Malformed {
        /// What was asked.
        what: &'static str,
        /// Length of the answer.
        len: usize,
    },
    /// The socket's buffer overflowed: the kernel dropped records. Reading can go on.
    #[error("the audit socket's buffer overflowed: records were dropped")]
    Overrun,
}

impl NetlinkError {
    /// The error of a system call on the socket.
    pub(super) fn io(what: &'static str, call: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::CONNREFUSED => {
                NetlinkError::Unavailable(errno)
            }
            Errno::PERM | Errno::ACCESS => NetlinkError::NotPermitted { what, errno },
            Errno::NOBUFS => NetlinkError::Overrun,
            _ => NetlinkError::Io { what, call, errno },
        }
    }

    /// The error in the kernel's acknowledgement.
    pub(super) fn refused(what: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::PERM | Errno::ACCESS => NetlinkError::NotPermitted { what, errno },
            Errno::CONNREFUSED => NetlinkError::Unavailable(errno),
            _ => NetlinkError::Refused { what, errno },
        }
    }

    /// The errno behind it, if there is one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            NetlinkError::Unavailable(errno)
            | NetlinkError::NotPermitted { errno, .. }
            | NetlinkError::Refused { errno, .. }
            | NetlinkError::Io { errno, .. } => Some(*errno),
            NetlinkError::AnotherDaemon { .. } => Some(Errno::EXIST),
            NetlinkError::Overrun => Some(Errno::NOBUFS),
            NetlinkError::Timeout { .. } | NetlinkError::Malformed { .. } => None,
        }
    }
}

/// Why the audit socket is not ours. Except where it says so, nothing was changed, and a daemon
/// goes on without the records of others.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// Somebody else is registered.
    #[error("another audit daemon (pid {pid}) owns the audit socket: records made by others go to it, not to this log; stop it to get them here")]
    AnotherDaemon {
        /// Its process id.
        pid: u32,
    },
    /// Another process that took over with the same state file is alive.
    #[error("{}: written by process {pid}, which is alive: one of the two has to go", path.display())]
    AnotherInstance {
        /// The state file.
        path: PathBuf,
        /// Its writer.
        pid: u32,
    },
    /// `auditctl -e 2` was used.
    #[error("the kernel's audit configuration is locked (enabled 2) until the next boot: records made by others stay where they go now")]
    Immutable,
    /// Rules that are not ours are loaded in the kernel, and would select what this log is then
    /// to hold.
    #[error("{count} rule(s) of somebody else are loaded in the kernel's audit: delete them (auditctl -D), or use another engine, which leaves them alone")]
    OtherRules {
        /// How many.
        count: usize,
    },
    /// The kernel does not take a rule. What had been changed was put back.
    #[error("a rule is refused: {error}")]
    Rule {
        /// Its `struct audit_rule_data` with its strings.
        rule: Vec<u8>,
        /// What the kernel answered.
        error: NetlinkError,
    },
    /// Rules that were loaded here cannot be deleted: an `exe=` whose directory is gone.
    #[error("{count} rule(s) loaded here cannot be deleted from the kernel, and stay until the next boot; `auditctl -l` shows them")]
    LeftRules {
        /// How many.
        count: usize,
    },
    /// The state file cannot be written or read.
    #[error("{}: {call} failed: {source}; the audit state found has to be kept there: use a directory of root's that can be written", path.display())]
    StateFile {
        /// The state file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The state file is not one that we wrote.
    #[error("{}: {found}; compare `auditctl -s` with what you expect and remove the file", path.display())]
    BadState {
        /// The state file.
        path: PathBuf,
        /// What is wrong.
        found: String,
    },
    /// The kernel refused a step. What had been changed was put back.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}
