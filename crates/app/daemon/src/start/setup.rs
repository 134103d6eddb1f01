//! Turns the command line into a daemon with everything armed.

use crate::control::asker::Asker;
use crate::control::kernel_list;
use crate::control::lock;
use crate::control::locked_rules::LockState;
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
use capture::{AuditContexts, CaptureError, CaptureOptions, EbpfEngine, Leftover, Pins};
use cli::{Engine as Choice, RunArgs};
use compose::{Generation, System};
use conf::Config;
use journal::{Journal, OpenReport};
use plan::Plan;
use privsep::spawn::Launcher;
use record::Encoder;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Loads, checks and arms. Everything that can fail because of wrong input fails before anything is
/// changed.
pub(crate) fn start(args: &RunArgs, launcher: &Launcher, signals: Signals) -> Result<Daemon> {
    Scheduling::refuse_huge_pages();

    // Each step takes the one before, so that none can be left out or done twice.
    let prepared = Prepared::read(args, launcher)?;
    let chosen = prepared.choose_rules()?;
    let inherited = chosen.inherit()?;
    let armed = inherited.arm()?;
    armed.record(signals)
}

/// The configuration is read, and it is known what this kernel can do.
struct Prepared<'a> {
    args: &'a RunArgs,
    settings: Settings,
    is_kernel: bool,
    contexts: AuditContexts,
}

/// The rules are chosen; no other daemon with this run directory can start.
struct RulesChosen<'a> {
    prepared: Prepared<'a>,
    chosen: Chosen,
    locked: LockState,
    recorder: Recorder,
    instance: Instance,
}

/// The process is confined; it is known what an earlier daemon left.
struct Inheriting<'a> {
    rules: RulesChosen<'a>,
    /// Where capture is pinned, if it is to outlive the daemon.
    pins: Option<Arc<Pins>>,
    /// The time without a daemon.
    downtime: Option<Downtime>,
    /// The earlier capture if it has to be replaced; with it, a successor that a killed daemon had begun.
    left: Option<(Leftover, Option<Leftover>)>,
}

/// The rules are in force, and the log is open.
struct Armed {
    settings: Settings,
    contexts: AuditContexts,
    chosen: Chosen,
    locked: LockState,
    instance: Instance,
    pipeline: Pipeline,
    server: ControlSocket,
    downtime: Option<Downtime>,
    is_taken_over: bool,
    report: OpenReport,
}

impl<'a> Prepared<'a> {
    fn read(args: &'a RunArgs, launcher: &Launcher) -> Result<Prepared<'a>> {
        let (settings, is_kernel) = settings(args, launcher)?;
        Ok(Prepared {
            args,
            settings,
            is_kernel,
            contexts: AuditContexts::load(),
        })
    }

    fn choose_rules(mut self) -> Result<RulesChosen<'a>> {
        let recorder = recorder(&self.settings)?;
        let (locked, chosen) = lock::choose(&mut self.settings, self.is_kernel)?;
        // Last: a start with wrong rules fails before it changes anything.
        let instance = Instance::lock(&self.args.run_dir)?;
        Ok(RulesChosen {
            prepared: self,
            chosen,
            locked,
            recorder,
            instance,
        })
    }

