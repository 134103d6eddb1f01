//! What the recorder and the programs know of cgroups and processes: they follow each other.

use super::engine::Engine;
use super::process_classes::{self, Looks};
use super::recorder::Recorder;
use super::workloads::Workloads;
use crate::stderr::say;
use plan::Plan;

const UNKNOWN_ARE_RECORDED: &str =
    "tarsier: rules with unit=, slice= or container=: no mount shows the whole cgroup2 hierarchy; for tasks in cgroups \
     that are not known, rules with `always` match and rules with `never` do not";

/// The classes of cgroups and processes that the programs were told.
#[derive(Default)]
pub(super) struct Classes {
    workloads: Workloads,
    process_classes: Looks,
    /// Whether the recorder knows the processes.
    knows_processes: bool,
}

impl Classes {
    /// Makes the recorder look at all cgroups, and at those whose removal is still in the rings.
    pub(super) fn survey_cgroups(
        &mut self,
        plan: &Plan,
        recorder: &mut Recorder,
        engine: &mut Engine,
    ) {
        let Some(stream) = engine.stream() else {
            return;
        };

        let names = &plan.workloads;
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

        // A cgroup that ended since the survey is gone from the tree, but events of it may still come.
        stream.look_ahead(|frame| recorder.look_ahead(frame));
        self.workloads.classify_all(names, recorder, engine);
    }

    /// Makes the recorder look at all processes, if the programs tell of their changes.
    pub(super) fn survey_processes(&mut self, recorder: &mut Recorder, engine: &Engine) {
        if !self.knows_processes {
            return;
        }
        let Some(frames) = engine.processes() else {
            return;
        };
        if let Err(error) = recorder.survey_processes(&frames) {
            say!("tarsier: identity: processes that there are: {error}");
        }
    }

    /// Follows a change of the rules: tells the programs the classes of cgroups if the rules have other names; makes the
    /// recorder look at all processes if the programs tell of them from now on, and forget them if they no longer do.
    pub(super) fn follow_rules(
        &mut self,
        plan: &Plan,
        recorder: &mut Recorder,
        engine: &mut Engine,
    ) {
        if self.workloads.are_of_others(&plan.workloads) {
            self.survey_cgroups(plan, recorder, engine);
        }

        let knew = std::mem::replace(&mut self.knows_processes, plan.hooks.processes);
        // Frames tell only of changes: processes that run already have to be looked at.
        if self.knows_processes && !knew {
            self.survey_processes(recorder, engine);
        } else if knew && !self.knows_processes {
            recorder.forget_processes();
        }
    }

    /// After a pass: tells the programs of cgroups and processes that it was about.
    pub(super) fn follow(&mut self, plan: &Plan, recorder: &mut Recorder, engine: &Engine) {
        self.workloads.follow(&plan.workloads, recorder, engine);
        process_classes::follow(plan, recorder, engine);
    }

    /// Looks at up to `max` classes of each kind, and at those in doubt. Tells the programs again what somebody has changed,
    /// and returns the maps in which that was. `losses`: events that may explain a difference.
    pub(super) fn check(
        &mut self,
        plan: &Plan,
        recorder: &mut Recorder,
        engine: &Engine,
        losses: u64,
        max: usize,
    ) -> Vec<&'static str> {
        let mut changed = Vec::new();
        if self.workloads.check(&plan.workloads, recorder, engine, max) {
            changed.push("map workloads");
        }
        if self
            .process_classes
            .check(plan, recorder, engine, losses, max)
        {
            changed.push("map process_classes");
        }
        changed
    }

    /// Whether a class is in doubt: it is to be looked at again.
    pub(super) fn are_in_doubt(&self) -> bool {
        self.workloads.is_in_doubt() || self.process_classes.is_in_doubt()
    }
}
