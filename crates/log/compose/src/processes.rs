//! The processes that there are, and those that ended lately: they lead from the process of an event to its ancestors.
//!
//! Frames of the rings tell of each process before its first event, of each execve, and of its end. A process is known by
//! its number and the time when it was made, so that a number that is used again is another process. What was lost cannot
//! make an ancestor wrong: each frame of a new process has the number of its maker's program, which each execve changes.

pub use self::classes::LookedAt;
use crate::lineage::{Budget, KeptProgram, Lineage, INIT};
use crate::past::Past;
use crate::process_labels::{LabelNames, ProcessLabels};
use record::wire::{Executed, ProcessChange, ProcessFrame, ProcessId};
use record::AncestorsText;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

mod classes;

/// Processes that are kept. Further ones, and what they make, are unknown.
const KNOWN_MAX: usize = 1 << 16;
/// Ended processes among them: late events of other threads, and io_uring operations that end later, need them.
const ENDED_MAX: usize = 4096;
/// Approximate bytes that a process takes, beside its programs and texts.
const PROCESS_BYTES: usize = 1000;

/// Counts of processes and of the events that tell their ancestors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounts {
    /// Processes that are known, lately ended ones included.
    pub known: u64,
    /// Approximate bytes that they take.
    pub bytes: u64,
    /// Events some of whose ancestors are not known.
    pub partial_events: u64,
}

struct Known {
    /// Number of the program that it runs.
    image: u64,
    /// `None` if it is not known.
    program: Option<Arc<KeptProgram>>,
    lineage: Arc<Lineage>,
    /// The ancestors of what it makes, as long as it runs this program.
    offspring: Option<Arc<Lineage>>,
    labels: ProcessLabels,
    /// Whether the programs were told its class.
    has_class: bool,
    /// What the last look at its class has found.
    class: Option<LookedAt>,
    /// Whether the frame that tells who made it has come.
    is_told: bool,
    has_ended: bool,
}

impl Known {
    /// A process of whose makers nothing is known.
    fn without_makers(image: u64, program: Option<Arc<KeptProgram>>) -> Known {
        Known {
            image,
            program,
            lineage: Arc::new(Lineage::unknown()),
            offspring: None,
            labels: ProcessLabels::UNKNOWN,
            has_class: false,
            class: None,
            is_told: false,
            has_ended: false,
        }
    }
}

/// The processes by number and time.
#[derive(Default)]
pub(crate) struct Processes {
    known: HashMap<ProcessId, Known>,
    /// Start times of those that have not ended, by number.
    living: HashMap<u32, u64>,
    /// The first ended first.
    ended: VecDeque<ProcessId>,
    budget: Budget,
    label_names: LabelNames,
    partial_events: u64,
    /// Whether a survey has found processes.
    is_surveyed: bool,
    /// Ended processes whose class the programs were told.
    classes_gone: Vec<ProcessId>,
}

impl Processes {
    /// Takes a frame in its turn.
    pub(crate) fn take(&mut self, frame: &ProcessFrame<'_>) {
        let process = frame.process;
        match &frame.change {
            ProcessChange::Made(maker) => self.made(process, *maker, frame.image),
            ProcessChange::Executed(executed) => self.executed(process, executed, frame.image),
            ProcessChange::Ended => self.end(process),
            // Not in rings.
            ProcessChange::Found(..) | ProcessChange::Above(..) | ProcessChange::Kernel(_) => {}
        }
    }

    fn made(&mut self, process: ProcessId, maker: ProcessId, image: u64) {
        // While one capture replaces another, both tell.
        if self.known.get(&process).is_some_and(|known| known.is_told) {
            return;
        }

        let lineage = self.offspring(maker, image);
        let from = self.known.get(&maker);
        let program = from.filter(|maker| maker.image == image);
        let known = Known {
            program: program.and_then(|maker| maker.program.clone()),
            image,
            lineage,
            offspring: None,
            labels: from.map_or(ProcessLabels::UNKNOWN, |maker| maker.labels),
            has_class: false,
            class: None,
            is_told: true,
            has_ended: false,
        };

        self.add(process, known);
    }

