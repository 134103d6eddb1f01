//! The records that the daemon itself logs: what it did, and what happened to it.

use super::kernel_records::KernelRecords;
use super::Pipeline;
use crate::account::daemon_records::{self, LoggedAction, Who};
use crate::clock::realtime_ns;
use crate::control::asker::Asker;
use crate::control::records;
use crate::event_loop::signals::Sender;
use crate::protocol::RulesInForce;
use capture::HookChange;
use record::{RecordType, Stamp};

impl Pipeline {
    /// Stamp for an event that happens now, with a serial number of this daemon.
    pub(crate) fn stamp(&mut self) -> Stamp {
        Stamp::from_unix_ns(realtime_ns(), self.composing.recorder.serials.next())
    }

    /// Logs an action of the daemon, or something that happened to it.
    pub(crate) fn log_action(&mut self, action: &LoggedAction<'_>) {
        let stamp = self.stamp();
        daemon_records::action(
            &mut self.composing.recorder.encoder,
            &mut self.sink.lines,
            stamp,
            action,
        );
        self.log_own();
    }

    /// Logs that an action requested by `who` was carried out or failed.
    pub(crate) fn log_outcome(&mut self, kind: RecordType, op: &str, who: Who, is_success: bool) {
        self.log_action(&LoggedAction {
            kind,
            op,
            who,
            extra: &[],
            is_success,
        });
    }

    /// Logs DAEMON_START.
    pub(crate) fn log_start(&mut self, rules: &RulesInForce) {
        let (stamp, engine) = (self.stamp(), self.source.engine.name());
        let encoder = &mut self.composing.recorder.encoder;
        daemon_records::start(encoder, &mut self.sink.lines, stamp, engine, rules);
        self.log_own();
    }

    /// Logs an event of one record.
    pub(crate) fn log_record(&mut self, kind: u16, body: &[u8]) {
        let stamp = self.stamp();
        let mut writer = self
            .composing
            .recorder
            .encoder
            .begin(&mut self.sink.lines, stamp);
        writer.raw(kind, body);
        writer.end();
        self.log_own();
    }

    /// Logs an event of one record that a request or signal of `sender` caused, unless a rule drops it.
    pub(crate) fn log_sent(&mut self, kind: u16, body: &[u8], sender: Who) {
        let sender = (sender.pid, sender.uid, sender.auid);
        if !compose::drops_sent(
            &self.composing.generation,
            kind.into(),
            sender,
            &*self.composing.lookups,
        ) {
            self.log_record(kind, body);
        }
    }

    /// Logs which hooks a change of rules armed and removed, if any.
    pub(crate) fn log_armed(&mut self, by: &Asker, change: &HookChange) {
        if change.is_any() {
            let body = records::armed(by, change);
            self.log_sent(records::CONFIG_CHANGE, &body, by.who);
        }
    }

    /// Hands the single event among the lines to the log.
    fn log_own(&mut self) {
        self.sink.output.log_other(&self.sink.lines, 1);
        self.note_other();
        self.sink.lines.clear();
    }

    /// The sender of the last signal to this process: the kernel's audit keeps the login uid even of one that has ended.
    /// Without it, or where it knows none, the sender is the one that came with the signal.
    pub(crate) fn sender(&mut self, of_signal: Option<Sender>) -> Who {
        let kept = self
            .source
            .kernel
            .as_mut()
            .and_then(KernelRecords::signal_sender);
        match kept {
            Some((auid, pid)) if pid != 0 => Who::sender(auid, pid),
            _ => Who::of_signal(of_signal),
        }
    }
}
