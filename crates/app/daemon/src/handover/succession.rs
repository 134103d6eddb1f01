//! Replaces the capture of an earlier daemon that has other programs with a capture of this one, without a gap.
//!
//! The new hooks are armed beside the old ones, and record nothing yet. Then both record for a moment, and then only
//! the new ones do. Calls of the moment that both have recorded are recorded once ([`Overlap`]).

use crate::handover::joined::{Joined, Overlap, Side};
use crate::pipeline::engine::Engine;
use crate::pipeline::{Pipeline, WithoutEngine};
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
        let Some(leftover) = self.pipeline.leftover() else {
            anyhow::bail!("there is no earlier capture to replace");
        };
        let is_same = wanted.is_some_and(|pins| pins.dir() == leftover.dir());
        if let Some(ahead) = ahead {
            return self.resume_with(ahead, wanted, is_same, start);
        }
        // One directory cannot hold two captures: the new one begins beside it and moves there later.
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
            // The earlier capture still records. What was begun beside it goes.
            (Err(error), Some(pins)) if is_same => {
                pins.remove();
                return Err(error);
            }
            (Err(error), _) => return Err(error),
        };

        // Both record for a moment, so that no call falls between them; the earlier rings have room for that moment.
        self.read_earlier();
        engine.unmute();
        std::thread::sleep(BOTH);
        self.end_earlier();

        // Only when the earlier capture is gone is its directory free.
        let (rest, counters) = self.finish_earlier(engine.stream(), is_same);
        if let (Some(pins), Some(wanted), true) = (&pins, wanted, is_same) {
            pins.move_to(wanted.dir())?;
        }

        let pipeline = rest.with_engine(engine, generation);
        Ok(Succeeded { pipeline, counters })
    }

    /// Removes the hooks of the earlier capture, reads its rings to their end, and only then starts the new one.
    fn replace_with_gap(
        mut self,
        wanted: &Arc<Pins>,
        start: impl FnOnce(Option<Arc<Pins>>, bool) -> Result<Started>,
    ) -> Result<Succeeded> {
        if let Some(leftover) = self.pipeline.leftover() {
            leftover.unhook();
        }
        let (rest, counters) = self.finish_earlier(None, true);

        let (engine, generation) = start(Some(wanted.clone()), false)?;
        let pipeline = rest.with_engine(engine, generation);
        Ok(Succeeded { pipeline, counters })
    }

    /// Ends the earlier capture, which `ahead` has replaced already, and takes that over or replaces it, too.
    fn resume_with(
        self,
        mut ahead: Leftover,
        wanted: Option<&Arc<Pins>>,
        is_same: bool,
        start: impl FnOnce(Option<Arc<Pins>>, bool) -> Result<Started> + Send,
    ) -> Result<Succeeded> {
        let generation = Arc::clone(self.pipeline.generation());
        let (rest, counters) = self.finish_earlier(Some(ahead.stream()), is_same);
        let wanted = match wanted {
            Some(wanted) if is_same => wanted,
            _ => return Succession::of(rest, ahead, generation).complete(wanted, None, start),
        };

        // Only now is the directory of the earlier capture free.
        ahead.move_to(wanted.dir())?;
        let pins = ahead.pins().clone();
        if !ahead.can_be_taken_over(generation.plan.form()) {
            return Succession::of(rest, ahead, generation).complete(Some(&pins), None, start);
        }
        drop(ahead);
        let (engine, generation) = start(Some(pins), false)?;
        let pipeline = rest.with_engine(engine, generation);
        Ok(Succeeded { pipeline, counters })
    }

    /// The succession of `leftover`, whose events are those of the same rules.
    fn of(rest: WithoutEngine, leftover: Leftover, generation: Arc<Generation>) -> Succession {
        Succession {
            pipeline: rest.with_engine(Engine::Leftover(Box::new(leftover)), generation),
        }
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
        let leftover = self.pipeline.leftover();
        if leftover.is_some_and(|leftover| leftover.is_readable()) {
            self.pipeline.drain();
            self.pipeline.commit();
        }
    }

    /// Makes the earlier programs record nothing any more.
    fn end_earlier(&mut self) {
        if let Some(leftover) = self.pipeline.leftover() {
            if let Err(error) = leftover.mute() {
                say!("tarsier: the earlier capture is ended by removing its hooks: {error}");
                leftover.unhook();
            }
        }
    }

    /// Records the rest of the earlier rings, apart from calls that are among the later events, and removes that
    /// capture. Returns what its programs have counted.
    fn finish_earlier(
        mut self,
        later: Option<&mut RingStream>,
        keeps_directory: bool,
    ) -> (WithoutEngine, Counters) {
        if let Some(leftover) = self.pipeline.leftover() {
            if leftover.is_readable() {
                let mut overlap = Overlap::default();
                let earlier = leftover.stream();
                earlier.look_ahead(|frame| overlap.add(Side::Earlier, frame));
                if let Some(later) = later {
                    later.look_ahead(|frame| overlap.add(Side::Later, frame));
                }

                // Of a call that both captures have recorded, the earlier event is left out.
                self.pipeline
                    .leave_out(overlap.joined(BOTH.as_nanos() as u64));
                self.pipeline.drain();
                // The results of running operations would come through the rings that end here.
                self.pipeline.operations_without_result(true);
                self.pipeline.commit();
                self.pipeline.leave_out(Joined::default());
            } else {
                let unread = leftover.stream().unread_bytes();
                say!("tarsier: {unread} bytes of events of another version cannot be read");
            }
        }

        let (engine, rest) = self.pipeline.without_engine();
        let Engine::Leftover(leftover) = engine else {
            return (rest, Counters::default());
        };
        // The counts go with the maps when the capture is removed.
        let counters = leftover.counters();
        if !leftover.remove(keeps_directory) {
            say!("tarsier: the directory of an earlier capture is not empty");
        }
        (rest, counters)
    }
}
