//! What the composer knows of processes, and the classes that the programs have of them.

use super::{Composer, Tally};
use crate::processes::{LookedAt, ProcessCounts};
use plan::ProcessClass;
use record::wire::{self, ProcessFrame, ProcessId, WireError};

impl<T: Tally> Composer<T> {
    /// Learns of all processes that there are, from one FOUND frame of each after the other. Call it when the programs
    /// that tell of processes have been attached, and when they have lost frames.
    ///
    /// # Errors
    /// A frame does not have the format of [`record::wire`]. Nothing was learnt.
    pub fn survey_processes(&mut self, frames: &[u8]) -> Result<(), WireError> {
        let frames = wire::frames(frames).map(|frame| ProcessFrame::parse(frame?));
        self.processes
            .survey(&frames.collect::<Result<Vec<_>, _>>()?);
        Ok(())
    }

    /// Forgets all processes. Call it when the programs that tell of them have been detached.
    pub fn forget_processes(&mut self) {
        self.processes.forget();
    }

    /// The classes of a process and of its ancestors that the programs are to be told, for the rule set with this number:
    /// those that have not ended and were not told.
    pub fn classes_to_tell(
        &mut self,
        process: ProcessId,
        generation: u64,
    ) -> Vec<(ProcessId, ProcessClass)> {
        match self.generations.of(generation) {
            Some(rules) => self.processes.classes_to_tell(process, rules),
            None => Vec::new(),
        }
    }

    /// Notes that rules with other names are in force: the programs know no class of a process for them.
    pub fn forget_process_classes(&mut self) {
        self.processes.forget_classes();
    }

    /// Up to `max` processes that have not ended. They follow `after`, and behind the last one the first ones.
    pub fn some_processes(&self, after: ProcessId, max: usize) -> Vec<ProcessId> {
        self.processes.some_living(after, max)
    }

    /// Whether the programs, under the rule set with this number, can have made the class that was found for a process of
    /// the one that was found at the last look. If not, another process has changed it.
    pub fn is_class_possible(
        &mut self,
        process: ProcessId,
        looked: LookedAt,
        generation: u64,
    ) -> bool {
        let rules = self.generations.of(generation);
        rules.is_none_or(|rules| {
            let names = &rules.generation.plan.workloads.past;
            let processes = &mut self.processes;
            processes.is_class_possible(process, looked, names, &rules.identities)
        })
    }

    /// The processes that have ended since the last call, and whose classes were told.
    pub fn process_classes_gone(&mut self) -> Vec<ProcessId> {
        self.processes.classes_gone()
    }

    /// Counts of processes.
    pub fn process_counts(&self) -> ProcessCounts {
        self.processes.counts()
    }
}
