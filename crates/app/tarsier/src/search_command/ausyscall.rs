//! `ausyscall`: names and numbers of system calls, for a link of that name to the program.

use crate::dialect;
use abi::Arch;
use anyhow::Result;
use cli::messages::report;
use query::Dialect;
use std::ffi::OsString;
use std::io::{self, Write};

const USAGE: &str = "usage: ausyscall [arch] name | number | --dump | --exact";

#[derive(Default)]
struct Request {
    arch: Option<Arch>,
    number: Option<i64>,
    name: Option<String>,
    is_dump: bool,
    is_exact: bool,
}

/// Carries out `args`, the words after `ausyscall`. Returns ausyscall's exit status.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    let words = dialect::words(args)?;
    let (dialect, words) = match dialect::take(&words, "ausyscall", "ausyscall") {
        Ok(taken) => taken,
        Err(message) => {
            report!("{message}");
            return Ok(1);
        }
    };
    let mut out = Vec::new();
    let answer = Request::parse(words).and_then(|request| request.answer(dialect, &mut out));
    io::stdout().write_all(&out)?;
    match answer {
        Ok(()) => Ok(0),
        Err(message) => {
            report!("{message}");
            Ok(1)
        }
    }
}

impl Request {
    fn parse(words: &[String]) -> Result<Request, String> {
        if words.len() > 3 {
            return Err(format!("Too many arguments\n{USAGE}"));
        }
        if words.is_empty() {
            return Err(USAGE.to_owned());
        }
        let mut request = Request::default();
        for word in words {
            if word.starts_with(|first: char| first.is_ascii_digit()) {
                let number = query::c_decimal(word.as_bytes());
                if request.number.replace(number).is_some() {
                    return Err(format!("Two syscall numbers not allowed\n{USAGE}"));
                }
            } else if let Some(arch) = arch(word) {
                if request.arch.replace(arch).is_some() {
                    return Err(format!("Two machine types not allowed\n{USAGE}"));
                }
            } else {
                match word.as_str() {
                    "--dump" => request.is_dump = true,
                    "--exact" => request.is_exact = true,
                    "alpha" => return Err("Alpha processor support is deprecated".to_owned()),
                    "ia64" => return Err("IA64 processor support is deprecated".to_owned()),
                    name if request.name.is_none() => request.name = Some(name.to_owned()),
                    _ => return Err(format!("Two syscall names not allowed\n{USAGE}")),
                }
            }
        }
        Ok(request)
    }

    fn answer(&self, dialect: Dialect, out: &mut Vec<u8>) -> Result<(), String> {
        let arch = self.arch.unwrap_or(Arch::native());
        let table = query::machine_name(arch, dialect);
        let calls = query::calls_of(arch, dialect);
        let unknown = |what: &str| format!("Unknown syscall {what} using {table} lookup table");
        let mut put = |line: String| out.extend_from_slice(line.as_bytes());
        if self.is_dump {
            put(format!("Using {table} syscall table:\n"));
            calls
                .iter()
                .filter(|(number, _)| *number < 8192)
                .for_each(|(number, name)| put(format!("{number}\t{name}\n")));
            return Ok(());
        }
        match (&self.name, self.number) {
            (Some(name), _) if self.is_exact => {
                let found = calls.iter().find(|(_, known)| known == name);
                let (number, _) = found.ok_or_else(|| unknown(name))?;
                put(format!("{number}\n"));
            }
            (Some(name), _) => {
                let part = name.to_ascii_lowercase();
                let mut found = calls
                    .iter()
                    .filter(|(number, known)| {
                        *number < 1400 && known.to_ascii_lowercase().contains(&part)
                    })
                    .peekable();
                found.peek().ok_or_else(|| unknown(name))?;
                found.for_each(|(number, name)| put(format!("{name:<18} {number}\n")));
            }
            (None, Some(number)) => {
                let found = calls.iter().find(|(known, _)| i64::from(*known) == number);
                let (_, name) = found.ok_or_else(|| unknown(&number.to_string()))?;
                put(format!("{name}\n"));
            }
            (None, None) => {
                return Err(
                    "Error - either a syscall name or number must be given with an optional arch"
                        .into(),
                )
            }
        }
        Ok(())
    }
}

/// An architecture by name, or by `b32` and `b64`.
fn arch(word: &str) -> Option<Arch> {
    let native = Arch::native();
    Arch::from_bits(&word.to_ascii_lowercase(), native).or_else(|| Arch::from_name(word))
}
