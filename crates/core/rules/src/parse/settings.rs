//! Options that are not part of a rule.

use super::Next;
use crate::fault::Fault;
use crate::number;
use crate::words::{Flag, Word};
use crate::{Command, ErrorKind};

/// Options that change a setting of the kernel or control how rules are loaded.
pub(super) fn setting(flag: Flag, argument: &Word) -> Result<(Command, Next), Fault> {
    Ok(match flag {
        Flag::Short(b'e') => (Command::Enabled(of_three(argument, "Enable")?), Next::Go),
        Flag::Short(b'f') => (Command::Failure(of_three(argument, "Failure")?), Next::Go),
        Flag::Short(b'b') => (Command::Backlog(numeric(argument, "Backlog")?), Next::Go),
        Flag::Short(b'r') => (Command::Rate(numeric(argument, "Rate")?), Next::Go),
        Flag::BacklogWaitTime => (Command::BacklogWaitTime(wait_time(argument)?), Next::Go),
        Flag::LoginuidImmutable => (Command::LoginuidImmutable, Next::Done),
        Flag::ResetLost => (Command::ResetLost, Next::Done),
        Flag::ResetBacklogWaitTimeActual => (Command::ResetBacklogWaitTimeActual, Next::Done),
        Flag::Signal => (Command::Signal(signal(argument)?), Next::Last),
        Flag::Short(b'i') => (Command::IgnoreErrors, Next::Last),
        Flag::Short(b'c') => (Command::ContinueOnError, Next::Last),
        Flag::Short(b't') => (Command::Trim, Next::Done),
        Flag::Short(b'v') => (Command::Version, Next::Last),
        Flag::Short(_) => (Command::Help, Next::Last),
    })
}

/// Options that nothing else may accompany on a line: `-D`, `-l`, `-s`, `-m`.
pub(super) fn whole_line(
    flag: Flag,
    word: &Word,
    argument: &Word,
    words: &[Word],
    rest: &[Word],
) -> Result<(Command, Next), Fault> {
    let count = words.len();
    let second = || rest.first().map(|word| word.bytes.as_slice());
    let last = || words.last().map(|word| word.bytes.clone());
    let command = match flag {
        Flag::Short(b'D') => {
            if count > 3 || count == 2 {
                return Err(
                    Fault::at(word, "Wrong number of options for Delete all request")
                        .expected("-D alone, or -D -k key"),
                );
            }
            if count == 3 && second() != Some(b"-k") {
                return Err(Fault::at(word, "Only the -k option is allowed"));
            }
            Command::DeleteAll {
                key: if count == 3 { last() } else { None },
            }
        }
        Flag::Short(b'l') => {
            if count > 3 {
                return Err(Fault::at(word, "Wrong number of options for list request"));
            }
            let is_fine = match count {
                2 => second() == Some(b"-i"),
                3 => second() == Some(b"-k"),
                _ => true,
            };
            if !is_fine {
                return Err(Fault::at(word, "Only -k or -i options are allowed"));
            }
            Command::List {
                is_interpreted: count == 2,
                key: if count == 3 { last() } else { None },
            }
        }
        Flag::Short(b's') => {
            if count > 2 {
                return Err(Fault::at(word, "Too many options for status command"));
            }
            if count == 2 && second() != Some(b"-i") {
                return Err(Fault::at(word, "Only -i option is allowed"));
            }
            Command::Status {
                is_interpreted: count == 2,
            }
        }
        _ => return message(argument, count),
    };

    Ok((command, Next::Last))
}

fn message(argument: &Word, word_count: usize) -> Result<(Command, Next), Fault> {
    if word_count > 2 {
        let message = "The -m option must be only the only option and takes 1 parameter";
        return Err(Fault::at(argument, message));
    }
    match std::str::from_utf8(&argument.bytes) {
        Ok(text) if text.bytes().all(|byte| (32..=127).contains(&byte)) => {
            Ok((Command::Message(text.to_owned()), Next::Done))
        }
        _ => Err(Fault::at(argument, "Illegal character in audit event")
            .expected("ASCII without control characters")),
    }
}

/// `-q mount,subtree`.
pub(super) fn equivalent(argument: &Word) -> Result<(Command, Next), Fault> {
    let parts: Vec<&[u8]> = argument.bytes.split(|&byte| byte == b',').collect();
    match parts.as_slice() {
        [mount, subtree] if !subtree.is_empty() => {
            let (mount, subtree) = (mount.to_vec(), subtree.to_vec());
            Ok((Command::MakeEquivalent { mount, subtree }, Next::Done))
        }
        _ => Err(Fault::at(argument, "Error parsing equivalent parts")
            .expected("a mount point, a comma, a directory")),
    }
}

fn of_three(argument: &Word, what: &str) -> Result<u32, Fault> {
    match argument.bytes.as_slice() {
        [digit @ b'0'..=b'2'] => Ok(u32::from(digit - b'0')),
        _ => {
            let message = format!("{what} must be 0, 1, or 2 was {}", argument.text());
            Err(Fault::at(argument, message))
        }
    }
}

fn numeric(argument: &Word, what: &str) -> Result<u32, Fault> {
    if argument.bytes.first().is_some_and(u8::is_ascii_digit) {
        return Ok(number::unsigned(&argument.bytes, 0) as u32);
    }
    let message = format!("{what} must be a numeric value was {}", argument.text());
    Err(Fault::at(argument, message))
}

/// Ten times the kernel's default of one minute, in ticks of the highest rate that kernels are
/// configured with, 1000 Hz (audit_set_backlog_wait_time() in kernel/audit.c).
const WAIT_TIME_MAX: u32 = 10 * 60 * 1000;

fn wait_time(argument: &Word) -> Result<u32, Fault> {
    let time = numeric(argument, "Backlog_wait_time")?;
    if time > WAIT_TIME_MAX {
        let message = "Error sending backlog limit request (Invalid argument)";
        return Err(Fault::at(argument, message)
            .expected(format!("at most {WAIT_TIME_MAX} clock ticks"))
            .kind(ErrorKind::Invalid));
    }
    Ok(time)
}

fn signal(argument: &Word) -> Result<&'static str, Fault> {
    let text = argument.text().to_ascii_lowercase();
    match text.as_str() {
        "term" | "stop" => Ok("TERM"),
        "hup" | "reload" => Ok("HUP"),
        "usr1" | "rotate" => Ok("USR1"),
        "usr2" | "resume" => Ok("USR2"),
        "cont" | "state" => Ok("CONT"),
        _ => Err(Fault::at(
            argument,
            format!("{} is an unsupported signal", argument.text()),
        )
        .expected("TERM (stop), HUP (reload), USR1 (rotate), USR2 (resume) or CONT (state)")),
    }
}
