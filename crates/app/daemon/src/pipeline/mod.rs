//! The path of events through the daemon: from the rings and the audit socket to lines of the log.

pub(crate) mod durability;
pub(crate) mod engine;
pub(crate) mod grouped;
pub(crate) mod incoming;
pub(crate) mod kernel_records;
pub(crate) mod live;
pub(crate) mod notifier;
pub(crate) mod output;
pub(crate) mod own_loads;
mod own_records;
#[cfg(debug_assertions)]
pub(crate) mod planted;
pub(crate) mod plugins;
pub(crate) mod process_classes;
pub(crate) mod program_loads;
pub(crate) mod recorder;
pub(crate) mod totals;
pub(crate) mod workloads;

use crate::clock::monotonic_ns;
use crate::event_loop::pauses::Pauses;
use crate::handover::joined::Joined;
use crate::handover::takeover::{HandoverBatch, PageWitness};
use crate::pipeline::engine::Engine;
use crate::pipeline::kernel_records::KernelRecords;
use crate::pipeline::live::Live;
use crate::pipeline::output::Output;
use crate::pipeline::process_classes::Looks;
use crate::pipeline::recorder::Recorder;
use crate::pipeline::totals::Totals;
use crate::pipeline::workloads::Workloads;
use crate::start::lookups::Lookups;
use crate::stderr::say;
use anyhow::Result;
use capture::Handed;
use compose::{Generation, Outcome, System};
use journal::Witness;
use record::wire::{self, FrameKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time for which a pass reads, in nanoseconds, and the frame during which it ends: then signals are looked at
/// and clients are answered, however slow the events of somebody are.
const PASS_NS: u64 = 5_000_000;
/// Time at the end of the recording in which events are written as always; from then on, nothing is looked up for them.
const WHOLE_END: Duration = Duration::from_millis(400);
/// Time at the end of the recording after which events are only counted.
const END: Duration = Duration::from_millis(1200);
/// Bytes of lines gathered before they are handed to the journal, which on a full disk keeps each
/// batch, or counts it as lost, as a whole.
const BATCH_BYTES: usize = 16 * 1024;
/// Initial capacity for lines, in bytes.
const LINES_BYTES: usize = 1 << 20;

const UNKNOWN_ARE_RECORDED: &str =
    "tarsier: rules with unit=, slice= or container=: no mount shows the whole cgroup2 hierarchy; for tasks in cgroups \
     that are not known, rules with `always` match and rules with `never` do not";

/// The engine, the recorder that makes records of its frames, and their destinations.
pub(crate) struct Pipeline {
    pub(crate) engine: Engine,
    /// The audit socket, while Tarsier owns it.
    pub(crate) kernel: Option<KernelRecords>,
    pub(crate) recorder: Recorder,
    pub(crate) output: Output,
    pub(crate) lookups: Lookups,
    /// The rules in force.
    pub(crate) generation: Arc<Generation>,
    live: Option<Live>,
    totals: Totals,
    /// Lines on their way to the log; the buffer is kept for its capacity.
    lines: Vec<u8>,
    /// Losses that the programs do not count, as of the last report in the log.
    told_elsewhere: u64,
    workloads: Workloads,
    process_classes: Looks,
    /// Whether the recorder knows the processes.
    knows_processes: bool,
    pub(crate) reading: Reading,
}

/// The passes over the rings.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) pauses: Pauses,
    pub(crate) heard: Heard,
    /// Events of an earlier capture that this one has recorded, too.
    pub(crate) joined: Joined,
    /// Whether the last pass stopped early, so that what it gathered is written.
    has_more: bool,
}

/// Progress of reading the rings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// Number of the last canary call that came through a ring.
    pub(crate) canary: u64,
    /// CLOCK_MONOTONIC, in nanoseconds: all frames made up to then have been read.
    pub(crate) until_ns: u64,
}

impl Pipeline {
    /// Connects `engine`, which runs the rules of `generation`, with `output`.
    pub(crate) fn new(
        engine: Engine,
        mut recorder: Recorder,
        output: Output,
        lookups: Lookups,
        generation: Arc<Generation>,
        live: Option<Live>,
    ) -> Pipeline {
        recorder.add_generation(generation.clone());
        let mut pipeline = Pipeline {
            engine,
            kernel: None,
            recorder,
            output,
            lookups,
            generation,
            live,
            totals: Totals::default(),
            lines: Vec::with_capacity(LINES_BYTES),
            told_elsewhere: 0,
            workloads: Workloads::default(),
            process_classes: Looks::default(),
            knows_processes: false,
            reading: Reading::default(),
        };
        pipeline.witness_writes();
        pipeline.survey_cgroups();
        pipeline.follow_processes();
        pipeline
    }

