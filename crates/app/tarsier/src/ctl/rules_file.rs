//! `-R file`: a file of options, line by line.
//!
//! The kernel gets each line when it is read, as from auditctl. A running Tarsier gets all lines at
//! once, and accepts all or none. Errors are all printed on standard error; auditctl reports those
//! before the first rule to syslog.

use super::audit::Trouble;
use super::session::{print, say, say_findings, Session, SUCCESS};
use cli::messages::report;
use rules::{parse_line_as, Command, Dialect, Source, SystemHost};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Exit status of a file that was not loaded, or only in part.
const FAILED: u8 = 1;
/// Limit of the bytes read from a file.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A line of a file, with the file and number that messages name.
pub(super) type Line<'a> = (Source, &'a [u8]);

/// The effect of `-i` and `-c` so far, and whether a line has failed.
#[derive(Default)]
struct Progress {
    ignores_errors: bool,
    continues_on_error: bool,
    has_failed: bool,
}

impl Progress {
    /// Notes an error in a line. Returns whether it ends the loading.
    fn fail(&mut self, source: &Source) -> bool {
        self.has_failed = true;
        say_place(source);
        !self.ignores_errors
    }

    fn status(&self, was_ended: bool) -> u8 {
        if was_ended || (self.has_failed && self.continues_on_error) {
            FAILED
        } else {
            SUCCESS
        }
    }
}

impl Session<'_> {
    /// Loads a file. Returns the exit status.
    pub(super) fn read_file(&mut self, path: &[u8]) -> io::Result<u8> {
        if !self.may_change_rules(&[Command::ReadFile(path.to_vec())]) {
            return Ok(SUCCESS);
        }

        let name = String::from_utf8_lossy(path).into_owned();
        let text = match read(Path::new(std::ffi::OsStr::from_bytes(path))) {
            Ok(text) => text,
            Err(reason) => {
                report!("{reason}");
                return Ok(FAILED);
            }
        };

        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let lines = text.split(|&byte| byte == b'\n').zip(1..);
        let lines = lines.map(|(line, number)| {
            let file = name.clone();
            (Source { file, line: number }, line)
        });

        self.load(lines)
    }

    /// Loads lines. Returns the exit status.
    pub(super) fn load<'l>(&mut self, lines: impl Iterator<Item = Line<'l>>) -> io::Result<u8> {
        if self.audit.is_atomic() {
            self.load_whole(lines)
        } else {
            self.load_by_line(lines)
        }
    }

    fn load_by_line<'l>(&mut self, lines: impl Iterator<Item = Line<'l>>) -> io::Result<u8> {
        let mut progress = Progress::default();
        for (source, line) in lines {
            let Some(commands) = self.parse(&source, line) else {
                if progress.fail(&source) {
                    return Ok(progress.status(true));
                }
                continue;
            };
            self.has_shown_state = false;
            for command in &commands {
                progress.ignores_errors |= is_tolerant(command);
                progress.continues_on_error |= matches!(command, Command::ContinueOnError);
                if self.carry_out(command)?.is_err() {
                    if progress.fail(&source) {
                        return Ok(progress.status(true));
                    }
                    break;
                }
            }
        }

        Ok(progress.status(false))
    }

    fn load_whole<'l>(&mut self, lines: impl Iterator<Item = Line<'l>>) -> io::Result<u8> {
        let mut progress = Progress::default();
        let mut sources = Vec::new();
        let mut commands = Vec::new();
        let mut tolerate_from = None;

        for (source, line) in lines {
            let Some(parsed) = self.parse(&source, line) else {
                if progress.fail(&source) {
                    return Ok(progress.status(true));
                }
                continue;
            };
            for command in parsed {
                progress.continues_on_error |= matches!(command, Command::ContinueOnError);
                if is_tolerant(&command) {
                    progress.ignores_errors = true;
                    tolerate_from.get_or_insert(commands.len());
                }
                sources.push(source.clone());
                commands.push(command);
            }
        }

        let tolerate_from = tolerate_from.unwrap_or(commands.len());
        let applied = match self.audit.apply(&commands, tolerate_from) {
            Ok(applied) => applied,
            Err(Trouble { reason, .. }) => {
                report!("{reason}");
                return Ok(FAILED);
            }
        };

        for (place, trouble) in &applied.refused {
            let Some((command, source)) = commands.get(*place).zip(sources.get(*place)) else {
                continue;
            };
            let _ = say(command, trouble);
            progress.has_failed = true;
            say_place(source);
            if *place < tolerate_from {
                report!("Nothing was changed");
                return Ok(progress.status(true));
            }
        }

        let refused = |place| applied.refused.iter().any(|(refused, _)| *refused == place);

        for (place, command) in commands.iter().enumerate() {
            match command {
                // There were no rules at that point, whatever was added after it.
                Command::DeleteAll { key: None } if !refused(place) => print("No rules\n")?,
                Command::DeleteAll { .. } => {}
                Command::Status { .. } | Command::List { .. } | Command::Signal(_) => {
                    let _ = self.carry_out(command)?;
                }
                _ if refused(place) => {}
                _ => self.show_result(command, applied.value)?,
            }
        }

        Ok(progress.status(false))
    }

    /// The commands in a line; `None`, after printing why, if the line is wrong.
    fn parse(&self, source: &Source, line: &[u8]) -> Option<Vec<Command>> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let dialect = if rules::is_own_file(&source.file) && self.audit.is_atomic() {
            Dialect::Tarsier
        } else {
            self.dialect
        };
        let parsed = parse_line_as(dialect, line, source, &SystemHost);
        say_findings(&parsed).then_some(parsed.commands)
    }
}

fn is_tolerant(command: &Command) -> bool {
    matches!(command, Command::IgnoreErrors | Command::ContinueOnError)
}

fn say_place(source: &Source) {
    let Source { file, line } = source;
    report!("There was an error in line {line} of {file}");
}

/// Reads a file that only root can have written (auditctl(8), `-R`). The error is a message.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.display();
    let cannot = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => format!("audit rules file {name} doesn't exist"),
        _ => {
            let cause = error.raw_os_error().map(super::audit::errno_text);
            let cause = cause.unwrap_or_else(|| error.to_string());
            format!("Error opening {name} ({cause})")
        }
    };

    // NONBLOCK: a FIFO is refused, not waited for.
    let mut options = File::options();
    let options = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path).map_err(cannot)?;
    let metadata = file.metadata().map_err(cannot)?;
    if metadata.uid() != 0 {
        return Err(format!("Error - {name} isn't owned by root"));
    }
    if metadata.mode() & 0o002 != 0 {
        return Err(format!("Error - {name} is world writable"));
    }
    if !metadata.is_file() {
        return Err(format!("Error - {name} is not a regular file"));
    }

    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX)
        .read_to_end(&mut text)
        .map_err(cannot)?;

    Ok(text)
}
