//! Rules, configuration and kernel capabilities, and the plans made from them, at the start and at
//! a reload.

use crate::control::locked_rules::Lock;
use crate::pipeline::plugins;
use crate::protocol::LeftOut;
use crate::start::confinement::Confinement;
use crate::start::good_rules::GoodRules;
use crate::start::lookups::Lookups;
use crate::start::rule_files;
use crate::start::rule_place::too_large;
use crate::start::settings_at_start;
use crate::stderr::say;
use anyhow::{bail, Context, Result};
use capture::{CaptureError, Overload};
use cli::{LogFormat, RunArgs};
use compose::Generation;
use conf::{Config, ExeHash, LoadOptions, Loaded, RulesError};
use plan::{Capabilities, Identities, IoUring, Plan};
use privsep::spawn::Launcher;
use record::Encoder;
use record::Format;
use rules::RulesFile;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The files that a reload reads again.
pub(crate) struct Sources {
    pub(crate) rules: Vec<PathBuf>,
    config: Option<PathBuf>,
    log_file: Option<PathBuf>,
    log_format: Option<LogFormat>,
    /// The rules of these files that were last in force without an error.
    pub(crate) good: GoodRules,
    /// Whether a command is recorded: whoever gave it can mend the rules, and should not record by others.
    has_command: bool,
    /// Whether the recording ends by itself, with a command or after a time: it changes nothing that would stay until the
    /// next boot.
    pub(crate) ends_by_itself: bool,
    /// Whether the rules are shown in the kernel's own list.
    pub(crate) shows_rules: bool,
}

impl Sources {
    pub(crate) fn of(args: &RunArgs) -> Sources {
        Sources {
            rules: args.rules.clone(),
            config: args.config.clone(),
            log_file: args.log_file.clone(),
            log_format: args.log_format,
            good: GoodRules::none(),
            has_command: !args.command.is_empty(),
            ends_by_itself: !args.command.is_empty() || args.duration.is_some(),
            shows_rules: args.kernel_list,
        }
    }

    /// Finds the state directory. Call it before the process is confined.
    pub(crate) fn open_state(&mut self, args: &RunArgs) {
        if !self.has_command {
            let directory = state_dir(args);
            self.good = GoodRules::open(Some(&directory), &self.rules);
        }
    }

    /// What a start does with wrong rules.
    pub(crate) fn rules_error(&self, config: &Config) -> RulesError {
        if self.has_command {
            RulesError::Refuse
        } else {
            config.rules_error
        }
    }

    /// The configuration from the file, with the command line's changes.
    ///
    /// # Errors
    /// Something of the file is wrong, or it cannot be read.
    pub(crate) fn config(&self) -> Result<Loaded> {
        let mut loaded = match self.config_file() {
            Some(file) => conf::load(file, LoadOptions::default())?,
            None => Loaded::default(),
        };
        for notice in &loaded.notices {
            say!("tarsier: {notice}");
        }
        self.change(&mut loaded.config)?;
        Ok(loaded)
    }

    /// The configuration for a start, whatever is wrong with the file, and what of it is not in force.
    ///
    /// # Errors
    /// Something of the file is wrong, and nothing else is wanted instead.
    pub(crate) fn config_at_start(&self) -> Result<settings_at_start::Chosen> {
        let file = self.config_file();
        let mut chosen = match (self.config(), file) {
            (Ok(loaded), _) => settings_at_start::Chosen::of(loaded),
            (Err(_), Some(file)) if !self.has_command => {
                let mut chosen = settings_at_start::choose(file, self.good.directory())?;
                self.change(&mut chosen.config)?;
                chosen
            }
            (Err(error), _) => return Err(error),
        };

        if let (Some(file), false) = (file, self.has_command) {
            chosen.take_node_name(file);
        }

        Ok(chosen)
    }

    /// Keeps the text of the configuration file, which is in force, for a start with a wrong one.
    pub(crate) fn keep_config(&self, text: &[u8]) {
        if let (Some(file), false) = (self.config_file(), self.has_command) {
            settings_at_start::keep(file, text, self.good.directory());
        }
    }

    fn config_file(&self) -> Option<&Path> {
        let standard = Path::new(conf::AUDITD_CONF);
        match &self.config {
            Some(file) => Some(file.as_path()),
            // A link that leads nowhere is a fault.
            None => standard.symlink_metadata().is_ok().then_some(standard),
        }
    }

