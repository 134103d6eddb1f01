//! `tarsier rules`

mod baseline;
mod boot;
pub(crate) mod check;
mod flood;
mod optimise;
mod privileged;
mod scan;
pub(crate) mod source;

use anyhow::Result;
use cli::messages::{reasons, report};
use cli::RulesCommand;

/// Runs one of the subcommands. Status 2 means that it failed.
pub(crate) fn rules(command: &RulesCommand) -> Result<u8> {
    let result = match command {
        RulesCommand::Check(args) if args.boot => boot::check(args),
        RulesCommand::Check(args) => check::check(args),
        RulesCommand::Optimise(args) => optimise::optimise(args),
        RulesCommand::Merge(args) => crate::ctl::merge(args),
        RulesCommand::Emit(args) => scan::emit(args),
        RulesCommand::Scan(args) => scan::scan(args),
    };

    match result {
        Err(error) if !is_io(&error) => {
            report!("tarsier: {}", reasons(&error));
            Ok(2)
        }
        result => result,
    }
}

/// Whether an error is about this program's own output; the caller handles those.
fn is_io(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some()
}
