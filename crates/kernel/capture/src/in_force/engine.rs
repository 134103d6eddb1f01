//! The engine: loads and arms the programs, and reads what they send.

use crate::attach::operations::Operations;
use crate::attach::processes;
use crate::attach::programs::Programs;
use crate::attach::trampoline::Trampolines;
use crate::attach::uring;
use crate::check::canary;
use crate::check::integrity::Breach;
use crate::error::CaptureError;
use crate::in_force::hook_change::HookChange;
use crate::in_force::hooks::Hooks;
use crate::in_force::intake::Intake;
use crate::in_force::leftover;
use crate::in_force::shared_hooks::{Replacement, SharedHooks};
use crate::kernel::dcache::Dcache;
use crate::kernel::entries;
use crate::kernel::selinux::Selinux;
use crate::load::options::{CaptureOptions, Overload};
use crate::load::{self, object};
use crate::pins::{Handover, Pins};
use crate::rings::RingStream;
use crate::shared::control::{Control, Helpers};
use crate::shared::counters::{handle, Counters, Counts, RuleCount};
use crate::shared::doorbell::Doorbell;
use crate::shared::overload::{rule_bits, Budgets};
use crate::shared::process_classes::ProcessClasses;
use crate::shared::workloads::Classes;
use bpf::load::refused;
use libbpf_rs::{MapHandle, Object};
use plan::{tables, Form, Gap, Plan, ProcessClass, WorkloadClass};
use record::wire::ProcessId;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// A loaded and armed eBPF engine: trampoline or tracepoint, as the plan says. Dropping it removes every hook,
/// unless the capture is pinned and left.
pub struct EbpfEngine {
    hooks: SharedHooks,
    control: Arc<Control>,
    form: Form,
    /// Pins of the capture, if it outlives this process.
    pinned: Option<Pinned>,
    counts: Counts,
    uring_requests: MapHandle,
    classes: Classes,
    process_classes: ProcessClasses,
    intake: Intake,
    bell: Doorbell,
    budgets: Budgets,
    is_disarmed: bool,
    /// Parts that the programs use and the kernel lacks.
    gaps: Vec<Gap>,
    started: HookChange,
    /// Until somebody takes it.
    selinux: Option<Selinux>,
}

/// A capture that outlives this process.
struct Pinned {
    pins: Arc<Pins>,
    /// The page for the next daemon.
    handover: Arc<Handover>,
}

impl EbpfEngine {
    /// Loads the programs and arms `plan`. The calls of process `daemon_pid` are never audited. The capture ends
    /// with this process.
    pub fn start(
        plan: &Plan,
        options: &CaptureOptions,
        daemon_pid: u32,
    ) -> Result<EbpfEngine, CaptureError> {
        EbpfEngine::start_in(None, plan, options, daemon_pid)
    }

    /// Starts a capture that is pinned in `pins` and outlives this process. An existing capture with the same
    /// programs is taken over, including the events in its rings, whose size does not change, and no call goes
    /// unseen. Ask [`Leftover`] for it before.
    pub fn start_pinned(
        pins: &Arc<Pins>,
        plan: &Plan,
        options: &CaptureOptions,
        daemon_pid: u32,
    ) -> Result<EbpfEngine, CaptureError> {
        EbpfEngine::start_in(Some(pins), plan, options, daemon_pid)
    }

    fn start_in(
        pins: Option<&Arc<Pins>>,
        plan: &Plan,
        options: &CaptureOptions,
        daemon_pid: u32,
    ) -> Result<EbpfEngine, CaptureError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(refused("number of CPUs"))?;
        let form = plan.form();
        let gaps = object::gaps_that_leave_enough(form)?;
        let (functions, uring) = object::what_can_be_hooked(form);

        // A capture with the same programs goes on: its maps, rings and links are used.
        let layout = leftover::layout(cpus, form);
        let left = pins.map(|pins| leftover::find_like(pins, layout));
        let left = left.transpose()?.flatten();
        let from = if left.is_some() { pins } else { None };
        let loaded = object::load(cpus, plan, functions, uring.as_ref(), from);
        let loaded = loaded.map_err(|error| object::without(&gaps, error))?;
        let (object, vfs) = (loaded.object, loaded.vfs);

        let trampolines = functions
            .map(|_| Trampolines::new(&object, pins))
            .transpose()?;
        if let Some(uring) = &uring {
            uring.set_bodies(&object)?;
        }

        // Set before `replace` arms the first hook, so that every new hook finds these values.
        let control = Arc::new(Control::map(&object)?);
        let selinux = tell_of_kernel(&control, loaded.dcache);

