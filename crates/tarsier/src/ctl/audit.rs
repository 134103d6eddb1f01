//! What can be told to carry out auditctl's requests: the kernel, or a running Tarsier.

use daemon::protocol::AuditState;
use rules::Command;

/// Why something was refused or could not be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trouble {
    /// The errno, when the kernel or the daemon gave one.
    pub(super) errno: Option<i32>,
    /// In words, when there is none.
    pub(super) reason: String,
}

/// What became of some commands.
#[derive(Debug, Default)]
pub(super) struct Applied {
    /// What a counter was that was reset.
    pub(super) value: Option<u32>,
    /// Commands that were refused, by their place.
    pub(super) refused: Vec<(usize, Trouble)>,
}

/// Whoever carries out requests.
pub(super) trait Audit {
    /// What `auditctl -s` shows.
    fn state(&mut self) -> Result<AuditState, Trouble>;

    /// All rules, as `struct audit_rule_data`.
    fn rules(&mut self) -> Result<Vec<Vec<u8>>, Trouble>;

    /// Carries out commands that change something. One that is refused ends it, unless its place
    /// is `tolerate_from` or later. Whether those before it stay is [`is_atomic`](Self::is_atomic).
    fn apply(&mut self, commands: &[Command], tolerate_from: usize) -> Result<Applied, Trouble>;

    /// Whether commands are carried out all together or not at all.
    fn is_atomic(&self) -> bool;
}

impl Trouble {
    /// In auditctl's words: what was asked for, and what the errno says.
    pub(super) fn text(&self, command: &Command) -> String {
        const EEXIST: i32 = 17;
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

    /// Whether there is no audit to ask, which auditctl says in other words.
    pub(super) fn is_disabled(&self) -> bool {
        const ECONNREFUSED: i32 = 111;
        self.errno == Some(ECONNREFUSED)
    }
}

/// What auditctl and libaudit call a request that failed.
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

/// As strerror(3) has it.
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
