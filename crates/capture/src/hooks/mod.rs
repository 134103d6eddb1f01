//! The eBPF engines, trampoline and tracepoint: loads the programs, arms what a plan needs, and replaces one rule
//! set with another without a gap.

mod arm;
mod atomic;
mod canary;
mod control;
mod copies;
mod counters;
mod detach_queue;
mod gate_cells;
mod gates;
mod hook_change;
mod integrity;
mod leftover;
mod map_access;
pub(crate) mod map_options;
mod operation_probes;
mod operations;
mod options;
mod overload;
mod perf;
pub(crate) mod probes;
mod programs;
mod replace;
mod shared_hooks;
mod sums;
mod trampoline;
mod uring;
pub(crate) mod vfs_hooks;

use counters::CpuStates;
pub use counters::{Counters, RuleCount, LOSS_CAUSES};
pub use hook_change::HookChange;
pub use integrity::Breach;
pub use leftover::Leftover;
pub use options::{Options, Overload, RING_BYTES_MIN};
pub(crate) use programs::attach_trace;
pub use shared_hooks::Replacement;
use shared_hooks::SharedHooks;
pub(crate) use trampoline::attaches as trampolines_attach;
pub(crate) use uring::{enumerator, Uring};
pub use vfs_hooks::functions_can_be_hooked;

use self::map_access::MapAccess;
use crate::error::{system, CaptureError};
use crate::gaps;
use crate::hooks::map_options::map_options;
use crate::hooks::vfs_hooks::VfsHooks;
use crate::kernel::syscall_functions::{self, Functions};
use crate::kernel::{entries, kernel_btf};
use crate::own_programs::own_programs;
use crate::pins::{Handover, Pins};
use crate::rings::Ring;
use crate::rings::Stream;
use arm::Armed;
use bpf::load::refused;
use bpf::shared::{DOORBELL_BYTES, WORKS_PER_CPU};
use control::Control;
pub use control::Helpers;
use detach_queue::DetachQueue;
use integrity::Told;
use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject};
use operations::Operations;
use plan::{tables, Form, Gap, Plan};
use programs::Programs;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use sums::Sums;
use trampoline::Trampolines;

/// The maps that the daemon reads while hooks may be changed.
struct ReadMaps {
    doorbell: MapHandle,
    rule_counts: MapHandle,
    budgets: MapHandle,
    lost_by_uid: MapHandle,
    uring_requests: MapHandle,
}

impl ReadMaps {
    fn of(programs: &Programs) -> Result<ReadMaps, CaptureError> {
        let map = |name: &str| {
            let map = programs.map(name)?;
            let handle = MapHandle::try_from(&map).map_err(refused(format!("map {name}")))?;
            Ok::<_, CaptureError>(handle)
        };
        Ok(ReadMaps {
            doorbell: map("doorbell")?,
            rule_counts: map("rule_counts")?,
            budgets: map("budgets")?,
            lost_by_uid: map("lost_by_uid")?,
            uring_requests: map("uring_requests")?,
        })
    }
}

/// The hooks in force, with the programs and queues needed to change them.
struct Hooks {
    programs: Programs,
    control: Arc<Control>,
    vfs: VfsHooks,
    armed: Armed,
    detach_queue: DetachQueue,
    trampolines: Option<Trampolines>,
    operations: Operations,
    /// Number of calls missed by probes that are gone.
    missed_by_probes: u64,
    /// What the maps have to contain.
    told: Told,
    /// Breaches that were found before the last replacement.
    breaches: Vec<Breach>,
}

impl Hooks {
    /// Starts without hooks.
    fn new(
        programs: Programs,
        control: Arc<Control>,
        vfs: VfsHooks,
        operations: Operations,
        trampolines: Option<Trampolines>,
    ) -> Result<Hooks, CaptureError> {
        Ok(Hooks {
            told: Told::new(&programs)?,
            programs,
            control,
            vfs,
            operations,
            trampolines,
            armed: Armed::default(),
            detach_queue: DetachQueue::default(),
            missed_by_probes: 0,
            breaches: Vec::new(),
        })
    }
}