        let counts = Counts::open(&object, cpus)?;
        let stream = RingStream::new(match from {
            Some(pins) => leftover::rings(pins)?,
            None => object::make_rings(&object, cpus, options)?,
        });

        let bell = Doorbell::open(&object)?;
        control.set_daemon(daemon_pid)?;
        object::set_limits(&control, &stream, options, from.is_some());
        control.set_copies(form.copies);
        control.set_muted(options.is_muted && from.is_none());

        let uring_requests = handle(&object, "uring_requests")?;
        let (classes, process_classes) = classes(&object)?;
        let budgets = Budgets::new(handle(&object, "budgets")?);

        let programs = Programs::new(object, loaded.left_out, form, pins);
        let operations = Operations::new(uring);
        let hooks = Hooks::new(programs, control.clone(), vfs, operations, trampolines)?;

        // Maps and page are pinned before the first link: what is armed belongs to a capture that the next
        // daemon finds.
        let object = &hooks.programs.object;
        let pinned = pins.map(|pins| Pinned::keep(pins, left, object, layout));
        let pinned = pinned.transpose()?;

        let mut engine = EbpfEngine {
            hooks: SharedHooks::new(hooks),
            control,
            form,
            pinned,
            counts,
            uring_requests,
            classes,
            process_classes,
            intake: Intake::new(stream),
            bell,
            budgets,
            is_disarmed: false,
            gaps,
            started: HookChange::default(),
            selinux,
        };

        // All that hooks use is in place: now they are armed.
        engine.started = engine.replace(plan)?;

        // Hooks of an earlier daemon that `replace` did not take over are not needed.
        engine.drop_unneeded();
        load::forget();

