//! Hooks on kernel functions that no rule needs any more, until they are removed.
//!
//! To detach a program from a function, the kernel waits until no task can be inside it, which takes tenths of a
//! second each; and rule sets are often replaced several times in a row. So unneeded hooks rest for a while, in
//! which the next rule set may reuse them, and are then removed one by one by a separate thread. A new rule set
//! stops that thread: it waits for one removal at most, and may reuse what is left. A resting hook finds nothing to
//! match.

use crate::attach::trampoline::{AtFunction, Hook, Trampolines};
use crate::attach::uring::OperationHook;
use crate::pins::Attached;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time for which a hook rests.
const REST: Duration = Duration::from_secs(3);

/// An attached hook that is no longer needed, and since when.
type Idle<T> = (T, Instant);

#[derive(Default)]
pub(crate) struct DetachQueue {
    /// Hooks on functions, by index in the kernel's functions.
    functions: BTreeMap<usize, Idle<Hook>>,
    /// Object hooks, by name of the program in `bpf/object_hooks.bpf.inc.c`.
    objects: BTreeMap<String, Idle<Attached>>,
    /// Hooks on functions of io_uring operations.
    operations: BTreeMap<OperationHook, Idle<AtFunction>>,
    /// Links of probes; these are not reused.
    probes: Vec<Vec<Attached>>,
    leaving: Option<Leaving>,
}

/// The thread that removes hooks, and those that it has not begun to remove.
struct Leaving {
    left: Arc<Mutex<Vec<Departing>>>,
    thread: JoinHandle<()>,
}

/// A hook that is to be removed. Dropping it removes it.
enum Departing {
    /// The function's index, and the number of calls that the hook had missed when its gate was freed.
    Function(usize, Hook, u64),
    Object(String, Attached),
    Operation(OperationHook, AtFunction, u64),
    Probes(Vec<Attached>),
}

impl DetachQueue {
    /// Adds hooks to the queue.
    pub(crate) fn add(
        &mut self,
        functions: BTreeMap<usize, Hook>,
        objects: BTreeMap<String, Attached>,
        operations: BTreeMap<OperationHook, AtFunction>,
        probes: impl IntoIterator<Item = Vec<Attached>>,
    ) {
        let now = Instant::now();
        self.probes.extend(probes);
        self.functions.extend(idle(functions, now));
        self.objects.extend(idle(objects, now));
        self.operations.extend(idle(operations, now));
    }

    /// Stops the removal of hooks, so that new ones may be attached: two hooks at the same place would record each
    /// call twice. Waits for the hook that is just being removed; the others rest again.
    pub(crate) fn recall(&mut self, mut trampolines: Option<&mut Trampolines>) {
        let Some(leaving) = self.leaving.take() else {
            return;
        };

        // They have rested already.
        let now = Instant::now();
        let since = now.checked_sub(REST).unwrap_or(now);

        for hook in leaving.end() {
            match hook {
                Departing::Function(place, hook, missed) => {
                    if let Some(trampolines) = &mut trampolines {
                        trampolines.reuse(&hook, missed);
                    }
                    self.functions.insert(place, (hook, since));
                }
                Departing::Object(program, link) => {
                    self.objects.insert(program, (link, since));
                }
                Departing::Operation(key, hook, missed) => {
                    if let Some(trampolines) = &mut trampolines {
                        trampolines.uncount(missed);
                    }
                    self.operations.insert(key, (hook, since));
                }
                Departing::Probes(links) => self.probes.push(links),
            }
        }
    }

    /// The resting hook on this function. Call [`recall`](Self::recall) before.
    pub(crate) fn take_function(&mut self, place: usize) -> Option<Hook> {
        self.functions.remove(&place).map(|(hook, _)| hook)
    }

    /// The resting hook on objects with this program. Call [`recall`](Self::recall) before.
    pub(crate) fn take_object(&mut self, program: &str) -> Option<Attached> {
        self.objects.remove(program).map(|(link, _)| link)
    }

    /// The resting hook on this function of io_uring operations. Call [`recall`](Self::recall) before.
    pub(crate) fn take_operation(&mut self, hook: OperationHook) -> Option<AtFunction> {
        self.operations.remove(&hook).map(|(hook, _)| hook)
    }

    /// Starts to remove hooks that have rested long enough.
    pub(crate) fn tidy(&mut self, trampolines: Option<&mut Trampolines>) {
        let is_busy = |leaving: &Leaving| !leaving.thread.is_finished();
        if self.leaving.as_ref().is_some_and(is_busy) {
            return;
        }

        self.leaving = None;
        let departing = self.expired(trampolines);
        if departing.is_empty() {
            return;
        }

        let left = Arc::new(Mutex::new(departing));
        let leave = {
            let left = Arc::clone(&left);
            move || while remove_one(&left) {}
        };

        // If the thread cannot be created, the hooks are removed here, when the closure is dropped.
        let thread = std::thread::Builder::new().name("tarsier-unhook".to_owned());
        let leaving = |thread| Leaving { left, thread };
        self.leaving = thread.spawn(leave).ok().map(leaving);
    }

    /// Takes out the hooks that have rested long enough. Their counts are kept and their gates freed.
    fn expired(&mut self, mut trampolines: Option<&mut Trampolines>) -> Vec<Departing> {
        let mut departing = Vec::new();
        for (place, hook) in expired(&mut self.functions) {
            let missed = trampolines.as_mut().map(|all| all.retire(&hook));
            departing.push(Departing::Function(place, hook, missed.unwrap_or(0)));
        }

        for (key, hook) in expired(&mut self.operations) {
            let missed = trampolines.as_mut().map(|all| all.count(&hook));
            departing.push(Departing::Operation(key, hook, missed.unwrap_or(0)));
        }

        let objects = expired(&mut self.objects).into_iter();
        departing.extend(objects.map(|(program, link)| Departing::Object(program, link)));
        let probes = self.probes.drain(..);
        departing.extend(probes.map(Departing::Probes));
        departing
    }

    /// Resting hooks on functions; they count the calls that they miss.
    pub(crate) fn at_functions(&self) -> impl Iterator<Item = &AtFunction> {
        let functions = self.functions.values().map(|(hook, _)| hook.at_function());
        functions.chain(self.operations.values().map(|(hook, _)| hook))
    }

    /// Removes the probes at once.
    pub(crate) fn end_probes(&mut self) {
        self.probes.clear();
    }

    /// Links of all resting hooks.
    pub(crate) fn links(&self) -> impl Iterator<Item = &Attached> {
        let objects = self.objects.values().map(|(link, _)| link);
        let probes = self.probes.iter().flatten();
        let functions = self.at_functions().map(AtFunction::link);
        functions.chain(objects).chain(probes)
    }
}

impl Leaving {
    /// Ends the thread after the hook that it is removing. Returns the hooks that are still attached.
    fn end(self) -> Vec<Departing> {
        let left = std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner));
        // The thread only drops values, so it has no result.
        let _ = self.thread.join();
        left
    }
}

impl Drop for DetachQueue {
    fn drop(&mut self) {
        if let Some(leaving) = self.leaving.take() {
            drop(leaving.end());
        }
    }
}

/// Removes one hook. Returns whether there was one.
fn remove_one(left: &Mutex<Vec<Departing>>) -> bool {
    let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
    next.is_some()
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
