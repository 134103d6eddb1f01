//! Replaces the capture of an earlier daemon that has other programs with a capture of this one, without a gap.
//!
//! The new hooks are armed beside the old ones, and record nothing yet. Then both record for a moment, and then only
//! the new ones do. Calls of the moment that both have recorded are recorded once ([`Overlap`]).

use crate::handover::joined::{Joined, Overlap, Side};
use crate::pipeline::engine::Engine;
use crate::pipeline::Pipeline;
use crate::stderr::say;
use anyhow::Result;
use capture::Counters;
use capture::{Leftover, Pins, RingStream};
use compose::Generation;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which the earlier rings are read while the new hooks are armed.
const READ_EVERY: Duration = Duration::from_millis(2);
/// Time for which both captures record. It is longer than a hook takes, and the rings have room for it.
const BOTH: Duration = Duration::from_millis(50);

/// An engine with the rules that it runs.
type Started = (Engine, Arc<Generation>);

/// A pipeline with the new capture.
pub(crate) struct Succeeded {
    pub(crate) pipeline: Pipeline,
    /// Final counts of the earlier programs.
    pub(crate) counters: Counters,
}

/// Replaces the earlier capture of a pipeline.
pub(crate) struct Succession {
    /// The pipeline, whose engine is the earlier capture.
    pub(crate) pipeline: Pipeline,
}

impl Succession {
    /// Replaces the earlier capture with the one that `start` starts: pinned in the directory that it is given, and
    /// muted if it is told so. `wanted` is where it is to be pinned in the end. `ahead` is a capture that a killed
    /// daemon had begun as the successor: see [`crate::handover::takeover`].
    pub(crate) fn complete(
        mut self,
        wanted: Option<&Arc<Pins>>,
        ahead: Option<Leftover>,
        start: impl FnOnce(Option<Arc<Pins>>, bool) -> Result<Started> + Send,
    ) -> Result<Succeeded> {
        let Engine::Leftover(leftover) = &self.pipeline.engine else {
            anyhow::bail!("there is no earlier capture to replace");
        };
        let is_same = wanted.is_some_and(|pins| pins.dir() == leftover.dir());
        if let Some(ahead) = ahead {
            return self.resume_with(ahead, wanted, is_same, start);
        }
        let pins = match wanted {
            Some(wanted) if is_same => match Pins::open(&Pins::next_to(wanted.dir())) {
                Ok(pins) => Some(Arc::new(pins)),
                Err(error) => {
                    say!("tarsier: calls of the next moment are not recorded: {error}");
                    return self.replace_with_gap(wanted, start);
                }
            },
            wanted => wanted.cloned(),
        };
        let started = self.read_while(|| start(pins.clone(), true));
        let (mut engine, generation) = match (started, &pins) {
            (Ok(started), _) => started,
            (Err(error), Some(pins)) if is_same => {
                pins.remove();
                return Err(error);
            }
            (Err(error), _) => return Err(error),
        };
        self.read_earlier();
        engine.unmute();
        std::thread::sleep(BOTH);
        self.end_earlier();
        let counters = self.finish_earlier(engine.stream(), is_same);
        if let (Some(pins), Some(wanted), true) = (&pins, wanted, is_same) {
            pins.move_to(wanted.dir())?;
        }
        let pipeline = self.continued((engine, generation));
        Ok(Succeeded { pipeline, counters })
    }

    /// Removes the hooks of the earlier capture, reads its rings to their end, and only then starts the new one.
    fn replace_with_gap(
        mut self,
        wanted: &Arc<Pins>,
        start: impl FnOnce(Option<Arc<Pins>>, bool) -> Result<Started>,
    ) -> Result<Succeeded> {
        if let Engine::Leftover(leftover) = &mut self.pipeline.engine {
            leftover.unhook();
        }
        let counters = self.finish_earlier(None, true);
        let pipeline = self.continued(start(Some(wanted.clone()), false)?);
        Ok(Succeeded { pipeline, counters })
    }

