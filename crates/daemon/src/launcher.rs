//! The process that starts programs for the daemon.

use crate::daemon_records::{Action, Who};
use crate::pipeline::Pipeline;
use anyhow::{Context, Result};
use cli::RunArgs;
use event::RecordType;
use journal::Severity;
use spawn::{Launcher, State};
use std::path::Path;

/// Starts the spawner. Call it before anything is changed that programs must not inherit.
pub(super) fn start(args: &RunArgs) -> Result<Launcher> {
    let config = args.config.as_deref();
    let config = config.unwrap_or(Path::new(conf::AUDITD_CONF));
    Launcher::start(config, &args.command).context("cannot start the process that starts programs")
}

/// Says once that the spawner has ended. A confined daemon cannot start another; what it has started goes on.
#[derive(Default)]
pub(super) struct Watch {
    is_told: bool,
}

impl Watch {
    pub(super) fn note(&mut self, state: Option<State>, pipeline: &mut Pipeline) {
        let Some(State::Failed(pid, status)) = state else {
            return;
        };
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let how = status.map_or("it does not answer".to_owned(), |status| status.to_string());
        pipeline.output.say(
            Severity::Alert,
            &format!(
                "the process that starts programs (pid {pid}) has ended ({how}): recording goes on, but \
                 plugins are not started again, mail is not sent, EXEC, SINGLE and HALT do nothing, and \
                 helpers for look-ups that end are not replaced: restart tarsier"
            ),
        );
        pipeline.say(&Action {
            kind: RecordType::DAEMON_ERR,
            op: "spawner-ended",
            who: Who::this_process(),
            extra: &[("spawner", &pid.to_string())],
            is_success: false,
        });
    }
}