        // A start that failed has left the earlier daemon's hooks in force. From here on, hooks that are
        // dropped are unpinned.
        if let Some(pins) = pins {
            pins.leave(false);
        }
        Ok(engine)
    }

    /// What tells the texts of the labels whose numbers are in frames; `None` if it was taken, or frames have none.
    pub fn take_selinux(&mut self) -> Option<Selinux> {
        self.selinux.take()
    }

    /// The directory where the capture is pinned, if it is.
    pub fn pins(&self) -> Option<&Arc<Pins>> {
        self.pinned.as_ref().map(|pinned| &pinned.pins)
    }

    /// The page for the next daemon, if the capture is pinned.
    pub fn handover(&self) -> Option<&Arc<Handover>> {
        self.pinned.as_ref().map(|pinned| &pinned.handover)
    }

    /// Name of the engine: `trampoline` or `tracepoint`.
    pub fn name(&self) -> &'static str {
        if self.form.trampoline {
            "trampoline"
        } else {
            "tracepoint"
        }
    }

    /// Parts that the programs use and the kernel lacks; each gap costs a feature.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The hooks that were armed at the start. Those that an earlier daemon had armed count as well.
    pub fn started(&self) -> HookChange {
        self.started
    }

    /// Puts another rule set in force: arms its hooks, swaps the tables in one step, and then disarms what is no
    /// longer needed. After an error the old rule set stays in force.
    pub fn replace(&mut self, plan: &Plan) -> Result<HookChange, CaptureError> {
        self.hooks.lock().replace(plan)
    }

    /// [`EbpfEngine::replace`] in a thread of its own with this nice value, so that the rings can be read meanwhile:
    /// a program that is attached takes milliseconds, and a rule set may need hundreds.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn start_replacing(
        &mut self,
        plan: impl Deref<Target = Plan> + Send + 'static,
        nice: i32,
    ) -> Result<Replacement, CaptureError> {
        self.hooks.start_replacing(plan, nice)
    }

    /// Descriptor that is readable when the programs want the daemon's attention.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.bell.fd()
    }

    /// A handle for telling the programs which processes are the daemon's helpers.
    pub fn helpers(&self) -> Helpers {
        self.control.helpers()
    }

    /// Sets whether the daemon polls the rings by itself for now, so that programs need not ring.
    pub fn set_awake(&self, awake: bool) {
        self.control.set_awake(awake);
    }

    /// Makes the programs assume that the kernel has the calls of x32, or lacks them. For tests, whose kernels seldom
    /// have them.
    #[doc(hidden)]
    pub fn assume_x32(&self, has_calls: bool) {
        self.control.set_x32(has_calls);
    }

    /// Reads what the programs wrote to the doorbell, so that it is quiet again.
    pub fn quiet_doorbell(&mut self) {
        self.bell.quiet();
    }

    /// Makes the programs match nothing any more: calls that end from now on are not recorded, not even by another
    /// daemon.
    pub fn disarm(&mut self) {
        self.is_disarmed = true;
        if let Some(pins) = self.pins() {
            pins.leave(false);
        }
        self.control.set_watched(&[0; tables::CALLS / 64]);
        self.hooks.lock().drop_all();
    }

    /// Makes the programs record, if they were started muted.
    pub fn unmute(&self) {
        self.control.set_muted(false);
    }

    /// Fill of the fullest ring, in parts per thousand.
    pub fn fill_per_mille(&self) -> u32 {
        self.intake.stream.fill_per_mille()
    }

    /// All rings as one stream.
    pub fn stream(&mut self) -> &mut RingStream {
        &mut self.intake.stream
    }

    /// [`RingStream::drain`], which also shows waiting calls that their events are being read.
    pub fn drain(&mut self, now_ns: u64, take: impl FnMut(usize, &[u8]) -> bool) -> usize {
        self.intake.drain(&self.control, now_ns, take)
    }

    /// [`RingStream::drain_held`], which also shows waiting calls that their events are being read.
    pub fn drain_held(
        &mut self,
        now_ns: u64,
        take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        self.intake.drain_held(&self.control, now_ns, take)
    }

    /// The sums of the counters of all CPUs.
    pub fn counters(&self) -> Counters {
        Counters {
            missed: self.hooks.missed(),
            ..self.ring_counters()
        }
    }

    /// The counters without the calls that programs missed, for which the kernel has to be asked about each program.
    pub fn ring_counters(&self) -> Counters {
        let mut counters = self.counts.read();
        counters.processes_lost += self.hooks.missed_changes();
        counters
    }

    /// Counts of the first `rules` rules, and counts of undecided events.
    pub fn rule_counts(&self, rules: usize) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
        self.counts.of_rules(rules)
    }

    /// Events lost, by real uid of the task, for the first uids of the capture that lost any.
    pub fn lost_by_uid(&self) -> Result<BTreeMap<u32, u64>, CaptureError> {
        self.counts.of_uids()
    }

    /// Undoes changes that somebody else has made to what the programs read, and returns them. Does nothing while rules
    /// are being replaced. Call it about once a second.
    pub fn check(&mut self) -> Vec<Breach> {
        let hooks = self.hooks.if_unused();
        let mut breaches = hooks.map(|mut hooks| hooks.check()).unwrap_or_default();
        breaches.extend(self.intake.restore());
        breaches.extend(self.budgets.check());
        breaches.extend(self.intake.check(&self.counts));
        breaches
    }

    /// Makes canary call number `number`, which is not 0. Returns whether a hook saw it: then a frame with this number
    /// comes through a ring. `None`: no hook is armed for it, or hooks are being changed, and no call was made.
    pub fn canary(&self, number: u64) -> Option<bool> {
        if !self.hooks.if_unused()?.armed.sees(canary::CALL) {
            return None;
        }
        canary::call(number);
        Some(self.counts.has_canary(number))
    }

    /// Sets what happens to calls whose events come faster than they are read. The default is to wait.
    pub fn set_overload(&self, overload: Overload) {
        self.control.set_throttle(overload == Overload::Throttle);
    }

    /// Sets the rules, by place in the plan, whose events wake the daemon at once. If there is any, so do events
    /// that the second stage has to decide.
    pub fn set_urgent<'a>(&self, rules: impl IntoIterator<Item = &'a u32>) {
        self.control.set_urgent(&rule_bits(rules));
    }

    /// Sets how many events per second may be recorded of each of these rules, by place in the plan. Other rules have
    /// no limit. Events over a budget are counted ([`RuleCount::suppressed`]). Budgets belong to places: set none
    /// before another rule set is put in force.
    ///
    /// # Errors
    /// The kernel does not take them: then no rule has a budget.
    pub fn set_budgets(&mut self, rates: &BTreeMap<u32, u32>) -> Result<(), CaptureError> {
        self.budgets.set(rates, &self.control)
    }

    /// Removes hooks that an earlier daemon left and that are not needed.
    fn drop_unneeded(&mut self) {
        let Some(pins) = self.pins().cloned() else {
            return;
        };
        let mut hooks = self.hooks.lock();
        pins.unhook_but(&hooks.pinned_names());
        if let Some(trampolines) = &mut hooks.trampolines {
            trampolines.forget_left();
        }
    }

    /// Starts to remove hooks that no rule set has needed for a while. Call it about once a second.
    pub fn tidy(&mut self) {
        if let Some(mut hooks) = self.hooks.if_unused() {
            hooks.tidy();
        }
    }

    /// Ids of the io_uring operations that are still running.
    pub fn in_flight(&self) -> std::collections::HashSet<u64> {
        uring::in_flight(&self.uring_requests)
    }

    /// Tells the programs the class of the cgroup with this id, for rules whose names have this epoch.
    ///
    /// # Errors
    /// There is no room, or no memory: events of its tasks are then left undecided.
    pub fn classify(
        &self,
        cgroup: u64,
        epoch: u64,
        class: &WorkloadClass,
    ) -> Result<(), CaptureError> {
        self.classes.set(cgroup, epoch, class)
    }

    /// Makes the programs forget the class of a cgroup.
    pub fn forget_class(&self, cgroup: u64) {
        self.classes.forget(cgroup);
    }

    /// Epoch and class that the programs have for a cgroup.
    pub fn class(&self, cgroup: u64) -> Option<(u64, WorkloadClass)> {
        self.classes.get(cgroup)
    }

    /// Tells the programs the class of a process, for rules whose names have this epoch, unless they know it.
    ///
    /// # Errors
    /// There is no room, or no memory: its events are then left undecided.
    pub fn classify_process(
        &self,
        process: ProcessId,
        epoch: u64,
        class: &ProcessClass,
    ) -> Result<(), CaptureError> {
        self.process_classes.set(process, epoch, class)
    }

    /// The classes that the programs have for these processes: `None` where there is none of this epoch.
    pub fn process_classes(
        &self,
        epoch: u64,
        processes: &[ProcessId],
    ) -> Vec<Option<ProcessClass>> {
        self.process_classes.get(epoch, processes)
    }

    /// Makes the programs forget the classes of all processes.
    pub fn forget_processes(&self) {
        self.process_classes.forget_all();
    }

    /// Makes the programs forget the class of a process.
    pub fn forget_process(&self, process: ProcessId) {
        self.process_classes.forget(process);
    }

    /// A FOUND frame of each process that this one's pid namespace shows, one after the other: see
    /// `struct tarsier_process`. `None` while rules are being replaced.
    ///
    /// # Errors
    /// The kernel does not allow it.
    pub fn processes(&self) -> Option<Result<Vec<u8>, CaptureError>> {
        let mut hooks = self.hooks.if_unused()?;
        Some(processes::found(&mut hooks.programs))
    }

    /// Number of CPUs that have a ring.
    pub fn cpus(&self) -> usize {
        self.counts.cpus()
    }
}

