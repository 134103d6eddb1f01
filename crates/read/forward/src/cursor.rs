//! Records how far the log has been sent, in a file with two slots.
//!
//! Each write goes to the slot that is not the newest, and is synced, so that a cut power supply
//! leaves one whole slot. A slot is a header and text that people can read:
//!
//! ```text
//! slot: "TARFWD1\n"  generation u64  length u32  0 u32  BLAKE3[16] of generation and text  text
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::mark::{Mark, Marks};
use crate::position::{Position, Series};

const MAGIC: &[u8; 8] = b"TARFWD1\n";
const HEADER_BYTES: usize = 40;
const SLOT_BYTES: u64 = 8192;

/// Facts that a sink has to know to send, and to send again: sequences, ids, sizes.
pub type SinkState = BTreeMap<String, String>;

/// A range of the log that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Position at which sending goes on.
    pub to: Position,
    /// Number of events in the range; of those that could be counted.
    pub events: u64,
    /// Reason for the gap.
    pub cause: String,
}

/// A batch that may or may not have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// End of the batch.
    pub to: Position,
    /// Settings that the batch was made with.
    pub recipe: String,
}

/// The content of the cursor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Series of the positions.
    pub series: Option<Series>,
    /// Position of the destination: `to` of the last batch that was acknowledged.
    pub acked: Position,
    /// Position at which reading goes on: ahead of `acked` by the events that the filter kept back.
    pub read: Position,
    /// Number of events between `acked` and `read`.
    pub filtered: u64,
    /// Number of events that were acknowledged.
    pub events: u64,
    /// Gap to be reported before the events that follow `read`.
    pub gap: Option<Gap>,
    /// Gap to be skipped as soon as the pending batch is acknowledged.
    pub gap_after: Option<Gap>,
    /// The batch that was about to be sent.
    pub pending: Option<Pending>,
    /// Digests of the text before places that were read.
    pub marks: Marks,
    /// State of the sink.
    pub sink: SinkState,
}

impl Cursor {
    /// Position at which the next event is read.
    pub(crate) fn next(&self) -> Position {
        self.gap.as_ref().map_or(self.read, |gap| gap.to)
    }

    fn to_text(&self) -> String {
        let mut text = String::new();
        if let Some(series) = self.series {
            let _ = writeln!(text, "series {series}");
        }
        let _ = writeln!(text, "acked {}\nread {}", self.acked, self.read);
        let _ = writeln!(text, "filtered {}\nevents {}", self.filtered, self.events);
        for (name, gap) in [("gap", &self.gap), ("gap_after", &self.gap_after)] {
            if let Some(gap) = gap {
                let _ = writeln!(text, "{name} {} {} {}", gap.to, gap.events, gap.cause);
            }
        }

        if let Some(pending) = &self.pending {
            let _ = writeln!(text, "pending {} {}", pending.to, pending.recipe);
        }
        for mark in self.marks.iter() {
            let _ = writeln!(text, "mark {}", mark.to_text());
        }

        for (name, value) in &self.sink {
            let _ = writeln!(text, "sink {name} {value}");
        }
        text
    }

    fn from_text(text: &str) -> Option<Cursor> {
        let mut cursor = Cursor::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ')?;
            match name {
                "series" => cursor.series = Some(value.parse().ok()?),
                "acked" => cursor.acked = value.parse().ok()?,
                "read" => cursor.read = value.parse().ok()?,
                "filtered" => cursor.filtered = value.parse().ok()?,
                "events" => cursor.events = value.parse().ok()?,
                "gap" => cursor.gap = Some(gap(value)?),
                "gap_after" => cursor.gap_after = Some(gap(value)?),
                "pending" => {
                    let (to, recipe) = value.split_once(' ')?;
                    cursor.pending = Some(Pending {
                        to: to.parse().ok()?,
                        recipe: recipe.to_owned(),
                    });
                }
                "mark" => cursor.marks.add(Mark::from_text(value)?),
                "sink" => {
                    let (name, value) = value.split_once(' ')?;
                    cursor.sink.insert(name.to_owned(), value.to_owned());
                }
                _ => return None,
            }
        }

        Some(cursor)
    }
}

fn gap(text: &str) -> Option<Gap> {
    let mut words = text.splitn(3, ' ');
    Some(Gap {
        to: words.next()?.parse().ok()?,
        events: words.next()?.parse().ok()?,
        cause: words.next()?.to_owned(),
    })
}

/// Reason why the cursor cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CursorError {
    /// A system call failed.
    #[error("{}: cannot {call} the cursor: {source}; check the spool's file system", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Error of the call.
        source: io::Error,
    },
    /// Neither slot is whole.
    #[error(
        "{}: both slots of the cursor are damaged; what was sent is not known. Remove the spool to \
         begin a new series: the far side then has events twice",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// The text does not fit a slot.
    #[error("{}: the cursor would need {bytes} bytes; shorten the filters", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Bytes needed.
        bytes: usize,
    },
}

/// The file of the cursor.
#[derive(Debug)]
pub struct CursorFile {
    file: File,
    path: PathBuf,
    generation: u64,
}

