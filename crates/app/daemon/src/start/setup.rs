//! Turns the command line into a daemon with everything armed.

use crate::control::asker::Asker;
use crate::control::lock;
use crate::control::ControlSocket;
use crate::event_loop::daemon::Daemon;
use crate::event_loop::recording::Recording;
use crate::event_loop::scheduling::Scheduling;
use crate::event_loop::signals::Signals;
use crate::handover::recovery;
use crate::handover::succession::Succession;
use crate::handover::takeover::{self, Downtime};
use crate::pipeline::engine::Engine;
use crate::pipeline::kernel_records::KernelRecords;
use crate::pipeline::live::Live;
use crate::pipeline::notifier::Notifier;
use crate::pipeline::output::Output;
use crate::pipeline::plugins;
use crate::pipeline::recorder::{self, Recorder};
use crate::pipeline::Pipeline;
use crate::protocol::RulesInForce;
use crate::start::choice::{self, Kind};
use crate::start::confinement::Confinement;
use crate::start::instance::Instance;
use crate::start::left_out;
use crate::start::lookups;
use crate::start::rules_at_start::Chosen;
use crate::start::settings::{self, Settings, Sources};
use crate::stderr::say;
use anyhow::{bail, Result};
use capture::{AuditContexts, CaptureError, CaptureOptions, EbpfEngine, Pins};
use cli::{Engine as Choice, RunArgs};
use compose::{Generation, System};
use conf::Config;
use journal::{Journal, OpenReport};
use plan::Plan;
use record::Encoder;
use spawn::Launcher;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Everything that an engine is started with.
struct Start<'a> {
    args: &'a RunArgs,
    is_kernel: bool,
}

impl Start<'_> {
    /// Starts the chosen engine with its rules. Calls that it cannot hook at the ends of their
    /// functions are planned again. With `--engine auto`, the tracepoint engine is used if the
    /// trampoline engine is refused. `pins` is where capture is pinned, if it is to outlive the
    /// daemon. A muted engine records nothing yet.
    fn engine(
        &self,
        mut generation: Arc<Generation>,
        settings: &mut Settings,
        pins: Option<&Arc<Pins>>,
        is_muted: bool,
    ) -> Result<(Engine, Arc<Generation>)> {
        if self.is_kernel {
            return Ok((Engine::Kernel, generation));
        }
        let may_differ = self.args.engine == Choice::Auto;
        let (mut options, pid) = (options(self.args), std::process::id());
        options.is_muted = is_muted;
        loop {
            let plan = &generation.plan;
            let started = match pins {
                Some(pins) => {
                    takeover::remember(pins, plan)?;
                    EbpfEngine::start_pinned(pins, plan, &options, pid)
                }
                None => EbpfEngine::start(plan, &options, pid),
            };
            let can_differ = may_differ && settings.capabilities.trampoline;
            generation = match started {
                Ok(engine) => return Ok((Engine::Ebpf(Box::new(engine)), generation)),
                Err(error) if can_differ && !is_unhooked(&error) => {
                    say!("tarsier: engine tracepoint: {error}");
                    settings.capabilities = capture::probe::capabilities(false);
                    settings.generation(plan.rules.clone(), false, plan.generation)?
                }
                Err(error) => settings.planned_anew(error, &generation)?,
            };
        }
    }
}

fn is_unhooked(error: &CaptureError) -> bool {
    matches!(error, CaptureError::Unhooked { .. })
}