    /// Makes the recorder look at all cgroups, and at those whose removal is still in the rings.
    pub(crate) fn survey_cgroups(&mut self) {
        let Some(stream) = self.engine.stream() else {
            return;
        };
        let recorder = &mut self.recorder;
        let names = &self.generation.plan.workloads;
        let is_all = recorder.survey_cgroups();
        if !is_all && recorder.encoder.tells_workload() {
            say!(
                "tarsier: identity: no mount shows the whole cgroup2 hierarchy, so that units and containers \
                 from before this start are not known"
            );
        }
        if !is_all && names.ask_cgroups() {
            say!("{UNKNOWN_ARE_RECORDED}");
        }
        stream.look_ahead(|frame| recorder.look_ahead(frame));
        self.workloads.classify_all(names, recorder, &self.engine);
    }

    /// Tells the programs the classes of cgroups, if the rules in force have other names than those before.
    pub(crate) fn classify_cgroups(&mut self) {
        if self
            .workloads
            .are_of_others(&self.generation.plan.workloads)
        {
            self.survey_cgroups();
        }
    }

    /// Makes the recorder look at all processes, if the programs tell of their changes.
    pub(crate) fn survey_processes(&mut self) {
        let found = match self.knows_processes {
            true => self.engine.processes(),
            false => None,
        };
        let learnt = found.map(|frames| self.recorder.survey_processes(&frames));
        if let Some(Err(error)) = learnt {
            say!("tarsier: identity: processes that there are: {error}");
        }
    }

    /// Makes the recorder look at all processes if the programs tell of them from now on, and forget them if they no
    /// longer do.
    pub(crate) fn follow_processes(&mut self) {
        let are_told = self.generation.plan.hooks.processes;
        match (self.knows_processes, are_told) {
            (false, true) => {
                self.knows_processes = true;
                self.survey_processes();
            }
            (true, false) => {
                self.knows_processes = false;
                self.recorder.forget_processes();
            }
            _ => {}
        }
    }