    /// Makes the command line's changes.
    fn change(&self, config: &mut Config) -> Result<()> {
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
            if format == LogFormat::Raw && config.exe_hash != ExeHash::None {
                say!("tarsier: exe_hash has no effect with --log-format raw");
            }
        }

        Ok(())
    }

    /// The rules of the files with their settings, and the files, for a reload.
    ///
    /// # Errors
    /// Something of the files is wrong, or cannot be read.
    pub(crate) fn rules(&self, is_kernel: bool) -> Result<(rules::RuleSet, Vec<RulesFile>)> {
        let (set, files) = rule_files::complete(rule_files::gather(&self.rules))?;
        rule_files::report_settings(&set.settings, is_kernel);
        Ok((set, files))
    }
}

/// The directory for what outlives a reboot. A daemon with a run directory of its own keeps everything there.
pub(crate) fn state_dir(args: &RunArgs) -> PathBuf {
    let standard = if args.run_dir == Path::new(cli::RUN_DIR) {
        Path::new(cli::STATE_DIR)
    } else {
        &args.run_dir
    };
    let directory = args.state_dir.as_deref().unwrap_or(standard);
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Everything that rule sets are planned with.
pub(crate) struct Settings {
    pub(crate) sources: Sources,
    /// The configuration in force.
    pub(crate) config: Config,
    /// The text of the configuration file that the start has read, if all of it is in force.
    pub(crate) config_text: Option<Vec<u8>>,
    /// What of the configuration file is not in force.
    pub(crate) not_in_force: Vec<LeftOut>,
    pub(crate) capabilities: Capabilities,
    pub(crate) lookups: Lookups,
    /// Confinement of the daemon.
    pub(crate) confinement: Confinement,
    /// Rules that are locked until the next boot (`-e 2`), if any are.
    pub(crate) lock: Option<Lock>,
    /// Starts programs.
    pub(crate) launcher: Launcher,
    /// Nice value that the daemon was started with.
    pub(crate) started_nice: i32,
}

impl Settings {
    /// Plans rules, with the files that their paths name now; `is_kernel` means for the kernel's own
    /// audit.
    ///
    /// # Errors
    /// There are more rules than the match tables hold.
    pub(crate) fn generation(
        &self,
        rules: Vec<rules::Rule>,
        is_kernel: bool,
        number: u64,
    ) -> Result<Arc<Generation>> {
        let identities = compose::identify(&rules, &*self.lookups);
        self.generation_with(rules, identities, is_kernel, number)
    }

    /// Plans rules that replace those of `before`, from which the former objects of paths are remembered.
    pub(crate) fn generation_after(
        &self,
        before: &Generation,
        rules: Vec<rules::Rule>,
        is_kernel: bool,
        number: u64,
    ) -> Result<Arc<Generation>> {
        let mut identities = compose::identify(&rules, &*self.lookups);
        identities.keep_former(&before.identities);
        self.generation_with(rules, identities, is_kernel, number)
    }

    fn generation_with(
        &self,
        rules: Vec<rules::Rule>,
        identities: Identities,
        is_kernel: bool,
        number: u64,
    ) -> Result<Arc<Generation>> {
        if is_kernel {
            refuse_own_fields(&rules)?;
        }

        let capabilities = &configured(&self.capabilities, &self.config);
        let mut plan = if is_kernel {
            Plan::for_kernel(&rules, capabilities, number)
        } else {
            Plan::new(&rules, capabilities, &identities, number)
                .map_err(|error| too_large(&error, &rules))
                .context("the rules cannot be planned")?
        };

        // Ancestors and labels are known only if the programs send frames about processes.
        let needs_processes = self.config.tells_ancestors() || self.config.tells_labels();
        plan.hooks.processes |= !is_kernel && needs_processes;
        let labels = labels(&rules, &self.config.label_keys);
        let plan = plan::with_labels(plan, &labels)
            .map_err(|error| too_large(&error, &rules))
            .context("the rules cannot be planned")?;
        let urgent = urgent(&rules, &self.config.urgent_keys);
        let budgets = budgets(&rules, &self.config.rate_budgets);
        let generation = Generation::new(plan, identities, urgent);
        let generation = generation.with_budgets(budgets).with_labels(labels);

        Ok(Arc::new(generation))
    }

    /// Plans the same rules without the hook that `error` reports as unavailable. Other errors are
    /// returned.
    pub(crate) fn planned_anew(
        &mut self,
        error: CaptureError,
        generation: &Generation,
    ) -> Result<Arc<Generation>> {
        let plan = &generation.plan;
        match error {
            CaptureError::Unhooked { call, source }
                if self.capabilities.unhooked_calls.insert(call) =>
            {
                say!("tarsier: {source}; another hook is taken");
                self.generation(plan.rules.clone(), false, plan.generation)
            }
            error => {
                Err(error).with_context(|| format!("the {} engine cannot be armed", plan.engine()))
            }
        }
    }

    /// The nice value that `priority_boost` asks for.
    pub(crate) fn nice(&self) -> i32 {
        plugins::nice(&self.config, self.started_nice)
    }
}

/// Refuses rules that the kernel's audit cannot match.
fn refuse_own_fields(rules: &[rules::Rule]) -> Result<()> {
    let Some(rule) = rules.iter().find(|rule| plan::asks_own(rule)) else {
        return Ok(());
    };
    bail!(
        "{}: the kernel's audit knows no units, containers, labels and ancestors, so that --engine kernel cannot match \
         `{rule}`: leave *.tarsier files out, or use an eBPF engine",
        rule.source.place()
    );
}

/// The capabilities to use with this configuration.
fn configured(capabilities: &Capabilities, config: &Config) -> Capabilities {
    let mut capabilities = capabilities.clone();
    capabilities.objects_before = config.objects_before;
    if !config.io_uring_twins && capabilities.io_uring == IoUring::Twins {
        capabilities.io_uring = IoUring::List;
    }
    capabilities
}

/// Places of the rules that have one of `keys`.
fn urgent(rules: &[rules::Rule], keys: &[String]) -> BTreeSet<u32> {
    let is_urgent = |rule: &rules::Rule| {
        let mut own = keys_of(rule);
        own.any(|own| keys.iter().any(|key| key.as_bytes() == own))
    };
    let places = rules.iter().zip(0..);
    places
        .filter(|(rule, _)| is_urgent(rule))
        .map(|(_, place)| place)
        .collect()
}

/// The budget of each rule that has one, by place: the smallest of those of its keys.
fn budgets(rules: &[rules::Rule], by_key: &BTreeMap<String, u32>) -> BTreeMap<u32, u32> {
    let budget = |rule: &rules::Rule| {
        let of_key = |own: &[u8]| {
            let mut same = by_key.iter().filter(|(key, _)| key.as_bytes() == own);
            same.next().map(|(_, rate)| *rate)
        };
        keys_of(rule).filter_map(of_key).min()
    };
    let budgets = rules.iter().zip(0..);
    budgets
        .filter_map(|(rule, place)| Some((place, budget(rule)?)))
        .collect()
}

/// The labels that each rule gives, by place; rules that give none are left out.
fn labels(rules: &[rules::Rule], by_key: &[(String, String)]) -> BTreeMap<u32, Vec<String>> {
    let given = |rule: &rules::Rule| {
        let has = |key: &str| keys_of(rule).any(|own| own == key.as_bytes());
        let labels = by_key.iter().filter(|(key, _)| has(key));
        let labels: BTreeSet<&String> = labels.map(|(_, label)| label).collect();
        labels.into_iter().cloned().collect::<Vec<_>>()
    };
    let labels = rules.iter().zip(0..);
    labels
        .map(|(rule, place)| (place, given(rule)))
        .filter(|(_, given)| !given.is_empty())
        .collect()
}

fn keys_of(rule: &rules::Rule) -> impl Iterator<Item = &[u8]> {
    rule.key().unwrap_or_default().split(|&byte| byte == 1)
}

/// Makes an encoder write what the configuration asks for.
pub(crate) fn set_form(encoder: &mut Encoder, config: &Config, node: Option<&str>) {
    encoder.set_format(format(config));
    encoder.set_workload(config.tells_identity());
    encoder.set_labels(config.tells_labels());
    encoder.set_hashes(config.hashed_bytes_max().is_some());
    encoder.set_node(node.map(str::as_bytes));
}

/// The encoder's format for a configuration.
pub(crate) fn format(config: &Config) -> Format {
    match config.log_format {
        conf::LogFormat::Raw => Format::Raw,
        conf::LogFormat::Json => Format::Json,
        _ => Format::Enriched,
    }
}

/// Treatment of events that come too fast.
pub(crate) fn overload(config: &Config) -> Overload {
    match config.overload {
        conf::Overload::Throttle => Overload::Throttle,
        conf::Overload::Drop => Overload::Drop,
    }
}
