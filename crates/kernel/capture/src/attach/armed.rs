//! The hooks that are in force for the rules.

use crate::attach::entries;
use crate::attach::operation_probes::OperationProbes;
use crate::attach::probes::{self, CallProbes};
use crate::attach::trampoline::{AtFunction, Hook};
use crate::attach::uring::{Uring, UringHooks};
use crate::check::canary;
use crate::kernel::syscall_functions;
use crate::pins::Attached;
use plan::{Entry, Plan, SysExit};
use std::collections::BTreeMap;

/// Hooks in force. Links are detached when dropped.
#[derive(Default)]
pub(crate) struct Armed {
    pub(crate) sys_exit: Option<Attached>,
    pub(crate) per_syscall: BTreeMap<u32, Attached>,
    /// Hooks on the entries of calls, by number; without one, of all calls.
    pub(crate) entries: BTreeMap<Option<u32>, Attached>,
    /// Hooks on functions, by index in the kernel's functions.
    pub(crate) functions: BTreeMap<usize, Hook>,
    pub(crate) probes: Vec<CallProbes>,
    pub(crate) operation_probes: Vec<OperationProbes>,
    pub(crate) exec: Vec<Attached>,
    pub(crate) exit: Vec<Attached>,
    pub(crate) task_list: Vec<Attached>,
    pub(crate) fork: Vec<Attached>,
    pub(crate) module: Vec<Attached>,
    /// Hooks on the creation and removal of cgroups, which every plan has.
    pub(crate) cgroups: Vec<Attached>,
    /// Hooks on the lives of processes.
    pub(crate) processes: Vec<Attached>,
    pub(crate) uring: UringHooks,
}

impl Armed {
    /// Links of these hooks.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Attached> {
        let links = self.sys_exit.iter().chain(self.per_syscall.values());
        let links = links.chain(self.entries.values());
        let links = links.chain(&self.exec).chain(&self.exit);
        let links = links.chain(&self.task_list).chain(&self.fork);
        let links = links.chain(&self.module).chain(&self.cgroups);
        let links = links.chain(&self.processes);
        let links = links.chain(self.uring.links());
        let functions = self.functions.values().map(Hook::at_function);
        let links = links.chain(functions.map(AtFunction::link));
        let links = links.chain(self.probes.iter().flat_map(CallProbes::links));
        let operations = self.operation_probes.iter();
        links.chain(operations.flat_map(OperationProbes::links))
    }

    /// Number of calls that the probes missed.
    pub(crate) fn missed_by_probes(&self) -> u64 {
        let calls = self.probes.iter().map(CallProbes::missed);
        let operations = self.operation_probes.iter().map(OperationProbes::missed);
        calls.chain(operations).sum()
    }

    /// Numbers, as bits, of the links of probes.
    pub(crate) fn probe_numbers(&self) -> u64 {
        let calls = self.probes.iter().map(|probes| probes.number);
        let operations = self.operation_probes.iter().map(|probes| probes.number);
        calls
            .chain(operations)
            .fold(0, |bits, number| bits | 1 << number)
    }

    /// Whether a hook sees the native call with this number.
    pub(crate) fn sees(&self, nr: u32) -> bool {
        let functions = syscall_functions::places_of(&[(Entry::Native, nr)]);
        let has_function = |place: &usize| {
            let is_probed = self
                .probes
                .iter()
                .any(|probes| probes.places.contains(place));
            is_probed || self.functions.contains_key(place)
        };
        self.sys_exit.is_some()
            || self.per_syscall.contains_key(&nr)
            || functions.iter().any(has_function)
    }

    /// Adds hooks that were just attached.
    pub(crate) fn add(&mut self, new: Armed) {
        self.sys_exit = self.sys_exit.take().or(new.sys_exit);
        self.per_syscall.extend(new.per_syscall);
        self.entries.extend(new.entries);
        self.functions.extend(new.functions);
        self.probes.extend(new.probes);
        self.operation_probes.extend(new.operation_probes);
        self.exec.extend(new.exec);
        self.exit.extend(new.exit);
        self.task_list.extend(new.task_list);
        self.fork.extend(new.fork);
        self.module.extend(new.module);
        self.cgroups.extend(new.cgroups);
        self.processes.extend(new.processes);
        self.uring.add(new.uring);
    }

    /// Takes out the hooks that `plan` no longer needs; `uring` says which it needs for operations. They are still
    /// attached.
    pub(crate) fn take_unneeded(&mut self, plan: &Plan, uring: Option<&Uring>) -> Armed {
        let mut old = Armed::default();
        let (hooks, armed) = (&plan.hooks, self);

        if hooks.sys_exit != SysExit::Every {
            old.sys_exit = armed.sys_exit.take();
        }

        let kept = entries::wanted(plan);
        (armed.entries, old.entries) = std::mem::take(&mut armed.entries)
            .into_iter()
            .partition(|(call, _)| kept.contains(call));

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
        if !hooks.processes {
            old.processes = std::mem::take(&mut armed.processes);
        }

        if let Some(uring) = uring {
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
}
