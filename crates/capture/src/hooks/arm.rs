//! Attaching what a plan needs, and parting with what it no longer does.

use super::copies;
use super::operation_probes::OperationProbes;
use super::probes::{self, CallProbes};
use super::trampoline::{self, Hook};
use super::uring::{self, Wanted};
use super::{missing, perf, EbpfEngine};
use crate::error::{refused, system, CaptureError};
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions;
use crate::pins::{Attached, Pins};
use libbpf_rs::btf::ReferencesType;
use libbpf_rs::libbpf_sys::BPF_PERF_EVENT;
use plan::{Plan, SysExit};
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

/// Hooks in force. Links go away when dropped.
#[derive(Default)]
pub(super) struct Armed {
    pub(super) sys_exit: Option<Attached>,
    pub(super) per_syscall: BTreeMap<u32, Attached>,
    /// By place in the kernel's functions.
    pub(super) functions: BTreeMap<usize, Hook>,
    pub(super) probes: Vec<CallProbes>,
    pub(super) operation_probes: Vec<OperationProbes>,
    pub(super) exec: Vec<Attached>,
    pub(super) exit: Vec<Attached>,
    pub(super) fork: Vec<Attached>,
    pub(super) uring: uring::Hooks,
}

impl EbpfEngine {
    pub(super) fn arm_objects(
        &mut self,
        plan: &Plan,
    ) -> Result<BTreeMap<String, Attached>, CaptureError> {
        let (detach_queue, pins) = (&mut self.detach_queue, self.pins.as_ref());
        let inherited = &mut self.inherited;
        let there = |program: &str| {
            if let Some(link) = detach_queue.take_object(program) {
                return Ok(Some(link));
            }
            let found = match pins {
                Some(pins) => Attached::find(pins, program)?,
                None => None,
            };
            inherited.extend(found.iter().filter_map(trampoline::program_of));
            Ok(found)
        };
        self.objects.arm(&mut self.object, plan, pins, there)
    }

    /// Pins of the hooks in force.
    pub(super) fn pinned_names(&self) -> Vec<String> {
        let armed = &self.armed;
        let links = armed.sys_exit.iter().chain(armed.per_syscall.values());
        let links = links.chain(&armed.exec).chain(&armed.exit);
        let links = links.chain(&armed.fork).chain(armed.uring.links());
        let links = links.chain(
            armed
                .functions
                .values()
                .map(|hook| hook.at_function().link()),
        );
        let links = links.chain(armed.probes.iter().flat_map(CallProbes::links));
        let operations = armed.operation_probes.iter();
        let links = links.chain(operations.flat_map(OperationProbes::links));
        let links = links.chain(self.detach_queue.links());
        let names = links.filter_map(Attached::pin_name).map(str::to_owned);
        names.chain(self.objects.armed().cloned()).collect()
    }

    /// Attaches what `plan` needs and returns what it no longer does, still attached.
    pub(super) fn arm(&mut self, plan: &Plan) -> Result<Armed, CaptureError> {
        let mut added = BTreeMap::new();
        let hooks = &plan.hooks;
        for &nr in hooks.sys_exit.per_syscall() {
            if !self.armed.per_syscall.contains_key(&nr) {
                added.insert(nr, self.attach_call(plan, nr)?);
            }
        }
        let functions = self.hook_functions(plan)?;
        let new_probes = self.probe_functions(plan)?;
        let sys_exit = hooks.sys_exit == SysExit::Every;
        let new_sys_exit = self.attach_if(sys_exit && self.armed.sys_exit.is_none(), "sys_exit")?;
        let new_exit = if hooks.exit && self.armed.exit.is_empty() {
            self.attach_exit()?
        } else {
            Vec::new()
        };
        let new_fork = match hooks.fork && self.armed.fork.is_empty() {
            true => self.attach_copies("task_made")?,
            false => Vec::new(),
        };
        let (new_uring, new_operation_probes) = self.attach_uring(plan, new_probes.as_ref())?;
        let mut new_exec = Vec::new();
        if hooks.exec && self.armed.exec.is_empty() {
            for program in ["exec_done", "exec_entry"] {
                new_exec.extend(self.attach_copies(program)?);
            }
        }
        // Nothing can fail from here on.
        let armed = &mut self.armed;
        armed.sys_exit = armed.sys_exit.take().or(new_sys_exit);
        armed.exit.extend(new_exit);
        armed.fork.extend(new_fork);
        armed.exec.extend(new_exec);
        armed.uring.add(new_uring);
        armed.per_syscall.extend(added);
        armed.functions.extend(functions);
        armed.probes.extend(new_probes);
        armed.operation_probes.extend(new_operation_probes);
        Ok(self.take_unneeded(plan))
    }

