//! `tarsier doctor`: what works on this host and what does not, with remedies.

mod audit;
mod files;
mod kernel;
mod machine;
mod system;
#[cfg(test)]
mod tests;

use crate::finding::{self, Finding};
use anyhow::Result;
use cli::DoctorArgs;
use machine::Machine;

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
    finding::print(&examine(&machine), args.json)
}

/// All findings, in the order of the report.
fn examine(machine: &dyn Machine) -> Vec<Finding> {
    let mut found = kernel::findings(machine);
    found.extend(audit::findings(machine));
    found.extend(files::findings(machine));
    found
}
