//! Whether a file has records, said before anything else is said about it.

use crate::log::Log;
use crate::LogError;
use query::{Assembler, Dialect, Feed, Lines};

/// Contents of a log, by its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contents {
    /// Whether there is nothing in it.
    pub is_empty: bool,
    /// Time of the first record in seconds and milliseconds since 1970.
    pub first: Option<(u64, u32)>,
}

/// Reads a log up to its first record. A log without a byte has none, and is a log.
///
/// # Errors
/// The log cannot be read up to its first record, or has none.
pub fn check(log: &Log) -> Result<Contents, LogError> {
    let failed = |error| LogError::Io {
        path: log.to_string().into(),
        error,
    };
    let mut lines = Lines::new(log.open().map_err(failed)?, None);
    let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
    let mut feed = Feed::default();
    let mut start = Vec::new();
    let mut is_over = false;
    while !is_over {
        match lines.next_line().map_err(failed)? {
            Some(line) => {
                if start.is_empty() {
                    start = line[..line.len().min(16)].to_vec();
                }
                feed.add(line, &mut assembler);
            }
            None => {
                feed.end(&mut assembler);
                is_over = true;
            }
        }
        if let Some(first) = assembler.first_time() {
            return Ok(Contents {
                is_empty: false,
                first: Some(first),
            });
        }
    }

    if start.is_empty() {
        Ok(Contents {
            is_empty: true,
            first: None,
        })
    } else {
        Err(LogError::NoRecords {
            name: log.to_string(),
            hint: hint(&start).to_owned(),
        })
    }
}

/// The error for a log that was read to its end without a record.
pub fn no_records(log: &Log) -> LogError {
    LogError::NoRecords {
        name: log.to_string(),
        hint: String::new(),
    }
}

/// What a file without records is, if its first bytes say so.
fn hint(start: &[u8]) -> &'static str {
    match start {
        [0x7f, b'E', b'L', b'F', ..] => " (it is a program: ELF)",
        [0x89, b'P', b'N', b'G', ..] => " (it is a picture: PNG)",
        [b'P', b'K', 3, 4, ..] => " (it is a ZIP archive: unpack it first)",
        [0x37, 0x7a, 0xbc, 0xaf, ..] => " (it is a 7z archive: unpack it first)",
        [b'L', b'P', b'K', b'S', ..] => {
            " (it is a binary journal: journalctl --file FILE -o export | tarsier search)"
        }
        [b'P', b'A', b'R', b'1', ..] => " (it is a Parquet table)",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => " (it is text in UTF-16: convert it to UTF-8)",
        [b'{' | b'[', ..] => " (it is JSON of another kind)",
        _ => "",
    }
}
