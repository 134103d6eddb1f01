//! The result of verification.

use std::fmt;
use std::path::{Path, PathBuf};

use super::position::SealPosition;
use crate::seal::time_text;

/// The outcome for one file.
#[derive(Default)]
pub(super) struct FileCheck {
    pub(super) first_epoch: Option<u32>,
    pub(super) intact_bytes: u64,
    pub(super) until_ms: Option<u64>,
    pub(super) notes: Vec<String>,
    pub(super) finding: Option<SealFinding>,
    pub(super) end: Option<SealPosition>,
}

/// A file that was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The log file.
    pub path: PathBuf,
    /// Number of bytes, from the file's start, that match the seal.
    pub intact_bytes: u64,
    /// Time at which the last of them were sealed, in ms since 1970.
    pub until_ms: Option<u64>,
}

/// Something that is not a fault but should be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The file.
    pub path: PathBuf,
    /// The note, in one line.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.text)
    }
}

/// The first difference from what was sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealFinding {
    /// The log file.
    pub path: PathBuf,
    /// The bytes of the log that contain the difference, if known.
    pub bytes: Option<std::ops::Range<u64>>,
    /// The line in which those bytes begin, from 1.
    pub line: Option<u64>,
    /// Time at which those bytes were sealed, in ms since 1970.
    pub sealed_ms: Option<u64>,
    /// Description of the fault.
    pub what: String,
}

impl SealFinding {
    pub(super) fn of_file(path: &Path, what: String) -> Self {
        SealFinding {
            path: path.to_owned(),
            bytes: None,
            line: None,
            sealed_ms: None,
            what,
        }
    }
}

impl fmt::Display for SealFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        if let Some(bytes) = &self.bytes {
            write!(f, "bytes {} to {}", bytes.start, bytes.end)?;
            if let Some(line) = self.line {
                write!(f, ", from line {line}")?;
            }
            f.write_str(": ")?;
        }

        f.write_str(&self.what)?;
        match self.sealed_ms {
            Some(time_ms) => write!(f, " (sealed at {})", time_text(time_ms)),
            None => Ok(()),
        }
    }
}

/// The outcome for a list of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The sealed files, in the given order, up to the one with the finding.
    pub files: Vec<Checked>,
    /// Further remarks that the reader should know.
    pub notes: Vec<Note>,
    /// The first fault; `None` if the log is intact.
    pub finding: Option<SealFinding>,
    /// State of the last file's end.
    pub end: End,
}

/// State of a log's end, as far as its seal tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The log ends with an authenticated entry that says that the journal was closed or that another file follows:
    /// nothing was cut off.
    InOrder,
    /// The log ends anywhere, but the journal that holds the log's lock has written nothing more with this host's keys,
    /// or the seal is as new as was demanded.
    Vouched,
    /// The log ends anywhere: what followed may have been cut off with its seal, or the journal was killed.
    #[default]
    Open,
}

impl Report {
    /// Whether no fault was found.
    pub fn is_intact(&self) -> bool {
        self.finding.is_none()
    }

    /// Whether the journal was closed in order, or rotated, after the last bytes.
    pub fn is_closed(&self) -> bool {
        self.end == End::InOrder
    }

    /// The time, in ms since 1970, up to which everything written is there unaltered.
    pub fn until_ms(&self) -> Option<u64> {
        self.files.iter().rev().find_map(|file| file.until_ms)
    }

    fn note(&mut self, path: &Path, text: String) {
        self.notes.push(Note {
            path: path.to_owned(),
            text,
        });
    }

    /// Adds notes on files before the first sealed one, and on a series that began earlier.
    pub(super) fn note_beginning(&mut self, unsealed: &[&PathBuf], check: &FileCheck, log: &Path) {
        let is_first = check.first_epoch == Some(0);
        for path in unsealed {
            if is_first {
                self.note(path, "from before sealing began: not verified".into());
            } else if self.finding.is_none() {
                let what = "its seal is missing: a later file continues an earlier seal";
                self.finding = Some(SealFinding::of_file(path, what.into()));
            }
        }

        if let (Some(epoch), true, true) = (check.first_epoch, !is_first, unsealed.is_empty()) {
            let text = format!("begins with epoch {epoch}: earlier files are not here");
            self.note(log, text);
        }
    }

    /// Adds a file's outcome. Returns where the next file continues.
    pub(super) fn take(&mut self, log: &Path, check: FileCheck) -> Option<SealPosition> {
        for text in check.notes {
            self.note(log, text);
        }

        self.files.push(Checked {
            path: log.to_owned(),
            intact_bytes: check.intact_bytes,
            until_ms: check.until_ms,
        });

        if self.finding.is_none() {
            self.finding = check.finding;
        }
        check.end
    }
}
