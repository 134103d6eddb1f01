//! The engine that captures: programs with their rings, or the kernel's own audit, whose records
//! come over the audit socket.

use anyhow::Result;
use capture::tracepoint::{Counters, RuleCount};
use capture::{CaptureError, Overload, Tracepoint};
use plan::Plan;
use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

/// What captures.
pub(super) enum Engine {
    /// eBPF programs.
    Tracepoint(Box<Tracepoint>),
    /// The kernel's audit. Its rules are the audit socket's affair.
    Kernel,
}

impl Engine {
    /// Its name in DAEMON_START and in status.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Engine::Tracepoint(programs) => programs.name(),
            Engine::Kernel => "kernel",
        }
    }

    /// Whether the kernel matches the rules, and filters the records.
    pub(super) fn is_kernel(&self) -> bool {
        matches!(self, Engine::Kernel)
    }

    fn programs(&self) -> Option<&Tracepoint> {
        match self {
            Engine::Tracepoint(programs) => Some(programs),
            Engine::Kernel => None,
        }
    }

    fn programs_mut(&mut self) -> Option<&mut Tracepoint> {
        match self {
            Engine::Tracepoint(programs) => Some(programs),
            Engine::Kernel => None,
        }
    }

    /// Gives the frames that are there to `take`; see [`capture::Stream`].
    pub(super) fn drain(&mut self, now_ns: u64, take: impl FnMut(usize, &[u8]) -> bool) -> usize {
        let programs = self.programs_mut();
        programs.map_or(0, |programs| programs.stream().drain(now_ns, take))
    }

    /// Whether no frame waits.
    pub(super) fn is_drained(&mut self) -> bool {
        let programs = self.programs_mut();
        programs.is_none_or(|programs| programs.stream().is_empty())
    }

    /// Readable when the programs want attention; none if there are none.
    pub(super) fn doorbell(&self) -> Result<Option<BorrowedFd<'_>>> {
        Ok(self.programs().map(Tracepoint::doorbell).transpose()?)
    }

    /// Whether the daemon looks by itself for now.
    pub(super) fn set_awake(&self, awake: bool) {
        if let Some(programs) = self.programs() {
            programs.set_awake(awake);
        }
    }

    /// What happens to calls whose events come faster than they are read.
    pub(super) fn set_overload(&self, overload: Overload) {
        if let Some(programs) = self.programs() {
            programs.set_overload(overload);
        }
    }

    /// The rules, by place, whose events wake the daemon at once.
    pub(super) fn set_urgent(&self, rules: &BTreeSet<u32>) {
        if let Some(programs) = self.programs() {
            programs.set_urgent(rules);
        }
    }

    /// After the doorbell rang.
    pub(super) fn quiet_doorbell(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.quiet_doorbell();
        }
    }

    /// Puts another rule set in force.
    pub(super) fn replace(&mut self, plan: &Plan) -> Result<(), CaptureError> {
        let programs = self.programs_mut();
        programs.map_or(Ok(()), |programs| programs.replace(plan))
    }

    /// Every second or so: takes down hooks that no rule needs.
    pub(super) fn tidy(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.tidy();
        }
    }

    /// Matches nothing any more.
    pub(super) fn disarm(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.disarm();
        }
    }

    /// Ids of the events of io_uring operations that are under way.
    pub(super) fn in_flight(&self) -> std::collections::HashSet<u64> {
        let programs = self.programs();
        programs.map(Tracepoint::in_flight).unwrap_or_default()
    }

    /// What the programs count; nothing if they cannot be asked.
    pub(super) fn counters(&self) -> Counters {
        let counters = self
            .programs()
            .and_then(|programs| programs.counters().ok());
        counters.unwrap_or_default()
    }

    /// What they count by rule, and for undecided events; nothing if they cannot be asked.
    pub(super) fn rule_counts(&self, rules: usize) -> (Vec<RuleCount>, RuleCount) {
        let programs = self.programs();
        let counts = programs.and_then(|programs| programs.rule_counts(rules).ok());
        counts.unwrap_or_default()
    }

    /// The fullest ring, parts per thousand.
    pub(super) fn fill_per_mille(&self) -> u32 {
        self.programs().map_or(0, Tracepoint::fill_per_mille)
    }
}