/// A loaded and armed eBPF engine: trampoline or tracepoint, as the plan says. Dropping it removes every hook,
/// unless the capture is pinned and left.
pub struct EbpfEngine {
    hooks: SharedHooks,
    control: Arc<Control>,
    form: Form,
    /// Where the capture is pinned, if it outlives this process.
    pins: Option<Arc<Pins>>,
    maps: ReadMaps,
    cpu_states: CpuStates,
    stream: Stream,
    bell: Stream,
    sums: Sums,
    /// Events per second that may be recorded of the rules at these places.
    budgets: BTreeMap<u32, u32>,
    cpus: usize,
    /// The page for the next daemon, if the capture outlives this process.
    handover: Option<Arc<Handover>>,
    is_disarmed: bool,
    /// What the kernel lacks of what the programs use.
    gaps: Vec<Gap>,
    started: HookChange,
}

impl EbpfEngine {
    /// Loads the programs and arms `plan`. The calls of process `daemon_pid` are never audited. The capture ends
    /// with this process.
    pub fn start(
        plan: &Plan,
        options: &Options,
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
        options: &Options,
        daemon_pid: u32,
    ) -> Result<EbpfEngine, CaptureError> {
        EbpfEngine::start_in(Some(pins), plan, options, daemon_pid)
    }

    fn start_in(
        pins: Option<&Arc<Pins>>,
        plan: &Plan,
        options: &Options,
        daemon_pid: u32,
    ) -> Result<EbpfEngine, CaptureError> {
        let cpus = libbpf_rs::num_possible_cpus().map_err(refused("number of CPUs"))?;
        let form = plan.form();
        let gaps = gaps_that_leave_enough(form)?;
        let (functions, uring) = what_can_be_hooked(form);
        let layout = leftover::layout(cpus, form);
        let left = match pins {
            Some(pins) => leftover::find_like(pins, layout)?,
            None => None,
        };
        let from = pins.filter(|_| left.is_some());
        let (object, vfs) = load(cpus, form, functions, uring.as_ref(), from)
            .map_err(|error| without(&gaps, error))?;
        let trampolines = functions
            .map(|_| Trampolines::new(&object, pins))
            .transpose()?;
        if let Some(uring) = &uring {
            uring.set_bodies(&object)?;
        }
        let control = Arc::new(Control::map(&object)?);
        control.set_x32(entries::x32_calls());
        control.set_canary(None);
        let cpu_states = CpuStates::map(&object, cpus)?;
        let stream = Stream::new(match from {
            Some(pins) => leftover::rings(pins)?,
            None => make_rings(&object, cpus, options)?,
        });
        let bell = doorbell(&object)?;
        control.set_daemon(daemon_pid)?;
        set_limits(&control, &stream, options, from.is_some());
        control.set_copies(form.copies);
        control.set_muted(options.is_muted && from.is_none());
        let programs = Programs::new(object, form, pins);
        let operations = Operations::new(uring);
        let maps = ReadMaps::of(&programs)?;
        let hooks = Hooks::new(programs, control.clone(), vfs, operations, trampolines)?;
        let mut engine = EbpfEngine {
            hooks: SharedHooks::new(hooks),
            control,
            form,
            pins: pins.cloned(),
            maps,
            cpu_states,
            stream,
            bell: Stream::new(vec![bell]),
            sums: Sums::default(),
            budgets: BTreeMap::new(),
            cpus,
            handover: None,
            is_disarmed: false,
            gaps,
            started: HookChange::default(),
        };
        if let Some(pins) = pins {
            engine.keep(pins, left, layout)?;
        }
        engine.started = engine.replace(plan)?;
        engine.drop_unneeded();
        kernel_btf::forget();
        if let Some(pins) = pins {
            pins.leave(false);
        }
        Ok(engine)
    }

    /// The directory where the capture is pinned, if it is.
    pub fn pins(&self) -> Option<&Arc<Pins>> {
        self.pins.as_ref()
    }

    /// The page for the next daemon, if the capture is pinned.
    pub fn handover(&self) -> Option<&Arc<Handover>> {
        self.handover.as_ref()
    }

