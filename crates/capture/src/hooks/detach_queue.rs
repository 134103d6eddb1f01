//! Hooks on kernel functions that no rule needs any more, before they are taken down.
//!
//! To detach a program from a function the kernel waits until no task can be inside (tenths of a second each),
//! and rule sets often come and go in a row. So such hooks rest for a while, in which the next rule set may take them
//! over, and are then taken down by a thread of their own. A hook at rest finds nothing to match.

use super::trampoline::{AtFunction, Hook, Trampolines};
use super::uring::OperationHook;
use crate::pins::Attached;
use std::collections::BTreeMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a hook rests.
const REST: Duration = Duration::from_secs(3);

/// Something attached that is no longer needed, since when.
type Idle<T> = (T, Instant);

#[derive(Default)]
pub(super) struct DetachQueue {
    /// By place in the kernel's functions.
    functions: BTreeMap<usize, Idle<Hook>>,
    /// By program of `bpf/object_hooks.bpf.inc.c`.
    objects: BTreeMap<String, Idle<Attached>>,
    /// On functions of io_uring operations.
    operations: BTreeMap<OperationHook, Idle<AtFunction>>,
    /// Links of probes by number, which do not come back.
    probes: Vec<(u32, Vec<Attached>)>,
    leaving: Option<JoinHandle<()>>,
    /// Numbers of the probes that `leaving` takes down.
    leaving_numbers: u64,
}

impl DetachQueue {
    /// Lays hooks to rest.
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

    /// The hook on this function, if it rests. If it does not, none is being taken down either: two at a time
    /// would see each call twice.
    pub(super) fn take_function(&mut self, place: usize) -> Option<Hook> {
        let found = self.functions.remove(&place);
        if found.is_none() {
            self.wait();
        }
        found.map(|(hook, _)| hook)
    }

    /// The same for a hook on objects.
    pub(super) fn take_object(&mut self, program: &str) -> Option<Attached> {
        let found = self.objects.remove(program);
        if found.is_none() {
            self.wait();
        }
        found.map(|(link, _)| link)
    }

    /// The same for a hook on a function of io_uring operations.
    pub(super) fn take_operation(&mut self, hook: OperationHook) -> Option<AtFunction> {
        let found = self.operations.remove(&hook);
        if found.is_none() {
            self.wait();
        }
        found.map(|(hook, _)| hook)
    }

    /// Has those taken down that have rested long enough.
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
        // Where no thread can be made, the hooks go with the error.
        let thread = std::thread::Builder::new().name("tarsier-unhook".to_owned());
        self.leaving = thread.spawn(leave).ok();
    }

    /// Hooks at rest on functions: they count what they miss.
    pub(super) fn at_functions(&self) -> impl Iterator<Item = &AtFunction> {
        let functions = self.functions.values().map(|(hook, _)| hook.at_function());
        functions.chain(self.operations.values().map(|(hook, _)| hook))
    }

    /// Numbers, as bits, of the probes that may still be attached.
    pub(super) fn probe_numbers(&self) -> u64 {
        bits(&self.probes) | self.leaving_numbers
    }

    /// Takes the probes down at once.
    pub(super) fn end_probes(&mut self) {
        self.wait();
        self.probes.clear();
    }

    /// Links of all hooks at rest.
    pub(super) fn links(&self) -> impl Iterator<Item = &Attached> {
        let objects = self.objects.values().map(|(link, _)| link);
        let probes = self.probes.iter().flat_map(|(_, links)| links);
        let functions = self.at_functions().map(AtFunction::link);
        functions.chain(objects).chain(probes)
    }

    fn wait(&mut self) {
        if let Some(thread) = self.leaving.take() {
            // It only drops; there is nothing to tell.
            let _ = thread.join();
        }
        self.leaving_numbers = 0;
    }
}

/// The numbers of probes.
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
