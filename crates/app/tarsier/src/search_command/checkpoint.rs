//! `--checkpoint FILE`: where the last search ended, so that the next one prints only new events.
//!
//! The file has ausearch's form: device and inode of the last log, then node, time, serial and type of the last event.

use cli::messages::report;
use query::{Dialect, Event, Key};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Exit status for a checkpoint that cannot be used.
const UNUSABLE: u8 = 10;
/// Exit status for a checkpoint that cannot be written.
const NOT_WRITTEN: u8 = 11;
/// Exit status for a checkpoint whose event is missing from its log.
const CORRUPTED: u8 = 12;
/// Seconds after the checkpoint's event within which ausearch must find it.
const EVENT_DELTA_S: u64 = 2;

/// The event that the file names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Last {
    key: Key,
    kind: i32,
}

/// Contents of the file.
#[derive(Debug, Default)]
struct Loaded {
    device: u32,
    inode: u64,
    last: Last,
}

/// End of the last search, and place of this one.
pub(crate) struct Checkpoint {
    path: PathBuf,
    loaded: Option<Loaded>,
    /// Only the time of the checkpoint counts: `-ts checkpoint`.
    is_time_only: bool,
    dialect: Dialect,
    can_output: bool,
    last: Option<Last>,
}

/// Treatment of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Print,
    Skip,
    /// The checkpoint's event should have come before: end with this status.
    End(u8),
}

impl Checkpoint {
    /// Reads the file, if there is one.
    ///
    /// # Errors
    /// The exit status for a file that cannot be used, after the message.
    pub(crate) fn load(
        path: PathBuf,
        is_time_only: bool,
        dialect: Dialect,
    ) -> Result<Checkpoint, u8> {
        let loaded = match fs::read(&path) {
            Ok(text) => Some(Loaded::parse(&text, &path).ok_or(UNUSABLE)?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                report!(
                    "Cannot open checkpoint file - {}: {}",
                    path.display(),
                    super::logs::reason(&error)
                );
                return Err(UNUSABLE);
            }
        };
        Ok(Checkpoint {
            path,
            loaded,
            is_time_only,
            dialect,
            can_output: false,
            last: None,
        })
    }

    /// The number of the log where the last search ended. They come oldest first.
    ///
    /// # Errors
    /// The exit status if that log is not among them.
    pub(crate) fn first_log(&self, files: &[PathBuf]) -> Result<usize, u8> {
        let Some(loaded) = self.loaded.as_ref().filter(|_| !self.is_time_only) else {
            return Ok(0);
        };
        let is_it = |path: &PathBuf| {
            fs::metadata(path)
                .is_ok_and(|log| log.dev() as u32 == loaded.device && log.ino() == loaded.inode)
        };
        files.iter().rposition(is_it).ok_or_else(|| {
            if !self.dialect.is_compat() {
                report!(
                    "tarsier: search: --checkpoint {}: its log is gone; with -ts checkpoint the \
                     search goes on by time",
                    self.path.display()
                );
            }
            UNUSABLE
        })
    }

    /// Whether every event has to be shown to [`Checkpoint::decide`]: the last search may have ended with one that does
    /// not match. ausearch shows only events that match, and does not find its place again.
    pub(crate) fn is_about_all(&self) -> bool {
        !self.dialect.is_compat()
    }

    /// Whether an event is new.
    pub(crate) fn decide(&mut self, event: &Event) -> Decision {
        let Some(loaded) = self.loaded.as_ref().filter(|_| !self.can_output) else {
            return Decision::Print;
        };
        let (key, last) = (event.key(), &loaded.last);
        let is_no_earlier = (last.key.sec, last.key.msec) <= (key.sec, key.msec);
        if last.key.sec == 0 || (self.is_time_only && is_no_earlier) {
            self.can_output = true;
            return Decision::Print;
        }
        if last.key == *key && last.kind == event.kind() {
            self.can_output = true;
            return Decision::Skip;
        }
        if self.dialect.is_compat() && key.sec.saturating_sub(last.key.sec) > EVENT_DELTA_S {
            report!(
                "Corrupted checkpoint file. Inode match, but newer complete event ({}.{:03}:{}) \
                 found before loaded checkpoint {}.{:03}:{}",
                key.sec,
                key.msec,
                key.serial,
                last.key.sec,
                last.key.msec,
                last.key.serial
            );
            return Decision::End(CORRUPTED);
        }
        Decision::Skip
    }

