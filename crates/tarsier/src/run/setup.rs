//! From the command line to a daemon with everything armed.

use super::administrator::Administrator;
use super::choice;
use super::control_socket::ControlSocket;
use super::daemon::{Control, Daemon};
use super::daemon_records;
use super::engine::Engine;
use super::instance::Instance;
use super::kernel_records::KernelRecords;
use super::live::Live;
use super::plugins;
use super::pressure::Pressure;
use super::recorder::{self, Recorder};
use super::signals::Signals;
use super::sources::{self, Sources};
use super::survival::{self, Alone};
use crate::host::HOST;
use crate::stderr::say;
use anyhow::{bail, Context, Result};
use capture::{CaptureError, Options, Pins, Tracepoint};
use cli::{Engine as Choice, RunArgs};
use compose::Generation;
use conf::Config;
use event::{Encoder, Stamp};
use journal::{Journal, OpenReport};
use plan::{Capabilities, Plan};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Starts the engine, in `pins` if capture is to outlive the daemon. Calls that it cannot hook where their functions end are planned anew; if
/// another engine will do, the tracepoint engine is taken where the trampoline engine is refused.
fn start_engine(
    generation: &mut Arc<Generation>,
    capabilities: &mut Capabilities,
    pins: &Option<Arc<Pins>>,
    args: &RunArgs,
    config: &Config,
) -> Result<Engine> {
    let may_differ = args.engine == Choice::Auto;
    let (options, pid) = (&options(args), std::process::id());
    loop {
        let plan = &generation.plan;
        let started = match pins {
            Some(pins) => {
                survival::remember(pins, plan)?;
                Tracepoint::start_pinned(pins, plan, options, pid)
            }
            None => Tracepoint::start(plan, options, pid),
        };
        match started {
            Ok(engine) => return Ok(Engine::Tracepoint(Box::new(engine))),
            Err(error) if may_differ && capabilities.trampoline && !is_unhooked(&error) => {
                say!("tarsier: engine tracepoint: {error}");
                *capabilities = capture::probe::capabilities(false);
                let (rules, number) = (plan.rules.clone(), plan.generation);
                *generation = sources::generation(rules, capabilities, false, number, config)?;
            }
            Err(error) => *generation = planned_anew(error, generation, capabilities, config)?,
        }
    }
}

fn is_unhooked(error: &CaptureError) -> bool {
    matches!(error, CaptureError::Unhooked { .. })
}

/// The same rules, planned without what `error` says cannot be had; other errors are given back.
pub(super) fn planned_anew(
    error: CaptureError,
    generation: &Generation,
    capabilities: &mut Capabilities,
    config: &Config,
) -> Result<Arc<Generation>> {
    let plan = &generation.plan;
    match error {
        CaptureError::Unhooked { call, source } if capabilities.unhooked_calls.insert(call) => {
            say!("tarsier: {source}; another hook is taken");
            let rules = plan.rules.clone();
            sources::generation(rules, capabilities, false, plan.generation, config)
        }
        error => {
            Err(error).with_context(|| format!("the {} engine cannot be armed", plan.engine()))
        }
    }
}

/// Loads, checks and arms. Everything that can fail on wrong input fails before anything is
/// changed.
pub(super) fn start(args: &RunArgs, signals: Signals) -> Result<Daemon> {
    let sources = Sources::of(args);
    let config = sources.config()?;
    let mut recorder = recorder(&config)?;
    let trampoline = choice::is_trampoline(args.engine)?;
    let mut capabilities = capture::probe::capabilities(trampoline);
    let is_kernel = chooses_kernel(args, &capabilities)?;
    let set = sources.rules(is_kernel)?;
    let mut generation =
        sources::generation(set.rules.clone(), &capabilities, is_kernel, 1, &config)?;
    let instance = Instance::lock(&args.run_dir)?;
    let wanted = pin_dir(args, &config).filter(|_| !is_kernel);
    let (pins, inherited) = survival::inherit(&args.run_dir, wanted, &config)?;
    let (mut alone, mut remains) = (None, None);
    if let Some(inherited) = inherited {
        let number = inherited.next_number();
        generation = sources::generation(set.rules, &capabilities, is_kernel, number, &config)?;
        let earlier = inherited.generations(&capabilities, &config);
        earlier.into_iter().for_each(|g| recorder.add_generation(g));
        let parts = inherited.split(pins.as_ref(), capabilities.form());
        (alone, remains) = (Some(parts.0), parts.1);
    }
    let (journal, report) = Journal::open(&config.log_file, &config)?;
    let server = ControlSocket::start(&args.run_dir)?;
    let has_remains = remains.is_some();
    let engine = match remains {
        Some(remains) => Engine::Remains(Box::new(remains)),
        None if is_kernel => Engine::Kernel,
        None => start_engine(&mut generation, &mut capabilities, &pins, args, &config)?,
    };
    Pressure::go_first_on_one_processor();
    let started_nice = rustix::process::getpriority_process(None).unwrap_or(0);
    let mut daemon = Daemon {
        engine,
        kernel: None,
        recorder,
        journal,
        administrator: Administrator::of_system(),
        plugins: plugins::start(&config, started_nice),
        started_nice,
        server,
        signals,
        live: args.live.then(Live::new),
        sources,
        config,
        capabilities,
        control: Control::new(generation.plan.rules.clone()),
        generation,
        instance,
        started: Instant::now(),
        totals: Default::default(),
        lines: Vec::with_capacity(1 << 20),
        told: Default::default(),
        durability: Default::default(),
        metrics: None,
        oldest_ns: None,
        pressure: Pressure::new(started_nice),
        noted: Default::default(),
        has_more: false,
        asked_to_stop: None,
        told_elsewhere: 0,
    };
    if has_remains {
        daemon.replace_remains(&pins, args, is_kernel)?;
    }
    let rules = &daemon.generation.plan.rules;
    daemon.kernel = kernel_records(args, is_kernel, rules, &set.settings)?;
    daemon.begin(alone.as_ref(), !has_remains, &report);
    Ok(daemon)
}