    /// What `plan` no longer needs of what is armed, still attached.
    fn take_unneeded(&mut self, plan: &Plan) -> Armed {
        let mut old = Armed::default();
        let (hooks, armed) = (&plan.hooks, &mut self.armed);
        if hooks.sys_exit != SysExit::Every {
            old.sys_exit = armed.sys_exit.take();
        }
        if !hooks.exit {
            old.exit = std::mem::take(&mut armed.exit);
        }
        if !hooks.fork {
            old.fork = std::mem::take(&mut armed.fork);
        }
        if let Some(uring) = &self.uring {
            let wanted = uring.wanted(plan);
            old.uring = armed.uring.take_unwanted(&wanted);
            let probed = wanted.probed().keys().copied().collect();
            old.operation_probes = probes::take_unneeded(&mut armed.operation_probes, &probed);
        }
        if !hooks.exec {
            old.exec = std::mem::take(&mut armed.exec);
        }
        let kept = hooks.sys_exit.per_syscall();
        let gone: Vec<u32> = armed
            .per_syscall
            .keys()
            .copied()
            .filter(|nr| !kept.contains(nr))
            .collect();
        for nr in gone {
            old.per_syscall
                .extend(armed.per_syscall.remove(&nr).map(|link| (nr, link)));
        }
        let kept = syscall_functions::places_of(hooks.sys_exit.functions());
        old.probes = probes::take_unneeded(&mut armed.probes, &kept);
        let (kept, gone) = std::mem::take(&mut armed.functions)
            .into_iter()
            .partition(|(place, _)| kept.contains(place));
        armed.functions = kept;
        old.functions = gone;
        old
    }

    /// Hooks those functions that serve calls of the plan and are not hooked yet.
    fn hook_functions(&mut self, plan: &Plan) -> Result<BTreeMap<usize, Hook>, CaptureError> {
        let mut added = BTreeMap::new();
        let gates = self.gates(plan);
        if plan.form().probes {
            return Ok(added);
        }
        let (Some(trampolines), Some(functions)) =
            (&mut self.trampolines, syscall_functions::of_this_kernel())
        else {
            return Ok(added);
        };
        for call in plan.hooks.sys_exit.functions() {
            for &place in functions.of(*call) {
                if added.contains_key(&place) || self.armed.functions.contains_key(&place) {
                    continue;
                }
                if let Some(hook) = self.detach_queue.take_function(place) {
                    added.insert(place, hook);
                    continue;
                }
                let gate = gates.get(&place).and_then(Option::as_ref);
                match trampolines.hook(&functions.all[place], gate) {
                    Ok(hook) => added.insert(place, hook),
                    Err(error) => {
                        added.values().for_each(|hook| trampolines.retire(hook));
                        return Err(CaptureError::Unhooked {
                            call: *call,
                            source: Box::new(error),
                        });
                    }
                };
            }
        }
        Ok(added)
    }

    /// Takes down hooks that no rule set has needed for a while. To be called every second or so.
    pub fn tidy(&mut self) {
        self.detach_queue.tidy(self.trampolines.as_mut());
    }

    /// A program on a tracepoint, with its copies where those are wanted.
    fn attach_copies(&mut self, program: &str) -> Result<Vec<Attached>, CaptureError> {
        let mut links = Vec::new();
        for name in copies::of(program, self.form.copies) {
            links.extend(self.attach_if(true, &name)?);
        }
        Ok(links)
    }

    /// Nothing where the kernel lacks the tracepoint: [`EbpfEngine::gaps`] says so.
    fn attach_if(&mut self, wanted: bool, program: &str) -> Result<Option<Attached>, CaptureError> {
        if !wanted {
            return Ok(None);
        }
        if let Some(found) = self.find_pinned(program)? {
            return Ok(Some(found));
        }
        let found = self.object.progs_mut().find(|p| p.name() == program);
        let program_mut = found.ok_or_else(|| missing(program))?;
        if !program_mut.autoload() {
            return Ok(None);
        }
        let link = attach_trace(&program_mut, self.pins.as_ref())?;
        Attached::new(link, self.pins.as_ref(), program).map(Some)
    }

    /// A hook of an earlier daemon that is in force.
    fn find_pinned(&mut self, name: &str) -> Result<Option<Attached>, CaptureError> {
        let Some(pins) = &self.pins else {
            return Ok(None);
        };
        let found = Attached::find(pins, name)?;
        if let Some(link) = &found {
            self.inherited.extend(trampoline::program_of(link));
        }
        Ok(found)
    }

    /// Hooks what the operations that `plan` watches need and is not hooked yet. `calls`: the probes that the plan
    /// has just got for its calls.
    fn attach_uring(
        &mut self,
        plan: &Plan,
        calls: Option<&CallProbes>,
    ) -> Result<(uring::Hooks, Option<OperationProbes>), CaptureError> {
        if plan.hooks.uring.is_none() {
            return Ok(Default::default());
        }
        let uring = self.uring.take().ok_or_else(|| missing("io_uring"))?;
        let wanted = uring.wanted(plan);
        let hooks = self.attach_wanted(&wanted);
        let attached = hooks.and_then(|hooks| Ok((hooks, self.probe_operations(&wanted, calls)?)));
        drop(wanted);
        self.uring = Some(uring);
        attached
    }