    /// Ends the earlier capture, which `ahead` has replaced already, and takes that over or replaces it, too.
    fn resume_with(
        mut self,
        mut ahead: Leftover,
        wanted: Option<&Arc<Pins>>,
        is_same: bool,
        start: impl FnOnce(Option<Arc<Pins>>, bool) -> Result<Started> + Send,
    ) -> Result<Succeeded> {
        let counters = self.finish_earlier(Some(ahead.stream()), is_same);
        let Some(wanted) = wanted.filter(|_| is_same) else {
            self.pipeline.engine = Engine::Leftover(Box::new(ahead));
            return self.complete(wanted, None, start);
        };
        ahead.move_to(wanted.dir())?;
        let pins = ahead.pins().clone();
        if ahead.can_be_taken_over(self.pipeline.generation.plan.form()) {
            drop(ahead);
            let pipeline = self.continued(start(Some(pins), false)?);
            return Ok(Succeeded { pipeline, counters });
        }
        self.pipeline.engine = Engine::Leftover(Box::new(ahead));
        self.complete(Some(&pins), None, start)
    }

    /// Does `work` in a thread of its own, and reads the earlier rings meanwhile: arming takes longer than they have
    /// room for.
    fn read_while<T: Send>(&mut self, work: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                self.read_earlier();
                std::thread::sleep(READ_EVERY);
            }
            let ended = working.join();
            ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Records what is in the earlier rings, if it can be decoded.
    fn read_earlier(&mut self) {
        let Engine::Leftover(leftover) = &self.pipeline.engine else {
            return;
        };
        if leftover.is_readable() {
            self.pipeline.drain();
            self.pipeline.commit();
        }
    }

    /// Makes the earlier programs record nothing any more.
    fn end_earlier(&mut self) {
        if let Engine::Leftover(leftover) = &mut self.pipeline.engine {
            if let Err(error) = leftover.mute() {
                say!("tarsier: the earlier capture is ended by removing its hooks: {error}");
                leftover.unhook();
            }
        }
    }

    /// Records the rest of the earlier rings, apart from calls that are among the later events, and removes that
    /// capture. Returns what its programs have counted.
    fn finish_earlier(
        &mut self,
        later: Option<&mut RingStream>,
        keeps_directory: bool,
    ) -> Counters {
        let Engine::Leftover(leftover) = &mut self.pipeline.engine else {
            return Counters::default();
        };
        if leftover.is_readable() {
            let mut overlap = Overlap::default();
            let earlier = leftover.stream();
            earlier.look_ahead(|frame| overlap.add(Side::Earlier, frame));
            if let Some(later) = later {
                later.look_ahead(|frame| overlap.add(Side::Later, frame));
            }
            self.pipeline.reading.joined = overlap.joined(BOTH.as_nanos() as u64);
            self.pipeline.drain();
            self.pipeline.operations_without_result(true);
            self.pipeline.commit();
            self.pipeline.reading.joined = Joined::default();
        } else {
            let unread = leftover.stream().unread_bytes();
            say!("tarsier: {unread} bytes of events of another version cannot be read");
        }
        let engine = std::mem::replace(&mut self.pipeline.engine, Engine::Kernel);
        let Engine::Leftover(leftover) = engine else {
            return Counters::default();
        };
        let counters = leftover.counters();
        if !leftover.remove(keeps_directory) {
            say!("tarsier: the directory of an earlier capture is not empty");
        }
        counters
    }

    /// Goes on with this engine.
    fn continued(self, (engine, generation): Started) -> Pipeline {
        let mut pipeline = self.pipeline;
        pipeline.recorder.add_generation(generation.clone());
        (pipeline.engine, pipeline.generation) = (engine, generation);
        pipeline.witness_writes();
        pipeline.survey_cgroups();
        pipeline.survey_processes();
        pipeline.follow_processes();
        pipeline
    }
}