impl CursorFile {
    /// Opens the cursor, or creates an empty one.
    ///
    /// # Errors
    /// The cursor cannot be opened or is damaged.
    pub fn open(path: &Path) -> Result<(CursorFile, Cursor), CursorError> {
        let io = |call| {
            move |source| CursorError::Io {
                path: path.to_owned(),
                call,
                source,
            }
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(io("open"))?;

        let newest = newest(&file).map_err(io("read"))?;
        let length = file.metadata().map_err(io("stat"))?.len();
        let (generation, cursor) = match newest {
            Some(found) => found,
            // A power cut at the first write of all leaves an empty or torn first slot.
            None if length <= SLOT_BYTES => (0, Cursor::default()),
            None => {
                return Err(CursorError::Damaged {
                    path: path.to_owned(),
                })
            }
        };

        let opened = CursorFile {
            file,
            path: path.to_owned(),
            generation,
        };
        Ok((opened, cursor))
    }

    /// Reads a cursor that a sender may be writing. `None` if there is none.
    pub fn read(path: &Path) -> io::Result<Option<Cursor>> {
        match File::open(path) {
            Ok(file) => Ok(newest(&file)?.map(|(_, cursor)| cursor)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes `cursor` durable.
    ///
    /// # Errors
    /// The cursor cannot be written. The file then has the earlier one.
    pub fn save(&mut self, cursor: &Cursor) -> Result<(), CursorError> {
        let text = cursor.to_text();
        if text.len() as u64 > SLOT_BYTES - HEADER_BYTES as u64 {
            return Err(CursorError::TooLong {
                path: self.path.clone(),
                bytes: text.len(),
            });
        }

        let io = |call| {
            let path = self.path.clone();
            move |source| CursorError::Io { path, call, source }
        };
        let generation = self.generation + 1;
        let mut slot = Vec::with_capacity(HEADER_BYTES + text.len());
        slot.extend_from_slice(MAGIC);
        slot.extend_from_slice(&generation.to_le_bytes());
        slot.extend_from_slice(&(text.len() as u32).to_le_bytes());
        slot.extend_from_slice(&[0; 4]);
        slot.extend_from_slice(&sum(generation, text.as_bytes()));
        slot.extend_from_slice(text.as_bytes());

        let at = ((generation + 1) % 2) * SLOT_BYTES;
        self.file.write_all_at(&slot, at).map_err(io("write"))?;
        rustix::fs::fdatasync(&self.file)
            .map_err(io::Error::from)
            .map_err(io("sync"))?;
        self.generation = generation;

        Ok(())
    }
}

fn newest(file: &File) -> io::Result<Option<(u64, Cursor)>> {
    let slots = [slot(file, 0)?, slot(file, SLOT_BYTES)?];
    Ok(slots.into_iter().flatten().max_by_key(|(each, _)| *each))
}

fn slot(file: &File, at: u64) -> io::Result<Option<(u64, Cursor)>> {
    let mut bytes = vec![0; SLOT_BYTES as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], at + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(parse_slot(&bytes[..filled]))
}

/// Generation and content of a slot, if it is whole.
pub fn parse_slot(bytes: &[u8]) -> Option<(u64, Cursor)> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let generation = u64::from_le_bytes(rest.get(..8)?.try_into().ok()?);
    let length = u32::from_le_bytes(rest.get(8..12)?.try_into().ok()?) as usize;
    let text = bytes.get(HEADER_BYTES..HEADER_BYTES.checked_add(length)?)?;
    if bytes[24..HEADER_BYTES] != sum(generation, text) {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    Some((generation, Cursor::from_text(text)?))
}

fn sum(generation: u64, text: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&generation.to_le_bytes());
    hasher.update(text);
    let mut sum = [0; 16];
    sum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks() -> Marks {
        let mut marks = Marks::default();
        for offset in 1..40 {
            marks.add(Mark::of(1, offset, b"text"));
        }
        marks
    }

    fn cursor(file: u64) -> Cursor {
        let at = |offset| Position {
            file,
            offset,
            seal: 1,
        };
        let gap = |cause: &str| {
            Some(Gap {
                to: at(9),
                events: 4,
                cause: cause.into(),
            })
        };
        Cursor {
            series: Some(Series(7)),
            acked: at(1),
            read: at(2),
            filtered: 3,
            events: 8,
            gap: gap("hold"),
            gap_after: gap("two words"),
            pending: Some(Pending {
                to: at(5),
                recipe: "format=raw keys=a b".into(),
            }),
            marks: marks(),
            sink: [("sequence".to_owned(), "12".to_owned())].into(),
        }
    }

    #[test]
    fn a_cursor_is_read_as_it_was_saved() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("cursor");
        let (mut file, empty) = CursorFile::open(&path).expect("a new cursor");
        assert_eq!(empty, Cursor::default());
        for number in 1..=3 {
            file.save(&cursor(number)).expect("save");
            let (_, read) = CursorFile::open(&path).expect("open again");
            assert_eq!(read, cursor(number));
        }
    }

    #[test]
    fn any_damaged_byte_of_the_newest_slot_gives_the_one_before() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("cursor");
        let (mut file, _) = CursorFile::open(&path).expect("a new cursor");
        file.save(&cursor(1)).expect("save");
        file.save(&cursor(2)).expect("save");
        let whole = std::fs::read(&path).expect("read");
        let used = HEADER_BYTES + cursor(2).to_text().len();
        for at in (0..used).filter(|at| !(20..24).contains(at)) {
            let mut bytes = whole.clone();
            bytes[SLOT_BYTES as usize + at] ^= 0x20;
            std::fs::write(&path, bytes).expect("write");
            let (_, read) = CursorFile::open(&path).expect("open");
            assert_eq!(read, cursor(1), "byte {at}");
        }
        let nothing = vec![0; whole.len()];
        std::fs::write(&path, nothing).expect("write");
        let error = CursorFile::open(&path).expect_err("both are damaged");
        assert!(error.to_string().contains("both slots"), "{error}");
    }
}