    /// Name of the engine: `trampoline` or `tracepoint`.
    pub fn name(&self) -> &'static str {
        match self.form.trampoline {
            true => "trampoline",
            false => "tracepoint",
        }
    }

    /// What the kernel lacks of what the programs use; each gap costs a feature.
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
        self.maps.doorbell.as_fd()
    }

    /// To say which processes are the daemon's helpers.
    pub fn helpers(&self) -> Helpers {
        self.control.helpers()
    }

    /// Sets whether the daemon polls the rings by itself for now, so that programs need not ring.
    pub fn set_awake(&self, awake: bool) {
        self.control.set_awake(awake);
    }

    /// Takes the kernel for one with the calls of x32, or without. For tests, whose kernels seldom have them.
    #[doc(hidden)]
    pub fn assume_x32(&self, has_calls: bool) {
        self.control.set_x32(has_calls);
    }

    /// Reads what the programs wrote to the doorbell, so that it is quiet again.
    pub fn quiet_doorbell(&mut self) {
        self.bell.drain(u64::MAX, |_, _| true);
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
        self.stream.fill_per_mille()
    }

    /// All rings as one stream.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// [`Stream::drain`], which also shows waiting calls that their events are being read.
    pub fn drain(&mut self, now_ns: u64, mut take: impl FnMut(usize, &[u8]) -> bool) -> usize {
        let (control, sums) = (&self.control, &mut self.sums);
        self.stream.drain(now_ns, |cpu, frame| {
            control.count_taken();
            sums.take(frame);
            take(cpu, frame)
        })
    }

    /// [`Stream::drain_held`], which also shows waiting calls that their events are being read.
    pub fn drain_held(
        &mut self,
        now_ns: u64,
        mut take: impl FnMut(usize, u64, &[u8]) -> bool,
    ) -> usize {
        let (control, sums) = (&self.control, &mut self.sums);
        self.stream.drain_held(now_ns, |cpu, end, frame| {
            control.count_taken();
            sums.take(frame);
            take(cpu, end, frame)
        })
    }

    /// The sums of the counters of all CPUs.
    pub fn counters(&self) -> Counters {
        let mut counters = self.cpu_states.read();
        counters.missed = self.hooks.missed();
        counters
    }

    /// Counts of the first `rules` rules, and counts of undecided events.
    pub fn rule_counts(&self, rules: usize) -> Result<(Vec<RuleCount>, RuleCount), CaptureError> {
        counters::read_rules(&self.maps.rule_counts, rules)
    }

    /// Events lost, by real uid of the task, for the first uids of the capture that lost any.
    pub fn lost_by_uid(&self) -> Result<BTreeMap<u32, u64>, CaptureError> {
        counters::read_uids(&self.maps.lost_by_uid)
    }

    /// Undoes what somebody else has changed of what the programs read; returns what that was. Does nothing while rules
    /// are being replaced. Call it about once a second.
    pub fn check(&mut self) -> Vec<Breach> {
        let hooks = self.hooks.if_unused();
        let mut breaches = hooks.map(|mut hooks| hooks.check()).unwrap_or_default();
        if self.stream.restore() {
            breaches.push(Breach {
                what: "positions of rings".to_owned(),
                is_mended: true,
            });
        }
        breaches.extend(self.check_budgets());
        breaches.extend(self.check_sums());
        breaches
    }

    /// Starts to remove hooks that no rule set has needed for a while. Call it about once a second.
    pub fn tidy(&mut self) {
        if let Some(mut hooks) = self.hooks.if_unused() {
            hooks.tidy();
        }
    }

    /// Ids of the io_uring operations that are still running.
    pub fn in_flight(&self) -> std::collections::HashSet<u64> {
        uring::in_flight(&self.maps.uring_requests)
    }

    /// Number of CPUs that have a ring.
    pub fn cpus(&self) -> usize {
        self.cpus
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

/// The kernel's functions for calls, if those are hooked, and its io_uring.
fn what_can_be_hooked(form: Form) -> (Option<&'static Functions>, Option<Uring>) {
    let functions = match form.trampoline && !form.probes {
        true => syscall_functions::of_this_kernel(),
        false => None,
    };
    let uring = match functions.is_some() || form.probes {
        true => Uring::with_functions(form.probes).or_else(Uring::of_this_kernel),
        false => Uring::of_this_kernel(),
    };
    (functions, uring)
}

/// Tells the programs from which fill a ring is overloaded, and that a daemon reads. Rings that were taken over
/// keep their size.
fn set_limits(control: &Control, stream: &Stream, options: &Options, taken_over: bool) {
    let marks = Options::with_ring_bytes(stream.ring_bytes() as usize);
    let (ring_bytes, options) = match taken_over {
        true => (stream.ring_bytes(), &marks),
        false => (options.true_ring_bytes() as u64, options),
    };
    let ring_bytes = u32::try_from(ring_bytes).unwrap_or(u32::MAX);
    control.set_ring(ring_bytes, options.watermark_bytes, options.high_bytes);
    control.set_throttle(true);
    control.set_awake(true);
}

fn doorbell(object: &Object) -> Result<Ring, CaptureError> {
    let bell = object.maps().find(|map| map.name() == "doorbell");
    let bell = bell.ok_or_else(|| missing("doorbell"))?;
    Ring::map(&bell, DOORBELL_BYTES as usize).map_err(system("mmap of the doorbell"))
}

fn missing(what: &str) -> CaptureError {
    CaptureError::System {
        what: format!("missing in the BPF object or this kernel: {what}"),
        source: std::io::ErrorKind::NotFound.into(),
    }
}

/// Adds the kernel's gaps to an error that they may have caused.
fn without(gaps: &[Gap], source: CaptureError) -> CaptureError {
    if gaps.is_empty() {
        return source;
    }
    CaptureError::RefusedWithout {
        gaps: gaps.to_vec(),
        source: Box::new(source),
    }
}

/// Loads the programs. If `from` is given, uses the maps that are pinned there.
fn load(
    cpus: usize,
    form: Form,
    functions: Option<&Functions>,
    uring: Option<&uring::Uring>,
    from: Option<&Arc<Pins>>,
) -> Result<(Object, VfsHooks), CaptureError> {
    bpf::load::keep_libbpf_quiet();
    let mut builder = ObjectBuilder::default();
    if let Some(types) = kernel_btf::overridden() {
        let given = builder.btf_custom_path(types);
        given.map_err(refused("types instead of the kernel's"))?;
    }
    let mut open: OpenObject = builder
        .open_memory(&bpf::TARSIER)
        .map_err(refused("BPF object"))?;
    for mut map in open.maps_mut() {
        let entries = match map.name().to_str() {
            Some("works") => cpus * WORKS_PER_CPU as usize,
            Some("rings" | "cpu_states") => cpus,
            _ => continue,
        };
        map.set_max_entries(entries as u32)
            .map_err(refused("size of a map"))?;
    }
    if let Some(pins) = from {
        leftover::take_maps(&mut open, pins)?;
    }
    trampoline::choose_targets(&mut open, functions)?;
    uring::choose(&mut open, uring)?;
    copies::choose(&mut open, form.copies);
    for mut program in open.progs_mut() {
        if program.name() == probes::CALL_PROBE {
            program.set_autoload(form.probes);
        }
    }
    let objects = VfsHooks::choose(&mut open, form);
    leave_out_missing(&mut open);
    let object = own_programs().of(|| open.load());
    let object = object.map_err(refused("BPF programs"))?;
    Ok((object, objects))
}

/// The gaps of the kernel; an error if an essential feature is missing.
fn gaps_that_leave_enough(form: Form) -> Result<Vec<Gap>, CaptureError> {
    bpf::load::need_btf()?;
    let gaps = gaps::of_this_kernel(form.trampoline)?;
    match gaps.iter().find(|gap| gap.essential) {
        Some(gap) => Err(CaptureError::Lacking { gap: gap.clone() }),
        None => Ok(gaps),
    }
}

/// Leaves out programs for tracepoints that this kernel lacks: libbpf would refuse to load the others with them.
fn leave_out_missing(open: &mut OpenObject) {
    for mut program in open.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        if let Some(tracepoint) = section.strip_prefix("tp_btf/") {
            if !gaps::is_there(tracepoint) {
                program.set_autoload(false);
            }
        }
    }
}

fn make_rings(object: &Object, cpus: usize, options: &Options) -> Result<Vec<Ring>, CaptureError> {
    let size = options.true_ring_bytes();
    let map = object
        .maps()
        .find(|map| map.name() == "rings")
        .ok_or_else(|| missing("rings"))?;
    (0..cpus as u32)
        .map(|cpu| {
            let ring = MapHandle::create(
                MapType::RingBuf,
                Some("tarsier_ring"),
                0,
                0,
                size as u32,
                &map_options(0),
            )
            .map_err(refused("ring buffer"))?;
            let fd = ring.as_fd().as_raw_fd() as u32;
            map.put(&cpu.to_ne_bytes(), &fd.to_ne_bytes())
                .map_err(refused("ring buffer"))?;
            Ring::map(&ring, size).map_err(system("mmap of a ring buffer"))
        })
        .collect()
}
