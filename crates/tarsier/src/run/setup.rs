//! From the command line to a daemon with everything armed.

use super::control::Control;
use super::control_socket::ControlSocket;
use super::daemon::Daemon;
use super::daemon_records;
use super::instance::Instance;
use super::kernel_records::KernelRecords;
use super::live::Live;
use super::names::system_names;
use super::recorder::{Generation, Recorder};
use super::signals::Signals;
use crate::cli::{LogFormat, RunArgs};
use crate::rule_files;
use anyhow::{Context, Result};
use capture::{Options, Tracepoint};
use event::{Encoder, Format, Stamp};
use journal::config::{self, LoadOptions};
use journal::{Config, Journal};
use plan::{Capabilities, Plan, RecordFilter};
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
    /// The configuration: that of the file, changed by the command line.
    pub(super) fn config(&self) -> Result<Config> {
        let standard = Path::new(config::AUDITD_CONF);
        let file = match &self.config {
            Some(file) => Some(file.as_path()),
            None => standard.exists().then_some(standard),
        };
        let mut config = match file {
            Some(file) => {
                let loaded = config::load(file, LoadOptions::default())?;
                for notice in &loaded.notices {
                    eprintln!("tarsier: {notice}");
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
                LogFormat::Raw => config::LogFormat::Raw,
                LogFormat::Enriched => config::LogFormat::Enriched,
                LogFormat::Json => config::LogFormat::Json,
            };
        }
        Ok(config)
    }

    /// The rules of the files.
    pub(super) fn rules(&self) -> Result<Vec<rules::Rule>> {
        let set = rule_files::load(&self.rules)?;
        rule_files::say_settings(&set.settings);
        Ok(set.rules)
    }
}

/// Plans rules, with what their paths are now.
pub(super) fn generation(
    rules: Vec<rules::Rule>,
    capabilities: &Capabilities,
    number: u64,
) -> Result<Arc<Generation>> {
    let identities = capture::identify(&rules);
    let plan = Plan::new(&rules, capabilities, &identities, number)
        .context("the rules cannot be planned")?;
    Ok(Arc::new(Generation {
        exclude: RecordFilter::exclude(&rules),
        user: RecordFilter::user(&rules),
        plan,
        identities,
    }))
}

/// The encoder's form for a configuration.
pub(super) fn format(config: &Config) -> Format {
    match config.log_format {
        config::LogFormat::Raw => Format::Raw,
        config::LogFormat::Json => Format::Json,
        _ => Format::Enriched,
    }
}

/// Loads, checks and arms. Everything that can fail on wrong input fails before anything is
/// changed.
pub(super) fn start(args: &RunArgs, signals: Signals) -> Result<Daemon> {
    let sources = Sources {
        rules: args.rules.clone(),
        config: args.config.clone(),
        log_file: args.log_file.clone(),
        log_format: args.log_format,
    };
    let config = sources.config()?;
    let capabilities = capture::probe::capabilities();
    let generation = generation(sources.rules()?, &capabilities, 1)?;
    let instance = Instance::lock(&args.run_dir)?;
    let (journal, report) = Journal::open(&config.log_file, &config)?;
    if let Some(torn) = &report.torn {
        eprintln!(
            "tarsier: {}: the last line was torn: {:?}",
            config.log_file.display(),
            torn.repair
        );
    }
    let server = ControlSocket::start(&args.run_dir)?;
    let mut encoder = Encoder::new(format(&config), system_names());
    encoder.set_node(config.node_name().as_deref().map(str::as_bytes));
    let mut recorder = Recorder::new(encoder);
    recorder.add_generation(generation.clone());
    recorder.costs.replace(1, &[], &generation.plan.rules, &[]);
    let options = match args.ring_size {
        Some(size_kib) => Options::with_ring_bytes(size_kib as usize * 1024),
        None => Options::for_this_host(),
    };
    let engine = Tracepoint::start(&generation.plan, &options, std::process::id())
        .context("the tracepoint engine cannot be started")?;
    let kernel = match args.no_kernel_records {
        true => None,
        false => KernelRecords::start(&args.run_dir)?,
    };
    let mut daemon = Daemon {
        engine,
        kernel,
        recorder,
        journal,
        server,
        signals,
        live: args.live.then(Live::new),
        sources,
        config,
        capabilities,
        control: Control::new(generation.plan.rules.clone()),
        generation,
        _instance: instance,
        started: Instant::now(),
        totals: Default::default(),
        lines: Vec::with_capacity(1 << 20),
    };
    daemon.say_start();
    Ok(daemon)
}

impl Daemon {
    fn say_start(&mut self) {
        let stamp = self.stamp();
        let mut out = std::mem::take(&mut self.lines);
        daemon_records::start(&mut self.recorder.encoder, &mut out, stamp, "tracepoint");
        self.journal.append(&out, 1);
        out.clear();
        self.lines = out;
        self.commit();
        eprintln!(
            "tarsier: {} rules armed on {} calls; log {}",
            self.generation.plan.rules.len(),
            self.generation.plan.calls.len(),
            self.journal.path().display()
        );
    }

    /// Stamp of an event that happens now and here.
    pub(super) fn stamp(&mut self) -> Stamp {
        Stamp::from_unix_ns(super::clock::realtime_ns(), self.recorder.serials.next())
    }
}