/// The classes of cgroups and processes.
fn classes(object: &Object) -> Result<(Classes, ProcessClasses), CaptureError> {
    let workloads = handle(object, "workloads")?;
    let processes = handle(object, "process_classes")?;
    Ok((Classes::new(workloads), ProcessClasses::new(processes)))
}

impl Pinned {
    /// Pins the capture whose maps are those of `object`, unless `left` is pinned already: see [`leftover::keep`].
    fn keep(
        pins: &Arc<Pins>,
        left: Option<Handover>,
        object: &Object,
        layout: ([u64; 4], u64),
    ) -> Result<Pinned, CaptureError> {
        match leftover::keep(pins, left, object, layout) {
            Ok(handover) => Ok(Pinned {
                pins: pins.clone(),
                handover: Arc::new(handover),
            }),
            Err(error) => {
                // The start may be repeated with the same directory.
                pins.clear();
                Err(error)
            }
        }
    }
}

impl Drop for EbpfEngine {
    fn drop(&mut self) {
        // A daemon that panics is treated like one that is killed.

        let has_failed = std::thread::panicking() && !self.is_disarmed;
        let is_left = |pins: &Arc<Pins>| pins.is_left() || has_failed;
        match self.pins() {
            Some(pins) if is_left(pins) => return pins.leave(true),
            Some(pins) if self.is_disarmed => {
                pins.remove();
            }
            // A failed start may be repeated with the same directory and other hooks.
            Some(pins) => pins.clear(),
            None => {}
        }
        // Close the gates first: nothing more is matched while links are removed one by one.
        self.control.set_watched(&[0; tables::CALLS / 64]);
    }
}

/// Tells the programs what they need to know of this kernel. Returns SELinux, if labels can be read.
fn tell_of_kernel(control: &Control, dcache: Option<Dcache>) -> Option<Selinux> {
    control.set_x32(entries::x32_calls());
    control.set_canary(None);
    control.set_dcache(dcache);

    let selinux = Selinux::of_this_kernel();
    control.set_labels(selinux.as_ref().map(Selinux::places));
    selinux
}
