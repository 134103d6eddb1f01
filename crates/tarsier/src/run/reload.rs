//! Other rules and another configuration while recording.

use super::daemon::Daemon;
use super::daemon_records::{Action, Who};
use super::engine::Engine;
use super::plugins;
use super::setup;
use super::sources;
use crate::host::HOST;
use crate::stderr::say;
use anyhow::Result;
use compose::Generation;
use event::RecordType;
use std::sync::Arc;

impl Daemon {
    /// SIGHUP: rules and configuration anew. Whatever is wrong leaves the old in force.
    pub(super) fn reload(&mut self) {
        let who = self.sender();
        let outcome = self
            .reload_config(who)
            .and_then(|()| self.reload_rules(who));
        if let Err(error) = &outcome {
            say!("tarsier: reload failed, what was in force stays: {error:#}");
        }
        self.say_done(
            RecordType::DAEMON_CONFIG,
            "reconfigure",
            who,
            outcome.is_ok(),
        );
    }

    fn reload_config(&mut self, who: Who) -> Result<()> {
        let config = self.sources.config()?;
        let node = config.node_name()?;
        let plugins = plugins::load_all(&config)?;
        if self.config.write_logs != config.write_logs {
            // What was made before is dealt with as it was then.
            self.drain();
        }
        if self.config.write_logs && !config.write_logs {
            self.say(&Action {
                kind: RecordType::DAEMON_CONFIG,
                op: "reconfigure",
                who,
                extra: &[("write_logs", "no")],
                is_success: true,
            });
        }
        self.journal.reconfigure(&config.log_file, &config)?;
        let encoder = &mut self.recorder.encoder;
        encoder.set_format(sources::format(&config));
        encoder.set_node(node.as_deref().map(str::as_bytes));
        self.engine.set_overload(sources::overload(&config));
        self.open_metrics(&config);
        let nice = plugins::nice(&config, self.started_nice);
        self.plugins.reload(plugins, &config.plugins, nice);
        if self.config.pin_dir != config.pin_dir {
            say!("tarsier: pin_dir: what is armed stays where it is until the next start");
        }
        self.config = config;
        self.boost_priority();
        Ok(())
    }

    /// Swaps the rule set in one step. What the old one selected is read first.
    pub(super) fn put_in_force(&mut self, mut generation: Arc<Generation>) -> Result<()> {
        self.drain();
        let rules = &self.generation.plan.rules;
        let counts = self.rule_counts(rules.len().max(generation.plan.rules.len()));
        self.remember(&generation.plan)?;
        self.recorder.add_generation(generation.clone());
        if let (Some(kernel), Engine::Kernel) = (&mut self.kernel, &self.engine) {
            kernel.replace_rules(&generation.plan.rules)?;
        }
        while let Err(error) = self.engine.replace(&generation.plan) {
            let renewed =
                setup::planned_anew(error, &generation, &mut self.capabilities, &self.config)?;
            generation = renewed;
        }
        self.engine.set_urgent(&generation.urgent);
        let number = generation.plan.generation;
        let (old, new) = (&self.generation.plan.rules, &generation.plan.rules);
        self.recorder.costs.replace(number, old, new, &counts);
        self.generation = generation;
        Ok(())
    }

    /// A path that a rule names may be another file by now.
    pub(super) fn refresh_identities(&mut self) {
        let rules = &self.generation.plan.rules;
        // The kernel follows them by itself.
        if self.engine.is_kernel()
            || !compose::names_paths(rules)
            || compose::identify(rules, &HOST) == self.generation.identities
        {
            return;
        }
        let number = self.generation.plan.generation + 1;
        let renewed = sources::generation(
            rules.clone(),
            &self.capabilities,
            false,
            number,
            &self.config,
        )
        .and_then(|generation| self.put_in_force(generation));
        if let Err(error) = renewed {
            say!("tarsier: a file that a rule names was replaced, and: {error:#}");
        }
    }
}
