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
        let wanted = pipeline.generation.plan.rules.len();
        let wanted = wanted.max(generation.plan.rules.len());
        let (counts, _) = pipeline.engine.rule_counts(wanted);
        if let Some(pins) = pipeline.engine.pins() {
            takeover::remember(pins, &generation.plan)?;
        }
        pipeline.recorder.add_generation(generation.clone());
        let (number, rules) = (generation.plan.generation, &generation.plan.rules);
        pipeline.recorder.costs.rules.expect(number, rules.len());
        if let (Some(kernel), true) = (&mut pipeline.kernel, pipeline.engine.is_kernel()) {
            kernel.replace_rules(rules)?;
        }
        let replacement = pipeline.engine.start_replacing(&generation, nice)?;
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
        self.replacement = pipeline.engine.start_replacing(&self.generation, nice)?;
        Ok(())
    }

    /// Notes that a rule set is in force.
    fn finish(self, pipeline: &mut Pipeline) {
        let Coming {
            generation, counts, ..
        } = self;
        pipeline.engine.set_urgent(&generation.urgent);
        let number = generation.plan.generation;
        let (old, new) = (&pipeline.generation.plan.rules, &generation.plan.rules);
        pipeline
            .recorder
            .costs
            .rules
            .replace(number, old, new, &counts);
        let names = &generation.plan.workloads;
        if names.epoch() != pipeline.generation.plan.workloads.epoch() {
            pipeline.recorder.forget_process_classes();
        }
        pipeline.generation = generation;
        pipeline.classify_cgroups();
        pipeline.follow_processes();
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
        self.pipeline.engine.set_budgets(&BTreeMap::new());
        let outcome = match Coming::begin(&mut self.pipeline, generation, nice) {
            Ok(coming) => self.follow(coming, meanwhile),
            Err(error) => Err(error),
        };
        if outcome.is_err() {
            self.pipeline.recorder.costs.rules.forget_coming();
        }
        let budgets = &self.pipeline.generation.budgets;
        self.pipeline.engine.set_budgets(budgets);
        outcome
    }

    fn follow(
        &mut self,
        mut coming: Coming,
        meanwhile: &mut dyn FnMut(&mut Recording),
    ) -> Result<HookChange> {
        loop {
            let is_busy = self.pipeline.engine.fill_per_mille() >= BUSY_PER_MILLE;
            match coming.wait(if is_busy { Duration::ZERO } else { LOOK }) {
                None => {
                    self.pass();
                    meanwhile(self);
                }
                Some(Ok(change)) => {
                    self.losses.log_suppressed(&mut self.pipeline);
                    coming.finish(&mut self.pipeline);
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
