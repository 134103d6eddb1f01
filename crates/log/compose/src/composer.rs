//! Turns frames into log lines: runs the second stage of matching and writes the records of each event.

use crate::call_facts::Calls;
use crate::cgroups::CgroupCounts;
use crate::chunks::Chunks;
use crate::clock::Serials;
use crate::executable::Executable;
use crate::filter::{self, TaskLabel};
use crate::generation::Generation;
use crate::host::Host;
use crate::labels::LabelTexts;
use crate::lineage::KeptProgram;
use crate::pending_operations::PendingOperations;
use crate::process_labels::{LabelNames, ProcessLabels};
use crate::processes::Processes;
use crate::proctitle_cache::ProctitleCache;
use crate::record_rate::RecordRate;
use crate::records::{first_record, Records};
use crate::resolve::{Item, Resolver};
use crate::second_stage::Generations;
use crate::system::System;
use plan::{Decision, Shape, WorkloadClass, WorkloadNames};
use record::wire::{
    self, CgroupFrame, Chunk, Event, FrameKind, OperationResult, ProcessFrame, ProcessId, WireError,
};
use record::{AncestorsText, Encoder, EventWriter, FileHash, ProcessText, Stamp, WorkloadText};
use rules::Rule;
use std::sync::Arc;

mod of_operations;
mod of_processes;
mod tally;

pub use tally::Tally;

const NS_PER_S: u64 = 1_000_000_000;
/// The uid of [`Origin`] for a change of cgroups, of which no user is known.
const NOBODY_KNOWN: u32 = u32::MAX;

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The event's records were appended.
    Recorded,
    /// The event's records were appended and have to be flushed at once.
    Urgent,
    /// The second stage selected no rule, or there is no rule set yet.
    Dropped,
    /// The frame tells of a cgroup or process, or is a chunk of an event, or an io_uring event or result whose
    /// counterpart is missing.
    Part,
    /// An exclude rule drops the event.
    Excluded,
    /// The rule's budget for this second is spent.
    Suppressed,
    /// The records of this second have reached the limit of [`RecordRate`].
    OverRate,
    /// The frame is the answer to the daemon's canary call with this number.
    Canary(u64),
}

impl Outcome {
    fn recorded(is_urgent: bool) -> Outcome {
        if is_urgent {
            Outcome::Urgent
        } else {
            Outcome::Recorded
        }
    }
}

/// Numbers of recorded events that do not tell all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Incomplete {
    /// Events of which something is missing (`cut=yes`).
    pub cut: u64,
    /// Events that their rule may not select (`match=unsure`).
    pub unsure: u64,
}

/// The maker of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker<'a> {
    /// Real uid of the task.
    pub uid: u32,
    /// Id of the task's cgroup.
    pub cgroup_id: u64,
    /// Path of the task's executable after a hash of it, with a random key; `None` if the task has none.
    pub exe: Option<(u64, &'a [u8])>,
}

