//! The path of events through the daemon: from the rings and the audit socket to lines of the log.

mod classes;
pub(crate) mod durability;
pub(crate) mod engine;
pub(crate) mod grouped;
pub(crate) mod incoming;
pub(crate) mod kernel_records;
mod list_notices;
pub(crate) mod live;
pub(crate) mod notifier;
pub(crate) mod output;
pub(crate) mod own_loads;
mod own_records;
mod passes;
#[cfg(debug_assertions)]
pub(crate) mod planted;
pub(crate) mod plugins;
mod process_classes;
pub(crate) mod program_loads;
pub(crate) mod recorder;
mod shown_rules;
pub(crate) mod totals;
mod workloads;

use crate::account::maker_costs::MakerCosts;
use crate::account::rule_costs::RuleCosts;
use crate::event_loop::pauses::Pauses;
use crate::handover::joined::Joined;
use crate::handover::takeover::PageWitness;
use crate::start::lookups::Lookups;
use crate::start::settings;
use anyhow::Result;
use capture::{Breach, CaptureError, Leftover, Overload, Replacement, RuleCount};
use classes::Classes;
use compose::Generation;
use conf::Config;
use engine::Engine;
use journal::Witness;
use kernel_records::KernelRecords;
use live::Live;
use output::Output;
use plan::Plan;
use recorder::{KernelLabels, Recorder};
use rules::Rule;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use totals::Totals;

/// Initial capacity for lines, in bytes.
const LINES_BYTES: usize = 1 << 20;

/// The path of events: where they come from, what makes records of them, and where these go.
pub(crate) struct Pipeline {
    source: Source,
    composing: Composing,
    sink: Sink,
}

/// Where events come from.
struct Source {
    engine: Engine,
    /// The audit socket, while Tarsier owns it.
    kernel: Option<KernelRecords>,
    reading: Reading,
}

/// The passes over the rings.
#[derive(Default)]
struct Reading {
    pauses: Pauses,
    heard: Heard,
    /// Events of an earlier capture that this one has recorded, too.
    joined: Joined,
    /// Whether the last pass stopped early, so that what it gathered is written.
    has_more: bool,
}

/// What makes records of frames.
struct Composing {
    recorder: Recorder,
    lookups: Lookups,
    /// The rules in force.
    generation: Arc<Generation>,
    classes: Classes,
}

/// Where records go.
struct Sink {
    output: Output,
    live: Option<Live>,
    totals: Totals,
    /// Lines on their way to the log; the buffer is kept for its capacity.
    lines: Vec<u8>,
    /// Losses that the programs do not count, as of the last report in the log.
    reported_elsewhere: u64,
}

