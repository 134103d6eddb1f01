//! `tarsier seccomp`: filters of system calls.

mod check;
mod compare;
mod compile;
mod denials;
mod explain;
mod filters;
mod learn;
mod log_reader;
mod merge;
mod places;
mod run;
mod source;
mod supervisor;
mod traced;
mod write;

use anyhow::Result;
use cli::messages::report;
use cli::seccomp::{Format, SeccompCommand};

/// Runs one of the subcommands. Status 2 means that it failed.
pub(crate) fn seccomp(command: &SeccompCommand) -> Result<u8> {
    let result = match command {
        SeccompCommand::Compile(args) => compile::compile(args),
        SeccompCommand::Check(args) => check::check(args),
        SeccompCommand::Merge(args) => merge::merge_chain(args),
        SeccompCommand::Optimise(args) => merge::shorten(args),
        SeccompCommand::Diff(args) => compare::diff(args),
        SeccompCommand::Covers(args) => compare::covers(args),
        SeccompCommand::Write(args) => write::write(args),
        SeccompCommand::Explain(args) => explain::explain(args),
        SeccompCommand::Disasm(args) => merge::convert(args, Format::Listing),
        SeccompCommand::Asm(args) => merge::convert(args, Format::Hex),
        SeccompCommand::Learn(args) => learn::learn(args),
        SeccompCommand::Run(args) => run::run(args),
    };

    match result {
        Err(error) if !is_io(&error) => {
            report!("tarsier: {}", in_full(&error));
            Ok(2)
        }
        result => result,
    }
}

/// An error with its causes, without those that its own text already has.
fn in_full(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !text.contains(&cause) {
            let colon = if text.is_empty() { "" } else { ": " };
            text = text + colon + &cause;
        }
    }
    text
}

/// The caller decides about errors of this program's own output.
fn is_io(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some()
}
