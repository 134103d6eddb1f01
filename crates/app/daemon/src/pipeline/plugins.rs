//! The plugins of the configuration.

use crate::stderr::say;
use ::plugins::Dispatcher;
use anyhow::Result;
use conf::plugins::{self, Plugin};
use conf::Config;
use privsep::spawn::Launcher;

/// Nice value of the daemon and its plugins: `priority_boost` below the value it was started with,
/// as with nice(2), which auditd uses.
pub(crate) fn nice(config: &Config, started_with: i32) -> i32 {
    let boost = i32::try_from(config.priority_boost).unwrap_or(i32::MAX);
    started_with.saturating_sub(boost).max(-20)
}

/// Loads the active plugins.
///
/// # Errors
/// Any plugin's configuration is wrong.
pub(crate) fn load_all(config: &Config) -> Result<Vec<Plugin>> {
    let (plugins, errors) = plugins::load(&config.plugins.plugin_dir)?;
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(plugins),
    }
}

/// Starts the active plugins. A plugin with a wrong configuration is reported and left out, as in
/// auditd.
pub(crate) fn start(launcher: &Launcher, config: &Config, started_with: i32) -> Dispatcher {
    let loaded = plugins::load(&config.plugins.plugin_dir);
    let (plugins, errors) = loaded.unwrap_or_else(|error| (Vec::new(), vec![error]));
    for error in errors {
        say!("tarsier: plugin left out: {error}");
    }
    let nice = nice(config, started_with);
    Dispatcher::start(launcher.clone(), plugins, &config.plugins, nice)
}
