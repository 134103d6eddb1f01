//! Actions and reports that the journal asks of its owner.

use std::fmt;

use crate::rotate::Rotated;

/// Urgency of a message, as syslog(3) ranks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Normal but worth knowing.
    Notice,
    /// May need a look.
    Warning,
    /// Something failed.
    Error,
    /// Somebody has to act now.
    Alert,
}

/// A run level that a SINGLE or HALT action asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runlevel {
    /// Single user mode.
    Single,
    /// Shut down.
    Halt,
}

/// An event in the journal that its owner has to act on or report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerAction {
    /// A message for the administrator (syslog, stderr).
    Message {
        /// The message's rank.
        severity: Severity,
        /// The message, in one line.
        text: String,
    },
    /// The log was rotated.
    Rotated(Rotated),
    /// Writing has stopped until [`crate::Journal::resume`].
    Suspended {
        /// Reason, for the administrator.
        cause: String,
    },
    /// A mail to be sent (`space_left_action = EMAIL`).
    Mail {
        /// `action_mail_acct`.
        account: String,
        /// The message, in one line.
        text: String,
    },
    /// The configuration wants the system brought down. The journal has suspended itself; the
    /// program asks init.
    ChangeRunlevel {
        /// The requested run level.
        runlevel: Runlevel,
        /// Reason, for the administrator.
        cause: String,
    },
}

impl fmt::Display for OwnerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnerAction::Message { text, .. } => f.write_str(text),
            OwnerAction::Rotated(rotated) => write!(f, "{rotated}"),
            OwnerAction::Suspended { cause } => write!(f, "logging is suspended: {cause}"),
            OwnerAction::Mail { account, .. } => write!(f, "a mail goes to {account}"),
            OwnerAction::ChangeRunlevel { runlevel, cause } => {
                write!(f, "{runlevel:?} is asked for: {cause}")
            }
        }
    }
}
