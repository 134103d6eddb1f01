//! The plugins of a configuration.

use crate::stderr::say;
use anyhow::Result;
use conf::plugins::{self, Plugin};
use conf::Config;
use dispatch::Dispatcher;

/// Nice value of the daemon and of its plugins: `priority_boost` better than the one that it was
/// started with, as nice(2) has it, which auditd uses.
pub(super) fn nice(config: &Config, started_with: i32) -> i32 {
    let boost = i32::try_from(config.priority_boost).unwrap_or(i32::MAX);
    started_with.saturating_sub(boost).max(-20)
}

/// The active plugins.
///
/// # Errors
/// Any of them is wrong.
pub(super) fn load_all(config: &Config) -> Result<Vec<Plugin>> {
    let (plugins, errors) = plugins::load(&config.plugins.plugin_dir)?;
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(plugins),
    }
}

/// Starts the active plugins. As in auditd one that is wrong is told and left out.
pub(super) fn start(config: &Config, started_with: i32) -> Dispatcher {
    let loaded = plugins::load(&config.plugins.plugin_dir);
    let (plugins, errors) = loaded.unwrap_or_else(|error| (Vec::new(), vec![error]));
    for error in errors {
        say!("tarsier: plugin left out: {error}");
    }
    Dispatcher::start(plugins, &config.plugins, nice(config, started_with))
}
