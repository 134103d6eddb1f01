//! Counting reports, made by threads that each read a part of the logs.
//!
//! This works for plain files in the order of time. For others [`summary`] returns `None`, and one thread reads
//! them from beginning to end.

use super::options::ReportOptions;
use crate::search_command::logs::{Defaults, Input, Source};
use anyhow::{Context, Result};
use query::report::runs::{boundary, Extent, NotOrdered, Part, Reading, AFTER_BYTES, BEFORE_BYTES};
use query::report::Summary;
use query::Dialect;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of a part. A thread holds one at a time.
const PART_BYTES: u64 = 4 << 20;
/// Most threads.
const THREADS_MAX: usize = 4;

/// A report, and the times of the log in seconds and milliseconds.
pub(super) struct Parts {
    pub(super) summary: Summary,
    pub(super) first: (u64, u32),
    pub(super) last: (u64, u32),
}

/// A part of a file, between two places that [`boundary`] moves.
#[derive(Clone, Copy)]
struct Piece<'f> {
    file: &'f File,
    file_bytes: u64,
    start: u64,
    end: u64,
}

/// Why a part cannot be counted.
enum Failed {
    NotOrdered,
    Io(std::io::Error),
}

impl From<NotOrdered> for Failed {
    fn from(_: NotOrdered) -> Failed {
        Failed::NotOrdered
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Failed {
        Failed::Io(error)
    }
}

/// Counts all events, or returns `None` if the logs have to be read from beginning to end.
///
/// # Errors
/// A log cannot be read.
pub(super) fn summary(
    options: &ReportOptions,
    input: &Input,
    defaults: &Defaults,
) -> Result<Option<Parts>> {
    let dialect = options.request.dialect;
    let mut files = Vec::new();
    for source in &input.sources {
        match plain_file(source)? {
            Some(file) => files.push(file),
            None => return Ok(None),
        }
    }
    // An event may go on in the next file, which only the machine knows.
    if dialect != Dialect::Own && files.len() > 1 {
        return Ok(None);
    }
    let reading = Reading {
        dialect,
        timeout_s: options.timeout_s.unwrap_or(defaults.timeout_s),
        range: options.range(),
    };
    let pieces = pieces(&files);
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let work = || {
        let done = count(&pieces, &next, &is_over, reading, options);
        if done.is_err() {
            is_over.store(true, Ordering::Relaxed);
        }
        done
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(THREADS_MAX).min(pieces.len());
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut results = vec![work()];
        results.extend(others.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }));
        results
    });
    let mut whole = Summary::new(options.request.clone(), 0);
    let mut extents = Vec::new();
    for result in results {
        match result {
            Ok((summary, its)) => {
                whole.merge(summary);
                extents.extend(its);
            }
            Err(Failed::NotOrdered) => return Ok(None),
            Err(Failed::Io(error)) => return Err(error).context("cannot read the log"),
        }
    }
    extents.sort_unstable_by_key(|(number, _)| *number);
    let mut extent = Extent::default();
    for (_, next) in extents {
        if extent.append(next).is_err() {
            return Ok(None);
        }
    }
    Ok(Some(Parts {
        summary: whole,
        first: extent.first_record.unwrap_or((0, 0)),
        last: extent.last_inside.unwrap_or((0, 0)),
    }))
}

/// A regular file that is not compressed.
fn plain_file(source: &Source) -> Result<Option<(File, u64)>> {
    const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let Source::File(path) = source else {
        return Ok(None);
    };
    // Reading it from the beginning says why it cannot be opened.
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let metadata = file.metadata().with_context(|| source.to_string())?;
    let mut head = [0; 64];
    let length = read_at(&file, &mut head, 0).unwrap_or(0);
    let is_text = head.starts_with(b"type=") || head.starts_with(b"node=");
    let is_plain = metadata.is_file()
        && is_text
        && !head.starts_with(&ZSTD_MAGIC)
        && !journal::compact::is_compact(&head[..length]);
    Ok(is_plain.then_some((file, metadata.len())))
}

fn pieces(files: &[(File, u64)]) -> Vec<Piece<'_>> {
    files
        .iter()
        .flat_map(|each| {
            (0..each.1.div_ceil(PART_BYTES)).map(move |number| Piece {
                file: &each.0,
                file_bytes: each.1,
                start: number * PART_BYTES,
                end: ((number + 1) * PART_BYTES).min(each.1),
            })
        })
        .collect()
}

type Counted = (Summary, Vec<(usize, Extent)>);

/// Counts parts until there is none left.
fn count(
    pieces: &[Piece<'_>],
    next: &AtomicUsize,
    is_over: &AtomicBool,
    reading: Reading,
    options: &ReportOptions,
) -> Result<Counted, Failed> {
    let mut summary = Summary::new(options.request.clone(), 0);
    let mut extents = Vec::new();
    let mut part = Part::default();
    let mut buffer = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(piece) = pieces.get(number) else {
            break;
        };
        let text = piece.read(&mut buffer, reading)?;
        summary.set_part(number as u32);
        let extent = part.events(text, reading, |event| summary.add(event))?;
        extents.push((number, extent));
    }
    Ok((summary, extents))
}

impl Piece<'_> {
    /// The whole events that begin in this part.
    fn read<'b>(&self, buffer: &'b mut Vec<u8>, reading: Reading) -> Result<&'b [u8], Failed> {
        let from = self.start.saturating_sub(BEFORE_BYTES as u64);
        let to = (self.end + AFTER_BYTES as u64).min(self.file_bytes);
        buffer.resize((to - from) as usize, 0);
        let length = read_at(self.file, buffer, from)?;
        if length < buffer.len() {
            // Somebody has cut it meanwhile.
            return Err(Failed::NotOrdered);
        }
        let place = |at: u64| {
            let first = at.saturating_sub(BEFORE_BYTES as u64).max(from);
            let last = (at + AFTER_BYTES as u64).min(to);
            let window = &buffer[(first - from) as usize..(last - from) as usize];
            let at = (at - first) as usize;
            let (is_begin, is_end) = (first == 0, last == self.file_bytes);
            boundary(window, at, is_begin, is_end, reading)
                .map(|found| (first - from) as usize + found)
        };
        let start = place(self.start)?;
        let end = match self.end == self.file_bytes {
            true => buffer.len(),
            false => place(self.end)?,
        };
        Ok(&buffer[start.min(end)..end])
    }
}

/// Fills `buffer` from `from` on. Returns how many bytes there are.
fn read_at(file: &File, buffer: &mut [u8], from: u64) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
