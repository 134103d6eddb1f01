//! The daemon of `tarsier run`: arms the rules, records, answers requests, and puts everything back.
//!
//! [`run`] does all of it. [`protocol`] defines the messages on its control socket; the rest is
//! shared with other commands.

mod asker;
mod cgroups;
mod child;
pub mod choice;
mod clock;
mod confinement;
mod control;
mod daemon;
mod daemon_records;
mod durability;
mod engine;
mod failure;
mod good_rules;
mod grouped;
pub mod host;
mod incoming;
mod instance;
mod integrity;
mod joined;
mod kernel_costs;
mod kernel_records;
mod launcher;
mod left_out;
mod live;
mod lock;
mod locked_rules;
mod lookup_warnings;
mod lookups;
mod losses;
mod maker_costs;
mod metrics;
mod notifier;
mod output;
mod own_loads;
mod pauses;
mod pipeline;
#[cfg(debug_assertions)]
mod planted;
mod plugins;
mod process_classes;
mod processes;
mod program_loads;
pub mod protocol;
mod recorder;
mod recording;
mod recovery;
mod replacing;
mod rule_costs;
pub mod rule_files;
mod rule_place;
mod rules_at_start;
mod scheduling;
mod service;
mod settings;
mod settings_at_start;
mod setup;
mod signals;
mod status;
pub mod stderr;
mod succession;
mod takeover;
mod totals;
mod workloads;

pub use instance::Instance;
pub use kernel_records::KEPT_RULE;
pub use rule_place::too_large;
pub use rules_at_start::examine_start;
pub use takeover::{remove_left, Removed};

use anyhow::{bail, Result};
use cli::RunArgs;
use spawn::Launcher;

/// Runs until it is stopped, until the time is over, or until the command ends. Returns the exit
/// status.
///
/// # Errors
/// Rules or configuration are wrong, the kernel refuses the engine, or another process owns what is
/// needed. Nothing is left armed then.
pub fn run(args: RunArgs) -> Result<u8> {
    if !rustix::process::geteuid().is_root() {
        bail!("you must be root to run this: it loads BPF programs and owns the audit socket");
    }
    stderr::never_wait();
    let signals = signals::Signals::take()?;
    let launcher = launcher::start(&args)?;
    let status = record(&args, &launcher, signals);
    launcher.tidy();
    status
}

/// Arms, records and stops.
fn record(args: &RunArgs, launcher: &Launcher, signals: signals::Signals) -> Result<u8> {
    let mut daemon = setup::start(args, launcher, signals)?;
    let child = match child::start(launcher, &args.command) {
        Ok(child) => child,
        Err(error) => {
            daemon.stop(None, false)?;
            return Err(error);
        }
    };
    let end = daemon.record(child, args.duration)?;
    daemon.stop(end.sender, end.keeps)?;
    Ok(end.status)
}
