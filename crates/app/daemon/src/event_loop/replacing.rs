//! Puts another rule set in force while the rings are read.

use crate::event_loop::recording::Recording;
use crate::handover::takeover;
use crate::pipeline::Pipeline;
use crate::start::settings::Settings;
use anyhow::Result;
use capture::{CaptureError, Replacement};
use capture::{HookChange, RuleCount};
use compose::Generation;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time for which the daemon waits before it looks at the rings again.
const LOOK: Duration = Duration::from_millis(1);
/// Fill of a ring, in parts per thousand, from which it does not wait at all.
const BUSY_PER_MILLE: u32 = 50;

/// A rule set on its way into force.
struct Coming {
    generation: Arc<Generation>,
    /// Counts of the programs by place, before any event of the new rules.
    counts: Vec<RuleCount>,
    /// The thread that changes the hooks, if the engine has hooks.
    replacement: Option<Replacement>,
}

impl Coming {
    /// Begins to put a rule set in force. Events that the old one selected until now are read first.
    fn begin(pipeline: &mut Pipeline, generation: Arc<Generation>, nice: i32) -> Result<Coming> {
        pipeline.drain();
        let places = pipeline.rules().len().max(generation.plan.rules.len());
        let (counts, _) = pipeline.engine().rule_counts(places);

        // A daemon that is killed from here on leaves events of both rule sets: the next one must know the new one, too.
        if let Some(pins) = pipeline.engine().pins() {
            takeover::remember(pins, &generation.plan)?;
        }
        // The recorder knows the new rules before the programs can send an event of theirs.
        pipeline.expect(&generation);

        if let Some(kernel) = pipeline.kernel_engine_mut() {
            kernel.replace_rules(&generation.plan.rules)?;
        }
        let replacement = pipeline.start_replacing(&generation, nice)?;
        Ok(Coming {
            generation,
            counts,
            replacement,
        })
    }

    /// The outcome, if the rule set is in force or was refused.
    fn wait(&self, longest: Duration) -> Option<Result<HookChange, CaptureError>> {
        match &self.replacement {
            Some(replacement) => replacement.wait(longest),
            None => Some(Ok(HookChange::default())),
        }
    }

    /// Begins again without the hook that `error` reports as unavailable. Other errors are returned.
    fn begin_anew(
        &mut self,
        pipeline: &mut Pipeline,
        error: CaptureError,
        settings: &mut Settings,
    ) -> Result<()> {
        self.generation = settings.planned_anew(error, &self.generation)?;
        let nice = settings.nice();
        self.replacement = pipeline.start_replacing(&self.generation, nice)?;
        Ok(())
    }
}

impl Recording {
    /// Swaps the rule set in one step. Until it is in force the rings are read, and `meanwhile` is called between two
    /// passes over them. Returns what became of the hooks.
    ///
    /// # Errors
    /// The new rules cannot be put in force; the old ones still are.
    pub(crate) fn put_in_force(
        &mut self,
        generation: Arc<Generation>,
        meanwhile: &mut dyn FnMut(&mut Recording),
    ) -> Result<HookChange> {
        let nice = self.settings.nice();
        // Budgets are those of places, where there will soon be other rules.
        self.pipeline.set_budgets(&BTreeMap::new());
        let outcome = match Coming::begin(&mut self.pipeline, generation, nice) {
            Ok(coming) => self.follow(coming, meanwhile),
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            self.pipeline.expect_no_more();
        }

        let generation = Arc::clone(self.pipeline.generation());
        self.pipeline.set_budgets(&generation.budgets);
        outcome
    }

    fn follow(
        &mut self,
        mut coming: Coming,
        meanwhile: &mut dyn FnMut(&mut Recording),
    ) -> Result<HookChange> {
        loop {
            // The rings are read all the while: changing hooks takes longer than they have room for.
            let is_busy = self.pipeline.engine().fill_per_mille() >= BUSY_PER_MILLE;
            match coming.wait(if is_busy { Duration::ZERO } else { LOOK }) {
                None => {
                    self.pass();
                    meanwhile(self);
                }
                Some(Ok(change)) => {
                    // Budgets count by place: they are reported before other rules have these places.
                    self.losses.log_suppressed(&mut self.pipeline);
                    self.pipeline.adopt(coming.generation, &coming.counts);
                    self.losses.note_places(&self.pipeline);
                    return Ok(change);
                }
                Some(Err(error)) => {
                    coming.begin_anew(&mut self.pipeline, error, &mut self.settings)?;
                }
            }
        }
    }
}
