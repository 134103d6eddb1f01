//! Counting reports, made by threads that each read a part of the logs.
//!
//! This works for plain files in the order of time. For others [`summary`] returns `None`, and one thread reads
//! them from beginning to end.

use super::options::ReportOptions;
use crate::search_command::logs::{Defaults, Input};
use crate::search_command::ordered::each_piece;
use crate::search_command::texts::{texts, threads_for, LogText};
use anyhow::Result;
use query::report::runs::{Part, Reading};
use query::report::Summary;
use query::Dialect;

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
    let Some(texts) = texts(input, dialect)? else {
        return Ok(None);
    };

    let has_empty = texts
        .iter()
        .any(|text| matches!(text, LogText::Plain(_, 0)));
    // An event may go on in the next file, which only the machine knows.
    if has_empty || (dialect != Dialect::Own && texts.len() > 1) {
        return Ok(None);
    }
    let reading = Reading {
        dialect,
        timeout_s: options.timeout_s.unwrap_or(defaults.whole_s),
        range: options.range(),
    };

    let workers = (0..threads_for(&texts)).map(|_| Summary::new(options.request.clone(), 0));
    let mut workers: Vec<Summary> = workers.collect();
    let look = |summary: &mut Summary, number: usize, text: &[u8], part: &mut Part| {
        summary.set_part(number as u32);
        let extent = part.events(text, reading, |event| summary.add(event))?;
        Ok(((), extent))
    };
    let Some(extent) = each_piece(&texts, reading, &mut workers, look, |()| Ok(()))? else {
        return Ok(None);
    };

    let mut whole = Summary::new(options.request.clone(), 0);
    workers.into_iter().for_each(|its| whole.merge(its));
    Ok(Some(Parts {
        summary: whole,
        first: extent.first_record.unwrap_or((0, 0)),
        last: extent.last_inside.unwrap_or((0, 0)),
    }))
}
