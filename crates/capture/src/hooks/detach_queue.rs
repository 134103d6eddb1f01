//! Hooks on kernel functions that no rule needs any more, until they are removed.
//!
//! To detach a program from a function, the kernel waits until no task can be inside it, which takes tenths of a
//! second each; and rule sets are often replaced several times in a row. So unneeded hooks rest for a while, in
//! which the next rule set may reuse them, and are then removed by a separate thread. A resting hook finds nothing
//! to match.

use super::trampoline::{AtFunction, Hook, Trampolines};
use super::uring::OperationHook;
use crate::pins::Attached;
use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which a hook rests.
const REST: Duration = Duration::from_secs(3);

/// An attached hook that is no longer needed, and since when.
type Idle<T> = (T, Instant);

#[derive(Default)]
pub(super) struct DetachQueue {
    /// By index in the kernel's functions.
    functions: BTreeMap<usize, Idle<Hook>>,
    /// By name of the program in `bpf/object_hooks.bpf.inc.c`.
    objects: BTreeMap<String, Idle<Attached>>,
    /// Hooks on functions of io_uring operations.
    operations: BTreeMap<OperationHook, Idle<AtFunction>>,
    /// Links of probes, by number; these are not reused.
    probes: Vec<(u32, Vec<Attached>)>,
    leaving: Option<JoinHandle<()>>,
    /// Numbers of the probes that the thread in `leaving` removes.
    leaving_numbers: u64,
}

impl DetachQueue {
    /// Adds hooks to the queue.
    pub(super) fn add(
        &mut self,
        functions: BTreeMap<usize, Hook>,
        objects: BTreeMap<String, Attached>,
        operations: BTreeMap<OperationHook, AtFunction>,
        probes: impl IntoIterator<Item = (u32, Vec<Attached>)>,
    ) {
        let now = Instant::now();
        self.probes.extend(probes);
        self.functions.extend(idle(functions, now));
        self.objects.extend(idle(objects, now));
        self.operations.extend(idle(operations, now));
    }

    /// The resting hook on this function. If there is none, waits until no hook is being removed: two hooks at the
    /// same time would record each call twice.
    pub(super) fn take_function(&mut self, place: usize) -> Option<Hook> {
        let found = self.functions.remove(&place);
        if found.is_none() {
            self.wait();
        }
        found.map(|(hook, _)| hook)
    }

    /// The resting hook on objects with this program; if there is none, waits as
    /// [`take_function`](Self::take_function).
    pub(super) fn take_object(&mut self, program: &str) -> Option<Attached> {
        let found = self.objects.remove(program);
        if found.is_none() {
            self.wait();
        }
        found.map(|(link, _)| link)
    }

    /// The resting hook on this function of io_uring operations; if there is none, waits as
    /// [`take_function`](Self::take_function).
    pub(super) fn take_operation(&mut self, hook: OperationHook) -> Option<AtFunction> {
        let found = self.operations.remove(&hook);
        if found.is_none() {
            self.wait();
        }
        found.map(|(hook, _)| hook)
    }

    /// Starts to remove hooks that have rested long enough.
    pub(super) fn tidy(&mut self, trampolines: Option<&mut Trampolines>) {
        if self
            .leaving
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
            return;
        }
        self.wait();
        let functions = expired(&mut self.functions);
        let objects = expired(&mut self.objects);
        let operations = expired(&mut self.operations);
        let probes = std::mem::take(&mut self.probes);
        if functions.is_empty() && objects.is_empty() && operations.is_empty() && probes.is_empty()
        {
            return;
        }
        if let Some(trampolines) = trampolines {
            functions.values().for_each(|hook| trampolines.retire(hook));
            operations.values().for_each(|hook| trampolines.count(hook));
        }
        self.leaving_numbers = bits(&probes);
        let leave = move || drop((functions, objects, operations, probes));
        // If the thread cannot be created, the hooks are removed here, when the closure is dropped.
        let thread = std::thread::Builder::new().name("tarsier-unhook".to_owned());
        self.leaving = thread.spawn(leave).ok();
    }

    /// Resting hooks on functions; they count the calls that they miss.
    pub(super) fn at_functions(&self) -> impl Iterator<Item = &AtFunction> {
        let functions = self.functions.values().map(|(hook, _)| hook.at_function());
        functions.chain(self.operations.values().map(|(hook, _)| hook))
    }

    /// Numbers, as bits, of the probes that may still be attached.
    pub(super) fn probe_numbers(&self) -> u64 {
        bits(&self.probes) | self.leaving_numbers
    }

    /// Removes the probes at once.
    pub(super) fn end_probes(&mut self) {
        self.wait();
        self.probes.clear();
    }

    /// Links of all resting hooks.
    pub(super) fn links(&self) -> impl Iterator<Item = &Attached> {
        let objects = self.objects.values().map(|(link, _)| link);
        let probes = self.probes.iter().flat_map(|(_, links)| links);
        let functions = self.at_functions().map(AtFunction::link);
        functions.chain(objects).chain(probes)
    }

    fn wait(&mut self) {
        if let Some(thread) = self.leaving.take() {
            // The thread only drops values, so it has no result.
            let _ = thread.join();
        }
        self.leaving_numbers = 0;
    }
}

/// Numbers of probes, as bits.
fn bits(probes: &[(u32, Vec<Attached>)]) -> u64 {
    probes
        .iter()
        .fold(0, |bits, (number, _)| bits | 1 << number)
}

fn idle<K, T>(hooks: BTreeMap<K, T>, since: Instant) -> impl Iterator<Item = (K, Idle<T>)> {
    hooks
        .into_iter()
        .map(move |(key, hook)| (key, (hook, since)))
}

fn expired<K: Ord + Clone, T>(idle: &mut BTreeMap<K, Idle<T>>) -> BTreeMap<K, T> {
    let late: Vec<K> = idle
        .iter()
        .filter(|(_, (_, since))| since.elapsed() >= REST)
        .map(|(key, _)| key.clone())
        .collect();
    let take = |key: K| idle.remove(&key).map(|(hook, _)| (key, hook));
    late.into_iter().filter_map(take).collect()
}
