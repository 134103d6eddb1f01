//! Tells the programs the classes of cgroups, by which they match rules on workloads.
//!
//! The programs classify new cgroups themselves. For a cgroup that they do not know they leave events undecided; the
//! first of these makes the daemon tell its class.

use crate::pipeline::engine::Engine;
use crate::pipeline::recorder::Recorder;
use plan::{WorkloadClass, WorkloadNames};
use std::collections::{HashMap, HashSet};

/// The cgroups whose classes the programs were told.
#[derive(Default)]
pub(crate) struct Workloads {
    told: HashSet<u64>,
    /// Epoch of the classes that were told.
    epoch: u64,
    /// Classes of the programs that differed from what they should be at the last check.
    doubtful: HashMap<u64, WorkloadClass>,
    /// The last cgroup that was checked: the next check goes on behind it.
    checked: u64,
}

impl Workloads {
    /// Tells the programs the classes of all cgroups. Call it when other names are in force, and after a survey.
    pub(crate) fn classify_all(
        &mut self,
        names: &WorkloadNames,
        recorder: &mut Recorder,
        engine: &Engine,
    ) {
        self.told.clear();
        self.doubtful.clear();
        self.epoch = names.epoch();
        if !names.ask_cgroups() {
            return;
        }
        for (cgroup, class) in recorder.classes(names) {
            if engine.classify(cgroup, self.epoch, &class) {
                self.told.insert(cgroup);
            }
        }
    }

    /// Whether the classes that were told are those of other names.
    pub(crate) fn are_of_others(&self, names: &WorkloadNames) -> bool {
        self.epoch != names.epoch()
    }

    /// After events were read: tells the classes of cgroups that the programs did not know, and makes them forget
    /// cgroups that are gone.
    pub(crate) fn follow(
        &mut self,
        names: &WorkloadNames,
        recorder: &mut Recorder,
        engine: &Engine,
    ) {
        for cgroup in std::mem::take(&mut recorder.asked.cgroups) {
            if self.epoch != names.epoch() || !names.ask_cgroups() || self.told.contains(&cgroup) {
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

    /// Compares up to `max` classes that the programs have, and those in doubt, with what they should be, and tells those
    /// again that somebody has changed. A class counts as changed if it is wrong in the same way at two checks: before
    /// that, the daemon may not have read the frame of a rename. Returns whether there was any.
    pub(crate) fn check(
        &mut self,
        names: &WorkloadNames,
        recorder: &mut Recorder,
        engine: &Engine,
        max: usize,
    ) -> bool {
        if !names.ask_cgroups() || self.epoch != names.epoch() {
            return false;
        }

        // So many at a time, and each in its turn: a look at all would hold up the rings.
        let mut living = recorder.cgroups_living();
        living.sort_unstable();
        let begin = living.partition_point(|&id| id <= self.checked);
        living.rotate_left(begin);
        living.truncate(max);
        self.checked = living.last().copied().unwrap_or(self.checked);

        let doubted = std::mem::take(&mut self.doubtful);
        living.extend(doubted.keys());

        let mut has_changed = false;
        for cgroup in living {
            let Some((epoch, has)) = engine.class(cgroup) else {
                continue;
            };
            let due = recorder.class(cgroup, names);

            match due.filter(|due| epoch == self.epoch && *due != has) {
                Some(due) if doubted.get(&cgroup) == Some(&has) => {
                    has_changed |= engine.classify(cgroup, self.epoch, &due);
                }
                Some(_) => drop(self.doubtful.insert(cgroup, has)),
                None => {}
            }
        }
        has_changed
    }

    /// Whether a class is in doubt.
    pub(crate) fn is_in_doubt(&self) -> bool {
        !self.doubtful.is_empty()
    }
}
