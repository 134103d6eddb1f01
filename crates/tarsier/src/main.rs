//! Tarsier: system-call auditing. Arguments in, status out; the work is in the modules.

mod cli;
mod plan_command;
mod rule_files;
mod rules_command;
mod run;
mod status;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(args),
        Command::Plan(args) => plan_command::plan(&args),
        Command::Status(args) => status::status(&args),
        Command::Rules(command) => rules_command::rules(&command),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tarsier: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