/// Loads, checks and arms. Everything that can fail because of wrong input fails before anything is
/// changed.
pub(crate) fn start(args: &RunArgs, launcher: &Launcher, signals: Signals) -> Result<Daemon> {
    Scheduling::refuse_huge_pages();
    let (mut settings, is_kernel) = prepared(args, launcher)?;
    let mut recorder = recorder(&settings)?;
    let contexts = AuditContexts::load();
    let (locked, mut chosen) = lock::choose(&mut settings, is_kernel)?;
    let mut generation = Arc::clone(&chosen.generation);
    let instance = Instance::lock(&args.run_dir)?;
    let wanted = pin_dir(args, &settings.config).filter(|_| !is_kernel);
    let pin_dirs = wanted.into_iter().map(Path::to_owned);
    let pin_dirs: Vec<PathBuf> = pin_dirs.chain(takeover::noted(&args.run_dir)).collect();
    let (pins, inherited) = takeover::inherit(&args.run_dir, wanted, &settings.config)?;
    let state_dir = settings.sources.good.directory().map(|state| state.path());
    settings.confinement =
        Confinement::begin(&settings.config, &args.run_dir, state_dir, &pin_dirs);
    let (mut downtime, mut left) = (None, None);
    if let Some(inherited) = inherited {
        let rules = chosen.set.rules.clone();
        generation = settings.generation(rules, is_kernel, inherited.next_number())?;
        let earlier = inherited.generations(&settings);
        earlier.into_iter().for_each(|g| recorder.add_generation(g));
        let parts = inherited.split(pins.as_ref(), settings.capabilities.form());
        (downtime, left) = (Some(parts.0), parts.1);
    }
    let (journal, report) = Journal::open(&settings.config.log_file, &settings.config)?;
    let lookups = Arc::clone(&settings.lookups);
    let server = ControlSocket::start(&instance, move |pid| lookups.executable(pid))?;
    let start = Start { args, is_kernel };
    let is_taken_over = left.is_none();
    let mut ahead = None;
    let engine = match left {
        Some((leftover, next)) => {
            ahead = next;
            Engine::Leftover(Box::new(leftover))
        }
        None => {
            let started = start.engine(generation, &mut settings, pins.as_ref(), false)?;
            generation = started.1;
            started.0
        }
    };
    Scheduling::go_first_on_one_processor(std::process::id());
    let mut pipeline = pipeline(
        args,
        &settings,
        journal,
        engine,
        recorder,
        generation.clone(),
    );
    if !is_taken_over {
        let succession = Succession { pipeline };
        let replaced = succession.complete(pins.as_ref(), ahead, |pins, is_muted| {
            start.engine(generation, &mut settings, pins.as_ref(), is_muted)
        })?;
        pipeline = replaced.pipeline;
        let downtime = downtime.iter_mut();
        downtime.for_each(|downtime| downtime.add(&replaced.counters));
    }
    chosen.generation = Arc::clone(&pipeline.generation);
    let kernel = kernel_records(args, is_kernel, &mut chosen, &settings, &contexts)?;
    pipeline.generation = Arc::clone(&chosen.generation);
    let pipeline = pipeline.with_kernel_records(kernel);
    chosen.keep(&settings);
    let mut recording = Recording::new(pipeline, settings, contexts, chosen.in_force);
    recording.apply_settings(&chosen.set.settings);
    let mut recording = begun(recording, downtime.as_ref(), is_taken_over, &report);
    lock::at_start(locked, &chosen.set.settings, &mut recording);
    Ok(Daemon::new(recording, server, signals, instance))
}

/// Reads the configuration, and finds out what this kernel can do. Returns whether its own audit is the engine.
fn prepared(args: &RunArgs, launcher: &Launcher) -> Result<(Settings, bool)> {
    let mut sources = Sources::of(args);
    sources.open_state(args);
    let chosen = sources.config_at_start()?;
    let kind = choice::kind(args.engine)?;
    let is_kernel = kind == Kind::Kernel;
    if is_kernel && args.no_kernel_records {
        bail!(
            "--no-kernel-records leaves the audit socket alone, and the kernel engine needs it: \
             give only one of them"
        );
    }
    let capabilities = capture::probe::capabilities(kind == Kind::Trampoline);
    let settings = Settings {
        sources,
        config: chosen.config,
        config_text: chosen.text,
        not_in_force: chosen.left_out,
        capabilities,
        lookups: lookups::start(launcher),
        confinement: Confinement::default(),
        lock: None,
        launcher: launcher.clone(),
        started_nice: rustix::process::getpriority_process(None).unwrap_or(0),
    };
    Ok((settings, is_kernel))
}

/// Connects the engine and the recorder with the log and the plugins.
fn pipeline(
    args: &RunArgs,
    settings: &Settings,
    mut journal: Journal,
    engine: Engine,
    recorder: Recorder,
    generation: Arc<Generation>,
) -> Pipeline {
    let launcher = &settings.launcher;
    journal.set_launcher(launcher.clone());
    let plugins = plugins::start(launcher, &settings.config, settings.started_nice);
    let notifier = Notifier::of_system(launcher.clone());
    let output = Output::new(journal, plugins, notifier, &settings.config);
    let lookups = Arc::clone(&settings.lookups);
    let live = args.live.then(Live::new);
    Pipeline::new(engine, recorder, output, lookups, generation, live)
}