    /// Starts the chosen engine with its rules. Calls that it cannot hook at the ends of their
    /// functions are planned again. With `--engine auto`, the tracepoint engine is used if the
    /// trampoline engine is refused. `pins` is where capture is pinned, if it is to outlive the
    /// daemon. A muted engine records nothing yet.
    fn engine(
        &mut self,
        mut generation: Arc<Generation>,
        pins: Option<&Arc<Pins>>,
        is_muted: bool,
    ) -> Result<(Engine, Arc<Generation>)> {
        if self.is_kernel {
            return Ok((Engine::Kernel, generation));
        }

        let may_differ = self.args.engine == Choice::Auto;
        let (mut options, pid) = (options(self.args), std::process::id());
        options.is_muted = is_muted;
        let settings = &mut self.settings;
        loop {
            let plan = &generation.plan;
            let started = match pins {
                Some(pins) => {
                    // Remembered before the first event: a daemon that is killed now leaves events of this rule
                    // set.
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

impl<'a> RulesChosen<'a> {
    fn inherit(mut self) -> Result<Inheriting<'a>> {
        let Prepared {
            args,
            settings,
            is_kernel,
            ..
        } = &mut self.prepared;
        let wanted = if *is_kernel {
            None
        } else {
            pin_dir(args, &settings.config).map(Path::to_owned)
        };
        let pin_dirs = wanted.iter().cloned().chain(takeover::noted(&args.run_dir));
        let pin_dirs: Vec<PathBuf> = pin_dirs.collect();
        let (pins, inherited) =
            takeover::inherit(&args.run_dir, wanted.as_deref(), &settings.config)?;

        // Confined before the rings are read: frames have what callers chose.
        let state_dir = settings.sources.good.directory().map(|state| state.path());
        settings.confinement =
            Confinement::begin(&settings.config, &args.run_dir, state_dir, &pin_dirs);

        let (mut downtime, mut left) = (None, None);
        if let Some(inherited) = inherited {
            // Events in the rings name the rule set that selected them, so numbers go on.
            let rules = self.chosen.set.rules.clone();
            let number = inherited.next_number();
            self.chosen.generation = settings.generation(rules, *is_kernel, number)?;
            for earlier in inherited.generations(settings) {
                self.recorder.add_generation(earlier);
            }
            let parts = inherited.split(pins.as_ref(), settings.capabilities.form());
            (downtime, left) = (Some(parts.0), parts.1);
        }
        Ok(Inheriting {
            rules: self,
            pins,
            downtime,
            left,
        })
    }
}

impl Inheriting<'_> {
    fn arm(self) -> Result<Armed> {
        let Inheriting {
            rules,
            pins,
            mut downtime,
            left,
        } = self;
        let RulesChosen {
            mut prepared,
            mut chosen,
            locked,
            recorder,
            instance,
        } = rules;
        let config = &prepared.settings.config;
        let (journal, report) = Journal::open(&config.log_file, config)?;
        let lookups = Arc::clone(&prepared.settings.lookups);
        let server = ControlSocket::start(&instance, move |pid| lookups.executable(pid))?;

        let is_taken_over = left.is_none();
        let mut generation = Arc::clone(&chosen.generation);
        let mut ahead = None;
        // A capture that cannot be taken over is itself the engine until the succession replaces it.
        let engine = match left {
            Some((leftover, next)) => {
                ahead = next;
                Engine::Leftover(Box::new(leftover))
            }
            None => {
                let (engine, planned) = prepared.engine(generation, pins.as_ref(), false)?;
                generation = planned;
                engine
            }
        };
        Scheduling::go_first_on_one_processor(std::process::id());
        let mut pipeline = pipeline(&prepared, journal, engine, recorder, generation.clone());

        if !is_taken_over {
            let succession = Succession { pipeline };
            let replaced = succession.complete(pins.as_ref(), ahead, |pins, is_muted| {
                prepared.engine(generation, pins.as_ref(), is_muted)
            })?;
            pipeline = replaced.pipeline;
            if let Some(downtime) = &mut downtime {
                downtime.add(&replaced.counters);
            }
        }

        // The kernel may refuse rules of its own engine: what is in force is known only then.
        chosen.generation = Arc::clone(pipeline.generation());
        let kernel = kernel_records(&prepared, &mut chosen)?;
        let pipeline = pipeline.with_kernel_records(kernel, Arc::clone(&chosen.generation));
        // Kept only now that they are in force: rules that cannot be armed are no good ones.
        chosen.keep(&prepared.settings);
        Ok(Armed {
            settings: prepared.settings,
            contexts: prepared.contexts,
            chosen,
            locked,
            instance,
            pipeline,
            server,
            downtime,
            is_taken_over,
            report,
        })
    }
}

impl Armed {
    fn record(self, signals: Signals) -> Result<Daemon> {
        let (settings, chosen) = (self.settings, self.chosen);
        let mut recording = Recording::new(self.pipeline, settings, self.contexts, chosen.in_force);
        recording.apply_settings(&chosen.set.settings);
        begin(
            &mut recording,
            self.downtime.as_ref(),
            self.is_taken_over,
            &self.report,
        );

        let rules = recording.pipeline.rules().to_vec();
        kernel_list::show(&rules, &mut recording);
        // Last: nothing that is locked can be changed afterwards, the list included.
        lock::at_start(self.locked, &chosen.set.settings, &mut recording);
        Ok(Daemon::new(recording, self.server, signals, self.instance))
    }
}

fn is_unhooked(error: &CaptureError) -> bool {
    matches!(error, CaptureError::Unhooked { .. })
}

/// Reads the configuration, and finds out what this kernel can do. Returns whether its own audit is the engine.
fn settings(args: &RunArgs, launcher: &Launcher) -> Result<(Settings, bool)> {
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
    prepared: &Prepared<'_>,
    mut journal: Journal,
    engine: Engine,
    recorder: Recorder,
    generation: Arc<Generation>,
) -> Pipeline {
    let settings = &prepared.settings;
    let launcher = &settings.launcher;
    journal.set_launcher(launcher.clone());
    let plugins = plugins::start(launcher, &settings.config, settings.started_nice);
    let notifier = Notifier::of_system(launcher.clone());
    let output = Output::new(journal, plugins, notifier, &settings.config);
    let live = prepared.args.live.then(Live::new);
    let lookups = Arc::clone(&settings.lookups);
    Pipeline::new(engine, recorder, output, lookups, generation, live)
}

/// Applies the configuration to what is armed, prints that everything is, and reports what happened before. From now on
/// the calls of the helpers are not recorded.
fn begin(
    recording: &mut Recording,
    downtime: Option<&Downtime>,
    is_taken_over: bool,
    report: &OpenReport,
) {
    let config = &recording.settings.config;
    let pipeline = &mut recording.pipeline;
    lookups::follow(pipeline.lookups(), pipeline.engine().helpers());
    lookups::set_hashes(pipeline.lookups(), config, pipeline.is_kernel_engine());
    pipeline.begin(settings::overload(config));

    // The record of the downtime has the losses counted so far: they are not reported a second time.
    match downtime {
        Some(downtime) if is_taken_over => {
            recording.losses.told_before(&downtime.counted, pipeline);
        }
        _ => {}
    }
    report_start(pipeline, &recording.rules_in_force);
    let started = pipeline.engine().started();
    pipeline.log_armed(&Asker::this_process(), &started);
    if let Some(downtime) = downtime {
        recovery::log_downtime(downtime, pipeline);
    }
    recovery::log_recovered(report, pipeline);
}

fn report_start(pipeline: &mut Pipeline, in_force: &RulesInForce) {
    pipeline.log_start(in_force);
    left_out::report(in_force, pipeline);
    pipeline.commit();
    let plan = pipeline.plan();
    let place = if pipeline.is_kernel_engine() {
        "the kernel's own audit".to_owned()
    } else {
        calls_and_operations(plan)
    };

    let (rules, log) = (plan.rules.len(), pipeline.output().log_text());
    let engine = pipeline.engine().name();
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
    settings::set_form(&mut encoder, &settings.config, node.as_deref());
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
fn kernel_records(prepared: &Prepared<'_>, chosen: &mut Chosen) -> Result<Option<KernelRecords>> {
    let Prepared {
        args,
        settings,
        is_kernel,
        contexts,
        ..
    } = prepared;

    if args.no_kernel_records {
        return Ok(None);
    }
    if !is_kernel {
        return KernelRecords::start(&args.run_dir, contexts);
    }

    loop {
        let set = &chosen.set;
        match KernelRecords::start_engine(&args.run_dir, &set.rules, &set.settings, contexts) {
            Ok(kernel) => return Ok(Some(kernel)),
            Err(error) => chosen.without(&error.downcast()?, settings)?,
        }
    }
}
