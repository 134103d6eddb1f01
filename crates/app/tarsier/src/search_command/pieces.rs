//! Plain files in pieces, which threads read, each with the whole events that begin in it.

use super::logs::{is_converted, Input, Source};
use anyhow::{Context, Result};
use query::report::runs::{boundary, NotOrdered, Reading, AFTER_BYTES, BEFORE_BYTES};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of the first look behind a piece. Most events are shorter.
const NEAR_BYTES: usize = 16 << 10;

/// Most threads that TARSIER_THREADS can ask for.
const THREADS_MAX: usize = 1024;

/// A piece of a file, between two places that [`boundary`] moves.
#[derive(Clone, Copy)]
pub(super) struct Piece<'f> {
    file: &'f File,
    file_bytes: u64,
    start: u64,
    end: u64,
}

/// Reason why the events of a piece cannot be told.
pub(super) enum Failed {
    NotOrdered,
    Io(io::Error),
}

impl From<NotOrdered> for Failed {
    fn from(_: NotOrdered) -> Failed {
        Failed::NotOrdered
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

/// The files of all sources with their lengths; `None` if one is no regular file with lines of text.
///
/// # Errors
/// The state of a file cannot be asked for.
pub(crate) fn plain_files(input: &Input) -> Result<Option<Vec<(File, u64)>>> {
    let plain = |(number, source): (usize, &Source)| match source {
        // Records of a host get its name.
        _ if input.host(number).is_some() => Ok(None),
        Source::File(path) => plain_file(path),
        Source::Stdin | Source::Member { .. } => Ok(None),
    };
    input.sources.iter().enumerate().map(plain).collect()
}

/// The file and its length, if it begins with a record as text.
///
/// # Errors
/// The errors of [`plain_files`].
pub(crate) fn plain_file(path: &Path) -> Result<Option<(File, u64)>> {
    // Reading it from the beginning says why it cannot be opened.
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let metadata = file
        .metadata()
        .with_context(|| path.display().to_string())?;
    if !metadata.is_file() || is_converted(&file)? {
        return Ok(None);
    }
    Ok(Some((file, metadata.len())))
}

/// Pieces of about `piece_bytes` of a file.
pub(super) fn pieces_of(file: &File, file_bytes: u64, piece_bytes: u64) -> Vec<Piece<'_>> {
    let piece = |number: u64| Piece {
        file,
        file_bytes,
        start: number * piece_bytes,
        end: ((number + 1) * piece_bytes).min(file_bytes),
    };
    (0..file_bytes.div_ceil(piece_bytes)).map(piece).collect()
}

impl Piece<'_> {
    /// The whole events that begin in this piece.
    ///
    /// # Errors
    /// The file cannot be read, or it cannot be told where an event begins.
    pub(super) fn read<'b>(
        &self,
        buffer: &'b mut Vec<u8>,
        reading: Reading,
    ) -> Result<&'b [u8], Failed> {
        let (start, end) = match self.ends(buffer, reading, NEAR_BYTES) {
            Err(Failed::NotOrdered) => self.ends(buffer, reading, AFTER_BYTES)?,
            ends => ends?,
        };
        Ok(&buffer[start..end])
    }

    /// Reads the piece and `near` bytes on both sides. Returns where in the buffer its events begin and end.
    fn ends(
        &self,
        buffer: &mut Vec<u8>,
        reading: Reading,
        near: usize,
    ) -> Result<(usize, usize), Failed> {
        let (before, after) = (near.min(BEFORE_BYTES) as u64, near as u64);
        let from = self.start.saturating_sub(before);
        let to = (self.end + after).min(self.file_bytes);
        read_at(self.file, from, to, buffer)?;
        if (buffer.len() as u64) < to - from {
            // Somebody has cut it meanwhile.
            return Err(Failed::NotOrdered);
        }

        let place = |at: u64| {
            let first = at.saturating_sub(before).max(from);
            let last = (at + after).min(to);
            let window = &buffer[(first - from) as usize..(last - from) as usize];
            let at = (at - first) as usize;
            let (is_begin, is_end) = (first == 0, last == self.file_bytes);
            boundary(window, at, is_begin, is_end, reading)
                .map(|found| (first - from) as usize + found)
        };

        let start = place(self.start)?;
        let end = if self.end == self.file_bytes {
            buffer.len()
        } else {
            place(self.end)?
        };
        Ok((start.min(end), end))
    }
}

/// Number of threads that look at logs: TARSIER_THREADS, or else the processors that this process may use. The standard
/// library would also read its control groups, which takes longer than a short search should.
pub(crate) fn processors() -> usize {
    let wanted = std::env::var("TARSIER_THREADS").ok();
    if let Some(wanted) = wanted.and_then(|threads| threads.parse::<usize>().ok()) {
        return wanted.clamp(1, THREADS_MAX);
    }
    rustix::thread::sched_getaffinity(None).map_or(1, |set| (set.count() as usize).max(1))
}

/// Reads the bytes from `start` to `end`, fewer if the file is shorter now.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_at(file: &File, start: u64, end: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    let length = (end - start) as usize;
    buffer.resize(length, 0);
    let mut done = 0;
    while done < length {
        match file.read_at(&mut buffer[done..], start + done as u64) {
            Ok(0) => break,
            Ok(count) => {
                done += count;
                ::logs::count_read(count as u64);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }

    buffer.truncate(done);
    Ok(())
}
