//! `tarsier run`: arms the rules, records, and puts everything back.

mod administrator;
mod child;
pub(crate) mod choice;
mod clock;
mod control_draft;
mod control_records;
mod control_socket;
mod daemon;
mod daemon_records;
mod durability;
mod engine;
mod grouped;
mod instance;
mod kernel_costs;
mod kernel_records;
mod live;
mod metrics;
mod plugins;
mod pressure;
mod recorder;
mod recovery;
mod reload;
mod rule_costs;
mod rule_place;
mod setup;
mod signals;
mod sources;
mod survival;

pub(crate) use instance::Instance;
pub(crate) use rule_place::too_large;
pub(crate) use survival::{remove_left, Removed};

use anyhow::{bail, Result};
use cli::RunArgs;

/// Runs until stopped, until the time is over, or until the command ends; the exit status.
pub(crate) fn run(args: RunArgs) -> Result<u8> {
    if !rustix::process::geteuid().is_root() {
        bail!("you must be root to run this: it loads BPF programs and owns the audit socket");
    }
    let signals = signals::Signals::take()?;
    let mut daemon = setup::start(&args, signals)?;
    let child = match child::start(&args.command) {
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
