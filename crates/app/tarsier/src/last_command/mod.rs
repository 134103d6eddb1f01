//! aulast and aulastlog, by these names of the program: sessions, and last logins.

mod accounts;

use crate::dialect;
use crate::search_command::logs::{self, Input, ReadEnd, Source, Step};
use crate::search_command::users;
use crate::shown;
use anyhow::{Context, Result};
use cli::messages::report;
use query::last::{Logins, Options, Sessions};
use query::time::{use_environment, Locale};
use query::{Assembler, Dialect, Escape, Event, Interpreter, TimeRange};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// A program that is done instead, by the name of this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Aulast,
    Aulastlog,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Program::Aulast => "aulast",
            Program::Aulastlog => "aulastlog",
        }
    }
}

/// Exit status of errors.
const FAILED: u8 = 1;

/// Carries out `args`. Returns the exit status of the program.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run(program: Program, args: Vec<OsString>) -> Result<u8> {
    let words = dialect::words(args)?;
    let (dialect, words) = match dialect::take(&words, program.name(), program.name()) {
        Ok(taken) => taken,
        Err(message) => {
            report!("{message}");
            return Ok(FAILED);
        }
    };
    use_environment(Locale::of(dialect));
    match program {
        Program::Aulast => aulast(words, dialect),
        Program::Aulastlog => aulastlog(words, dialect),
    }
}

/// Options of aulast, with where it reads from.
#[derive(Default)]
struct Last {
    options: Options,
    file: Option<PathBuf>,
    use_stdin: bool,
    extract: bool,
}

impl Last {
    /// Reads the words, or says what is wrong with them.
    fn parse(words: &[String]) -> Result<Last, &'static str> {
        const USAGE: &str = "usage: aulast [--dialect 3|4] [--bad] [--debug] [--stdin] [--proof] \
                             [--extract] [-f FILE] [--user NAME] [--tty TTY]";
        let mut last = Last::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "-f" if last.use_stdin => return Err("stdin already given"),
                "-f" => last.file = words.next().map(PathBuf::from),
                "--stdin" if last.file.is_some() => return Err("file already given"),
                "--stdin" => last.use_stdin = true,
                "--bad" => last.options.bad = true,
                "--proof" => last.options.proof = true,
                "--extract" => last.extract = true,
                "--debug" => last.options.debug = true,
                "--user" if last.options.user.is_none() => {
                    last.options.user = words.next().map(|name| name.clone().into_bytes());
                }
                "--tty" if last.options.terminal.is_none() => {
                    last.options.terminal = words.next().map(|name| name.clone().into_bytes());
                }
                _ => return Err(USAGE),
            }
        }
        Ok(last)
    }
}

fn aulast(words: &[String], dialect: Dialect) -> Result<u8> {
    let last = match Last::parse(words) {
        Ok(last) => last,
        Err(message) => {
            report!("{message}");
            return Ok(FAILED);
        }
    };
    let mut extracted = match last.extract {
        true => Some(File::create("aulast.log").context("aulast.log")?),
        false => None,
    };
    let source = match (last.file, last.use_stdin) {
        (Some(file), _) => Some(Source::File(file)),
        (None, true) => Some(Source::Stdin),
        (None, false) => {
            if !rustix::process::getuid().is_root() {
                report!("You probably need to be root for this to work");
            }
            None
        }
    };
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_secs())
    };
    let interpreter = Interpreter::new(dialect, Escape::default(), users::names());
    let mut sessions = Sessions::new(last.options, interpreter, now);
    let mut flush = |sessions: &mut Sessions| -> Result<()> {
        let written = sessions.take_written();
        shown::write(&written.out)?;
        io::stderr().write_all(&written.errors)?;
        if let Some(file) = &mut extracted {
            file.write_all(&written.records).context("aulast.log")?;
        }
        Ok(())
    };
    let read = for_each_event(source, dialect, |event| {
        sessions.add(event);
        flush(&mut sessions)
    })?;
    if let Err(message) = read {
        report!("Error - {message}");
        return Ok(FAILED);
    }
    sessions.finish();
    flush(&mut sessions)?;
    Ok(0)
}

fn aulastlog(words: &[String], dialect: Dialect) -> Result<u8> {
    let (mut user, mut use_stdin) = (None, false);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match (word.as_str(), rest.as_slice()) {
            ("--user" | "-u", [name, ..]) => {
                user = Some(name.clone());
                rest.next();
            }
            ("--stdin", _) => use_stdin = true,
            _ => {
                report!("usage: aulastlog [--dialect 3|4] [--stdin] [--user NAME]");
                return Ok(FAILED);
            }
        }
    }
    let mut users = accounts::all();
    if let Some(user) = &user {
        users.retain(|(name, _)| name == user.as_bytes());
        if users.is_empty() {
            writeln!(io::stdout(), "Unknown User: {user}")?;
            return Ok(FAILED);
        }
    }
    let mut logins = Logins::new(users, dialect);
    let source = use_stdin.then_some(Source::Stdin);
    let read = for_each_event(source, dialect, |event| {
        logins.add(event);
        Ok(())
    })?;
    if let Err(message) = read {
        writeln!(io::stdout(), "Error - {message}")?;
        return Ok(FAILED);
    }
    let mut out = Vec::new();
    logins.write(&mut out);
    shown::write(&out)?;
    Ok(0)
}

/// Calls `each` for the events of `source`, or of the logs of auditd.conf(5). The inner error is the message for a
/// log that cannot be opened.
fn for_each_event(
    source: Option<Source>,
    dialect: Dialect,
    mut each: impl FnMut(&Event) -> Result<()>,
) -> Result<Result<(), String>> {
    let defaults = logs::defaults(Dialect::Own)?;
    let is_of_system = source.is_none();
    let input = match source {
        Some(source) => Input::one(source),
        None => match Input::find(&[], true, &defaults, dialect) {
            Ok(input) => input,
            Err(message) => return Ok(Err(message)),
        },
    };
    let mut assembler = Assembler::new(dialect, defaults.whole_s, TimeRange::default());
    let end = input.read(&mut assembler, |assembler, step| {
        if matches!(step, Step::End { is_last: true, .. }) {
            assembler.finish();
        }
        let _ = assembler.take_bad_times();
        while let Some(event) = assembler.pop() {
            each(&event)?;
            assembler.recycle(event);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let ReadEnd::Refused(message) = end else {
        return Ok(Ok(()));
    };
    if is_of_system && dialect.is_peer() {
        report!("No log file");
    }
    // auparse says only why.
    let reason = message
        .rsplit_once('(')
        .map_or(&*message, |(_, reason)| reason);
    Ok(Err(reason.trim_end_matches(')').to_owned()))
}
