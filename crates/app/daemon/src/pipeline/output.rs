//! The destinations of events: the log and the plugins, and the messages about both.

use crate::pipeline::durability::Durability;
use crate::pipeline::notifier::Notifier;
use crate::pipeline::plugins;
use crate::protocol::PluginStatus;
use ::plugins::Dispatcher;
use anyhow::Result;
use conf::plugins::Plugin;
use conf::Config;
use journal::{Journal, OpenError, OwnerAction, Position, RotateError, Severity, Witness};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Pid;
use std::time::Duration;

/// The log, the plugins, which get the same lines, and the notifier for problems with them.
pub(crate) struct Output {
    journal: Journal,
    plugins: Dispatcher,
    notifier: Notifier,
    durability: Durability,
    promise: Promise,
    /// Time of the oldest uncommitted event (CLOCK_MONOTONIC).
    oldest_ns: Option<u64>,
    /// Position up to which the journal had written at the last check.
    noted: Position,
    /// Events of Tarsier itself, and of sources other than the engine, that the log could not take.
    others_lost: u64,
}

/// Promises of the configuration about the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Promise {
    /// `write_logs`: a log is written.
    is_written: bool,
    /// `flush`: every event is made durable.
    is_durable: bool,
}

impl Promise {
    fn of(config: &Config) -> Promise {
        Promise {
            is_written: config.write_logs,
            is_durable: config.write_logs && config.flush.is_durable(),
        }
    }
}

impl Output {
    pub(crate) fn new(
        journal: Journal,
        plugins: Dispatcher,
        notifier: Notifier,
        config: &Config,
    ) -> Output {
        Output {
            journal,
            plugins,
            notifier,
            durability: Durability::default(),
            promise: Promise::of(config),
            oldest_ns: None,
            noted: Position::default(),
            others_lost: 0,
        }
    }

    /// Passes lines of whole events to the log and the plugins. Returns the number of events that
    /// the log has lost.
    pub(crate) fn log(&mut self, lines: &[u8], events: u32) -> u64 {
        let lost_before = self.journal.counters().lost.total();
        self.journal.append(lines, events);
        let counters = self.journal.counters();
        // Lost events never become durable, so plugins do not wait for them.
        self.plugins
            .push(lines, counters.appended_events - counters.lost.total());
        counters.lost.total() - lost_before
    }

    /// Passes on lines of events that the engine did not select.
    pub(crate) fn log_other(&mut self, lines: &[u8], events: u32) {
        self.others_lost += self.log(lines, events);
    }

    /// Notes that an event that happened at this time (CLOCK_MONOTONIC) is about to be logged.
    pub(crate) fn note_time(&mut self, made_ns: impl FnOnce() -> u64) {
        self.oldest_ns.get_or_insert_with(made_ns);
    }

    /// Writes part of the gathered lines.
    pub(crate) fn write_piece(&mut self) {
        self.journal.write_piece();
    }

    /// Commits, and makes what was written durable whatever the flush mode is.
    pub(crate) fn flush(&mut self) {
        // The error is among the actions.
        let _ = self.journal.flush();
    }

    /// Writes the gathered lines. Call [`Output::follow_commit`] next.
    pub(crate) fn commit(&mut self) {
        // The error is among the actions.
        let _ = self.journal.commit();
    }

    /// Notes what became durable, releases events to plugins, and reports problems to the
    /// administrator.
    pub(crate) fn follow_commit(&mut self) {
        self.note_durability();
        self.pass_on();
        let mut actions = self.journal.take_actions();
        actions.extend(self.plugins.take_actions());
        self.carry_out(&actions);
    }

    fn carry_out(&mut self, actions: &[OwnerAction]) {
        for action in actions {
            self.notifier.carry_out(action);
        }
    }

    /// Notes what was written and what became durable since the last commit.
    fn note_durability(&mut self) {
        let written = self.journal.written();
        let events = written.events - self.noted.events;
        let oldest_ns = self.oldest_ns.take_if(|_| events > 0);
        match oldest_ns {
            Some(oldest_ns) if self.promise.is_written => {
                self.durability.written(written, events, oldest_ns);
            }
            _ => {}
        }

        self.noted = written;
        for synced in self.journal.take_synced() {
            self.durability.durable(synced.upto, synced.at_ns);
        }
    }

