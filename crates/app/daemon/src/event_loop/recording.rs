//! The recording, with its rules and settings: everything that a reload or a request can change.

use crate::account::cgroups::CgroupLosses;
use crate::account::daemon_records::{LoggedAction, Who};
use crate::account::failure::Failure;
use crate::account::integrity::Integrity;
use crate::account::lookup_warnings::Warnings;
use crate::account::losses::Losses;
use crate::account::processes::ProcessLosses;
use crate::clock::monotonic_ns;
use crate::control::asker::Asker;
use crate::control::locked_rules::Lock;
use crate::event_loop::scheduling::Scheduling;
use crate::event_loop::service::Service;
use crate::pipeline::plugins;
use crate::pipeline::Pipeline;
use crate::protocol::RulesInForce;
use crate::start::launcher;
use crate::start::lookups;
use crate::start::settings::{self, Settings};
use crate::stderr::{reasons, say};
use anyhow::Result;
use capture::AuditContexts;
use record::RecordType;
use std::time::Instant;

/// The service manager. If its variables are wrong, that is printed, and nobody is told anything.
fn service() -> Service {
    Service::of_environment().unwrap_or_else(|error| {
        say!("tarsier: the service manager is not told anything: {error}");
        Service::default()
    })
}

/// The pipeline with its settings.
pub(crate) struct Recording {
    pub(crate) pipeline: Pipeline,
    pub(crate) settings: Settings,
    pub(crate) losses: Losses,
    pub(crate) warnings: Warnings,
    pub(crate) integrity: Integrity,
    pub(crate) cgroups: CgroupLosses,
    pub(crate) processes: ProcessLosses,
    pub(crate) scheduling: Scheduling,
    pub(crate) service: Service,
    pub(crate) contexts: AuditContexts,
    /// What the last start or reload put in force.
    pub(crate) rules_in_force: RulesInForce,
    pub(crate) started: Instant,
}

impl Recording {
    /// Starts with what is armed.
    pub(crate) fn new(
        pipeline: Pipeline,
        settings: Settings,
        contexts: AuditContexts,
        mut rules_in_force: RulesInForce,
    ) -> Recording {
        rules_in_force.leave_out(settings.not_in_force.iter().cloned());
        Recording {
            pipeline,
            scheduling: Scheduling::new(settings.started_nice),
            service: service(),
            settings,
            losses: Losses::default(),
            warnings: Warnings::default(),
            integrity: Integrity::default(),
            cgroups: CgroupLosses::default(),
            processes: ProcessLosses::default(),
            contexts,
            rules_in_force,
            started: Instant::now(),
        }
    }

    /// Applies those settings of rules files that Tarsier has itself, unless the kernel's audit is the engine.
    pub(crate) fn apply_settings(&mut self, settings: &rules::Settings) {
        if self.pipeline.is_kernel_engine() {
            return;
        }
        if let Some(failure) = settings.failure {
            self.losses.failure = Failure(failure);
        }
        if let Some(rate) = settings.rate {
            self.pipeline.set_rate_limit(rate);
        }
    }

    /// Reloads the configuration files and applies them. Returns whether a lock (`-e 2`) has kept settings of theirs out.
    ///
    /// # Errors
    /// The configuration is wrong; the old one stays in force.
    pub(crate) fn reload_config(&mut self, who: Who) -> Result<bool> {
        let conf::Loaded {
            mut config, text, ..
        } = self.settings.sources.config()?;

        let lock = self.settings.lock.as_ref();
        let is_refused = lock.is_some_and(|lock| lock.rules().hold(&mut config));

        // All that can be wrong is found before anything is changed.
        self.settings.confinement.check(&config)?;
        let node = config.node_name()?;
        let plugins = plugins::load_all(&config)?;

        let (pipeline, settings) = (&mut self.pipeline, &mut self.settings);
        if settings.config.write_logs != config.write_logs {
            // Events from before the change are handled with the old configuration.
            pipeline.drain();
        }
        if settings.config.write_logs && !config.write_logs {
            pipeline.log_action(&LoggedAction {
                kind: RecordType::DAEMON_CONFIG,
                op: "reconfigure",
                who,
                extra: &[("write_logs", "no")],
                is_success: true,
            });
        }

        // Only the log can still refuse, so that it comes before the parts that cannot.
        let nice = settings.started_nice;
        pipeline.output_mut().reconfigure(&config, plugins, nice)?;
        pipeline.set_form(&config, node.as_deref());
        lookups::set_hashes(pipeline.lookups(), &config, pipeline.is_kernel_engine());
        pipeline.engine().set_overload(settings::overload(&config));

        if settings.config.pin_dir != config.pin_dir {
            say!("tarsier: pin_dir: what is armed stays where it is until the next start");
        }

        settings.config = config;
        settings.sources.keep_config(&text);
        let mended = std::mem::take(&mut settings.not_in_force).len();
        self.rules_in_force.forget_settings(mended);
        Ok(is_refused)
    }