/// A live viewer, called for each event that is recorded.
pub trait Watcher {
    /// Called after the lines of `event` were appended.
    fn event(&mut self, event: &Composed<'_>);
}

/// Ignores every event.
impl Watcher for () {
    fn event(&mut self, _: &Composed<'_>) {}
}

/// An event whose lines have been appended.
pub struct Composed<'a> {
    /// Time of the event, in nanoseconds since the Unix epoch.
    pub unix_ns: u64,
    /// Name of the call; `io_uring:NAME` for an operation.
    pub call: &'a str,
    /// The event as the kernel sent it.
    pub event: &'a Event<'a>,
    /// Names that the call used, one per PATH record.
    pub items: &'a [Item],
    /// Arguments of execve, each ended by NUL.
    pub argv: &'a [u8],
    /// The key of the rule that selected it.
    pub key: Option<&'a [u8]>,
}

/// Cgroups and processes that decided an event in the daemon, because the programs may not know them.
#[derive(Default)]
pub struct Asked {
    /// Ids of cgroups.
    pub cgroups: Vec<u64>,
    /// Processes.
    pub processes: Vec<ProcessId>,
}

/// Turns frames into log lines.
pub struct Composer<T> {
    /// Writes the lines; also used for records that are made elsewhere.
    pub encoder: Encoder,
    /// Serial numbers of the events composed here.
    pub serials: Serials,
    /// io_uring operations that wait for their results.
    pub operations: PendingOperations,
    /// Counter of each rule's events.
    pub costs: T,
    /// Limit of the records.
    pub rate: RecordRate,
    /// Recorded events that do not tell all.
    pub incomplete: Incomplete,
    /// Ids of the BPF programs whose loading was recorded. The caller takes them out.
    pub programs: Vec<u32>,
    /// Cgroups and processes that the programs may not know. The caller takes them out.
    pub asked: Asked,
    host: Host,
    processes: Processes,
    resolver: Resolver,
    chunks: Chunks,
    generations: Generations,
    texts: Texts,
}

/// Caches of what many events have in common.
#[derive(Default)]
struct Texts {
    calls: Calls,
    exe: Executable,
    proctitles: ProctitleCache,
}

impl<T: Tally> Composer<T> {
    /// A composer for events of `system`. It drops every event until [`Composer::add_generation`] is called.
    pub fn new(encoder: Encoder, system: Arc<dyn System>, costs: T) -> Composer<T> {
        Composer {
            encoder,
            serials: Serials::new(&*system),
            operations: PendingOperations::new(Arc::clone(&system)),
            costs,
            rate: RecordRate::default(),
            incomplete: Incomplete::default(),
            programs: Vec::new(),
            asked: Asked::default(),
            processes: Processes::default(),
            resolver: Resolver::new(&system),
            chunks: Chunks::default(),
            generations: Generations::default(),
            texts: Texts::default(),
            host: Host::new(system),
        }
    }

    /// Frames have numbers of labels from now on, whose texts these are.
    pub fn read_labels_by(&mut self, texts: Box<dyn LabelTexts>) {
        self.host.read_labels_by(texts);
    }

    /// How many labels of records could not be read.
    pub fn labels_missing(&self) -> u64 {
        self.host.labels_missing()
    }

    /// Reads again what may change in the system: its clocks, and how it labels processes. Call it every second.
    pub fn refresh(&mut self) {
        self.host.refresh();
        self.chunks.grow_old();
    }

    /// Looks at all cgroups that there are. Call it when the programs have been attached, and when they have lost frames
    /// that tell of cgroups. Returns whether the system shows the whole hierarchy.
    pub fn survey_cgroups(&mut self) -> bool {
        self.host.survey_cgroups()
    }

    /// Learns of cgroups from a frame before its turn. Call it after [`Composer::survey_cgroups`] for all frames that are
    /// in the rings: some may tell of the end of a cgroup that earlier events name.
    pub fn look_ahead(&mut self, frame: &[u8]) {
        if let Ok(frame) = CgroupFrame::parse(frame) {
            self.host.learn_cgroup(&frame);
        }
    }

    /// The class of each cgroup that exists, for rules with these names.
    pub fn classes(&mut self, names: &WorkloadNames) -> Vec<(u64, WorkloadClass)> {
        let living = self.host.cgroups().living();
        let class = |id| Some((id, self.class(id, names)?));
        living.into_iter().filter_map(class).collect()
    }

    /// The class of a cgroup, for rules with these names; `None` if it is not known, or is removed, or if others than root
    /// may have chosen what decides it.
    pub fn class(&mut self, cgroup: u64, names: &WorkloadNames) -> Option<WorkloadClass> {
        let path = self.host.cgroup_path(cgroup)?;
        let is_known = !path.is_cut && !self.host.cgroups().is_removed(cgroup);
        if is_known {
            names.class(&path.place())
        } else {
            None
        }
    }

    /// Ids of the root and of all cgroups that are known and not removed.
    pub fn cgroups_living(&mut self) -> Vec<u64> {
        self.host.cgroups().living()
    }

    /// The cgroups that were removed since the last call.
    pub fn cgroups_gone(&mut self) -> Vec<u64> {
        self.host.cgroups().take_gone()
    }

    /// Counts of cgroups.
    pub fn cgroup_counts(&self) -> CgroupCounts {
        self.host.cgroup_counts()
    }

