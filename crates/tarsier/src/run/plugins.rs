//! What the daemon does with plugins: they get what the log gets, once it is durable if `flush`
//! promises that.

use super::daemon::Daemon;
use crate::status::PluginStatus;
use crate::stderr::say;
use anyhow::Result;
use conf::plugins::{self, Plugin};
use conf::{Config, Flush};
use dispatch::Dispatcher;
use journal::Journal;

/// Nice value of the daemon and of its plugins: `priority_boost` better than the one that it was
/// started with, as nice(2) has it, which auditd uses.
pub(super) fn nice(config: &Config, started_with: i32) -> i32 {
    let boost = i32::try_from(config.priority_boost).unwrap_or(i32::MAX);
    started_with.saturating_sub(boost).max(-20)
}

/// The active plugins.
///
/// # Errors
/// Any of them is wrong.
pub(super) fn load_all(config: &Config) -> Result<Vec<Plugin>> {
    let (plugins, errors) = plugins::load(&config.plugins.plugin_dir)?;
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(plugins),
    }
}

/// Starts the active plugins. As in auditd one that is wrong is told and left out.
pub(super) fn start(config: &Config, started_with: i32) -> Dispatcher {
    let loaded = plugins::load(&config.plugins.plugin_dir);
    let (plugins, errors) = loaded.unwrap_or_else(|error| (Vec::new(), vec![error]));
    for error in errors {
        say!("tarsier: plugin left out: {error}");
    }
    Dispatcher::start(plugins, &config.plugins, nice(config, started_with))
}

/// Gives lines of whole events to the log and to the plugins. How many events the log has lost.
pub(super) fn log(
    journal: &mut Journal,
    plugins: &mut Dispatcher,
    lines: &[u8],
    events: u32,
) -> u64 {
    let lost_before = journal.counters().lost.total();
    journal.append(lines, events);
    let counters = journal.counters();
    // What was lost will not be durable, and is not waited for.
    plugins.push(lines, counters.appended_events - counters.lost.total());
    counters.lost.total() - lost_before
}

impl Daemon {
    /// The same for events that the engine has not selected.
    pub(super) fn log_other(&mut self, lines: &[u8], events: u32) {
        self.totals.others_lost += log(&mut self.journal, &mut self.plugins, lines, events);
        self.note_other();
    }

    /// Whether every event is to be made durable.
    pub(super) fn promises_durability(&self) -> bool {
        self.config.write_logs && matches!(self.config.flush, Flush::Data | Flush::Sync)
    }

    /// Passes on what may be. A log that is suspended makes nothing durable, and plugins go on
    /// without it, as under auditd.
    pub(super) fn pass_on(&mut self) {
        let waits = self.promises_durability() && !self.journal.is_suspended();
        let durable = waits.then(|| self.journal.durable().events);
        self.plugins.release(durable);
        self.plugins.pump();
    }

    /// Passes the rest on and ends them.
    pub(super) fn stop_plugins(&mut self) {
        if self.plugins.is_waiting() {
            // The error is among the actions.
            let _ = self.journal.sync();
        }
        let none = Dispatcher::start(Vec::new(), &self.config.plugins, 0);
        for action in std::mem::replace(&mut self.plugins, none).stop() {
            self.administrator.tell(&action);
        }
    }

    pub(super) fn plugin_statuses(&self) -> Vec<PluginStatus> {
        let states = self.plugins.states().into_iter();
        let status = states.map(|state| PluginStatus {
            name: state.name,
            running: state.is_running,
            queued: state.queued,
            passed: state.passed,
            lost: state.lost,
            restarts: state.restarts,
        });
        status.collect()
    }
}