    fn executed(&mut self, process: ProcessId, executed: &Executed<'_>, image: u64) {
        let program = KeptProgram::of(executed, &self.budget);
        if let Some(known) = self.known.get_mut(&process) {
            known.image = image;
            known.program = program;
            known.offspring = None;
            return;
        }
        self.add(process, Known::without_makers(image, program));
    }

    /// The ancestors of a process that `maker` makes while its program has the number `image`.
    fn offspring(&mut self, maker: ProcessId, image: u64) -> Arc<Lineage> {
        if maker.pid == 0 {
            return Arc::new(Lineage::default());
        }
        let Some(known) = self.known.get_mut(&maker) else {
            return Lineage::unknown().below(maker, None);
        };
        if known.image != image {
            return known.lineage.below(maker, None);
        }

        let program = &known.program;
        let made = || known.lineage.below(maker, program.clone());
        Arc::clone(known.offspring.get_or_insert_with(made))
    }

    /// Adds a process that runs. If another one with its number is known, its end was not seen.
    fn add(&mut self, process: ProcessId, known: Known) {
        let earlier = self.living.get(&process.pid).copied();
        if let Some(start_ns) = earlier.filter(|start_ns| *start_ns != process.start_ns) {
            self.end(ProcessId {
                start_ns,
                ..process
            });
        }

        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&process) {
            return;
        }