    /// Notes which rules are in force now. The settings are what they were.
    pub(crate) fn rules_are(&mut self, mut rules_in_force: RulesInForce) {
        rules_in_force.leave_out(self.settings.not_in_force.iter().cloned());
        self.rules_in_force = rules_in_force;
    }

    /// Tells the service manager that everything is armed.
    pub(crate) fn notify_ready(&self) {
        let (engine, plan) = (self.pipeline.engine(), self.pipeline.plan());
        let rules = plan.rules.len();
        let mut status = format!("{rules} rules armed, engine {}", engine.name());
        if let Some(summary) = self.rules_in_force.summary() {
            status = format!("{status}; {summary}");
        }
        self.service.ready(&status);
    }

    /// Reads the rings once, and writes what came. Returns the number of frames.
    pub(crate) fn pass(&mut self) -> usize {
        let pipeline = &mut self.pipeline;
        let fill = pipeline.engine().fill_per_mille();
        let frames = pipeline.pass(monotonic_ns());
        pipeline.operations_without_result(false);
        pipeline.commit();
        let left = pipeline.engine().fill_per_mille();
        let others = [pipeline.output().sync_thread(), pipeline.lookups().pid()];
        self.scheduling.note(frames, fill, left, others);
        pipeline.show();
        // After the pass: a daemon that hangs in one is not reported alive.
        self.service.alive();
        frames
    }

    /// Has the daemon run before all other tasks until it ends.
    pub(crate) fn run_first(&mut self) {
        let pipeline = &self.pipeline;
        let others = [pipeline.output().sync_thread(), pipeline.lookups().pid()];
        self.scheduling.run_first(others);
    }

    /// Applies `priority_boost`: if the daemon is not scheduled, its rings overflow.
    pub(crate) fn boost_priority(&mut self) {
        let settings = &self.settings;
        let helper = settings.lookups.pid();
        if let Err(error) = self.scheduling.rest_at(settings.nice(), helper) {
            let boost = settings.config.priority_boost;
            say!("tarsier: priority_boost = {boost}: {error}");
        }
    }

    /// Call this when a child has ended.
    pub(crate) fn child_ended(&mut self) {
        self.pipeline.output_mut().child_ended();
        launcher::follow(&self.settings.launcher, &mut self.pipeline);
    }

    /// Call this once a second: it follows files that rules name, logs losses and breaches, and
    /// removes hooks that are not needed.
    /// While rules are replaced for that, `meanwhile` is called between two passes over the rings.
    pub(crate) fn tidy(&mut self, meanwhile: &mut dyn FnMut(&mut Recording)) {
        // A spawner of a service that has ended no longer tells of the ends of what it started.
        self.child_ended();

        self.pipeline.refresh();
        self.pipeline.tick_costs();

        self.cgroups.survey_if_lost(&mut self.pipeline);
        self.processes.survey_if_lost(&mut self.pipeline);

        // Losses are counted before they are logged, so that a record has those of this second.
        self.pipeline.count_kernel_losses();
        self.losses.log(&mut self.pipeline);
        self.warnings.log(&mut self.pipeline);

        self.integrity.check(&mut self.pipeline);
        let lock = self.settings.lock.as_ref();
        if let Some(is_mended) = lock.and_then(Lock::restore_pin) {
            self.integrity.lock_unpinned(&mut self.pipeline, is_mended);
        }

        self.refresh_identities(meanwhile);
        self.pipeline.tidy();
    }

    /// Looks again at what is in doubt, if it is time.
    pub(crate) fn look_again(&mut self) {
        self.integrity.look_again(&mut self.pipeline);
    }

    /// Plans the rules again if a path that a rule names is another file by now.
    fn refresh_identities(&mut self, meanwhile: &mut dyn FnMut(&mut Recording)) {
        let generation = self.pipeline.generation();
        let rules = &generation.plan.rules;
        // The kernel follows paths by itself.
        if self.pipeline.is_kernel_engine() || !compose::names_paths(rules) {
            return;
        }
        let lookups = self.pipeline.lookups();
        let found = lookups.in_time(|lookups| compose::identify(rules, lookups));
        // What is not known now stays as it was.
        if found.is_none_or(|found| found.agree(&generation.identities)) {
            return;
        }

        let number = generation.plan.generation + 1;
        let settings = &self.settings;
        let renewed = settings.generation_after(generation, rules.clone(), false, number);
        let renewed = renewed.and_then(|generation| self.put_in_force(generation, meanwhile));

        match renewed {
            Ok(change) => {
                let by = Asker::this_process();
                self.pipeline.log_armed(&by, &change);
            }
            Err(error) => {
                say!(
                    "tarsier: a file that a rule names was replaced, and: {}",
                    reasons(&error)
                );
            }
        }
    }
}