/// Prints that everything is armed, and reports what happened before. From now on the calls of the
/// helpers are not recorded.
fn begun(
    mut recording: Recording,
    downtime: Option<&Downtime>,
    is_taken_over: bool,
    report: &OpenReport,
) -> Recording {
    let config = &recording.settings.config;
    let pipeline = &mut recording.pipeline;
    lookups::follow(&pipeline.lookups, pipeline.engine.helpers());
    lookups::set_hashes(&pipeline.lookups, config, pipeline.engine.is_kernel());
    let plan = &pipeline.generation.plan;
    let (counts, _) = pipeline.engine.rule_counts(plan.rules.len());
    let costs = &mut pipeline.recorder.costs.rules;
    costs.replace(plan.generation, &[], &plan.rules, &counts);
    pipeline.engine.set_overload(settings::overload(config));
    pipeline.engine.set_urgent(&pipeline.generation.urgent);
    pipeline.engine.set_budgets(&pipeline.generation.budgets);
    if let Some(downtime) = downtime.filter(|_| is_taken_over) {
        recording.losses.told_before(&downtime.counted, pipeline);
    }
    report_start(pipeline, &recording.rules_in_force);
    let started = pipeline.engine.started();
    pipeline.log_armed(&Asker::this_process(), &started);
    if let Some(downtime) = downtime {
        recovery::log_downtime(downtime, pipeline);
    }
    recovery::log_recovered(report, pipeline);
    recording
}

fn report_start(pipeline: &mut Pipeline, in_force: &RulesInForce) {
    pipeline.log_start(in_force);
    left_out::report(in_force, pipeline);
    pipeline.commit();
    let plan = &pipeline.generation.plan;
    let place = match pipeline.engine.is_kernel() {
        true => "the kernel's own audit".to_owned(),
        false => calls_and_operations(plan),
    };
    let (rules, log) = (plan.rules.len(), pipeline.output.log_text());
    let engine = pipeline.engine.name();
    say!("tarsier: {rules} rules armed on {place}, engine {engine}; {log}");
    for gap in &plan.platform.gaps {
        say!("tarsier: without {gap}");
    }
}

/// The number of calls and operations that a plan watches, in words.
fn calls_and_operations(plan: &Plan) -> String {
    let operations = plan.calls.keys().filter(|key| key.0 == plan::Entry::Uring);
    match (plan.calls.len(), operations.count()) {
        (all, 0) => format!("{all} calls"),
        (all, operations) => format!(
            "{} calls and {operations} io_uring operations",
            all - operations
        ),
    }
}

/// A recorder with the node name that the configuration asks for.
fn recorder(settings: &Settings) -> Result<Recorder> {
    let node = settings.config.node_name()?;
    let lookups = &settings.lookups;
    let names = compose::names(Arc::clone(lookups) as Arc<dyn System>);
    let mut encoder = Encoder::new(settings::format(&settings.config), names);
    encoder.set_workload(settings.config.tells_identity());
    encoder.set_labels(settings.config.tells_labels());
    encoder.set_hashes(settings.config.hashed_bytes_max().is_some());
    encoder.set_node(node.as_deref().map(str::as_bytes));
    Ok(recorder::with(encoder, Arc::clone(lookups)))
}

/// The directory where capture is pinned, if it is to outlive the daemon.
fn pin_dir<'a>(args: &'a RunArgs, config: &'a Config) -> Option<&'a Path> {
    args.pin_dir.as_deref().or(config.pin_dir.as_deref())
}

fn options(args: &RunArgs) -> CaptureOptions {
    match args.ring_size {
        Some(size_kib) => CaptureOptions::with_ring_bytes(size_kib as usize * 1024),
        None => CaptureOptions::for_this_host(),
    }
}

/// The kernel's audit records. If the kernel is the engine, it gets the rules; those that it refuses are left out, where
/// the configuration allows that.
fn kernel_records(
    args: &RunArgs,
    is_engine: bool,
    chosen: &mut Chosen,
    settings: &Settings,
    contexts: &AuditContexts,
) -> Result<Option<KernelRecords>> {
    if !is_engine {
        return match args.no_kernel_records {
            true => Ok(None),
            false => KernelRecords::start(&args.run_dir, contexts),
        };
    }
    loop {
        let set = &chosen.set;
        match KernelRecords::start_engine(&args.run_dir, &set.rules, &set.settings, contexts) {
            Ok(kernel) => return Ok(Some(kernel)),
            Err(error) => chosen.without(&error.downcast()?, settings)?,
        }
    }
}
