//! Tarsier: system-call auditing. This file only dispatches commands and returns their exit status.

mod answer;
mod cat_command;
mod ctl;
mod dialect;
mod doctor_command;
mod external;
mod finding;
mod interrupt;
mod kernel_memory;
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

use anyhow::Result;
use clap::Parser;
use cli::messages::{reasons, report};
use cli::{Cli, Command};
use query::Dialect;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// Carries out the words after a program's or a command's name. Returns the exit status.
type Run = fn(Vec<OsString>) -> Result<u8>;

/// Programs that this one replaces when it is called by their names.
const PROGRAMS: [(&str, Run); 4] = [
    ("auditctl", ctl::run),
    ("augenrules", ctl::augenrules::run),
    ("ausearch", |args| {
        search_command::run_as(Dialect::Compat, args)
    }),
    ("aureport", |args| {
        report_command::run_as(Dialect::Compat, args)
    }),
];

/// Commands whose arguments are not in clap's syntax, so that clap does not see them. The first two are the daemon's
/// helpers, which are this program, started anew: they print nothing.
const COMMANDS: [(&str, Run); 7] = [
    (privsep::lookup::COMMAND, |args| {
        let role = args.first().map(OsString::as_os_str);
        Ok(u8::from(privsep::lookup::serve_as(role).is_err()))
    }),
    (privsep::spawn::COMMAND, |args| {
        let served = privsep::spawn::serve_as(args.into_iter(), capture::unmount_unused);
        Ok(u8::from(served.is_err()))
    }),
    ("ctl", ctl::run),
    ("forward", |args| external::exec(external::FORWARD, args)),
    ("verify", verify),
    ("search", search_command::run),
    ("report", report),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let program = args.next().unwrap_or_default();
    let args: Vec<OsString> = args.collect();

    let result = if let Some(run) = replaced_program(&program) {
        run(args)
    } else if let Some(run) = args.first().and_then(|first| named(&COMMANDS, first)) {
        run(args[1..].to_vec())
    } else {
        parsed_command()
    };

    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if answer::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report!("tarsier: {}", reasons(&error));
            ExitCode::FAILURE
        }
    }
}

/// The function of the program by whose name this one was called.
fn replaced_program(path: &OsStr) -> Option<Run> {
    named(&PROGRAMS, Path::new(path).file_name()?)
}

fn named(table: &[(&str, Run)], name: &OsStr) -> Option<Run> {
    let mut rows = table.iter();
    rows.find_map(|(each, run)| (name == *each).then_some(*run))
}

/// Verifies this host's log, or with `--from` what hosts have sent, which is `tarsier-forward`'s to read.
fn verify(args: Vec<OsString>) -> Result<u8> {
    let is_from = |arg: &OsString| {
        let text = arg.to_string_lossy();
        text == "--from" || text.starts_with("--from=")
    };
    if args.iter().any(is_from) {
        let words = std::iter::once("verify".into()).chain(args);
        external::exec(external::FORWARD, words)
    } else {
        parsed_command()
    }
}

fn report(args: Vec<OsString>) -> Result<u8> {
    if args.iter().any(|word| word == "--html") {
        report_html::run(args)
    } else {
        report_command::run(args)
    }
}

fn parsed_command() -> Result<u8> {
    match Cli::parse_from(top_command::spelled_out(std::env::args_os())).command {
        Command::Run(args) => daemon::run(args),
        Command::Plan(args) => plan_command::plan(&args),
        Command::Status(args) => status::status(&args),
        Command::Doctor(args) => doctor_command::doctor(&args),
        Command::Migrate(args) => migrate_command::migrate(&args),
        Command::Stop(args) => stop_command::stop(&args),
        Command::Forward { args } => external::exec(external::FORWARD, args),
        Command::Cat(args) => cat_command::cat(&args),
        Command::Top(args) => top_command::top(&args),
        Command::Export(_) => external::exec(external::EXPORT, std::env::args_os().skip(2)),
        Command::Seal(command) => seal_command::seal(&command),
        Command::Verify(args) => seal_command::verify(&args),
        Command::Rules(command) => rules_command::rules(&command),
        Command::Seccomp(command) => seccomp_command::seccomp(&command),
        Command::Ctl { args } => ctl::run(args),
        Command::Search { args } => search_command::run(args),
        Command::Report { args } => report_command::run(args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_s_name_decides() {
        let is_replaced = |path| replaced_program(OsStr::new(path)).is_some();
        for path in ["/sbin/auditctl", "auditctl", "/usr/sbin/augenrules"] {
            assert!(is_replaced(path), "{path}");
        }
        for path in ["/usr/bin/tarsier", "auditctl2", "augenrules.auditd", ""] {
            assert!(!is_replaced(path), "{path}");
        }
    }
}
