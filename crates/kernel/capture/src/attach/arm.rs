//! Attaches what a plan needs, and finds what it no longer needs.

use crate::attach::armed::Armed;
use crate::attach::entries;
use crate::attach::gates;
use crate::attach::operation_probes::{self, OperationProbes};
use crate::attach::probes::{self, At, CallProbes, Probed, Probes, CALL_PROBE};
use crate::attach::processes;
use crate::attach::programs::Programs;
use crate::attach::trampoline::{self, Hook};
use crate::attach::uring::{self, UringHooks, WantedHooks};
use crate::check::canary;
use crate::error::missing;
use crate::error::CaptureError;
use crate::in_force::hooks::Hooks;
use crate::kernel::kernel_btf;
use crate::kernel::syscall_functions;
use crate::pins::Attached;
use libbpf_rs::btf::ReferencesType;
use plan::{Plan, SysExit};
use std::collections::BTreeMap;

impl Hooks {
    /// Hooks the functions that tell what calls touched. Hooks that `plan` does not need stay.
    pub(crate) fn arm_objects(&mut self, plan: &Plan) -> Result<(), CaptureError> {
        let detach_queue = &mut self.detach_queue;
        let Programs {
            object,
            pins,
            inherited,
            ..
        } = &mut self.programs;
        let pins = pins.as_ref();

        // A hook that rests is used again; else one that an earlier daemon has left.
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

    /// Attaches what `plan` needs. Hooks that it does not need stay.
    pub(crate) fn arm(&mut self, plan: &Plan) -> Result<(), CaptureError> {
        let mut added = BTreeMap::new();
        let hooks = &plan.hooks;

        // Everything new is collected first: if one attachment fails, dropping the others detaches them, and
        // what was armed stays.
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
        let new_entries = entries::attach(&mut self.programs, plan, &self.armed.entries)?;

        let new_exit = if hooks.exit && self.armed.exit.is_empty() {
            self.attach_exit()?
        } else {
            Vec::new()
        };

        let mut copies_if = |needed: bool, armed: &[Attached], program| {
            if !needed || !armed.is_empty() {
                return Ok(Vec::new());
            }
            self.programs.attach_copies(program)
        };
        let new_task_list = copies_if(hooks.task_list, &self.armed.task_list, "task_made")?;
        let new_fork = copies_if(hooks.fork, &self.armed.fork, "fork_done")?;
        let new_module = copies_if(hooks.module, &self.armed.module, "module_load")?;

        let (new_uring, new_operation_probes) = self.attach_uring(plan, new_probes.as_ref())?;
        let new_cgroups = self.attach_cgroups()?;
        let mut new_processes = Vec::new();
        if hooks.processes && self.armed.processes.is_empty() {
            new_processes = processes::attach(&mut self.programs)?;
        }

        let mut new_exec = Vec::new();
        if hooks.exec && self.armed.exec.is_empty() {
            for program in ["exec_broken", "exec_done", "exec_entry"] {
                new_exec.extend(self.programs.attach_copies(program)?);
            }
        }
        // Nothing can fail from here on.
        self.armed.add(Armed {
            sys_exit: new_sys_exit,
            per_syscall: added,
            entries: new_entries,
            functions,
            probes: new_probes.into_iter().collect(),
            operation_probes: new_operation_probes.into_iter().collect(),
            exec: new_exec,
            exit: new_exit,
            task_list: new_task_list,
            fork: new_fork,
            module: new_module,
            cgroups: new_cgroups,
            processes: new_processes,
            uring: new_uring,
        });
        Ok(())
    }

    /// Hooks the creation and removal of cgroups, unless they are hooked already.
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

                // A second hook on the function would record each call twice, so the resting one is used.
                if let Some(hook) = self.detach_queue.take_function(place) {
                    added.insert(place, hook);
                    continue;
                }

                let gate = gates.get(&place).and_then(Option::as_ref);
                match trampolines.hook(&functions.all[place], gate) {
                    Ok(hook) => added.insert(place, hook),
                    Err(_) if canary::is_alone(plan, call) => continue,

                    // The hooks made so far are dropped, so their gates become free again.
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

    /// Probes the functions that serve calls of the plan, unless they are probed already.
    fn probe_functions(&mut self, plan: &Plan) -> Result<Option<CallProbes>, CaptureError> {
        let Some(all) = syscall_functions::of_this_kernel() else {
            return Ok(None);
        };
        let places = probes::places_of_calls(plan, &self.armed.probes);

        if places.is_empty() {
            return Ok(None);
        }

        let number = self.free_number(None)?;
        let functions: Vec<Probed<'_>> = places
            .iter()
            .map(|&place| (&all.all[place], u64::from(number)))
            .collect();
        let what = "probes at the ends of functions of system calls";
        let link = self
            .programs
            .probe(CALL_PROBE, &functions, At::End, number, what)?;
        Ok(Some(Probes {
            links: vec![link],
            number,
            places,
        }))
    }

    /// Probes the functions of the operations that the plan watches, unless they are probed already. `calls` are the
    /// probes attached for the plan's calls.
    fn probe_operations(
        &mut self,
        wanted: &WantedHooks<'_>,
        calls: Option<&CallProbes>,
    ) -> Result<Option<OperationProbes>, CaptureError> {
        let places = operation_probes::places(&self.armed.operation_probes, wanted);
        if places.is_empty() {
            return Ok(None);
        }
        let number = self.free_number(calls.map(|calls| calls.number))?;
        operation_probes::attach(&self.programs, wanted, places, number).map(Some)
    }

    /// A number that no link has, neither this daemon's nor an earlier one's, and that is not `other`: with two links of
    /// the same number each call would be recorded twice. Probes that rest are removed before: to remove a link also
    /// removed others from the functions that both had, on Linux 7.3.
    fn free_number(&mut self, other: Option<u32>) -> Result<u32, CaptureError> {
        self.detach_queue.end_probes();
        let number = probes::lowest_free(self.taken_numbers(other));
        number.ok_or_else(|| missing("a free number for one more link of probes"))
    }

    fn taken_numbers(&self, other: Option<u32>) -> u64 {
        let own = self.armed.probe_numbers() | self.control.probe_links();
        let pinned = probes::pinned_numbers(self.programs.pins.as_ref());
        own | pinned | other.map_or(0, |number| 1 << number)
    }

    /// Hooks what is missing for the operations that `plan` watches. `calls` are the probes that were just
    /// attached for the plan's calls.
    fn attach_uring(
        &mut self,
        plan: &Plan,
        calls: Option<&CallProbes>,
    ) -> Result<(UringHooks, Option<OperationProbes>), CaptureError> {
        if plan.hooks.uring.is_none() {
            return Ok(Default::default());
        }

        // Taken out, because `wanted` borrows it while hooks are attached by `self`.
        let uring = self.operations.uring.take();
        let uring = uring.ok_or_else(|| missing("io_uring"))?;
        let wanted = uring.wanted(plan);
        let hooks = self.attach_wanted(&wanted);
        let attached = hooks.and_then(|hooks| Ok((hooks, self.probe_operations(&wanted, calls)?)));

        drop(wanted);
        self.operations.uring = Some(uring);
        attached
    }

    /// Attaches hooks for ends first: if an operation's submission is seen, so is its end.
    fn attach_wanted(&mut self, wanted: &WantedHooks<'_>) -> Result<UringHooks, CaptureError> {
        let mut added = UringHooks::default();
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

    /// Hooks the ends of tasks. The entries of the native exit calls are hooked as well in two cases: where a task has
    /// no executable any more when it ends (exits through the 32-bit entry are then recorded without one), and where
    /// that costs other calls nothing. The entry is the better place, since a tracer can change the call between its
    /// entry and the task's end (PTRACE_EVENT_EXIT).
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
