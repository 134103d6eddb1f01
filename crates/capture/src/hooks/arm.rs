//! Attaches what a plan needs, and removes what it no longer needs.

use super::canary;
use super::gates;
use super::operation_probes::{probe_operations, OperationProbes};
use super::probes::{self, CallProbes};
use super::programs::Programs;
use super::trampoline::{self, AtFunction, Hook};
use super::uring::{self, Wanted};
use super::{missing, Hooks};
use crate::error::CaptureError;
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions;
use crate::pins::Attached;
use libbpf_rs::btf::ReferencesType;
use plan::{Plan, SysExit};
use std::collections::BTreeMap;

/// Hooks in force. Links are detached when dropped.
#[derive(Default)]
pub(super) struct Armed {
    pub(super) sys_exit: Option<Attached>,
    pub(super) per_syscall: BTreeMap<u32, Attached>,
    /// By index in the kernel's functions.
    pub(super) functions: BTreeMap<usize, Hook>,
    pub(super) probes: Vec<CallProbes>,
    pub(super) operation_probes: Vec<OperationProbes>,
    pub(super) exec: Vec<Attached>,
    pub(super) exit: Vec<Attached>,
    pub(super) task_list: Vec<Attached>,
    pub(super) fork: Vec<Attached>,
    pub(super) module: Vec<Attached>,
    /// Those that tell of cgroups, whatever the plan.
    pub(super) cgroups: Vec<Attached>,
    pub(super) uring: uring::Hooks,
}

impl Armed {
    /// Links of these hooks.
    pub(super) fn links(&self) -> impl Iterator<Item = &Attached> {
        let links = self.sys_exit.iter().chain(self.per_syscall.values());
        let links = links.chain(&self.exec).chain(&self.exit);
        let links = links.chain(&self.task_list).chain(&self.fork);
        let links = links.chain(&self.module).chain(&self.cgroups);
        let links = links.chain(self.uring.links());
        let functions = self.functions.values().map(Hook::at_function);
        let links = links.chain(functions.map(AtFunction::link));
        let links = links.chain(self.probes.iter().flat_map(CallProbes::links));
        let operations = self.operation_probes.iter();
        links.chain(operations.flat_map(OperationProbes::links))
    }

    /// Number of calls that the probes missed.
    fn missed_by_probes(&self) -> u64 {
        let calls = self.probes.iter().map(CallProbes::missed);
        let operations = self.operation_probes.iter().map(OperationProbes::missed);
        calls.chain(operations).sum()
    }
}

impl Hooks {
    /// Hooks the functions that tell what calls touched. Returns the hooks that `plan` does not need, still
    /// attached.
    pub(super) fn arm_objects(
        &mut self,
        plan: &Plan,
    ) -> Result<BTreeMap<String, Attached>, CaptureError> {
        let detach_queue = &mut self.detach_queue;
        let Programs {
            object,
            pins,
            inherited,
            ..
        } = &mut self.programs;
        let pins = pins.as_ref();
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
        self.vfs.arm(object, plan, pins, there)
    }

    /// Number of hooks in force.
    pub(super) fn count(&self) -> usize {
        self.armed.links().count() + self.vfs.armed().count()
    }

    /// Names of the pins of all hooks in force.
    pub(super) fn pinned_names(&self) -> Vec<String> {
        let links = self.armed.links().chain(self.detach_queue.links());
        let names = links.filter_map(Attached::pin_name).map(str::to_owned);
        names.chain(self.vfs.armed().cloned()).collect()
    }

