//! The targets of auditctl's requests: the kernel, or a running Tarsier.

use abi::errno::{ECONNREFUSED, EEXIST};
use daemon::protocol::AuditState;
use rules::Command;

/// Reason why a request was refused or could not be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The errno, if the kernel or the daemon returned one.
    pub(super) errno: Option<i32>,
    /// The reason in words, if there is no errno.
    pub(super) reason: String,
}

/// The outcome of commands that were carried out.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// The value of a counter before it was reset.
    pub(super) value: Option<u32>,
    /// Commands that were refused, by their index.
    pub(super) refused: Vec<(usize, Trouble)>,
}

/// A target that carries out requests.
pub(super) trait Audit {
    /// State that `auditctl -s` shows.
    fn state(&mut self) -> Result<AuditState, Trouble>;

    /// All rules, as `struct audit_rule_data`.
    fn rules(&mut self) -> Result<Vec<Vec<u8>>, Trouble>;

    /// Carries out commands that change something. A refused command ends this, unless its index is
    /// `tolerate_from` or higher. [`is_atomic`](Self::is_atomic) tells whether the commands before
    /// it remain in effect.
    fn apply(&mut self, commands: &[Command], tolerate_from: usize) -> Result<Applied, Trouble>;

    /// Whether commands are carried out either all together or not at all.
    fn is_atomic(&self) -> bool;
}

impl Trouble {
    /// The message that auditctl prints: the request that failed, and the errno's text.
    pub(super) fn text(&self, command: &Command) -> String {
        let cause = match self.errno {
            Some(EEXIST) => "Rule exists".to_owned(),
            Some(errno) => errno_text(errno),
            None => self.reason.clone(),
        };
        match asked(command) {
            Some(what) => format!("{what} ({cause})"),
            None => cause,
        }
    }

    /// Whether there is no audit to ask, for which auditctl has another message.
    pub(super) fn is_disabled(&self) -> bool {
        self.errno == Some(ECONNREFUSED)
    }
}

/// The name that auditctl and libaudit have for a request that failed.
fn asked(command: &Command) -> Option<&'static str> {
    match command {
        Command::Append(_) | Command::Prepend(_) => Some("Error sending add rule data request"),
        Command::Delete(_) => Some("Error sending delete rule data request"),
        Command::DeleteAll { .. } => Some("Error deleting rule"),
        Command::Enabled(_) => Some("Error sending enable request"),
        Command::Failure(_) => Some("Error sending failure mode request"),
        Command::Backlog(_) | Command::BacklogWaitTime(_) => {
            Some("Error sending backlog limit request")
        }
        Command::Rate(_) => Some("Error sending rate limit request"),
        Command::LoginuidImmutable => Some("Error setting feature"),
        Command::ResetLost => Some("Error sending lost reset request"),
        Command::ResetBacklogWaitTimeActual => {
            Some("Error sending backlog wait time actual reset request")
        }
        Command::Trim => Some("Error sending trim subtrees command"),
        Command::MakeEquivalent { .. } => Some("Error sending make_equivalent command"),
        Command::Message(_) => Some("Error sending user message"),
        Command::Status { .. } => Some("Error sending status request"),
        Command::List { .. } => Some("Error sending rule list data request"),
        _ => None,
    }
}

/// The text of an errno, as from strerror(3).
pub(super) fn errno_text(errno: i32) -> String {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    match text.split_once(" (os error") {
        Some((text, _)) => text.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_in_auditctl_s_words() {
        let trouble = |errno| Trouble {
            errno,
            reason: "no reason".to_owned(),
        };
        let text = |errno, command: &Command| trouble(errno).text(command);
        assert_eq!(
            text(Some(1), &Command::Enabled(1)),
            "Error sending enable request (Operation not permitted)"
        );
        assert_eq!(
            text(Some(22), &Command::BacklogWaitTime(1)),
            "Error sending backlog limit request (Invalid argument)"
        );
        assert_eq!(text(None, &Command::Help), "no reason");
        assert!(trouble(Some(111)).is_disabled());
    }
}
