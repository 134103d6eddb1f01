//! Actions for the owner of the journal, and programs that the configuration names.

use std::path::Path;

use privsep::spawn::{Child, Launcher, Request};

use crate::action::{OwnerAction, Severity};

/// Actions that the owner has not taken, and EXEC programs that have not ended.
#[derive(Default)]
pub(super) struct Notices {
    actions: Vec<OwnerAction>,
    children: Vec<Child>,
    launcher: Launcher,
}

impl Notices {
    /// Sets who starts programs.
    pub(super) fn set_launcher(&mut self, launcher: Launcher) {
        self.launcher = launcher;
    }

    pub(super) fn report(&mut self, severity: Severity, text: String) {
        self.push(OwnerAction::Message { severity, text });
    }

    pub(super) fn push(&mut self, action: OwnerAction) {
        self.actions.push(action);
    }

    /// Returns the actions that the owner has to take, oldest first, and empties the list.
    pub(super) fn take(&mut self) -> Vec<OwnerAction> {
        std::mem::take(&mut self.actions)
    }

    /// Runs an EXEC program without arguments and environment, as auditd does, if nobody but root can
    /// have changed it; the program resumes logging with a signal when it is done.
    pub(super) fn run(&mut self, program: &Path) {
        let request = Request::Exec {
            path: program.to_owned(),
        };
        match self.launcher.launch(&request, None) {
            Ok(child) => {
                self.children.push(child);
                self.report(Severity::Notice, format!("{} started", program.display()));
            }
            Err(error) => {
                let text = format!("{} cannot be started: {error}", program.display());
                self.report(Severity::Alert, text);
            }
        }
    }

    /// Reaps EXEC programs that have ended.
    pub(super) fn reap(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_an_alert_in_its_place_among_the_actions() {
        let mut notices = Notices::default();
        notices.report(Severity::Notice, "before".into());
        notices.run(Path::new("/nonexistent/program"));
        notices.report(Severity::Notice, "after".into());
        let reported: Vec<(Severity, String)> = notices
            .take()
            .into_iter()
            .filter_map(|action| match action {
                OwnerAction::Message { severity, text } => Some((severity, text)),
                _ => None,
            })
            .collect();
        let severities: Vec<Severity> = reported.iter().map(|(severity, _)| *severity).collect();
        assert_eq!(
            severities,
            [Severity::Notice, Severity::Alert, Severity::Notice]
        );
        let start = "/nonexistent/program cannot be started: ";
        assert!(reported[1].1.starts_with(start), "{}", reported[1].1);
        assert!(notices.take().is_empty());
    }
}