/// Records of no event yet, with the node name that the configuration asks for.
fn recorder(config: &Config) -> Result<Recorder> {
    let node = config.node_name()?;
    let mut encoder = Encoder::new(sources::format(config), compose::names(Arc::new(HOST)));
    encoder.set_node(node.as_deref().map(str::as_bytes));
    Ok(recorder::with(encoder))
}

/// Where capture is pinned, if it is to outlive the daemon.
fn pin_dir<'a>(args: &'a RunArgs, config: &'a Config) -> Option<&'a Path> {
    args.pin_dir.as_deref().or(config.pin_dir.as_deref())
}

/// Whether the kernel's audit is to match the rules: on demand, or because nothing else can.
fn chooses_kernel(args: &RunArgs, capabilities: &Capabilities) -> Result<bool> {
    let is_kernel = match args.engine {
        Choice::Kernel => true,
        Choice::Auto => !capabilities.tp_btf || capabilities.essential_gap().is_some(),
        Choice::Trampoline | Choice::Tracepoint => false,
    };
    if is_kernel && args.no_kernel_records {
        bail!(
            "--no-kernel-records leaves the audit socket alone, and the kernel engine needs it: \
             give only one of them"
        );
    }
    if is_kernel && args.engine == Choice::Auto {
        match capabilities.essential_gap() {
            Some(gap) => say!(
                "tarsier: engine kernel: this kernel has no {}, which the eBPF engines need for {}",
                gap.name,
                gap.feature
            ),
            None => say!(
                "tarsier: engine kernel: this kernel has no BTF (/sys/kernel/btf/vmlinux), which \
                 the eBPF engines need"
            ),
        }
    }
    Ok(is_kernel)
}

fn options(args: &RunArgs) -> Options {
    match args.ring_size {
        Some(size_kib) => Options::with_ring_bytes(size_kib as usize * 1024),
        None => Options::for_this_host(),
    }
}

/// Records of the kernel's audit; where that is the engine, it gets `rules`.
fn kernel_records(
    args: &RunArgs,
    is_engine: bool,
    rules: &[rules::Rule],
    settings: &rules::Settings,
) -> Result<Option<KernelRecords>> {
    match (is_engine, args.no_kernel_records) {
        (true, _) => KernelRecords::start_engine(&args.run_dir, rules, settings).map(Some),
        (false, true) => Ok(None),
        (false, false) => KernelRecords::start(&args.run_dir),
    }
}

impl Daemon {
    /// Reads what another version left, and starts the engine.
    fn replace_remains(
        &mut self,
        pins: &Option<Arc<Pins>>,
        args: &RunArgs,
        is_kernel: bool,
    ) -> Result<()> {
        self.witness_writes();
        self.finish_remains(pins.as_ref());
        if !is_kernel {
            let (generation, capabilities) = (&mut self.generation, &mut self.capabilities);
            self.engine = start_engine(generation, capabilities, pins, args, &self.config)?;
        }
        Ok(())
    }

    /// Everything is armed.
    fn begin(&mut self, alone: Option<&Alone>, is_taken_over: bool, report: &OpenReport) {
        self.witness_writes();
        self.recorder.add_generation(self.generation.clone());
        let counts = self.rule_counts(self.generation.plan.rules.len());
        let plan = &self.generation.plan;
        let costs = &mut self.recorder.costs;
        costs.replace(plan.generation, &[], &plan.rules, &counts);
        self.engine.set_overload(sources::overload(&self.config));
        self.engine.set_urgent(&self.generation.urgent);
        let config = self.config.clone();
        self.open_metrics(&config);
        if let Some(alone) = alone.filter(|_| is_taken_over) {
            self.told_before(&alone.counted);
        }
        self.say_start();
        if let Some(alone) = alone {
            self.say_alone(alone);
        }
        self.say_recovered(report);
    }

    fn say_start(&mut self) {
        let stamp = self.stamp();
        let mut out = std::mem::take(&mut self.lines);
        daemon_records::start(
            &mut self.recorder.encoder,
            &mut out,
            stamp,
            self.engine.name(),
        );
        self.log_other(&out, 1);
        out.clear();
        self.lines = out;
        self.commit();
        let plan = &self.generation.plan;
        let place = match self.engine.is_kernel() {
            true => "the kernel's own audit".to_owned(),
            false => calls_and_operations(plan),
        };
        let (rules, log) = (plan.rules.len(), self.log_text());
        let engine = self.engine.name();
        say!("tarsier: {rules} rules armed on {place}, engine {engine}; {log}");
        for gap in &plan.gaps {
            say!("tarsier: without {gap}");
        }
    }

    /// Stamp of an event that happens now and here.
    pub(super) fn stamp(&mut self) -> Stamp {
        Stamp::from_unix_ns(super::clock::realtime_ns(), self.recorder.serials.next())
    }
}

/// How much a plan watches.
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
