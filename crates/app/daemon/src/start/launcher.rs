//! The processes that start programs for the daemon.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::pipeline::Pipeline;
use crate::start::{settings, settings_at_start};
use anyhow::{Context, Result};
use cli::RunArgs;
use journal::Severity;
use privsep::spawn::{Ended, Launcher};
use record::RecordType;

/// Starts the spawners, or reaches those of a service. Call it before anything is changed that programs must not inherit.
pub(crate) fn start(args: &RunArgs) -> Result<Launcher> {
    if let Some(socket) = &args.spawner {
        return Launcher::connect(socket).with_context(|| {
            format!(
                "--spawner {}: nobody there starts programs: systemctl start tarsier-spawner.socket",
                socket.display()
            )
        });
    }

    let config = settings_at_start::file(args);
    let config = if args.command.is_empty() {
        settings_at_start::file_in_force(config, &settings::state_dir(args))
    } else {
        config.to_owned()
    };

    let log = args.log_file.as_ref().map(std::path::absolute);
    let log = log.transpose().context("--log-file")?;
    Launcher::start(&config, log.as_deref(), &args.command)
        .context("cannot start the process that starts programs")
}

/// Says which spawners have ended. The other takes the place of one that has; if both have, a confined daemon cannot
/// start another, and what they have started goes on.
pub(crate) fn follow(launcher: &Launcher, pipeline: &mut Pipeline) {
    let ended = launcher.tend();
    if ended.is_empty() {
        return;
    }
    let state = launcher.state();
    let is_replaced = state.is_some_and(|state| state.running);
    for one in &ended {
        say(one, is_replaced, pipeline);
    }
    if !is_replaced {
        pipeline.output().notify(
            Severity::Alert,
            "no process that starts programs is left: recording goes on, but plugins are not started \
             again, mail is not sent, EXEC, SINGLE and HALT do nothing, and helpers for look-ups that \
             end are not replaced: restart tarsier",
        );
    }
}

fn say(ended: &Ended, is_replaced: bool, pipeline: &mut Pipeline) {
    let pid = ended.pid.map_or("?".to_owned(), |pid| pid.to_string());
    let how = ended.status.map(|status| format!(" ({status})"));
    let how = how.unwrap_or_default();
    let (severity, rest) = if is_replaced {
        (Severity::Warning, ": another has taken its place")
    } else {
        (Severity::Alert, "")
    };

    pipeline.output().notify(
        severity,
        &format!("the process that starts programs (pid {pid}) has ended{how}{rest}"),
    );
    pipeline.log_action(&LoggedAction {
        kind: RecordType::DAEMON_ERR,
        op: if is_replaced {
            "spawner-replaced"
        } else {
            "spawner-ended"
        },
        who: Who::this_process(),
        extra: &[("spawner", &pid)],
        is_success: is_replaced,
    });
}
