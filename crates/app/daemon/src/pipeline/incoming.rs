//! The way of records from the audit socket to the log: some BPF records are left out or held back, and all are grouped
//! into events.

use crate::clock::monotonic_ns;
use crate::pipeline::grouped::{Grouped, GroupedSink};
use crate::pipeline::own_loads::{LoadVerdict, OwnLoads};
use crate::pipeline::program_loads::ProgramLoads;
use record::RecordType;

/// Interval at which programs whose end was not reported are forgotten.
const FORGET_NS: u64 = 10_000_000_000;

/// The records on their way.
#[derive(Default)]
pub(crate) struct Incoming {
    grouped: Grouped,
    /// Loaded BPF programs, while it is not known whether the call is recorded.
    program_loads: ProgramLoads,
    own_loads: OwnLoads,
    forgotten_ns: u64,
}

impl Incoming {
    /// Takes a record; appends events that are now complete. Returns how many. `watches_bpf` says whether a rule is
    /// about bpf(2), so that the event of the call may come.
    pub(crate) fn take(
        &mut self,
        kind: u16,
        message: &[u8],
        watches_bpf: impl Fn() -> bool,
        sink: &mut GroupedSink<'_>,
    ) -> u32 {
        let mut events = 0;
        // The kernel's records of Tarsier's own programs are left out: a record of the daemon says who wanted the
        // change.
        match self.own_loads.take(kind, message) {
            LoadVerdict::Keep => return 0,
            LoadVerdict::Write => {}
            LoadVerdict::WriteAfter(program) => {
                events += self.grouped.push(RecordType::BPF.netlink(), &program, sink);
            }
        }

        let waits = RecordType::from(kind) == RecordType::BPF
            && self
                .program_loads
                .take(message, watches_bpf(), monotonic_ns());
        if !waits {
            events += self.grouped.push(kind, message, sink);
        }
        events
    }

    /// Notes that the loading of a program was recorded: the kernel's record of it is dropped.
    pub(crate) fn recorded(&mut self, prog_id: u32, now_ns: u64) {
        self.program_loads.recorded(prog_id, now_ns);
    }

    /// Appends the BPF records that were undecided and are to be written, and those that have waited for an event until
    /// `now_ns`. Returns the number of events.
    pub(crate) fn end_waiting(&mut self, now_ns: u64, sink: &mut GroupedSink<'_>) -> u32 {
        let (mut events, at_end) = (0, now_ns == u64::MAX);
        for (kind, message) in self.own_loads.decided(at_end) {
            let is_bpf = RecordType::from(kind) == RecordType::BPF;
            // The event of the call has come, or comes soon if a rule selects it.
            if !is_bpf || !self.program_loads.take(&message, !at_end, now_ns) {
                events += self.grouped.push(kind, &message, sink);
            }
        }

        while let Some(message) = self.program_loads.overdue(now_ns) {
            events += self.grouped.push(RecordType::BPF.netlink(), &message, sink);
        }

        if now_ns.saturating_sub(self.forgotten_ns) >= FORGET_NS {
            self.forgotten_ns = now_ns;
            self.own_loads.forget_gone();
        }
        events
    }

    /// Appends the incomplete events as they are. Returns how many.
    pub(crate) fn end(&mut self, sink: &mut GroupedSink<'_>) -> u32 {
        self.grouped.end(sink)
    }
}