    /// Adds a rule set. Earlier ones are kept for events that are still in the rings, or wait for their results.
    pub fn add_generation(&mut self, generation: Arc<Generation>) {
        let now_ns = self.host.system.monotonic_ns();
        let operations = &self.operations;
        self.generations
            .add(generation, now_ns, |number| operations.need(number));
    }

    /// Takes a frame from the ring of CPU number `cpu`, appends the records of its event, if it completes one, to `out`
    /// and shows the event to `live`.
    ///
    /// # Errors
    /// The frame does not have the format of [`record::wire`]. Nothing was appended.
    pub fn frame<W: Watcher>(
        &mut self,
        cpu: usize,
        frame: &[u8],
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> Result<Outcome, WireError> {
        let (kind, head) = wire::frame_kind(frame)?;
        self.host.frame_ns = head.time_ns;
        match kind {
            FrameKind::Canary => Ok(Outcome::Canary(head.id)),
            FrameKind::Chunk => {
                self.chunks.push(cpu, &Chunk::parse(frame)?);
                Ok(Outcome::Part)
            }
            FrameKind::Cgroup => {
                let frame = CgroupFrame::parse(frame)?;
                self.host.take_cgroup(&frame);
                if self.encoder.tells_workload() {
                    self.host.begin_event(NOBODY_KNOWN, frame.parent);
                    self.host.name_container(&frame);
                    self.host.system.end_event();
                }
                Ok(Outcome::Part)
            }
            FrameKind::Process => {
                self.processes.take(&ProcessFrame::parse(frame)?);
                Ok(Outcome::Part)
            }
            FrameKind::Result => {
                let result = OperationResult::parse(frame)?;
                match self.operations.completed(&result, frame)? {
                    Some(completed) => of_operations::completed(self, cpu, &completed, out, live),
                    None => Ok(Outcome::Part),
                }
            }
            FrameKind::Event => {
                let event = Event::parse(frame)?;
                if !event.has_flag(wire::TARSIER_PENDING) {
                    return Ok(self.event(cpu, &event, out, live));
                }
                match self.operations.submitted(&event, frame)? {
                    Some(completed) => of_operations::completed(self, cpu, &completed, out, live),
                    None => Ok(Outcome::Part),
                }
            }
        }
    }

    /// Appends the io_uring operations that have waited long enough for a result; with `at_end`, all that wait. Returns
    /// the number of events recorded.
    pub fn overdue(&mut self, at_end: bool, out: &mut Vec<u8>) -> u64 {
        of_operations::overdue(self, at_end, out)
    }

    /// Whether exclude rules, the budget of the rule and the limit of the records allow another event.
    fn admit(
        &mut self,
        generation: &Generation,
        rule: u32,
        event: &Event<'_>,
        task_label: &TaskLabel,
    ) -> Result<(), Outcome> {
        let number = generation.plan.generation;
        if filter::excludes(generation, first_record(event), event, task_label) {
            self.costs.dropped(number, rule);
            return Err(Outcome::Excluded);
        }

        // The budget of a rule counts by the event's time, not the daemon's: a backlog is not taken for a burst.
        let second = event.header().frame.time_ns / NS_PER_S;
        let budget = generation.budgets.get(&rule);
        if budget.is_some_and(|&rate| !self.costs.admits(number, rule, second, rate)) {
            return Err(Outcome::Suppressed);
        }

        if self.rate.admits(second) {
            Ok(())
        } else {
            Err(Outcome::OverRate)
        }
    }

    /// Text about the workload of the event; `None` if the log does not tell workloads.
    fn workload(&mut self, event: &Event<'_>) -> Option<Arc<WorkloadText>> {
        let id = event.header().cgroup_id;
        let is_told = self.encoder.tells_workload();
        is_told.then(|| self.host.workload(id))
    }

    /// Counts a recorded event for its rule, which is the one at this place of this generation, and for its maker.
    fn count(&mut self, event: &Event<'_>, (generation, place): (u64, u32), bytes: usize) {
        self.costs.recorded(generation, place, bytes);
        let header = event.header();
        let maker = Maker {
            uid: header.uid,
            cgroup_id: header.cgroup_id,
            exe: event.exe().map(|_| self.texts.exe.last()),
        };
        let host = &mut self.host;
        let workload = || host.known_workload(maker.cgroup_id);
        self.costs.made_by(&maker, bytes, workload);
    }

    /// The digests of the files that the event executed, if the log has them.
    fn hashes(&mut self, event: &Event<'_>) -> Vec<FileHash> {
        if !self.encoder.tells_hashes() || event.exec_file().is_none() {
            return Vec::new();
        }
        let exe = event.exe();
        let exe = exe.map_or(&b""[..], |part| self.texts.exe.of(&part));
        self.resolver.hashes(event, exe)
    }

    /// Finds the names of an event and the rule that selects it; `None` before the first rule set.
    fn decide(&mut self, event: &Event<'_>, shape: &Shape) -> Option<(Arc<Generation>, Decision)> {
        self.resolver.resolve(event, shape);

        // An event of rules that nobody knows any more is recorded rather than dropped: what is not known is not a no.
        let Some(known) = self.generations.of(event.header().generation) else {
            let generation = self.generations.in_place_of_unknown()?;
            return Some((generation, Decision::Record(wire::TARSIER_NO_RULE)));
        };

        let generation = Arc::clone(&known.generation);

        // The programs left these undecided, so their class is told them after the pass.
        let mut path = None;
        if generation.asks_cgroup(event) {
            let cgroup = event.header().cgroup_id;
            if self.asked.cgroups.last() != Some(&cgroup) {
                self.asked.cgroups.push(cgroup);
            }
            path = self.host.cgroup_path(cgroup);
        }

        let mut past = None;
        if let (Some(process), true) = (event.process(), generation.asks_past(event)) {
            if self.asked.processes.last() != Some(&process) {
                self.asked.processes.push(process);
            }
            past = Some(self.processes.past(process));
        }

        let decision = known.decide(event, &mut self.resolver, shape, path, past.as_ref());
        Some((generation, decision))
    }

    /// The rule that selects the event, with its rule set and the label that exclude rules have seen.
    fn judge(&mut self, event: &Event<'_>, shape: &Shape) -> Result<Selected, Outcome> {
        let (generation, decision) = self.decide(event, shape).ok_or(Outcome::Dropped)?;
        let (rule, is_unsure) = match decision {
            Decision::Record(rule) => (rule, false),
            Decision::Unsure(rule) => (rule, true),
            Decision::Drop => {
                let number = generation.plan.generation;
                let came_for = generation.came_for(event);
                came_for.for_each(|rule| self.costs.dropped(number, rule));
                return Err(Outcome::Dropped);
            }
        };

        // Exclude rules come after the decision, as in the kernel: a dropped event costs no look-up of a label.
        let task_label = TaskLabel::of(event, &generation, &self.host);
        self.admit(&generation, rule, event, &task_label)?;
        if is_unsure {
            self.costs.unsure(generation.plan.generation, rule);
        }

        Ok(Selected {
            generation,
            rule,
            is_unsure,
            task_label,
            result_of: None,
        })
    }

    /// Facts that the log tells beside the records of the event. `labels` are those that its rule gives.
    fn beside(&mut self, event: &Event<'_>, labels: Option<&Vec<String>>) -> Beside {
        let process = event.process();
        if let (Some(process), Some(labels)) = (process, labels) {
            self.processes.label(process, labels);
        }

        let labelled = if self.encoder.tells_labels() {
            process
        } else {
            None
        };
        let process = if self.encoder.tells_workload() {
            process
        } else {
            None
        };
        Beside {
            workload: self.workload(event),
            process: process.map(|process| ProcessBeside {
                process,
                ancestors: self.processes.ancestors(process),
                program: self.processes.program(process),
            }),
            labels: labelled.map(|process| self.processes.labels(process)),
            hashes: self.hashes(event),
        }
    }

    fn event<W: Watcher>(
        &mut self,
        cpu: usize,
        event: &Event<'_>,
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> Outcome {
        let header = event.header();

        // Everything that is looked up until the end counts against the time of one event.
        self.host.begin_event(header.uid, header.cgroup_id);
        let outcome = self.compose(cpu, event, out, live);
        self.host.system.end_event();
        outcome
    }

    fn compose<W: Watcher>(
        &mut self,
        cpu: usize,
        event: &Event<'_>,
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> Outcome {
        let call = self.texts.calls.of(event);
        match self.judge(event, &call.shape) {
            Ok(selected) => self.record(cpu, event, selected, out, live).0,
            Err(outcome) => {
                // Its arguments came before it in the ring, and nobody else takes them out.
                self.chunks.take(cpu, event);
                outcome
            }
        }
    }

    /// Appends the records of an event whose names have been found. Returns its stamp, too.
    fn record<W: Watcher>(
        &mut self,
        cpu: usize,
        event: &Event<'_>,
        selected: Selected,
        out: &mut Vec<u8>,
        live: Option<&mut W>,
    ) -> (Outcome, Stamp) {
        let call = self.texts.calls.of(event);
        let arguments = self.chunks.take(cpu, event);
        let (generation, rule) = (&*selected.generation, selected.rule);
        let rules = &generation.plan.rules;
        let key = rules.get(rule as usize).and_then(Rule::key);

        // A serial number is taken only for what is recorded, so that numbers in the log have no gaps of their own making.
        let unix_ns = self.host.unix_ns(event.header().frame.time_ns);
        let stamp = Stamp::from_unix_ns(unix_ns, self.serials.next());

        let is_cut = event.has_flag(wire::TARSIER_TRUNCATED) || arguments.cut_bytes > 0;
        self.incomplete.cut += u64::from(is_cut);
        self.incomplete.unsure += u64::from(selected.is_unsure);

        let before = out.len();
        let beside = self.beside(event, generation.labels.get(&rule));
        let exe = event.exe().map(|part| self.texts.exe.of(&part));
        let mut writer = self.encoder.begin(out, stamp);
        let names = self.processes.label_names();
        let cwd = self.resolver.cwd();
        beside.put(&mut writer, &self.host.boot, exe, cwd, names);
        if selected.is_unsure {
            writer.unsure();
        }

        let records = Records {
            writer,
            event,
            generation,
            call: &call,
            resolver: &self.resolver,
            exe,
            key,
            is_cut,
            arguments: &arguments,
            host: &self.host,
            task_label: selected.task_label,
            result_of: selected.result_of,
        };

        records.write(&mut self.texts.proctitles);
        if let Some(live) = live {
            live.event(&Composed {
                unix_ns,
                call: &call.name,
                event,
                items: self.resolver.items(),
                argv: &arguments.bytes,
                key,
            });
        }

        // Behind the lines: what is counted is what is in the log.
        self.chunks.reuse(arguments.bytes);
        self.programs.extend(event.program());
        self.rate.count(&out[before..]);
        let place = (generation.plan.generation, rule);
        self.count(event, place, out.len() - before);
        let is_urgent = generation.urgent.contains(&rule);

        (Outcome::recorded(is_urgent), stamp)
    }
}

/// An event that a rule selects, with what is known of it.
struct Selected {
    generation: Arc<Generation>,
    rule: u32,
    /// Not everything that the rule asks about is known.
    is_unsure: bool,
    task_label: TaskLabel,
    /// The pending event whose result it has.
    result_of: Option<Stamp>,
}

/// Facts about an event that the log tells beside its records, if the encoder tells them.
struct Beside {
    workload: Option<Arc<WorkloadText>>,
    process: Option<ProcessBeside>,
    labels: Option<ProcessLabels>,
    hashes: Vec<FileHash>,
}

/// The process of an event, beside its records.
struct ProcessBeside {
    process: ProcessId,
    ancestors: Arc<AncestorsText>,
    program: Option<Arc<KeptProgram>>,
}

impl Beside {
    /// Says whose work the event is, which process's, and what it executed. `names` are those of labels.
    fn put(
        &self,
        writer: &mut EventWriter<'_>,
        boot: &[u8],
        exe: Option<&[u8]>,
        cwd: &[u8],
        names: &LabelNames,
    ) {
        if let Some(workload) = &self.workload {
            writer.workload(workload);
        }

        if let Some(beside) = &self.process {
            writer.process(&ProcessText {
                process: beside.process,
                boot,
                exe,
                script: beside.program.as_deref().and_then(KeptProgram::script),
                cwd: Some(cwd),
                ancestors: &beside.ancestors,
            });
        }

        if let Some(labels) = self.labels {
            writer.labels(names.of(labels), labels.is_partial);
        }

        writer.hashes(&self.hashes);
    }
}
