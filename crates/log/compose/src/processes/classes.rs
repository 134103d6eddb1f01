//! The classes of processes that the programs have, by which they match rules on labels and ancestors.

use super::{KeptProgram, Processes};
use crate::second_stage;
use plan::{Identities, PastNames, ProcessClass, LABELS_ARE_OPEN};
use record::wire::ProcessId;

/// What a look has found of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookedAt {
    /// The class that the programs have; `None` if there is none.
    pub class: Option<ProcessClass>,
    /// Number of events and frames of processes that were lost, or not recorded, up to then. If others were between two
    /// looks, the programs may know what the frames do not tell.
    pub losses: u64,
}

impl Processes {
    /// The classes of a process and of its ancestors for these rules, as far as they have not ended, and the programs were
    /// not told these. What the ancestors make from now on has a class from the beginning.
    pub(crate) fn classes_to_tell(
        &mut self,
        process: ProcessId,
        rules: &second_stage::Known,
    ) -> Vec<(ProcessId, ProcessClass)> {
        let Some(known) = self.known.get(&process) else {
            return Vec::new();
        };
        let family = std::iter::once(process).chain(known.lineage.makers());
        let family: Vec<ProcessId> = family.collect();
        let class = |process| Some((process, self.class_to_tell(process, rules)?));
        family.into_iter().filter_map(class).collect()
    }

    fn class_to_tell(
        &mut self,
        process: ProcessId,
        rules: &second_stage::Known,
    ) -> Option<ProcessClass> {
        let names = &rules.generation.plan.workloads;
        let known = self.known.get_mut(&process)?;
        if known.has_ended || known.has_class {
            return None;
        }

        known.has_class = true;
        let known = self.known.get(&process)?;
        let exe = known.program.as_deref().and_then(KeptProgram::run_exe);
        let past = self.past(process);
        let past = past.of_task();
        let program = (known.image, exe.as_ref());
        Some(names.past.class(&past, program, &rules.identities))
    }

    /// Notes that rules with other names are in force: the programs know no classes for them.
    pub(crate) fn forget_classes(&mut self) {
        for known in self.known.values_mut() {
            known.has_class = false;
            known.class = None;
        }
    }

    /// Takes out the ended processes whose classes the programs were told.
    pub(crate) fn classes_gone(&mut self) -> Vec<ProcessId> {
        std::mem::take(&mut self.classes_gone)
    }

    /// Up to `max` processes that have not ended. They follow `after`, and behind the last one the first ones.
    pub(crate) fn some_living(&self, after: ProcessId, max: usize) -> Vec<ProcessId> {
        let living = self.living.iter();
        let living = living.map(|(&pid, &start_ns)| ProcessId { start_ns, pid });
        let mut living: Vec<ProcessId> = living.collect();
        living.sort_unstable();
        let begin = living.partition_point(|process| *process <= after);
        living.rotate_left(begin);
        living.truncate(max);
        living
    }

    /// Whether the programs can have made the class that was found for a process of the one that was found at the last
    /// look. If so, the next look compares with it. The first class that is found is taken as it is.
    pub(crate) fn is_class_possible(
        &mut self,
        process: ProcessId,
        looked: LookedAt,
        names: &PastNames,
        identities: &Identities,
    ) -> bool {
        let Some(known) = self.known.get(&process).filter(|known| !known.has_ended) else {
            return true;
        };
        let Some(before) = known.class else {
            return self.note_class(process, looked);
        };

        let are_all_told = before.losses == looked.losses;
        let is_possible = match (before.class, looked.class) {
            (None, _) => true,
            (Some(_), None) => !are_all_told,
            (Some(before), Some(now)) => {
                let is_executed = before.image == now.image || known.image == now.image;
                let got = now.labels & !before.labels;
                let is_open = now.flags & LABELS_ARE_OPEN != 0;
                let are_explained =
                    is_open || got == 0 || self.explain_labels(process, got, names, identities);
                before.may_become(&now) && (is_executed && are_explained || !are_all_told)
            }
        };

        is_possible && self.note_class(process, looked)
    }

    /// Keeps what was found for the next look. Returns true.
    fn note_class(&mut self, process: ProcessId, looked: LookedAt) -> bool {
        if let Some(known) = self.known.get_mut(&process) {
            known.class = Some(looked);
        }
        true
    }

    /// Whether events have given the process these labels, as far as that is known.
    fn explain_labels(
        &self,
        process: ProcessId,
        labels: u32,
        names: &PastNames,
        identities: &Identities,
    ) -> bool {
        let past = self.past(process);
        let due = names.class(&past.of_task(), (0, None), identities);
        due.flags & LABELS_ARE_OPEN != 0 || labels & !due.labels == 0
    }
}