    /// Attaches what `plan` needs. Returns what it no longer needs, still attached.
    pub(super) fn arm(&mut self, plan: &Plan) -> Result<Armed, CaptureError> {
        let mut added = BTreeMap::new();
        let hooks = &plan.hooks;
        for nr in canary::per_syscall(plan) {
            if !self.armed.per_syscall.contains_key(&nr) {
                added.insert(nr, self.programs.attach_call(plan, nr)?);
            }
        }
        let functions = self.hook_functions(plan)?;
        let new_probes = self.probe_functions(plan)?;
        let sys_exit = hooks.sys_exit == SysExit::Every;
        let new_sys_exit = self
            .programs
            .attach_if(sys_exit && self.armed.sys_exit.is_none(), "sys_exit")?;
        let new_exit = if hooks.exit && self.armed.exit.is_empty() {
            self.attach_exit()?
        } else {
            Vec::new()
        };
        let mut copies_if =
            |needed: bool, armed: &[Attached], program| match needed && armed.is_empty() {
                true => self.programs.attach_copies(program),
                false => Ok(Vec::new()),
            };
        let new_task_list = copies_if(hooks.task_list, &self.armed.task_list, "task_made")?;
        let new_fork = copies_if(hooks.fork, &self.armed.fork, "fork_done")?;
        let new_module = copies_if(hooks.module, &self.armed.module, "module_load")?;
        let (new_uring, new_operation_probes) = self.attach_uring(plan, new_probes.as_ref())?;
        let new_cgroups = self.attach_cgroups()?;
        let mut new_exec = Vec::new();
        if hooks.exec && self.armed.exec.is_empty() {
            for program in ["exec_done", "exec_entry"] {
                new_exec.extend(self.programs.attach_copies(program)?);
            }
        }
        // Nothing can fail from here on.
        let armed = &mut self.armed;
        armed.sys_exit = armed.sys_exit.take().or(new_sys_exit);
        armed.exit.extend(new_exit);
        armed.task_list.extend(new_task_list);
        armed.fork.extend(new_fork);
        armed.module.extend(new_module);
        armed.cgroups.extend(new_cgroups);
        armed.exec.extend(new_exec);
        armed.uring.add(new_uring);
        armed.per_syscall.extend(added);
        armed.functions.extend(functions);
        armed.probes.extend(new_probes);
        armed.operation_probes.extend(new_operation_probes);
        Ok(self.take_unneeded(plan))
    }

    /// Takes out the hooks that `plan` no longer needs. They are still attached.
    fn take_unneeded(&mut self, plan: &Plan) -> Armed {
        let mut old = Armed::default();
        let (hooks, armed) = (&plan.hooks, &mut self.armed);
        if hooks.sys_exit != SysExit::Every {
            old.sys_exit = armed.sys_exit.take();
        }
        if !hooks.exit {
            old.exit = std::mem::take(&mut armed.exit);
        }
        if !hooks.task_list {
            old.task_list = std::mem::take(&mut armed.task_list);
        }
        if !hooks.fork {
            old.fork = std::mem::take(&mut armed.fork);
        }
        if !hooks.module {
            old.module = std::mem::take(&mut armed.module);
        }
        if let Some(uring) = &self.operations.uring {
            let wanted = uring.wanted(plan);
            old.uring = armed.uring.take_unwanted(&wanted);
            let probed = wanted.probed().keys().copied().collect();
            old.operation_probes = probes::take_unneeded(&mut armed.operation_probes, &probed);
        }
        if !hooks.exec {
            old.exec = std::mem::take(&mut armed.exec);
        }
        let kept = canary::per_syscall(plan);
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
        let kept = syscall_functions::places_of(&canary::functions(plan));
        old.probes = probes::take_unneeded(&mut armed.probes, &kept);
        let (kept, gone) = std::mem::take(&mut armed.functions)
            .into_iter()
            .partition(|(place, _)| kept.contains(place));
        armed.functions = kept;
        old.functions = gone;
        old
    }

    /// Hooks what tells of cgroups, unless that is done.
    fn attach_cgroups(&mut self) -> Result<Vec<Attached>, CaptureError> {
        let mut links = Vec::new();
        if self.armed.cgroups.is_empty() {
            for program in ["cgroup_removed", "cgroup_made"] {
                links.extend(self.programs.attach_if(true, program)?);
            }
        }
        Ok(links)
    }

