//! The passes over the rings and the audit socket: from frames to lines, and to the log.

use super::{Composing, Pipeline, Sink};
use crate::clock::monotonic_ns;
use crate::handover::takeover::HandoverBatch;
use crate::pipeline::kernel_records::KernelRecords;
use crate::pipeline::output::Output;
use crate::stderr::say;
use capture::Handed;
use compose::{Outcome, System};
use record::wire::{self, FrameKind};
use rustix::event::{PollFd, PollFlags};
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

impl Pipeline {
    /// Whether another pass would find something at once.
    pub(crate) fn has_more(&self) -> bool {
        self.source.reading.has_more
            || self
                .source
                .kernel
                .as_ref()
                .is_some_and(KernelRecords::has_more)
    }

    /// Before poll(2): makes the programs ring the doorbell, unless the daemon stays `awake`. Returns whether something
    /// waits already.
    pub(crate) fn must_not_wait(&mut self, awake: bool) -> bool {
        // Before the look: a frame that comes after it then rings.
        self.source.engine.set_awake(awake);
        if self.has_more() || !awake && !self.source.engine.is_drained() {
            return true;
        }
        self.source.reading.pauses.look(monotonic_ns());
        false
    }

    /// The daemon reads by itself again: the programs need not ring.
    pub(crate) fn woken(&mut self) {
        self.source.engine.set_awake(true);
    }

    /// After poll(2).
    pub(crate) fn rested(&mut self) {
        self.source.reading.pauses.rested(monotonic_ns());
        self.source.engine.quiet_doorbell();
        self.woken();
    }

    /// Time until something is due without an event: a write, or an operation without a result.
    pub(crate) fn due_in(&mut self) -> Option<Duration> {
        let due = [
            self.sink.output.due_in(),
            self.composing.recorder.operations.due_in(),
        ];
        due.into_iter().flatten().min()
    }

