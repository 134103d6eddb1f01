//! Errors of the audit socket.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// A request to the kernel's audit system failed.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel has no audit, or does not offer it in this namespace.
    #[error("the kernel's audit is not available here ({0}): no CONFIG_AUDIT, audit=off, or not the initial namespaces")]
    Unavailable(Errno),
    /// The process lacks a capability, or audit is locked.
    #[error("{what}: not permitted ({errno}): CAP_AUDIT_CONTROL (or CAP_AUDIT_WRITE for messages) in the initial namespaces is needed, and audit must not be locked (enabled 2)")]
    NotPermitted {
        /// The request.
        what: &'static str,
        /// EPERM or EACCES.
        errno: Errno,
    },
    /// Another process is registered as the audit daemon.
    #[error("another audit daemon (pid {pid}) owns the audit socket")]
    AnotherDaemon {
        /// Process id of the other daemon; 0 if unknown.
        pid: u32,
    },
    /// The kernel refused the request.
    #[error("{what}: the kernel answered {errno}")]
    Refused {
        /// The request.
        what: &'static str,
        /// The kernel's answer.
        errno: Errno,
    },
    /// A system call on the socket failed.
    #[error("{what}: {call} on the audit socket: {errno}")]
    Io {
        /// The request.
        what: &'static str,
        /// The system call.
        call: &'static str,
        /// The error of the system call.
        errno: Errno,
    },
    /// The kernel did not answer in time.
    #[error("{what}: the kernel did not answer within {timeout_ms} ms")]
    Timeout {
        /// The request.
        what: &'static str,
        /// Time that the request waited, in milliseconds.
        timeout_ms: u64,
    },
    /// The answer is shorter than the protocol requires.
    #[error("{what}: the kernel's answer is too short ({len} bytes)")]
    Malformed {
        /// The request.
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

/// Error of taking over the audit socket, or of giving it back. Unless a variant says otherwise,
/// nothing was changed; the daemon then goes on without records that others make.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// Another daemon is registered.
    #[error("another audit daemon (pid {pid}) owns the audit socket: records made by others go to it, not to this log; stop it to get them here")]
    AnotherDaemon {
        /// Process id of the other daemon.
        pid: u32,
    },
    /// Another process that took over with the same state file is alive.
    #[error("{}: written by process {pid}, which is still running: stop one of the two", path.display())]
    AnotherInstance {
        /// The state file.
        path: PathBuf,
        /// Process id of its writer.
        pid: u32,
    },
    /// `auditctl -e 2` was used, with rules of the kernel's own.
    #[error("the kernel's audit configuration is locked (enabled 2) until the next boot: records made by others still go where they go now")]
    Immutable,
    /// Rules that this process did not load are in the kernel; they would add their events to this
    /// log.
    #[error("the kernel has {count} audit rule(s) that were not loaded here: delete them (auditctl -D), or use another engine, which leaves them alone")]
    OtherRules {
        /// Number of these rules.
        count: usize,
    },
    /// The kernel refused a rule. What had been changed was put back.
    #[error("the kernel refused a rule: {error}")]
    Rule {
        /// The rule: `struct audit_rule_data` with its strings.
        rule: Vec<u8>,
        /// The kernel's answer.
        error: NetlinkError,
    },
    /// Rules that were loaded here cannot be deleted, for example because the directory of their `exe=`
    /// no longer exists.
    #[error("{count} rule(s) loaded here cannot be deleted from the kernel, and stay until the next boot; `auditctl -l` shows them")]
    LeftRules {
        /// Number of these rules.
        count: usize,
    },
    /// The state file cannot be written or read.
    #[error("{}: {call} failed: {source}; the audit state found at the start is kept there: choose a writable directory that belongs to root", path.display())]
    StateFile {
        /// The state file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The content of the state file is not what Tarsier writes.
    #[error("{}: {found}; compare `auditctl -s` with what you expect and remove the file", path.display())]
    BadState {
        /// The state file.
        path: PathBuf,
        /// Description of the fault.
        found: String,
    },
    /// The kernel refused a step. What had been changed was put back.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}
