//! `tarsier plan`

use crate::cli::PlanArgs;
use crate::rule_files;
use anyhow::{Context, Result};
use plan::{Capabilities, Plan};
use std::io::Write;

/// Prints the plan of the rules for this host. Without root, what needs root to be found out is
/// taken to be there.
pub(crate) fn plan(args: &PlanArgs) -> Result<u8> {
    let set = rule_files::load(&args.rules)?;
    let capabilities = if rustix::process::geteuid().is_root() {
        capture::probe::capabilities()
    } else {
        Capabilities {
            compat_entry: capture::probe::compat_entry(),
            ..Capabilities::assumed(abi::Arch::native())
        }
    };
    let identities = capture::identify(&set.rules);
    let plan = Plan::new(&set.rules, &capabilities, &identities, 1)
        .context("the rules cannot be planned")?;
    let explanation = plan::explain(&plan);
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &explanation)?;
        writeln!(out)?;
    } else {
        write!(out, "{explanation}")?;
    }
    Ok(0)
}
