//! The engine that captures: eBPF programs with their rings, or the kernel's own audit, whose
//! records come over the audit socket.

use crate::stderr::say;
use capture::{Breach, Counters, HookChange, RuleCount};
use capture::{CaptureError, EbpfEngine, Handover, Helpers, Leftover, Overload, Pins, Selinux};
use capture::{Replacement, RingStream};
use compose::Generation;
use plan::{Plan, ProcessClass, WorkloadClass};
use record::wire::ProcessId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The engine that captures.
pub(crate) enum Engine {
    /// eBPF programs.
    Ebpf(Box<EbpfEngine>),
    /// The kernel's audit. Its rules are loaded through the audit socket, not here.
    Kernel,
    /// Rings that a daemon of another version left.
    Leftover(Box<Leftover>),
}

/// The plan of a rule set, for another thread.
struct PlanOf(Arc<Generation>);

impl Deref for PlanOf {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.0.plan
    }
}

impl Engine {
    /// The engine's name in DAEMON_START records and in the status.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Engine::Ebpf(programs) => programs.name(),
            Engine::Kernel => "kernel",
            Engine::Leftover(_) => "none",
        }
    }

    /// Whether the kernel matches the rules, and filters the records.
    pub(crate) fn is_kernel(&self) -> bool {
        matches!(self, Engine::Kernel)
    }

    fn programs(&self) -> Option<&EbpfEngine> {
        match self {
            Engine::Ebpf(programs) => Some(programs),
            Engine::Kernel | Engine::Leftover(_) => None,
        }
    }

    fn programs_mut(&mut self) -> Option<&mut EbpfEngine> {
        match self {
            Engine::Ebpf(programs) => Some(programs),
            Engine::Kernel | Engine::Leftover(_) => None,
        }
    }

    /// The page for the next daemon, if the capture outlives this one.
    pub(crate) fn handover(&self) -> Option<Arc<Handover>> {
        match self {
            Engine::Ebpf(programs) => programs.handover().cloned(),
            Engine::Leftover(leftover) => Some(leftover.handover().clone()),
            Engine::Kernel => None,
        }
    }

    pub(crate) fn stream(&mut self) -> Option<&mut RingStream> {
        match self {
            Engine::Ebpf(programs) => Some(programs.stream()),
            Engine::Leftover(leftover) => Some(leftover.stream()),
            Engine::Kernel => None,
        }
    }

    /// Passes waiting frames to `take`, with the position in the ring where each ends; see
    /// [`capture::RingStream`]. If there is a page for the next daemon, frames keep their space until
    /// they are settled.
    pub(crate) fn drain(
        &mut self,
        now_ns: u64,
        mut take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        let is_held = self.handover().is_some();
        match self {
            Engine::Ebpf(programs) if is_held => programs.drain_held(now_ns, take),
            Engine::Ebpf(programs) => programs.drain(now_ns, |cpu, frame| take(cpu, 0, frame)),
            Engine::Leftover(leftover) => leftover.stream().drain_held(now_ns, take),
            Engine::Kernel => 0,
        }
    }

    /// Whether no frame is waiting.
    pub(crate) fn is_drained(&mut self) -> bool {
        self.stream().is_none_or(|stream| stream.is_empty())
    }

    /// The pins that this process leaves behind when it ends, if any.
    pub(crate) fn pins(&self) -> Option<&Arc<Pins>> {
        self.programs().and_then(EbpfEngine::pins)
    }

    /// What tells the texts of labels, once, if frames have numbers of labels.
    pub(crate) fn take_selinux(&mut self) -> Option<Selinux> {
        self.programs_mut()?.take_selinux()
    }

    /// Makes programs that were started muted record.
    pub(crate) fn unmute(&self) {
        if let Some(programs) = self.programs() {
            programs.unmute();
        }
    }

    /// Descriptor that is readable when the programs want attention; `None` without programs.
    pub(crate) fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.programs().map(EbpfEngine::doorbell)
    }

    /// A handle for telling the programs which processes are the daemon's helpers; `None` without programs.
    pub(crate) fn helpers(&self) -> Option<Helpers> {
        self.programs().map(EbpfEngine::helpers)
    }

    /// Tells the programs whether the daemon polls the rings by itself for now.
    pub(crate) fn set_awake(&self, awake: bool) {
        if let Some(programs) = self.programs() {
            programs.set_awake(awake);
        }
    }

    /// Sets what happens to calls whose events come faster than they are read.
    pub(crate) fn set_overload(&self, overload: Overload) {
        if let Some(programs) = self.programs() {
            programs.set_overload(overload);
        }
    }

    /// Sets the rules, by their place, whose events wake the daemon at once.
    pub(crate) fn set_urgent(&self, rules: &BTreeSet<u32>) {
        if let Some(programs) = self.programs() {
            programs.set_urgent(rules);
        }
    }

    /// Sets how many events per second are recorded of these rules, by their place.
    pub(crate) fn set_budgets(&mut self, rates: &BTreeMap<u32, u32>) {
        let Some(programs) = self.programs_mut() else {
            return;
        };
        if let Err(error) = programs.set_budgets(rates) {
            say!("tarsier: rate_budgets are not in force: {error}");
        }
    }

    /// Resets the doorbell after it rang.
    pub(crate) fn quiet_doorbell(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.quiet_doorbell();
        }
    }

    /// Begins to put another rule set in force, in a thread with this nice value; `None` without programs, for
    /// which nothing is to be done.
    pub(crate) fn start_replacing(
        &mut self,
        generation: &Arc<Generation>,
        nice: i32,
    ) -> Result<Option<Replacement>, CaptureError> {
        let plan = PlanOf(Arc::clone(generation));
        let programs = self.programs_mut();
        programs
            .map(|programs| programs.start_replacing(plan, nice))
            .transpose()
    }

    /// Undoes changes that others have made to what the programs read. Call it about once a second.
    pub(crate) fn check(&mut self) -> Vec<Breach> {
        let programs = self.programs_mut();
        programs.map(EbpfEngine::check).unwrap_or_default()
    }

    /// Makes a canary call with this number: see [`EbpfEngine::canary`].
    pub(crate) fn canary(&self, number: u64) -> Option<bool> {
        self.programs().and_then(|programs| programs.canary(number))
    }

    /// The hooks that were armed at the start.
    pub(crate) fn started(&self) -> HookChange {
        let programs = self.programs();
        programs.map(EbpfEngine::started).unwrap_or_default()
    }

    /// Removes hooks that no rule needs. Call it about once a second.
    pub(crate) fn tidy(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.tidy();
        }
    }

    /// Makes the programs match nothing any more.
    pub(crate) fn disarm(&mut self) {
        if let Some(programs) = self.programs_mut() {
            programs.disarm();
        }
    }

    /// Ids of the io_uring operations that are still running.
    pub(crate) fn in_flight(&self) -> std::collections::HashSet<u64> {
        let programs = self.programs();
        programs.map(EbpfEngine::in_flight).unwrap_or_default()
    }

    /// The programs' counters; zero without programs.
    pub(crate) fn counters(&self) -> Counters {
        let programs = self.programs();
        programs.map(EbpfEngine::counters).unwrap_or_default()
    }

    /// The programs' counters without the calls that they missed, which costs less.
    pub(crate) fn ring_counters(&self) -> Counters {
        let programs = self.programs();
        programs.map(EbpfEngine::ring_counters).unwrap_or_default()
    }

    /// Counts by rule, and for undecided events; empty if the programs cannot be asked.
    pub(crate) fn rule_counts(&self, rules: usize) -> (Vec<RuleCount>, RuleCount) {
        let programs = self.programs();
        let counts = programs.and_then(|programs| programs.rule_counts(rules).ok());
        counts.unwrap_or_default()
    }

    /// Events lost by uid; empty if the programs cannot be asked.
    pub(crate) fn lost_by_uid(&self) -> BTreeMap<u32, u64> {
        let programs = self.programs();
        let counts = programs.and_then(|programs| programs.lost_by_uid().ok());
        counts.unwrap_or_default()
    }

    /// Tells the programs the class of a cgroup. Returns whether they know it now.
    pub(crate) fn classify(&self, cgroup: u64, epoch: u64, class: &WorkloadClass) -> bool {
        let programs = self.programs();
        programs.is_some_and(|programs| programs.classify(cgroup, epoch, class).is_ok())
    }

    /// Epoch and class that the programs have for a cgroup.
    pub(crate) fn class(&self, cgroup: u64) -> Option<(u64, WorkloadClass)> {
        self.programs()?.class(cgroup)
    }

    /// Makes the programs forget the class of a cgroup.
    pub(crate) fn forget_class(&self, cgroup: u64) {
        if let Some(programs) = self.programs() {
            programs.forget_class(cgroup);
        }
    }

    /// Tells the programs the class of a process. If they do not take it, the daemon goes on deciding.
    pub(crate) fn classify_process(&self, process: ProcessId, epoch: u64, class: &ProcessClass) {
        if let Some(programs) = self.programs() {
            // An error says that there is no room.
            let _ = programs.classify_process(process, epoch, class);
        }
    }

    /// The classes that the programs have for these processes: `None` where there is none of this epoch.
    pub(crate) fn process_classes(
        &self,
        epoch: u64,
        processes: &[ProcessId],
    ) -> Vec<Option<ProcessClass>> {
        let programs = self.programs();
        programs.map_or_else(Vec::new, |programs| {
            programs.process_classes(epoch, processes)
        })
    }

    /// Makes the programs forget the classes of all processes.
    pub(crate) fn forget_processes(&self) {
        if let Some(programs) = self.programs() {
            programs.forget_processes();
        }
    }

    /// Makes the programs forget the class of a process.
    pub(crate) fn forget_process(&self, process: ProcessId) {
        if let Some(programs) = self.programs() {
            programs.forget_process(process);
        }
    }

    /// A FOUND frame of each process, one after the other: see [`EbpfEngine::processes`]. `None` without programs, or if
    /// they cannot be asked now.
    pub(crate) fn processes(&self) -> Option<Vec<u8>> {
        let found = self.programs()?.processes()?;
        let found = found.inspect_err(|error| {
            say!("tarsier: identity: processes from before now are not known: {error}");
        });
        found.ok()
    }

    /// Fill of the fullest ring, in parts per thousand.
    pub(crate) fn fill_per_mille(&self) -> u32 {
        self.programs().map_or(0, EbpfEngine::fill_per_mille)
    }
}
