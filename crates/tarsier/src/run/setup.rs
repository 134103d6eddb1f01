//! From the command line to a daemon with everything armed.

use super::administrator::Administrator;
use super::choice;
use super::control::Control;
use super::control_socket::ControlSocket;
use super::daemon::Daemon;
use super::daemon_records;
use super::engine::Engine;
use super::instance::Instance;
use super::kernel_records::KernelRecords;
use super::live::Live;
use super::names::system_names;
use super::plugins;
use super::pressure::Pressure;
use super::recorder::{Generation, Recorder};
use super::signals::Signals;
use super::survival::{self, Alone};
use crate::rule_files;
use crate::stderr::say;
use anyhow::{bail, Context, Result};
use capture::{CaptureError, Options, Overload, Pins, Tracepoint};
use cli::{Engine as Choice, LogFormat, RunArgs};
use conf::Config;
use conf::LoadOptions;
use event::{Encoder, Format, Stamp};
use journal::{Journal, OpenReport};
use plan::{Capabilities, IoUring, Plan, RecordFilter};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// What a reload reads again.
pub(super) struct Sources {
    rules: Vec<PathBuf>,
    config: Option<PathBuf>,
    log_file: Option<PathBuf>,
    log_format: Option<LogFormat>,
}

impl Sources {
    fn of(args: &RunArgs) -> Sources {
        Sources {
            rules: args.rules.clone(),
            config: args.config.clone(),
            log_file: args.log_file.clone(),
            log_format: args.log_format,
        }
    }

    /// The configuration: that of the file, changed by the command line.
    pub(super) fn config(&self) -> Result<Config> {
        let standard = Path::new(conf::AUDITD_CONF);
        let file = match &self.config {
            Some(file) => Some(file.as_path()),
            None => standard.exists().then_some(standard),
        };
        let mut config = match file {
            Some(file) => {
                let loaded = conf::load(file, LoadOptions::default())?;
                for notice in &loaded.notices {
                    say!("tarsier: {notice}");
                }
                loaded.config
            }
            None => Config::default(),
        };
        if let Some(log_file) = &self.log_file {
            config.log_file = std::path::absolute(log_file)?;
        }
        if let Some(format) = self.log_format {
            config.log_format = match format {
                LogFormat::Raw => conf::LogFormat::Raw,
                LogFormat::Enriched => conf::LogFormat::Enriched,
                LogFormat::Json => conf::LogFormat::Json,
                LogFormat::Compact => conf::LogFormat::Compact,
            };
        }
        Ok(config)
    }

    /// The rules of the files, and the settings there, which only the kernel's audit heeds.
    pub(super) fn rules(&self, is_kernel: bool) -> Result<rules::RuleSet> {
        let set = rule_files::load(&self.rules)?;
        rule_files::say_settings(&set.settings, is_kernel);
        Ok(set)
    }
}

/// Capabilities for this configuration.
fn without_twins(capabilities: &Capabilities, config: &Config) -> Capabilities {
    let mut capabilities = capabilities.clone();
    if !config.io_uring_twins && capabilities.io_uring == IoUring::Twins {
        capabilities.io_uring = IoUring::List;
    }
    capabilities
}

/// Plans rules, with what their paths are now.
pub(super) fn generation(
    rules: Vec<rules::Rule>,
    capabilities: &Capabilities,
    is_kernel: bool,
    number: u64,
    config: &Config,
) -> Result<Arc<Generation>> {
    let identities = capture::identify(&rules);
    let capabilities = &without_twins(capabilities, config);
    let plan = match is_kernel {
        true => Plan::for_kernel(&rules, capabilities, number),
        false => Plan::new(&rules, capabilities, &identities, number)
            .map_err(|error| super::too_large(&error, &rules))
            .context("the rules cannot be planned")?,
    };
    Ok(Arc::new(Generation {
        exclude: RecordFilter::exclude(&rules),
        user: RecordFilter::user(&rules),
        urgent: urgent(&rules, &config.urgent_keys),
        plan,
        identities,
    }))
}

/// Places of the rules that have one of `keys`.
fn urgent(rules: &[rules::Rule], keys: &[String]) -> BTreeSet<u32> {
    let is_urgent = |rule: &rules::Rule| {
        let mut own = rule.key().unwrap_or_default().split(|&byte| byte == 1);
        own.any(|own| keys.iter().any(|key| key.as_bytes() == own))
    };
    let places = rules.iter().zip(0..);
    places
        .filter(|(rule, _)| is_urgent(rule))
        .map(|(_, place)| place)
        .collect()
}

/// The encoder's form for a configuration.
pub(super) fn format(config: &Config) -> Format {
    match config.log_format {
        conf::LogFormat::Raw => Format::Raw,
        conf::LogFormat::Json => Format::Json,
        _ => Format::Enriched,
    }
}

/// What the programs do with what comes too fast.
pub(super) fn overload(config: &Config) -> Overload {
    match config.overload {
        conf::Overload::Throttle => Overload::Throttle,
        conf::Overload::Drop => Overload::Drop,
    }
}

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
                *generation = self::generation(rules, capabilities, false, number, config)?;
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
            self::generation(rules, capabilities, false, plan.generation, config)
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
    let node = config.node_name()?;
    let trampoline = choice::is_trampoline(args.engine)?;
    let mut capabilities = capture::probe::capabilities(trampoline);
    let is_kernel = chooses_kernel(args, &capabilities)?;
    let set = sources.rules(is_kernel)?;
    let mut generation = self::generation(set.rules.clone(), &capabilities, is_kernel, 1, &config)?;
    let instance = Instance::lock(&args.run_dir)?;
    let wanted = args.pin_dir.as_ref().or(config.pin_dir.as_ref());
    let wanted = wanted.filter(|_| !is_kernel).map(PathBuf::as_path);
    let (pins, inherited) = survival::inherit(&args.run_dir, wanted, &config)?;
    let mut encoder = Encoder::new(format(&config), system_names());
    encoder.set_node(node.as_deref().map(str::as_bytes));
    let mut recorder = Recorder::new(encoder);
    let (mut alone, mut remains) = (None, None);
    if let Some(inherited) = inherited {
        let number = inherited.next_number();
        generation = self::generation(set.rules, &capabilities, is_kernel, number, &config)?;
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
    daemon.kernel = match is_kernel {
        true => {
            let rules = &daemon.generation.plan.rules;
            let kernel = KernelRecords::start_engine(&args.run_dir, rules, &set.settings)?;
            Some(kernel)
        }
        false => kernel_records(args)?,
    };
    daemon.begin(alone.as_ref(), !has_remains, &report);
    Ok(daemon)
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

fn kernel_records(args: &RunArgs) -> Result<Option<KernelRecords>> {
    match args.no_kernel_records {
        true => Ok(None),
        false => KernelRecords::start(&args.run_dir),
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
        self.engine.set_overload(overload(&self.config));
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
