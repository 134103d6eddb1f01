//! `tarsier plan --memory`: what the kernel would take for the rules, by loading everything and attaching nothing.

use crate::kernel_memory::{mb, KernelMemory};
use anyhow::{Context, Result};
use capture::{Options, Rehearsal};
use plan::Plan;
use std::io::Write;
use std::path::Path;

/// Prints the account of the plan's programs, match tables and rings, of the size that they have by default.
///
/// # Errors
/// The programs cannot be loaded, without root for example.
pub(super) fn print(out: &mut impl Write, plan: &Plan, is_json: bool) -> Result<()> {
    let rehearsal = Rehearsal::of(plan, &Options::for_this_host())
        .context("--memory loads the BPF programs, attached to nothing, and asks the kernel")?;
    let memory = KernelMemory::held_by(Path::new("/proc/self/fdinfo"))?;
    drop(rehearsal);
    if is_json {
        writeln!(out, "{}", serde_json::to_string(&memory)?)?;
        return Ok(());
    }

    writeln!(
        out,
        "memory              {}, and the daemon's",
        mb(memory.total())
    )?;
    memory.print(out)?;
    memory.print_growth(out)?;

    Ok(())
}
