//! Counting reports, made by threads that each read a part of the logs.
//!
//! This works for plain files in the order of time. For others [`summary`] returns `None`, and one thread reads
//! them from beginning to end.

use super::options::ReportOptions;
use crate::interrupt::is_interrupted;
use crate::search_command::logs::{Defaults, Input};
use crate::search_command::pieces::{pieces, plain_files, processors, Failed, Piece};
use anyhow::{Context, Result};
use query::report::runs::{Extent, Part, Reading};
use query::report::Summary;
use query::Dialect;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bytes of a part. A thread holds one at a time; the times of each are kept.
const PART_BYTES: u64 = 4 << 20;

/// A report, and the times of the log in seconds and milliseconds.
pub(super) struct Parts {
    pub(super) summary: Summary,
    pub(super) first: (u64, u32),
    pub(super) last: (u64, u32),
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
    let Some(files) = plain_files(input)? else {
        return Ok(None);
    };

    let has_empty = files.iter().any(|(_, bytes)| *bytes == 0);
    // An event may go on in the next file, which only the machine knows.
    if has_empty || (dialect != Dialect::Own && files.len() > 1) {
        return Ok(None);
    }
    let reading = Reading {
        dialect,
        timeout_s: options.timeout_s.unwrap_or(defaults.whole_s),
        range: options.range(),
    };

    let pieces = pieces(&files, PART_BYTES);
    let next = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    let work = || {
        let done = count(&pieces, &next, &is_over, reading, options);
        if done.is_err() {
            is_over.store(true, Ordering::Relaxed);
        }
        done
    };

    let threads = processors().min(pieces.len());
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
        if extent.append(next, dialect).is_err() {
            return Ok(None);
        }
    }

    Ok(Some(Parts {
        summary: whole,
        first: extent.first_record.unwrap_or((0, 0)),
        last: extent.last_inside.unwrap_or((0, 0)),
    }))
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

    while !is_over.load(Ordering::Relaxed) && !is_interrupted() {
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