/// A pipeline whose engine has ended, until it gets the next one.
pub(crate) struct WithoutEngine {
    kernel: Option<KernelRecords>,
    reading: Reading,
    composing: Composing,
    sink: Sink,
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
        mut engine: Engine,
        mut recorder: Recorder,
        output: Output,
        lookups: Lookups,
        generation: Arc<Generation>,
        live: Option<Live>,
    ) -> Pipeline {
        recorder.add_generation(generation.clone());
        if let Some(selinux) = engine.take_selinux() {
            recorder.read_labels_by(Box::new(KernelLabels(selinux)));
        }
        let mut pipeline = Pipeline {
            source: Source {
                engine,
                kernel: None,
                reading: Reading::default(),
            },
            composing: Composing {
                recorder,
                lookups,
                generation,
                classes: Classes::default(),
            },
            sink: Sink {
                output,
                live,
                totals: Totals::default(),
                lines: Vec::with_capacity(LINES_BYTES),
                reported_elsewhere: 0,
            },
        };

        pipeline.witness_writes();
        pipeline.survey_cgroups();
        pipeline.follow_rules();
        pipeline
    }

    /// Takes the engine out, which has ended.
    pub(crate) fn without_engine(self) -> (Engine, WithoutEngine) {
        let Pipeline {
            source,
            composing,
            sink,
        } = self;
        let rest = WithoutEngine {
            kernel: source.kernel,
            reading: source.reading,
            composing,
            sink,
        };

        (source.engine, rest)
    }

    /// The engine, if it is what an earlier daemon left.
    pub(crate) fn leftover(&mut self) -> Option<&mut Leftover> {
        match &mut self.source.engine {
            Engine::Leftover(leftover) => Some(leftover),
            Engine::Ebpf(_) | Engine::Kernel => None,
        }
    }

    /// Leaves out events from now on that a later capture has recorded, too.
    pub(crate) fn leave_out(&mut self, joined: Joined) {
        self.source.reading.joined = joined;
    }

    /// Makes the recorder look at all cgroups, and at those whose removal is still in the rings.
    pub(crate) fn survey_cgroups(&mut self) {
        let Composing {
            recorder,
            generation,
            classes,
            ..
        } = &mut self.composing;
        classes.survey_cgroups(&generation.plan, recorder, &mut self.source.engine);
    }

    /// Makes the recorder look at all processes, if the programs tell of their changes.
    pub(crate) fn survey_processes(&mut self) {
        let Composing {
            recorder, classes, ..
        } = &mut self.composing;
        classes.survey_processes(recorder, &self.source.engine);
    }

    /// Follows a change of the rules in force: names that they have, and whether the programs tell of processes.
    fn follow_rules(&mut self) {
        let Composing {
            recorder,
            generation,
            classes,
            ..
        } = &mut self.composing;
        let engine = &mut self.source.engine;
        classes.follow_rules(&generation.plan, recorder, engine);
    }

    /// Looks at up to `max` classes of cgroups and of processes, and at those in doubt. Tells the programs again what
    /// somebody has changed, and returns the maps in which that was.
    pub(crate) fn check_classes(&mut self, max: usize) -> Vec<&'static str> {
        let engine = &self.source.engine;
        let losses = self.sink.totals.not_recorded() + engine.counters().untold();
        let Composing {
            recorder,
            generation,
            classes,
            ..
        } = &mut self.composing;
        classes.check(&generation.plan, recorder, engine, losses, max)
    }

    /// Whether a class is in doubt: it is to be looked at again.
    pub(crate) fn doubts_classes(&self) -> bool {
        self.composing.classes.are_in_doubt()
    }

    /// Adds records of other sources, which come over the audit socket. `generation` has the rules in force: of its own
    /// engine, the kernel may have refused some.
    pub(crate) fn with_kernel_records(
        mut self,
        kernel: Option<KernelRecords>,
        generation: Arc<Generation>,
    ) -> Pipeline {
        self.source.kernel = kernel;
        self.composing.generation = generation;
        self
    }

    /// Applies what is in force to an engine that has just started.
    pub(crate) fn begin(&mut self, overload: Overload) {
        let Generation {
            plan,
            urgent,
            budgets,
            ..
        } = &*self.composing.generation;

        let engine = &mut self.source.engine;
        let (counts, _) = engine.rule_counts(plan.rules.len());
        let costs = &mut self.composing.recorder.costs.rules;
        costs.replace(plan.generation, &[], &plan.rules, &counts);
        engine.set_overload(overload);
        engine.set_urgent(urgent);
        engine.set_budgets(budgets);
    }

    /// Makes the recorder know a rule set that is about to come in force.
    pub(crate) fn expect(&mut self, generation: &Arc<Generation>) {
        let plan = &generation.plan;
        self.composing
            .recorder
            .add_generation(Arc::clone(generation));
        self.composing
            .recorder
            .costs
            .rules
            .expect(plan.generation, plan.rules.len());
    }

    /// The rule set that was expected does not come in force.
    pub(crate) fn expect_no_more(&mut self) {
        self.composing.recorder.costs.rules.forget_coming();
    }

    /// Begins to put another rule set in force: see [`Engine::start_replacing`].
    pub(crate) fn start_replacing(
        &mut self,
        generation: &Arc<Generation>,
        nice: i32,
    ) -> Result<Option<Replacement>, CaptureError> {
        self.source.engine.start_replacing(generation, nice)
    }

    /// Goes on with a rule set that the engine has put in force. `counts` are those of the programs by place, before any
    /// event of the new rules.
    pub(crate) fn adopt(&mut self, generation: Arc<Generation>, counts: &[RuleCount]) {
        self.source.engine.set_urgent(&generation.urgent);
        let (old, new) = (&self.composing.generation.plan, &generation.plan);
        let costs = &mut self.composing.recorder.costs.rules;
        costs.replace(new.generation, &old.rules, &new.rules, counts);

        // Classes are numbered anew with the names that rules ask about.
        if new.workloads.epoch() != old.workloads.epoch() {
            self.composing.recorder.forget_process_classes();
        }
        self.composing.generation = generation;
        self.follow_rules();
    }

    /// Makes the journal report its writes to the page for the next daemon.
    pub(crate) fn witness_writes(&mut self) {
        let handover = self.source.engine.handover();
        let witness = handover.map(|page| Box::new(PageWitness(page)) as Box<dyn Witness>);
        self.sink.output.set_witness(witness);
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.source.engine
    }

    /// Whether the kernel's own audit is the engine.
    pub(crate) fn is_kernel_engine(&self) -> bool {
        self.source.engine.is_kernel()
    }

    /// The audit socket, while Tarsier owns it.
    pub(crate) fn kernel(&self) -> Option<&KernelRecords> {
        self.source.kernel.as_ref()
    }

    pub(crate) fn kernel_mut(&mut self) -> Option<&mut KernelRecords> {
        self.source.kernel.as_mut()
    }

    /// The audit socket, if the kernel's own audit is the engine.
    pub(crate) fn kernel_engine(&self) -> Option<&KernelRecords> {
        if self.source.engine.is_kernel() {
            self.source.kernel.as_ref()
        } else {
            None
        }
    }

    pub(crate) fn kernel_engine_mut(&mut self) -> Option<&mut KernelRecords> {
        if self.source.engine.is_kernel() {
            self.source.kernel.as_mut()
        } else {
            None
        }
    }

    /// The rules in force, with what was planned for them.
    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.composing.generation
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.composing.generation.plan
    }

    pub(crate) fn rules(&self) -> &[Rule] {
        &self.composing.generation.plan.rules
    }

    pub(crate) fn output(&self) -> &Output {
        &self.sink.output
    }

    pub(crate) fn output_mut(&mut self) -> &mut Output {
        &mut self.sink.output
    }

    pub(crate) fn lookups(&self) -> &Lookups {
        &self.composing.lookups
    }

    pub(crate) fn rule_costs(&self) -> &RuleCosts {
        &self.composing.recorder.costs.rules
    }

    /// The counts of the engine's events by who made them.
    pub(crate) fn maker_costs(&mut self) -> &mut MakerCosts {
        match &mut self.source.kernel {
            Some(kernel) if self.source.engine.is_kernel() => &mut kernel.costs.makers,
            _ => &mut self.composing.recorder.costs.makers,
        }
    }

    /// What makes records of frames, for its counts.
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.composing.recorder
    }

    /// Limit of the events per second (auditctl's `-r`); 0: none.
    pub(crate) fn rate_limit(&self) -> u32 {
        self.composing.recorder.rate.limit
    }

    pub(crate) fn set_rate_limit(&mut self, limit: u32) {
        self.composing.recorder.rate.limit = limit;
    }

    /// How far the rings have been read.
    pub(crate) fn heard(&self) -> Heard {
        self.source.reading.heard
    }

    /// Longest time for which nothing was read although frames may have waited, in nanoseconds.
    pub(crate) fn longest_pause_ns(&self) -> u64 {
        self.source.reading.pauses.longest_ns()
    }

    /// Makes the records what the configuration asks for.
    pub(crate) fn set_form(&mut self, config: &Config, node: Option<&str>) {
        settings::set_form(&mut self.composing.recorder.encoder, config, node);
    }

    /// Looks up again what the recorder keeps. Call it once a second.
    pub(crate) fn refresh(&mut self) {
        self.composing.recorder.refresh();
    }

    /// Sets how many events per second are recorded of these rules, by their place.
    pub(crate) fn set_budgets(&mut self, rates: &BTreeMap<u32, u32>) {
        self.source.engine.set_budgets(rates);
    }

    /// Undoes changes that others have made to what the programs read: see [`Engine::check`].
    pub(crate) fn check(&mut self) -> Vec<Breach> {
        self.source.engine.check()
    }

    /// Removes hooks that no rule needs. Call it about once a second.
    pub(crate) fn tidy(&mut self) {
        self.source.engine.tidy();
    }

    /// Makes the programs match nothing any more.
    pub(crate) fn disarm(&mut self) {
        self.source.engine.disarm();
    }

    pub(crate) fn totals(&self) -> Totals {
        self.sink.totals
    }

    /// Begins a new window of recent costs, if it is time.
    pub(crate) fn tick_costs(&mut self) {
        let now = Instant::now();
        self.composing.recorder.costs.makers.tick(now);
        if let Some(kernel) = &mut self.source.kernel {
            kernel.costs.makers.tick(now);
        }
    }

    /// Updates the kernel's count of losses. Not done for each event, since it takes a request.
    pub(crate) fn count_kernel_losses(&mut self) {
        if let (Engine::Kernel, Some(kernel)) = (&self.source.engine, &mut self.source.kernel) {
            kernel.count_lost();
        }
    }

    /// Shows the recorded events with `--live`.
    pub(crate) fn show(&mut self) {
        let Sink { live, totals, .. } = &mut self.sink;
        let engine = &self.source.engine;
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
        let Some(kernel) = self.source.kernel.take() else {
            return Ok(());
        };
        let events = kernel.stop(&mut self.composing.recorder.encoder, &mut self.sink.lines)?;
        if !self.sink.lines.is_empty() {
            self.sink.output.log_other(&self.sink.lines, events);
            self.note_other();
            self.sink.lines.clear();
        }
        Ok(())
    }

    /// Closes the log and the `--live` output. Returns the number of the engine's events that the
    /// log has lost.
    pub(crate) fn close(self) -> u64 {
        let lost = self.sink.output.close();
        if let Some(mut live) = self.sink.live {
            live.end();
        }
        lost
    }
}

impl WithoutEngine {
    /// Goes on with this engine, which runs the rules of `generation`.
    pub(crate) fn with_engine(self, engine: Engine, generation: Arc<Generation>) -> Pipeline {
        let mut pipeline = Pipeline {
            source: Source {
                engine,
                kernel: self.kernel,
                reading: self.reading,
            },
            composing: Composing {
                generation: Arc::clone(&generation),
                ..self.composing
            },
            sink: self.sink,
        };
        pipeline.composing.recorder.add_generation(generation);
        // Each capture has its own page for the next daemon.
        pipeline.witness_writes();

        // What the earlier engine told of cgroups and processes ended with it.
        pipeline.survey_cgroups();
        pipeline.survey_processes();
        pipeline.follow_rules();
        pipeline
    }
}