    /// Hooks the functions that serve calls of the plan and are not hooked yet.
    fn hook_functions(&mut self, plan: &Plan) -> Result<BTreeMap<usize, Hook>, CaptureError> {
        let mut added = BTreeMap::new();
        let gates = gates::of(plan);
        if plan.form().probes {
            return Ok(added);
        }
        let (Some(trampolines), Some(functions)) =
            (&mut self.trampolines, syscall_functions::of_this_kernel())
        else {
            return Ok(added);
        };
        for call in canary::functions(plan) {
            for &place in functions.of(call) {
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
                    Err(_) if canary::is_alone(plan, call) => continue,
                    Err(error) => {
                        for hook in added.values() {
                            trampolines.retire(hook);
                        }
                        return Err(CaptureError::Unhooked {
                            call,
                            source: Box::new(error),
                        });
                    }
                };
            }
        }
        Ok(added)
    }

    /// Queues hooks that are no longer needed for removal after a while.
    pub(super) fn part_with(&mut self, old: Armed, old_objects: BTreeMap<String, Attached>) {
        self.missed_by_probes += old.missed_by_probes();
        let calls = old.probes.into_iter().map(CallProbes::at_rest);
        let operations = old.operation_probes.into_iter();
        let probes = calls.chain(operations.map(OperationProbes::at_rest));
        self.detach_queue
            .add(old.functions, old_objects, old.uring.functions, probes);
    }

    /// Removes all hooks at once.
    pub(super) fn drop_all(&mut self) {
        let armed = std::mem::take(&mut self.armed);
        if let Some(trampolines) = &mut self.trampolines {
            for hook in armed.functions.values() {
                trampolines.retire(hook);
            }
            for hook in armed.uring.functions.values() {
                trampolines.count(hook);
            }
        }
    }

    /// Number of watched calls that programs missed.
    pub(super) fn missed(&self) -> u64 {
        let mut missed = self.programs.missed() + self.missed_by_probes;
        if let Some(trampolines) = &self.trampolines {
            let armed = self.armed.functions.values().map(Hook::at_function);
            let armed = armed.chain(self.armed.uring.functions.values());
            missed += trampolines.missed(armed.chain(self.detach_queue.at_functions()));
        }
        missed + self.armed.missed_by_probes()
    }

    /// Removes hooks that no rule set has needed for a while. Call it about once a second.
    pub(super) fn tidy(&mut self) {
        self.detach_queue.tidy(self.trampolines.as_mut());
    }

    /// Hooks what is missing for the operations that `plan` watches. `calls` are the probes that were just
    /// attached for the plan's calls.
    fn attach_uring(
        &mut self,
        plan: &Plan,
        calls: Option<&CallProbes>,
    ) -> Result<(uring::Hooks, Option<OperationProbes>), CaptureError> {
        if plan.hooks.uring.is_none() {
            return Ok(Default::default());
        }
        let uring = self.operations.uring.take();
        let uring = uring.ok_or_else(|| missing("io_uring"))?;
        let wanted = uring.wanted(plan);
        let hooks = self.attach_wanted(&wanted);
        let attached = hooks.and_then(|hooks| Ok((hooks, probe_operations(self, &wanted, calls)?)));
        drop(wanted);
        self.operations.uring = Some(uring);
        attached
    }

    /// Attaches hooks for ends first: if an operation's submission is seen, so is its end.
    fn attach_wanted(&mut self, wanted: &Wanted<'_>) -> Result<uring::Hooks, CaptureError> {
        let mut added = uring::Hooks::default();
        let programs: Vec<&'static str> = wanted.programs().collect();
        for program in programs {
            if !self.armed.uring.programs.contains_key(program) {
                let links = self.programs.attach_copies(program)?;
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
                None => {
                    let Programs { object, pins, .. } = &self.programs;
                    uring::hook(object, function, part, pins.as_ref())?
                }
            };
            added.functions.insert(key, hook);
        }
        Ok(added)
    }

    /// The entries of the native calls are hooked where the task has no executable any more when it ends (exits
    /// through the 32-bit entry are then recorded without it), and where that costs other calls nothing more: a tracer
    /// can change the call between its entry and the task's end (PTRACE_EVENT_EXIT).
    fn attach_exit(&mut self) -> Result<Vec<Attached>, CaptureError> {
        let mut links: Vec<Attached> = self.programs.attach_copies("exit_call")?;
        let is_cheap = !self.programs.form.trampoline;
        let at_entry = (is_cheap || !exit_is_seen_early()) && self.programs.events.is_some();
        if at_entry {
            for name in ["exit", "exit_group"] {
                let event = self
                    .programs
                    .events
                    .as_ref()
                    .and_then(|events| events.enter_event(name));
                links.push(self.programs.attach_event(
                    "exit_entry",
                    event,
                    &format!("sys_enter_{name}"),
                )?);
            }
        }
        self.control.set_exit_at_entry(at_entry);
        Ok(links)
    }
}

/// Whether sched_process_exit comes before the task gives up its memory: since Linux 6.16, which also added its
/// third argument (the first is the probe's own).
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