        self.living.insert(process.pid, process.start_ns);
        self.known.insert(process, known);
    }

    /// Counts a process as ended, and forgets the one that ended first.
    fn end(&mut self, process: ProcessId) {
        match self.known.get_mut(&process) {
            Some(known) if !known.has_ended => {
                known.has_ended = true;
                if known.has_class {
                    self.classes_gone.push(process);
                }
            }
            _ => return,
        }

        if self.living.get(&process.pid) == Some(&process.start_ns) {
            self.living.remove(&process.pid);
        }

        self.ended.push_back(process);
        while self.ended.len() > ENDED_MAX {
            let Some(first) = self.ended.pop_front() else {
                return;
            };
            // A frame that came twice may have brought it back.
            if self.known.get(&first).is_some_and(|known| known.has_ended) {
                self.known.remove(&first);
            }
        }
    }

    /// Learns of all processes that there are, from a FOUND frame of each. Those that are unknown although all frames
    /// since an earlier survey should have told of them have parents now that need not have made them: their ancestors
    /// are unknown.
    pub(crate) fn survey(&mut self, found: &[ProcessFrame<'_>]) {
        let mut found: Vec<&ProcessFrame<'_>> = found.iter().collect();
        // Parents first.
        found.sort_unstable_by_key(|frame| frame.process);
        for frame in &found {
            let budget = &self.budget;
            match &frame.change {
                ProcessChange::Found(parent, executed) | ProcessChange::Above(parent, executed) => {
                    let program = KeptProgram::of(executed, budget);
                    self.found(frame, *parent, program);
                }
                ProcessChange::Kernel(parent) => {
                    let program = KeptProgram::kernel(budget);
                    self.found(frame, *parent, program);
                }
                _ => {}
            }
        }

        self.is_surveyed |= !found.is_empty();
        // In a pid namespace of its own, the daemon is not shown all.
        let is_listed = |frame: &&&ProcessFrame<'_>| {
            matches!(
                frame.change,
                ProcessChange::Found(..) | ProcessChange::Kernel(_)
            )
        };

        let listed = found.iter().filter(is_listed);
        let there: HashSet<ProcessId> = listed.map(|frame| frame.process).collect();
        let is_whole = there.iter().any(|process| process.pid == INIT)
            && found.iter().all(|frame| there.contains(&frame.process));
        if !is_whole {
            return;
        }

        let living = self
            .living
            .iter()
            .map(|(&pid, &start_ns)| ProcessId { start_ns, pid });
        let gone: Vec<ProcessId> = living.filter(|process| !there.contains(process)).collect();
        gone.into_iter().for_each(|process| self.end(process));
    }

    fn found(
        &mut self,
        frame: &ProcessFrame<'_>,
        parent: ProcessId,
        program: Option<Arc<KeptProgram>>,
    ) {
        if let Some(known) = self.known.get_mut(&frame.process) {
            if known.image != frame.image {
                known.image = frame.image;
                known.program = program;
                known.offspring = None;
            }
            return;
        }

        let image = self.known.get(&parent).map_or(0, |parent| parent.image);
        let unknown = Known::without_makers(frame.image, program);
        let known = if self.is_surveyed {
            unknown
        } else {
            // Nobody has given it a label yet.
            Known {
                lineage: self.offspring(parent, image),
                labels: ProcessLabels::default(),
                ..unknown
            }
        };

        self.add(frame.process, known);
    }

    /// Gives a process labels, which it keeps, and which what it makes will have.
    pub(crate) fn label(&mut self, process: ProcessId, names: &[String]) {
        let all = &self.known;
        let used = || all.values().fold(0, |bits, known| bits | known.labels.bits);
        let bits: Vec<Option<u64>> = names
            .iter()
            .map(|name| self.label_names.bit(name, used))
            .collect();
        if !self.known.contains_key(&process) {
            self.add(process, Known::without_makers(0, None));
        }

        let Some(known) = self.known.get_mut(&process) else {
            return;
        };

        for bit in bits {
            match bit {
                Some(bit) => known.labels.bits |= bit,
                None => known.labels.is_partial = true,
            }
        }
    }

    /// The labels of an event's process.
    pub(crate) fn labels(&self, process: ProcessId) -> ProcessLabels {
        let known = self.known.get(&process);
        known.map_or(ProcessLabels::UNKNOWN, |known| known.labels)
    }

    /// The program that a process runs; `None` if it is not known.
    pub(crate) fn program(&self, process: ProcessId) -> Option<Arc<KeptProgram>> {
        self.known.get(&process)?.program.clone()
    }

    /// The past of a process, as far as it is known.
    pub(crate) fn past(&self, process: ProcessId) -> Past<'_> {
        let labels = self.labels(process);
        let names = self.label_names.of(labels);
        let known = self.known.get(&process);
        let ancestors = known.map(|known| known.lineage.exes());
        let (ancestors, are_all_ancestors) = ancestors.unwrap_or_default();
        Past {
            labels: names.map(str::as_bytes).collect(),
            are_all_labels: !labels.is_partial,
            ancestors,
            are_all_ancestors,
        }
    }

    /// Names of labels.
    pub(crate) fn label_names(&self) -> &LabelNames {
        &self.label_names
    }

    /// Forgets all processes: their frames no longer come.
    pub(crate) fn forget(&mut self) {
        *self = Processes {
            partial_events: self.partial_events,
            ..Processes::default()
        };
    }

    /// The text that names the ancestors of an event's process. Events that lack some are counted.
    pub(crate) fn ancestors(&mut self, process: ProcessId) -> Arc<AncestorsText> {
        let unknown = Lineage::unknown();
        let known = self.known.get(&process);
        let lineage = known.map_or(&unknown, |known| &*known.lineage);
        self.partial_events += u64::from(lineage.is_partial());
        lineage.text(&self.budget)
    }

    pub(crate) fn counts(&self) -> ProcessCounts {
        ProcessCounts {
            known: self.known.len() as u64,
            bytes: (self.known.len() * PROCESS_BYTES + self.budget.used()) as u64,
            partial_events: self.partial_events,
        }
    }
}

#[cfg(test)]
mod tests;
