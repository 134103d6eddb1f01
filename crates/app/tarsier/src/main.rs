//! Tarsier: system-call auditing. This file only dispatches commands and returns their exit status.

mod beside;
mod cat_command;
mod ctl;
mod dialect;
mod doctor_command;
mod finding;
mod interrupt;
mod kernel_memory;
mod last_command;
mod migrate_command;
mod plan_command;
mod progress;
mod report_command;
mod report_html;
mod rules_command;
mod seal_command;
mod search_command;
mod seccomp_command;
mod shown;
mod status;
mod stop_command;
mod top_command;

use clap::Parser;
use cli::{Cli, Command};
use daemon::stderr::{reasons, say};
use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Options of auditctl, augenrules and ausearch are not in clap's syntax, so clap does not see them.
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let first = std::env::args_os().nth(1);
    let result = if first
        .as_ref()
        .is_some_and(|first| first == privsep::lookup::COMMAND)
    {
        helper(args.nth(1))
    } else if first
        .as_ref()
        .is_some_and(|first| first == privsep::spawn::COMMAND)
    {
        Ok(u8::from(
            privsep::spawn::serve_as(args.skip(1), capture::unmount_unused).is_err(),
        ))
    } else if ctl::augenrules::is_augenrules(&program) {
        ctl::augenrules::run(&program, &args.collect::<Vec<_>>())
    } else if ctl::is_auditctl(&program) {
        ctl::run(args.collect())
    } else if first.as_ref().is_some_and(|first| first == "ctl") {
        ctl::run(args.skip(1).collect())
    } else if first.as_ref().is_some_and(|first| first == "forward") {
        beside::run(beside::FORWARD, args.skip(1))
    } else if first.as_ref().is_some_and(|first| first == "verify") && is_central() {
        beside::run(beside::FORWARD, args)
    } else if search_command::is_ausearch(&program) {
        search_command::run(args.collect())
    } else if search_command::ausyscall::is_ausyscall(&program) {
        search_command::ausyscall::run(args.collect())
    } else if let Some(program) = last_command::Program::of(&program) {
        last_command::run(program, args.collect())
    } else if report_html::is_asked_for(first.as_deref()) {
        report_html::run(args.skip(1).collect())
    } else if first.as_ref().is_some_and(|first| first == "search") {
        search_command::run(args.skip(1).collect())
    } else if report_command::is_aureport(&program) {
        report_command::run(args.collect())
    } else if first.is_some_and(|first| first == "report") {
        report_command::run(args.skip(1).collect())
    } else {
        command()
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            say!("tarsier: {}", reasons(&error));
            ExitCode::FAILURE
        }
    }
}

/// Whether `tarsier verify` is asked for what hosts have sent.
fn is_central() -> bool {
    std::env::args_os().any(|arg| {
        let text = arg.to_string_lossy();
        text == "--from" || text.starts_with("--from=")
    })
}

fn command() -> anyhow::Result<u8> {
    match Cli::parse_from(top_command::spelled_out(std::env::args_os())).command {
        Command::Run(args) => daemon::run(args),
        Command::Plan(args) => plan_command::plan(&args),
        Command::Status(args) => status::status(&args),
        Command::Doctor(args) => doctor_command::doctor(&args),
        Command::Migrate(args) => migrate_command::migrate(&args),
        Command::Stop(args) => stop_command::stop(&args),
        Command::Forward { args } => beside::run(beside::FORWARD, args),
        Command::Cat(args) => cat_command::cat(&args),
        Command::Top(args) => top_command::top(&args),
        Command::Export(_) => beside::run(beside::EXPORT, std::env::args_os().skip(2)),
        Command::Seal(command) => seal_command::seal(&command),
        Command::Verify(args) => seal_command::verify(&args),
        Command::Rules(command) => rules_command::rules(&command),
        Command::Seccomp(command) => seccomp_command::seccomp(&command),
        Command::Ctl { args } => ctl::run(args),
        Command::Search { args } => search_command::run(args),
        Command::Report { args } => report_command::run(args),
    }
}

/// Runs as a helper of the daemon, which starts this program anew. A helper says nothing.
fn helper(role: Option<OsString>) -> anyhow::Result<u8> {
    Ok(u8::from(
        privsep::lookup::serve_as(role.as_deref()).is_err(),
    ))
}

/// Whether standard output was closed by its reader, which is not an error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}
