//! The processes that there are, and those that ended lately: they lead from the process of an event to its ancestors.
//!
//! Frames of the rings tell of each process before its first event, of each execve, and of its end. A process is known by
//! its number and the time when it was made, so that a number that is used again is another process. What was lost cannot
//! make an ancestor wrong: each frame of a new process has the number of its maker's program, which each execve changes.

use crate::lineage::{Budget, KeptProgram, Lineage};
use crate::process_labels::{LabelNames, ProcessLabels};
use event::wire::{Executed, ProcessChange, ProcessFrame, ProcessId};
use event::AncestorsText;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Processes that are kept. Further ones, and what they make, are unknown.
const KNOWN_MAX: usize = 1 << 16;
/// Ended processes among them: late events of other threads, and io_uring operations that end later, need them.
const ENDED_MAX: usize = 4096;
/// Approximate bytes that a process takes, beside its programs and texts.
const PROCESS_BYTES: usize = 400;
/// Number of the process that has no maker but the kernel's start.
const INIT: u32 = 1;

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
            ProcessChange::Found(..) | ProcessChange::Kernel(_) => {}
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
            Some(known) if !known.has_ended => known.has_ended = true,
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
                ProcessChange::Found(parent, executed) => {
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
        if !found.iter().any(|frame| frame.process.pid == INIT) {
            return;
        }
        let there: HashSet<ProcessId> = found.iter().map(|frame| frame.process).collect();
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
        let known = match self.is_surveyed {
            true => unknown,
            // Nobody has given it a label yet.
            false => Known {
                lineage: self.offspring(parent, image),
                labels: ProcessLabels::default(),
                ..unknown
            },
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
mod tests {
    use super::*;
    use crate::lineage::ANCESTORS_MAX;
    use event::wire::{Part, TARSIER_PART_EXE, TARSIER_PART_PROCTITLE};
    use event::{Encoder, Format, NoNames, ProcessText, Stamp};
    use serde_json::Value;

    fn process(pid: u32, start_ns: u64) -> ProcessId {
        ProcessId { start_ns, pid }
    }

    fn frame<'a>(process: ProcessId, image: u64, change: ProcessChange<'a>) -> ProcessFrame<'a> {
        ProcessFrame {
            process,
            image,
            change,
        }
    }

    fn executed<'a>(walk: &'a [u8], title: &'a [u8]) -> Executed<'a> {
        let part = |tag, data| Part {
            tag,
            index: 0,
            flags: 0,
            data,
        };
        Executed {
            exe: Some(part(TARSIER_PART_EXE, walk)),
            title: Some(part(TARSIER_PART_PROCTITLE, title)),
        }
    }

    fn make(processes: &mut Processes, process: ProcessId, maker: ProcessId, image: u64) {
        processes.take(&frame(process, image, ProcessChange::Made(maker)));
    }

    fn run(processes: &mut Processes, process: ProcessId, image: u64, name: &str) {
        let (walk, title) = (format!("{name}\0bin\0"), format!("{name}\0-x\0"));
        let executed = executed(walk.as_bytes(), title.as_bytes());
        processes.take(&frame(process, image, ProcessChange::Executed(executed)));
    }

    /// Object `process` of an event in the JSON log.
    fn told(processes: &mut Processes, process: ProcessId) -> Value {
        let mut encoder = Encoder::new(Format::Json, Box::new(NoNames));
        encoder.set_workload(true);
        let (mut out, ancestors) = (Vec::new(), processes.ancestors(process));
        let mut event = encoder.begin(&mut out, Stamp::from_unix_ns(0, 1));
        event.process(&ProcessText {
            process,
            boot: b"b",
            exe: None,
            cwd: None,
            ancestors: &ancestors,
        });
        event.raw(1307, b"cwd=\"/\"");
        event.end();
        let event: Value = serde_json::from_slice(&out).expect("JSON");
        event["process"].clone()
    }

    /// `PID:PATH` of each ancestor, then `partial` if some are not known.
    fn names(processes: &mut Processes, process: ProcessId) -> Vec<String> {
        let told = told(processes, process);
        let ancestors = told["ancestors"].as_array().expect("a list").iter();
        let name = |ancestor: &Value| {
            let exe = ancestor["exe"].as_str().unwrap_or("?");
            format!("{}:{exe}", ancestor["pid"])
        };
        let mut names: Vec<String> = ancestors.map(name).collect();
        names.extend((told["ancestors_partial"] == true).then(|| "partial".to_owned()));
        names
    }

    /// The first process, and what it has made: a shell.
    fn with_shell() -> (Processes, ProcessId) {
        let mut processes = Processes::default();
        let init = frame(
            process(1, 1),
            1,
            ProcessChange::Found(process(0, 0), executed(b"init\0", b"")),
        );
        processes.survey(&[init]);
        let shell = process(7, 70);
        make(&mut processes, shell, process(1, 1), 1);
        run(&mut processes, shell, 2, "sh");
        (processes, shell)
    }

    #[test]
    fn ancestors_are_those_that_made_it_however_they_ended() {
        let (mut processes, shell) = with_shell();
        assert_eq!(names(&mut processes, shell), ["1:/init"]);
        let child = process(8, 80);
        make(&mut processes, child, shell, 2);
        processes.take(&frame(shell, 2, ProcessChange::Ended));
        assert_eq!(names(&mut processes, child), ["7:/bin/sh", "1:/init"]);
        run(&mut processes, child, 3, "cat");
        let told = told(&mut processes, child);
        assert_eq!(
            told["ancestors"][0]["argv"],
            serde_json::json!(["sh", "-x"])
        );
        assert_eq!(told["ancestors"][0]["start"], 70);
        assert_eq!(told["ancestors"][1].get("argv"), None);
        assert_eq!(processes.counts().partial_events, 0);
    }

    #[test]
    fn an_ancestor_has_the_program_with_which_it_made_the_next_one() {
        let (mut processes, shell) = with_shell();
        let (early, late) = (process(8, 80), process(9, 90));
        make(&mut processes, early, shell, 2);
        run(&mut processes, shell, 3, "other");
        make(&mut processes, late, shell, 3);
        assert_eq!(names(&mut processes, early)[0], "7:/bin/sh");
        assert_eq!(names(&mut processes, late)[0], "7:/bin/other");
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let (mut processes, shell) = with_shell();
        let (earlier, later) = (process(8, 80), process(8, 85));
        make(&mut processes, earlier, shell, 2);
        run(&mut processes, earlier, 3, "cat");
        // Its end was not seen.
        make(&mut processes, later, process(1, 1), 1);
        let child = process(9, 90);
        make(&mut processes, child, later, 1);
        assert_eq!(names(&mut processes, child), ["8:/init", "1:/init"]);
        // A late event of the earlier one.
        assert_eq!(names(&mut processes, earlier), ["7:/bin/sh", "1:/init"]);
        assert_eq!(processes.living[&8], 85);
    }

    #[test]
    fn what_was_lost_makes_ancestors_partial_never_wrong() {
        let (mut processes, shell) = with_shell();
        // The shell executed something, of which the frame was lost.
        let child = process(8, 80);
        make(&mut processes, child, shell, 5);
        assert_eq!(names(&mut processes, child), ["7:?", "1:/init", "partial"]);
        // Its own frame was lost.
        let unknown = process(10, 100);
        assert_eq!(names(&mut processes, unknown), ["partial"]);
        run(&mut processes, unknown, 1, "x");
        assert_eq!(names(&mut processes, unknown), ["partial"]);
        let below = process(11, 110);
        make(&mut processes, below, unknown, 1);
        assert_eq!(names(&mut processes, below), ["10:/bin/x", "partial"]);
        assert_eq!(processes.counts().partial_events, 4);
        // A survey tells again what the shell runs. Of what it finds for the first time, it knows no maker.
        let now = executed(b"zsh\0bin\0", b"");
        let stray = process(12, 120);
        let found = |process, image| {
            let change = ProcessChange::Found(super::tests::process(1, 1), now);
            frame(process, image, change)
        };
        processes.survey(&[found(process(1, 1), 1), found(shell, 5), found(stray, 2)]);
        let child = process(13, 130);
        make(&mut processes, child, shell, 5);
        assert_eq!(names(&mut processes, child), ["7:/bin/zsh", "1:/init"]);
        assert_eq!(names(&mut processes, stray), ["partial"]);
        assert!(processes.known[&unknown].has_ended);
    }

    fn labels_of(processes: &Processes, process: ProcessId) -> Vec<&str> {
        let labels = processes.labels(process);
        let names = processes.label_names().of(labels);
        names.chain(labels.is_partial.then_some("?")).collect()
    }

    fn give(processes: &mut Processes, process: ProcessId, label: &str) {
        processes.label(process, &[label.to_owned()]);
    }

    #[test]
    fn labels_are_those_of_the_maker_when_it_made_the_process_and_stay_over_execve() {
        let (mut processes, shell) = with_shell();
        let (early, late) = (process(8, 80), process(9, 90));
        make(&mut processes, early, shell, 2);
        give(&mut processes, shell, "web");
        make(&mut processes, late, shell, 2);
        run(&mut processes, late, 3, "cat");
        give(&mut processes, late, "odd");
        assert_eq!(labels_of(&processes, early), [""; 0]);
        assert_eq!(labels_of(&processes, shell), ["web"]);
        assert_eq!(labels_of(&processes, late), ["web", "odd"]);
        // Another capture tells of it once more.
        make(&mut processes, late, shell, 2);
        assert_eq!(labels_of(&processes, late), ["web", "odd"]);
        // The number is used again.
        let next = process(9, 95);
        make(&mut processes, next, process(1, 1), 1);
        assert_eq!(labels_of(&processes, next), [""; 0]);
    }

    #[test]
    fn labels_of_processes_whose_makers_are_unknown_are_partial() {
        let (mut processes, _) = with_shell();
        let (stray, below) = (process(20, 200), process(21, 210));
        assert_eq!(labels_of(&processes, stray), ["?"]);
        give(&mut processes, stray, "web");
        make(&mut processes, below, stray, 7);
        assert_eq!(labels_of(&processes, below), ["web", "?"]);
    }

    #[test]
    fn labels_that_no_process_has_any_more_make_room_for_others() {
        let (mut processes, shell) = with_shell();
        for number in 0..64 {
            let one = process(100 + number, 1000);
            make(&mut processes, one, shell, 2);
            give(&mut processes, one, &format!("label-{number}"));
        }
        give(&mut processes, shell, "one-more");
        assert_eq!(labels_of(&processes, shell), ["?"]);
        let (mut processes, shell) = with_shell();
        for number in 0..64 {
            give(&mut processes, process(500, 1), &format!("label-{number}"));
            processes.known.remove(&process(500, 1));
        }
        give(&mut processes, shell, "one-more");
        assert_eq!(labels_of(&processes, shell), ["one-more"]);
    }

    #[test]
    fn eight_ancestors_are_told_and_older_ones_are_not_missed() {
        let (mut processes, shell) = with_shell();
        let mut last = shell;
        for step in 1..=20 {
            let next = process(100 + step, 1000 + u64::from(step));
            make(&mut processes, next, last, 2);
            processes.take(&frame(last, 2, ProcessChange::Ended));
            last = next;
        }
        let names = names(&mut processes, last);
        assert_eq!(names.len(), ANCESTORS_MAX);
        assert_eq!(names[0], "119:/bin/sh");
        assert_eq!(names[7], "112:/bin/sh");
    }

    #[test]
    fn threads_of_the_kernel_are_told_as_such() {
        let mut processes = Processes::default();
        let kernel = frame(process(2, 1), 0, ProcessChange::Kernel(process(0, 0)));
        processes.survey(&[kernel]);
        let helper = process(30, 300);
        make(&mut processes, helper, process(2, 1), 0);
        run(&mut processes, helper, 1, "modprobe");
        let told = told(&mut processes, helper);
        assert_eq!(told["ancestors"][0]["kernel"], true);
        assert_eq!(told.get("ancestors_partial"), None);
    }

    #[test]
    fn a_flood_of_processes_takes_a_bounded_space() {
        let (mut processes, shell) = with_shell();
        let title = [b'a'; 128];
        let walk = [&[b'n'; 1024][..], b"\0"].concat();
        for pid in 0..2 * KNOWN_MAX as u32 {
            let one = process(1000 + pid, 10_000 + u64::from(pid));
            make(&mut processes, one, shell, 2);
            let change = ProcessChange::Executed(executed(&walk, &title));
            processes.take(&frame(one, 3, change));
            // An event of each that there is.
            processes.ancestors(one);
        }
        let counts = processes.counts();
        assert_eq!(counts.known, KNOWN_MAX as u64);
        assert!(counts.bytes < 80 << 20, "{counts:?}");
        assert!(counts.partial_events > 0);
        processes.forget();
        assert_eq!(processes.counts().bytes, 0);
    }

    #[test]
    fn ended_processes_are_kept_for_a_while() {
        let (mut processes, shell) = with_shell();
        for pid in 0..2 * ENDED_MAX as u32 {
            let one = process(1000 + pid, 10_000 + u64::from(pid));
            make(&mut processes, one, shell, 2);
            processes.take(&frame(one, 2, ProcessChange::Ended));
            assert_eq!(names(&mut processes, one).len(), 2);
        }
        assert_eq!(processes.counts().known, ENDED_MAX as u64 + 2);
    }
}
