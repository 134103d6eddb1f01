//! Tells the programs the classes of cgroups, by which they match rules on workloads.
//!
//! The programs classify new cgroups themselves. For a cgroup that they do not know they leave events undecided; the
//! first of these makes the daemon tell its class.

use crate::engine::Engine;
use crate::recorder::Recorder;
use plan::WorkloadNames;
use std::collections::HashSet;

/// The cgroups whose classes the programs were told.
#[derive(Default)]
pub(super) struct Workloads {
    told: HashSet<u64>,
    /// Epoch of the classes that were told.
    epoch: u64,
}

impl Workloads {
    /// Tells the programs the classes of all cgroups. Call it when other names are in force, and after a survey.
    pub(super) fn tell_all(
        &mut self,
        names: &WorkloadNames,
        recorder: &mut Recorder,
        engine: &Engine,
    ) {
        self.told.clear();
        self.epoch = names.epoch();
        if self.epoch == 0 {
            return;
        }
        for (cgroup, class) in recorder.classes(names) {
            if engine.classify(cgroup, self.epoch, &class) {
                self.told.insert(cgroup);
            }
        }
    }

    /// Whether the classes that were told are those of other names.
    pub(super) fn are_of_others(&self, names: &WorkloadNames) -> bool {
        self.epoch != names.epoch()
    }

    /// After events were read: tells the classes of cgroups that the programs did not know, and makes them forget
    /// cgroups that are gone.
    pub(super) fn follow(
        &mut self,
        names: &WorkloadNames,
        recorder: &mut Recorder,
        engine: &Engine,
    ) {
        for cgroup in std::mem::take(&mut recorder.cgroups_asked) {
            if self.epoch != names.epoch() || self.told.contains(&cgroup) {
                continue;
            }
            let class = recorder.class(cgroup, names);
            if class.is_some_and(|class| engine.classify(cgroup, self.epoch, &class)) {
                self.told.insert(cgroup);
            }
        }
        for cgroup in recorder.cgroups_gone() {
            if self.told.remove(&cgroup) {
                engine.forget_class(cgroup);
            }
        }
    }
}
