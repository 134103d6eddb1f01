//! `tarsier doctor`: what works on this host and what does not, with remedies.

mod audit;
mod files;
mod finding;
mod kernel;
mod machine;
mod system;
#[cfg(test)]
mod tests;

use anyhow::Result;
use cli::DoctorArgs;
use finding::{status, Finding};
use machine::Machine;
use std::io::Write;

/// Prints a finding per line. Status 0: all is ok, 1: something is limited, 2: something does not
/// work. Changes nothing; a file in the log directory, which is timed, is removed again.
///
/// # Errors
/// The report cannot be written.
pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8> {
    let machine = system::System {
        rules: args.rules.clone(),
        config: args.config.clone(),
    };
    let findings = examine(&machine);
    let mut out = std::io::stdout().lock();
    if args.json {
        let report = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "status": status(&findings),
            "findings": findings,
        });
        serde_json::to_writer_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
    }
    Ok(status(&findings))
}

/// Everything that is looked at, in the order of the report.
fn examine(machine: &dyn Machine) -> Vec<Finding> {
    let mut found = kernel::findings(machine);
    found.extend(audit::findings(machine));
    found.extend(files::findings(machine));
    found
}
