//! The daemon's plugins: what they are given, and when.

use super::Daemon;
use crate::run::plugins;
use crate::status::PluginStatus;
use conf::Flush;
use dispatch::Dispatcher;

impl Daemon {
    /// Gives lines of events that the engine has not selected to the log and to the plugins.
    pub(in crate::run) fn log_other(&mut self, lines: &[u8], events: u32) {
        self.totals.others_lost +=
            plugins::log(&mut self.journal, &mut self.plugins, lines, events);
        self.note_other();
    }

    /// Whether every event is to be made durable.
    pub(in crate::run) fn promises_durability(&self) -> bool {
        self.config.write_logs && matches!(self.config.flush, Flush::Data | Flush::Sync)
    }

    /// Passes on what may be. A log that is suspended makes nothing durable, and plugins go on
    /// without it, as under auditd.
    pub(in crate::run) fn pass_on(&mut self) {
        let waits = self.promises_durability() && !self.journal.is_suspended();
        let durable = waits.then(|| self.journal.durable().events);
        self.plugins.release(durable);
        self.plugins.pump();
    }

    /// Passes the rest on and ends them.
    pub(in crate::run) fn stop_plugins(&mut self) {
        if self.plugins.is_waiting() {
            // The error is among the actions.
            let _ = self.journal.sync();
        }
        let none = Dispatcher::start(Vec::new(), &self.config.plugins, 0);
        for action in std::mem::replace(&mut self.plugins, none).stop() {
            self.administrator.tell(&action);
        }
    }

    pub(in crate::run) fn plugin_statuses(&self) -> Vec<PluginStatus> {
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