    /// Looks at up to `max` classes of cgroups and of processes, and at those in doubt. Tells the programs again what
    /// somebody has changed, and returns the maps in which that was.
    pub(crate) fn check_classes(&mut self, max: usize) -> Vec<&'static str> {
        let (recorder, engine) = (&mut self.recorder, &self.engine);
        let plan = &self.generation.plan;
        let mut changed = Vec::new();
        if self.workloads.check(&plan.workloads, recorder, engine, max) {
            changed.push("map workloads");
        }
        let losses = self.totals.not_recorded() + engine.counters().untold();
        let looks = &mut self.process_classes;
        if looks.check(plan, recorder, engine, losses, max) {
            changed.push("map process_classes");
        }
        changed
    }

    /// Whether a class is in doubt: it is to be looked at again.
    pub(crate) fn doubts_classes(&self) -> bool {
        self.workloads.is_in_doubt() || self.process_classes.is_in_doubt()
    }

    /// Adds records of other sources, which come over the audit socket.
    pub(crate) fn with_kernel_records(self, kernel: Option<KernelRecords>) -> Pipeline {
        Pipeline { kernel, ..self }
    }

    /// Makes the journal report its writes to the page for the next daemon.
    pub(crate) fn witness_writes(&mut self) {
        let handover = self.engine.handover();
        let witness = handover.map(|page| Box::new(PageWitness(page)) as Box<dyn Witness>);
        self.output.set_witness(witness);
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether another pass would find something at once.
    pub(crate) fn has_more(&self) -> bool {
        self.reading.has_more || self.kernel.as_ref().is_some_and(KernelRecords::has_more)
    }

    /// Reads everything that is in the rings now.
    pub(crate) fn drain(&mut self) {
        let now_ns = monotonic_ns();
        self.pass(now_ns);
        while self.reading.has_more {
            self.commit();
            self.pass(now_ns);
        }
    }

    /// Reads what is in the rings at the end of the recording, which takes a time that callers cannot choose. If the rings
    /// stay for the next daemon, what is left is for that.
    pub(crate) fn drain_at_end(&mut self, rings_stay: bool) {
        let (begin, now_ns) = (Instant::now(), monotonic_ns());
        self.pass(now_ns);
        while self.reading.has_more {
            self.commit();
            if begin.elapsed() >= WHOLE_END {
                self.lookups.close();
            }
            if begin.elapsed() >= END {
                if !rings_stay {
                    self.count_unread(now_ns);
                }
                return;
            }
            self.pass(now_ns);
        }
    }

    /// Counts the events that are in the rings, and takes them out.
    fn count_unread(&mut self, now_ns: u64) {
        let unread = &mut self.totals.unread;
        self.engine.drain(now_ns, |_, _, frame| {
            let kind = wire::frame_kind(frame);
            *unread += u64::from(matches!(kind, Ok((FrameKind::Event, _))));
            true
        });
        self.reading.has_more = false;
    }

    /// Reads every ring once, until there are no events from before `now_ns`, enough is gathered
    /// for a write, or [`PASS_NS`] is over. Returns the number of frames.
    pub(crate) fn pass(&mut self, now_ns: u64) -> usize {
        self.reading.pauses.look(monotonic_ns());
        let handover = self.engine.handover();
        let ring_bytes = self.engine.stream().map_or(0, |stream| stream.ring_bytes());
        let mut batch = HandoverBatch::new(handover, ring_bytes);
        let (mut events, records) = self.read_kernel_records(&mut batch);
        let Pipeline {
            engine,
            recorder,
            output,
            live,
            totals,
            lines,
            kernel,
            reading,
            ..
        } = self;
        let mut is_urgent = false;
        let mut batch_ns = monotonic_ns();
        let until_ns = batch_ns + PASS_NS;
        let mut is_cut = false;
        let frames = engine.drain(now_ns, |cpu, end, frame| {
            output.note_time(|| capture::frame_time(frame));
            let record = || recorder.frame(cpu, frame, lines, live.as_mut());
            let outcome = reading.joined.unless_in(frame, record);
            is_urgent |= matches!(outcome, Ok(Outcome::Urgent));
            match outcome {
                Ok(Outcome::Canary(number)) => reading.heard.canary = number,
                Ok(outcome) => events += u32::from(totals.count(&outcome)),
                Err(error) => {
                    totals.malformed += 1;
                    say!("tarsier: a frame from CPU {cpu} is malformed: {error}");
                }
            }
            batch.read(cpu, end, frame, lines.len());
            if lines.len() >= BATCH_BYTES {
                recorder.costs.share(monotonic_ns() - batch_ns);
                hand_over(output, &mut batch, lines, events);
                events = 0;
                output.write_piece();
                if std::mem::take(&mut is_urgent) {
                    output.flush();
                }
                batch_ns = monotonic_ns();
            }
            let is_late = reading.pauses.look(monotonic_ns()) >= until_ns;
            is_cut = batch.is_full() || is_late;
            !is_cut
        });
        if let Some(kernel) = kernel {
            kernel.note_programs(&recorder.programs);
        }
        recorder.programs.clear();
        if frames > 0 {
            recorder.costs.share(monotonic_ns() - batch_ns);
        }
        hand_over(output, &mut batch, lines, events);
        if is_urgent {
            output.flush();
        }
        reading.has_more = is_cut;
        let is_held_up = engine.stream().is_some_and(|stream| stream.is_held_up());
        if !is_cut && !is_held_up {
            reading.heard.until_ns = now_ns;
        }
        self.follow_pass(batch);
        frames + records
    }

    /// Reads records of the kernel's audit. If it is the engine, they stay among the lines;
    /// otherwise they go to the log at once. Returns the number of events among the lines, and of
    /// the engine's records.
    fn read_kernel_records(&mut self, batch: &mut HandoverBatch) -> (u32, usize) {
        let Some(kernel) = &mut self.kernel else {
            return (0, 0);
        };
        let is_engine = self.engine.is_kernel();
        let filter = (!is_engine).then_some(&*self.generation);
        let received = kernel.received;
        let events = kernel.drain(
            filter.map(|filter| (filter, &*self.lookups as &dyn System)),
            &mut self.recorder.encoder,
            &mut self.lines,
        );
        if is_engine {
            self.totals.recorded += u64::from(events);
            return (events, (kernel.received - received) as usize);
        }
        if !self.lines.is_empty() {
            self.output.log_other(&self.lines, events);
            batch.note_other(self.output.journal().taken());
            self.lines.clear();
        }
        (0, 0)
    }

    /// After a pass: tells the programs of cgroups and processes that it was about, and releases the ring space of events
    /// that could not be noted for the next daemon.
    fn follow_pass(&mut self, batch: HandoverBatch) {
        let names = &self.generation.plan.workloads;
        self.workloads
            .follow(names, &mut self.recorder, &self.engine);
        let plan = &self.generation.plan;
        process_classes::follow(plan, &mut self.recorder, &self.engine);
        if let Some(stream) = self.engine.stream() {
            for (cpu, position) in batch.given_up {
                stream.release_to(cpu, position);
            }
        }
    }

    /// Records io_uring operations that have waited long enough for their results, as pending, and
    /// at the end of the recording all that wait.
    pub(crate) fn operations_without_result(&mut self, at_end: bool) {
        let is_due = self.recorder.operations.due_in() == Some(Duration::ZERO);
        if !at_end && !is_due {
            return;
        }
        if self.recorder.operations.has_orphans() {
            let in_flight = self.engine.in_flight();
            self.recorder.operations.keep(&in_flight);
        }
        let recorded = self.recorder.overdue(at_end, &mut self.lines);
        if recorded > 0 {
            self.totals.recorded += recorded;
            self.output.log(&self.lines, recorded as u32);
            self.note_other();
            self.lines.clear();
        }
    }

    /// Writes the gathered lines and handles the consequences.
    pub(crate) fn commit(&mut self) {
        self.output.commit();
        self.settle();
        self.output.follow_commit();
    }

    /// After a commit: releases the ring space of the events that were written.
    fn settle(&mut self) {
        let Some(handover) = self.engine.handover() else {
            return;
        };
        let untold = self.losses_elsewhere().saturating_sub(self.told_elsewhere);
        if let Some(stream) = self.engine.stream() {
            handover.settle(|cpu, position| stream.release_to(cpu, position));
            stream.relieve(|| handover.give_up().map(|handed| handed.from));
        }
        handover.live(monotonic_ns(), self.recorder.operations.len() as u64);
        handover.set_untold(untold);
    }

    /// Losses that the programs do not count, so that a killed daemon does not leave them in their
    /// maps.
    fn losses_elsewhere(&self) -> u64 {
        self.output.lost().iter().sum::<u64>() + self.totals.malformed
    }

    /// Tells the next daemon that the log reports all losses so far; `counted` has those that the
    /// programs count, by cause.
    pub(crate) fn note_told(&mut self, counted: &[u64]) {
        self.told_elsewhere = self.losses_elsewhere();
        if let Some(handover) = self.engine.handover() {
            handover.set_told(counted);
            handover.set_untold(0);
        }
    }

    /// Notes that something other than the engine's events was handed to the log.
    fn note_other(&mut self) {
        if let Some(handover) = self.engine.handover() {
            let end = self.output.journal().taken();
            let given_up = handover.note(Handed { end, from: None });
            if let (Some((cpu, position)), Some(stream)) = (given_up, self.engine.stream()) {
                stream.release_to(cpu, position);
            }
        }
    }

    /// Begins a new window of recent costs, if it is time.
    pub(crate) fn tick_costs(&mut self) {
        let now = Instant::now();
        self.recorder.costs.makers.tick(now);
        if let Some(kernel) = &mut self.kernel {
            kernel.costs.makers.tick(now);
        }
    }

    /// Updates the kernel's count of losses. Not done for each event, since it takes a request.
    pub(crate) fn count_kernel_losses(&mut self) {
        if let (Engine::Kernel, Some(kernel)) = (&self.engine, &mut self.kernel) {
            kernel.count_lost();
        }
    }

    /// Shows the recorded events with `--live`.
    pub(crate) fn show(&mut self) {
        let Pipeline {
            live,
            engine,
            totals,
            ..
        } = self;
        let Some(live) = live else { return };
        live.show(|| {
            let lost = engine.counters().lost_total();
            let fill = f64::from(engine.fill_per_mille()) / 10.0;
            format!(
                "{} events, {lost} lost, fullest ring {fill:.1} %",
                totals.recorded
            )
        });
    }

    /// Releases the audit socket, and logs records that still arrived over it.
    ///
    /// # Errors
    /// The kernel's audit state could not be restored.
    pub(crate) fn release_kernel(&mut self) -> Result<()> {
        let Some(kernel) = self.kernel.take() else {
            return Ok(());
        };
        let events = kernel.stop(&mut self.recorder.encoder, &mut self.lines)?;
        if !self.lines.is_empty() {
            self.output.log_other(&self.lines, events);
            self.note_other();
            self.lines.clear();
        }
        Ok(())
    }

    /// Closes the log and the `--live` output. Returns the number of the engine's events that the
    /// log has lost.
    pub(crate) fn close(self) -> u64 {
        let lost = self.output.close();
        if let Some(mut live) = self.live {
            live.end();
        }
        lost
    }
}

/// Hands the gathered lines to the log and the plugins.
fn hand_over(output: &mut Output, batch: &mut HandoverBatch, lines: &mut Vec<u8>, events: u32) {
    let start = output.journal().taken();
    let lost = match lines.is_empty() {
        true => 0,
        false => output.log(lines, events),
    };
    batch.handed(start, lost > 0);
    lines.clear();
}