    /// Releases events to plugins as far as allowed. A suspended log makes nothing durable, and
    /// plugins go on without it, as under auditd.
    fn pass_on(&mut self) {
        let waits = self.promise.is_durable && !self.journal.is_suspended();
        let durable = waits.then(|| self.journal.durable().events);
        self.plugins.release(durable);
        self.plugins.pump();
    }

    /// Whether every event is made durable.
    pub(crate) fn promises_durability(&self) -> bool {
        self.promise.is_durable
    }

    /// Applies another configuration.
    ///
    /// # Errors
    /// The log cannot be as configured; then nothing has changed.
    pub(crate) fn reconfigure(
        &mut self,
        config: &Config,
        plugins: Vec<Plugin>,
        started_nice: i32,
    ) -> Result<()> {
        // The log can refuse, the plugins cannot.
        self.journal.reconfigure(&config.log_file, config)?;
        let nice = plugins::nice(config, started_nice);
        self.plugins.reload(plugins, &config.plugins, nice);
        self.promise = Promise::of(config);
        Ok(())
    }

    /// Calls `witness` before and after each write to the log.
    pub(crate) fn set_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.journal.set_witness(witness);
    }

    /// Rotates the log.
    pub(crate) fn rotate(&mut self) -> Result<(), RotateError> {
        self.journal.rotate().map(drop)
    }

    /// Resumes a suspended log, and plugins that were given up.
    pub(crate) fn resume(&mut self) -> Result<(), OpenError> {
        self.plugins.resume();
        self.journal.resume()
    }

    /// Reaps programs that have ended.
    pub(crate) fn child_ended(&mut self) {
        self.notifier.reap();
        self.plugins.child_ended();
    }

    /// Says this on standard error and to syslog.
    pub(crate) fn notify(&self, severity: Severity, text: &str) {
        self.notifier.notify(severity, text);
    }

    /// Has the machine halted by the process that starts programs. Returns only if that failed.
    pub(crate) fn halt(&self) -> std::io::Error {
        self.notifier.halt()
    }

    /// Adds the descriptors to poll.
    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        self.plugins.poll_fds(fds);
        // Only plugins wait for a sync that runs beside the loop.
        if self.plugins.is_waiting() {
            let synced = self.journal.sync_fd();
            fds.extend(synced.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
    }

    /// Time until a plugin that ended is started again.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        self.plugins.due_in()
    }

    /// The log.
    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The thread that syncs the log, if any.
    pub(crate) fn sync_thread(&self) -> Option<Pid> {
        self.journal.sync_thread()
    }

    /// Events lost by the log: those of the engine, and all others.
    pub(crate) fn lost(&self) -> [u64; 2] {
        let all = self.journal.counters().lost.total();
        [all - self.others_lost, self.others_lost]
    }

    /// p50, p99 and maximum, in microseconds, of the time from a call until its record is durable.
    pub(crate) fn durable_after(&self) -> Option<[u64; 3]> {
        let quantile = |share| self.durability.quantile_us(share);
        Some([quantile(0.5)?, quantile(0.99)?, quantile(1.0)?])
    }

    /// The state of each plugin.
    pub(crate) fn plugin_statuses(&self) -> Vec<PluginStatus> {
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

    /// Description of where the log is.
    pub(crate) fn log_text(&self) -> String {
        if self.promise.is_written {
            format!("log {}", self.journal.path().display())
        } else {
            "no log (write_logs = no)".to_owned()
        }
    }

    /// Releases the events that plugins wait for and ends them, then closes the log. Returns the
    /// number of the engine's events that it has lost.
    pub(crate) fn close(mut self) -> u64 {
        if self.plugins.is_waiting() {
            // The error is among the actions.
            let _ = self.journal.sync();
        }
        let actions = self.plugins.stop();
        let (counters, of_journal) = self.journal.close();
        for action in actions.iter().chain(&of_journal) {
            self.notifier.carry_out(action);
        }
        counters.lost.total() - self.others_lost
    }
}
