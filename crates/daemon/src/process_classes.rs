//! Tells the programs the classes of processes, by which they match rules on labels and ancestors.
//!
//! The programs keep the classes themselves, from those that the makers of processes have. For a process that they do
//! not know they leave events undecided; the first of these makes the daemon tell its class.

use crate::engine::Engine;
use crate::recorder::Recorder;
use plan::Plan;

/// After events were read: tells the classes of processes that the programs did not know, and makes them forget
/// processes that are gone. All earlier events of these processes have been read: the classes have their labels.
pub(super) fn follow(plan: &Plan, recorder: &mut Recorder, engine: &Engine) {
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