    /// The exit status, after the message, if the log was read to its end without the event where the last search ended.
    pub(crate) fn missing(&self) -> Option<u8> {
        let loaded = self.loaded.as_ref()?;
        if self.dialect.is_compat() || self.can_output || self.is_time_only {
            return None;
        }
        let key = &loaded.last.key;
        report!(
            "tarsier: search: --checkpoint {}: the log does not have its event \
             ({}.{:03}:{}) any more; with -ts checkpoint the search goes on by time",
            self.path.display(),
            key.sec,
            key.msec,
            key.serial
        );
        Some(CORRUPTED)
    }

    /// Remembers an event, whether it was printed or not.
    pub(crate) fn note(&mut self, event: &Event) {
        self.last = Some(Last {
            key: event.key().clone(),
            kind: event.kind(),
        });
    }

    /// Writes the file after `log` was read to its end. Returns the exit status if that fails, after the message.
    pub(crate) fn save(&self, log: &Path) -> Option<u8> {
        let metadata = match fs::metadata(log) {
            Ok(metadata) => metadata,
            Err(error) => {
                report!(
                    "Cannot stat audit file for checkpoint details - {}: {}",
                    log.display(),
                    super::logs::reason(&error)
                );
                return Some(NOT_WRITTEN);
            }
        };
        let last = self.last.clone().unwrap_or_default();
        let node = last.key.node.as_deref().unwrap_or(b"-");
        let head = format!(
            "dev=0x{:X}\ninode={}\noutput=",
            metadata.dev() as u32,
            // ausearch has 32 bits of it.
            match self.dialect {
                Dialect::Own => metadata.ino(),
                Dialect::Compat => u64::from(metadata.ino() as u32),
            }
        );
        let tail = format!(
            " {}.{:03}:{} 0x{:X}\n",
            last.key.sec, last.key.msec, last.key.serial, last.kind
        );
        let text = [head.as_bytes(), node, tail.as_bytes()].concat();
        let written = File::create(&self.path).and_then(|mut file| file.write_all(&text));
        if let Err(error) = written {
            report!(
                "Cannot open checkpoint file - {}: {}",
                self.path.display(),
                super::logs::reason(&error)
            );
            return Some(NOT_WRITTEN);
        }
        None
    }
}

impl Loaded {
    /// Reads the text of a file. Says what is wrong with it.
    fn parse(text: &[u8], path: &Path) -> Option<Loaded> {
        let mut loaded = Loaded::default();
        let text = String::from_utf8_lossy(text);
        let mut is_good = true;
        for line in text.lines() {
            let read = match line.split_once('=') {
                Some(("dev", value)) => {
                    let digits = value.trim_start_matches("0x");
                    u64::from_str_radix(digits, 16)
                        .map(|device| loaded.device = device as u32)
                        .map_err(|_| format!("Malformed dev checkpoint line - [{line}]"))
                }
                Some(("inode", value)) => value
                    .parse()
                    .map(|inode| loaded.inode = inode)
                    .map_err(|_| format!("Malformed inode checkpoint line - [{line}]")),
                Some(("output", value)) => Last::parse(value, line).map(|last| loaded.last = last),
                _ => Err(format!("Unknown checkpoint line - [{line}]")),
            };
            if let Err(message) = read {
                report!("{message}");
                is_good = false;
                break;
            }
        }
        if loaded.inode == 0 || loaded.device == 0 {
            let name = path.display();
            report!("Missing dev/inode lines from checkpoint file {name}");
            is_good = false;
        }
        is_good.then_some(loaded)
    }
}

impl Last {
    /// Reads `NODE S.mmm:N 0xTYPE`.
    fn parse(text: &str, line: &str) -> Result<Last, String> {
        let Some((node, rest)) = text.split_once(' ') else {
            return Err(format!(
                "Malformed output/event checkpoint line near node - [{line}]"
            ));
        };
        let read = || {
            let (time, kind) = rest.split_once(' ')?;
            let (sec, time) = time.split_once('.')?;
            let (msec, serial) = time.split_once(':')?;
            let kind = i64::from_str_radix(kind.trim().strip_prefix("0x")?, 16).ok()?;
            Some(Last {
                key: Key {
                    sec: sec.parse().ok()?,
                    msec: msec.parse().ok()?,
                    serial: serial.parse().ok()?,
                    node: (node != "-").then(|| Box::from(node.as_bytes())),
                },
                kind: kind as i32,
            })
        };
        read().ok_or_else(|| {
            let cut = &line[..line.len() - rest.len() - 1];
            format!("Malformed output/event checkpoint line after node - [{cut}]")
        })
    }
}