    /// Ends first: of an operation whose submission is seen, its end is seen too.
    fn attach_wanted(&mut self, wanted: &Wanted<'_>) -> Result<uring::Hooks, CaptureError> {
        let mut added = uring::Hooks::default();
        let programs: Vec<&'static str> = wanted.programs().collect();
        for program in programs {
            if !self.armed.uring.programs.contains_key(program) {
                let links = self.attach_copies(program)?;
                added.programs.insert(program, links);
            }
        }
        for (function, part) in wanted.functions() {
            let key = (part, function.btf_id);
            if self.armed.uring.functions.contains_key(&key) {
                continue;
            }
            let hook = match self.detach_queue.take_operation(key) {
                Some(hook) => hook,
                None => uring::hook(&self.object, function, part, self.pins.as_ref())?,
            };
            added.functions.insert(key, hook);
        }
        Ok(added)
    }

    /// Operations that rules of the set in force watch, and those of another set.
    pub(super) fn watch_operations(
        &mut self,
        plan: &Plan,
        others: bool,
    ) -> Result<(), CaptureError> {
        let Some(uring) = &self.uring else {
            return Ok(());
        };
        let mut watched = plan.watched_operations();
        for (known, bits) in self.known_operations.iter_mut().zip(watched) {
            *known |= bits;
        }
        if others {
            for (bits, other) in watched.iter_mut().zip(self.operations) {
                *bits |= other;
            }
        }
        uring.set_watched(&self.object, &watched, &self.known_operations)
    }

    /// Ids of the events of io_uring operations that are under way.
    pub fn in_flight(&self) -> std::collections::HashSet<u64> {
        uring::in_flight(&self.object)
    }

    fn attach_call(&mut self, plan: &Plan, nr: u32) -> Result<Attached, CaptureError> {
        let name = plan
            .entries
            .arch(plan::Entry::Native)
            .and_then(|arch| abi::syscall_name(arch, nr))
            .unwrap_or("?");
        let event = self
            .events
            .as_ref()
            .and_then(|events| events.exit_event(name));
        self.attach_event("sys_exit_one", event, &format!("sys_exit_{name}"))
    }

    /// Where the task still has its executable when it ends, one hook sees every exit; else the
    /// entry of the native calls is hooked, and 32-bit ones are recorded without executable.
    fn attach_exit(&mut self) -> Result<Vec<Attached>, CaptureError> {
        let mut links: Vec<Attached> = self.attach_copies("exit_call")?;
        let at_entry = !exit_is_seen_early() && self.events.is_some();
        if at_entry {
            for name in ["exit", "exit_group"] {
                let event = self
                    .events
                    .as_ref()
                    .and_then(|events| events.enter_event(name));
                links.push(self.attach_event("exit_entry", event, &format!("sys_enter_{name}"))?);
            }
        }
        self.control.set_exit_at_entry(at_entry);
        Ok(links)
    }

    fn attach_event(
        &mut self,
        program: &str,
        event: Option<u64>,
        name: &str,
    ) -> Result<Attached, CaptureError> {
        let pin = format!("{program}-{name}");
        if let Some(found) = self.find_pinned(&pin)? {
            return Ok(found);
        }
        let event = event.ok_or_else(|| missing(&format!("tracepoint {name}")))?;
        let perf = perf::open_tracepoint(event)
            .map_err(system(format!("perf_event_open for tracepoint {name}")))?;
        let found = self.object.progs_mut().find(|p| p.name() == program);
        let program = found.ok_or_else(|| missing(program))?;
        if let Some(pins) = &self.pins {
            pins.wait_for_end_of(&pin);
        }
        let link = trampoline::link(program.as_fd(), perf.as_raw_fd(), BPF_PERF_EVENT)
            .map_err(system(format!("hook tracepoint/syscalls/{name}")))?;
        Attached::new(link, self.pins.as_ref(), &pin)
    }
}

/// Attaches a program where its section says.
pub(crate) fn attach_trace(
    program: &libbpf_rs::ProgramMut<'_>,
    pins: Option<&Arc<Pins>>,
) -> Result<OwnedFd, CaptureError> {
    if let Some(pins) = pins {
        pins.wait_for_end_of(&program.name().to_string_lossy());
    }
    let what = || format!("hook {}", program.name().to_string_lossy());
    let link = program.attach_trace().map_err(refused(what()))?;
    link.as_fd()
        .try_clone_to_owned()
        .map_err(|source| CaptureError::System {
            what: what(),
            source,
        })
}

/// Whether sched_process_exit comes before the task gives up its memory: since Linux 6.16, when it
/// also got its third argument (the first is the probe's own).
fn exit_is_seen_early() -> bool {
    use libbpf_rs::btf::types::{FuncProto, Ptr, Typedef};
    let count = || {
        let types = kernel_btf::of_this_kernel()?;
        let hook = types
            .btf()
            .type_by_name::<Typedef<'_>>("btf_trace_sched_process_exit")?;
        let pointer = Ptr::try_from(hook.referenced_type()).ok()?;
        let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
        Some(function.iter().count())
    };
    count().is_some_and(|arguments| arguments >= 3)
}