    /// Adds what is readable when there is something to do.
    pub(crate) fn poll_fds<'fd>(&'fd mut self, fds: &mut Vec<PollFd<'fd>>) {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        fds.extend(self.source.engine.doorbell().map(readable));
        self.sink.output.poll_fds(fds);
        fds.extend(
            self.source
                .kernel
                .as_mut()
                .map(|kernel| readable(kernel.fd())),
        );
    }

    /// Reads everything that is in the rings now.
    pub(crate) fn drain(&mut self) {
        // One moment for all passes, so that a flood of new events cannot keep this from ending.
        let now_ns = monotonic_ns();
        self.pass(now_ns);
        while self.source.reading.has_more {
            self.commit();
            self.pass(now_ns);
        }
    }

    /// Reads what is in the rings at the end of the recording, which takes a time that callers cannot choose. If the rings
    /// stay for the next daemon, what is left is for that.
    pub(crate) fn drain_at_end(&mut self, rings_stay: bool) {
        let (begin, now_ns) = (Instant::now(), monotonic_ns());
        self.pass(now_ns);
        while self.source.reading.has_more {
            self.commit();
            if begin.elapsed() >= WHOLE_END {
                self.composing.lookups.close();
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
        let unread = &mut self.sink.totals.unread;
        self.source.engine.drain(now_ns, |_, _, frame| {
            let kind = wire::frame_kind(frame);
            *unread += u64::from(matches!(kind, Ok((FrameKind::Event, _))));
            true
        });
        self.source.reading.has_more = false;
    }

    /// Reads every ring once, until there are no events from before `now_ns`, enough is gathered
    /// for a write, or [`PASS_NS`] is over. Returns the number of frames.
    pub(crate) fn pass(&mut self, now_ns: u64) -> usize {
        self.source.reading.pauses.look(monotonic_ns());
        let engine = &mut self.source.engine;
        let handover = engine.handover();
        let ring_bytes = engine.stream().map_or(0, |stream| stream.ring_bytes());
        let mut batch = HandoverBatch::new(handover, ring_bytes);
        let (mut events, records) = self.read_kernel_records(&mut batch);

        let Sink {
            output,
            live,
            totals,
            lines,
            ..
        } = &mut self.sink;
        let recorder = &mut self.composing.recorder;
        let (engine, reading) = (&mut self.source.engine, &mut self.source.reading);
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
                // An urgent event does not wait for the end of a long pass.
                if std::mem::take(&mut is_urgent) {
                    output.flush();
                }
                batch_ns = monotonic_ns();
            }

            // Signals and clients get their turn, however slow the events of somebody are.
            let is_late = reading.pauses.look(monotonic_ns()) >= until_ns;
            is_cut = batch.is_full() || is_late;
            !is_cut
        });

        // The kernel's own record of a program that was loaded is dropped if the event of its call is in the log.
        if let Some(kernel) = &mut self.source.kernel {
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

        // Only a pass that was not cut short has read all that there was at its beginning.
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
        let Some(kernel) = &mut self.source.kernel else {
            return (0, 0);
        };

        let is_engine = self.source.engine.is_kernel();
        let filter = (!is_engine).then_some(&*self.composing.generation);

        let received = kernel.received;
        let events = kernel.drain(
            filter.map(|filter| (filter, &*self.composing.lookups as &dyn System)),
            &mut self.composing.recorder.encoder,
            &mut self.sink.lines,
        );

        if is_engine {
            self.sink.totals.recorded += u64::from(events);
            return (events, (kernel.received - received) as usize);
        }

        if !self.sink.lines.is_empty() {
            self.sink.output.log_other(&self.sink.lines, events);
            batch.note_other(self.sink.output.journal().taken());
            self.sink.lines.clear();
        }
        (0, 0)
    }

    /// After a pass: tells the programs of cgroups and processes that it was about, and releases the ring space of events
    /// that could not be noted for the next daemon.
    fn follow_pass(&mut self, batch: HandoverBatch) {
        let Composing {
            recorder,
            generation,
            classes,
            ..
        } = &mut self.composing;

        classes.follow(&generation.plan, recorder, &self.source.engine);
        if let Some(stream) = self.source.engine.stream() {
            for (cpu, position) in batch.given_up {
                stream.release_to(cpu, position);
            }
        }
    }

    /// Records io_uring operations that have waited long enough for their results, as pending, and
    /// at the end of the recording all that wait.
    pub(crate) fn operations_without_result(&mut self, at_end: bool) {
        let is_due = self.composing.recorder.operations.due_in() == Some(Duration::ZERO);
        if !at_end && !is_due {
            return;
        }

        // Operations of an earlier daemon wait only while the kernel still runs them.
        if self.composing.recorder.operations.has_orphans() {
            let in_flight = self.source.engine.in_flight();
            self.composing.recorder.operations.keep(&in_flight);
        }

        let recorded = self
            .composing
            .recorder
            .overdue(at_end, &mut self.sink.lines);
        if recorded > 0 {
            self.sink.totals.recorded += recorded;
            self.sink.output.log(&self.sink.lines, recorded as u32);
            self.note_other();
            self.sink.lines.clear();
        }
    }

    /// Writes the gathered lines and handles the consequences.
    pub(crate) fn commit(&mut self) {
        self.sink.output.commit();
        self.settle();
        self.sink.output.follow_commit();
    }

    /// After a commit: releases the ring space of the events that were written.
    fn settle(&mut self) {
        let Some(handover) = self.source.engine.handover() else {
            return;
        };

        let untold = self
            .losses_elsewhere()
            .saturating_sub(self.sink.reported_elsewhere);
        if let Some(stream) = self.source.engine.stream() {
            handover.settle(|cpu, position| stream.release_to(cpu, position));
            stream.relieve(|| handover.give_up().map(|handed| handed.from));
        }

        handover.live(
            monotonic_ns(),
            self.composing.recorder.operations.len() as u64,
        );
        handover.set_untold(untold);
    }

    /// Losses that the programs do not count, so that a killed daemon does not leave them in their
    /// maps.
    fn losses_elsewhere(&self) -> u64 {
        self.sink.output.lost().iter().sum::<u64>() + self.sink.totals.malformed
    }

    /// Tells the next daemon that the log reports all losses so far; `counted` has those that the
    /// programs count, by cause.
    pub(crate) fn note_told(&mut self, counted: &[u64]) {
        self.sink.reported_elsewhere = self.losses_elsewhere();
        if let Some(handover) = self.source.engine.handover() {
            handover.set_told(counted);
            handover.set_untold(0);
        }
    }

    /// Notes that something other than the engine's events was handed to the log.
    pub(super) fn note_other(&mut self) {
        if let Some(handover) = self.source.engine.handover() {
            let end = self.sink.output.journal().taken();
            let given_up = handover.note(Handed { end, from: None });
            if let (Some((cpu, position)), Some(stream)) = (given_up, self.source.engine.stream()) {
                stream.release_to(cpu, position);
            }
        }
    }
}

/// Hands the gathered lines to the log and the plugins.
fn hand_over(output: &mut Output, batch: &mut HandoverBatch, lines: &mut Vec<u8>, events: u32) {
    let start = output.journal().taken();
    let lost = if lines.is_empty() {
        0
    } else {
        output.log(lines, events)
    };
    batch.handed(start, lost > 0);
    lines.clear();
}
