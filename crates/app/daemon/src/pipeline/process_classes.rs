//! Tells the programs the classes of processes, by which they match rules on labels and ancestors.
//!
//! The programs keep the classes themselves, from those that the makers of processes have. For a process that they do
//! not know they leave events undecided; the first of these makes the daemon tell its class.

use crate::pipeline::engine::Engine;
use crate::pipeline::recorder::Recorder;
use compose::LookedAt;
use plan::{Plan, ProcessClass};
use record::wire::ProcessId;
use std::collections::HashMap;

/// After events were read: tells the classes of processes that the programs did not know, and makes them forget
/// processes that are gone. All earlier events of these processes have been read: the classes have their labels.
pub(crate) fn follow(plan: &Plan, recorder: &mut Recorder, engine: &Engine) {
    let mut asked = std::mem::take(&mut recorder.asked.processes);
    asked.sort_unstable();
    asked.dedup();
    let names = &plan.workloads;
    if !names.past.is_empty() {
        for process in asked {
            for (process, class) in recorder.classes_to_tell(process, plan.generation) {
                engine.classify_process(process, names.epoch(), &class);
            }
        }
    }

    for process in recorder.process_classes_gone() {
        engine.forget_process(process);
    }
}

/// Looks at the classes of processes, and finds those that another process has changed.
#[derive(Default)]
pub(crate) struct Looks {
    /// Classes that the programs cannot have made, as far as the daemon knows; `None` if there is none any more.
    doubtful: HashMap<ProcessId, Option<ProcessClass>>,
    /// The last process that was looked at: the next look goes on behind it.
    looked_at: Option<ProcessId>,
}

impl Looks {
    /// Looks at up to `max` processes, and at those in doubt. A class counts as changed if it is found impossible in the
    /// same way twice: before that, the daemon may not have read the frame that explains it, or a program may still be
    /// writing it. `losses`: see [`LookedAt`]. Returns whether any class was changed. All are forgotten then, since
    /// children have taken them over, and the daemon tells them again.
    pub(crate) fn check(
        &mut self,
        plan: &Plan,
        recorder: &mut Recorder,
        engine: &Engine,
        losses: u64,
        max: usize,
    ) -> bool {
        let doubted = std::mem::take(&mut self.doubtful);
        let names = &plan.workloads;
        if names.past.is_empty() {
            return false;
        }

        const FIRST: ProcessId = ProcessId {
            start_ns: 0,
            pid: 0,
        };
        let mut processes = recorder.some_processes(self.looked_at.unwrap_or(FIRST), max);
        self.looked_at = processes.last().copied().or(self.looked_at);
        processes.extend(doubted.keys());

        let classes = engine.process_classes(names.epoch(), &processes);
        for (process, class) in processes.into_iter().zip(classes) {
            let looked = LookedAt { class, losses };
            if recorder.is_class_possible(process, looked, plan.generation) {
                continue;
            }

            // Twice in the same way: no frame on its way explains it.
            if doubted.get(&process) == Some(&class) {
                self.doubtful.clear();
                recorder.forget_process_classes();
                engine.forget_processes();
                return true;
            }
            self.doubtful.insert(process, class);
        }
        false
    }

    /// Whether a class is in doubt.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubtful.is_empty()
    }
}
