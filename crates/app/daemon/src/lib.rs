//! The daemon of `tarsier run`: arms the rules, records, answers requests, and puts everything back.
//!
//! [`run`] does all of it. [`protocol`] defines the messages on its control socket; the rest is
//! shared with other commands.

mod account;
mod clock;
mod control;
mod event_loop;
mod handover;
mod pipeline;
pub mod protocol;
mod start;
pub mod stderr;

pub use handover::takeover::{remove_left, Removed};
pub use pipeline::kernel_records::KEPT_RULE;
pub use start::instance::Instance;
pub use start::rule_place::too_large;
pub use start::rules_at_start::examine_start;
pub use start::{choice, host, rule_files};

use anyhow::{bail, Result};
use cli::RunArgs;
use event_loop::child;
use event_loop::signals::Signals;
use privsep::spawn::Launcher;
use start::{launcher, setup};

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
    let signals = Signals::take()?;
    let launcher = launcher::start(&args)?;
    let status = record(&args, &launcher, signals);
    launcher.tidy();
    status
}

/// Arms, records and stops.
fn record(args: &RunArgs, launcher: &Launcher, signals: Signals) -> Result<u8> {
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
