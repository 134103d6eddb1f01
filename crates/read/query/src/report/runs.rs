//! Events of a log whose records stand together and whose times nearly ascend, without the state machine.
//!
//! Nearly every log has that form. Several threads can then find the events of its parts, and find the same ones
//! as [`crate::Assembler`]. [`Part::events`] refuses a part that may not have that form.

use crate::enriched::without_separator;
use crate::event::{EventView, RecordSpan};
use crate::head::{head, Head, NoHead};
use crate::near::near;
use crate::prefix::may_have_record;
use crate::{kind, Dialect, TimeRange};
use abi::record_type as kinds;
use memchr::{memchr, memchr2, memrchr};
use std::collections::VecDeque;

/// Bytes that [`boundary`] looks at before its place.
pub const BEFORE_BYTES: usize = 64 << 10;
/// Bytes that [`boundary`] looks at after its place.
pub const AFTER_BYTES: usize = 256 << 10;

/// The log does not have that form, or it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOrdered;

type Time = (u64, u32, u64);

fn time(head: &Head<'_>) -> Time {
    (head.sec, head.msec, head.serial)
}

/// Options for reading lines.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// The program whose behaviour is followed.
    pub dialect: Dialect,
    /// `end_of_event_timeout` of auditd.conf(5).
    pub timeout_s: u64,
    /// Records outside this range are left out.
    pub range: TimeRange,
}

/// Number of neighbouring events whose times need not ascend: processors write events at the same time, and each
/// event has the time at which it began.
const RECENT_EVENTS: usize = 64;

/// Times in a part of a log.
#[derive(Debug, Clone, Default)]
pub struct Extent {
    /// Time of the first record that aureport takes for the log's first, in seconds and milliseconds.
    pub first_record: Option<(u64, u32)>,
    /// Time of the latest event in the range.
    pub last_inside: Option<(u64, u32)>,
    /// Times of the first events.
    first: Vec<Time>,
    /// Least time of the events behind them.
    least_behind: Option<Time>,
    /// Times of the last events.
    last: VecDeque<Time>,
    /// Latest time of the events before them.
    most_before: Option<Time>,
    /// Latest time of all.
    most: Option<Time>,
}

impl Extent {
    /// Whether an event that begins now may be another one than all before: its records stand together then.
    fn is_new(&self, time: Time) -> bool {
        self.most.is_none_or(|most| time > most)
            || (self.most_before.is_none_or(|most| time > most) && !self.last.contains(&time))
    }

    /// Whether the first record is known. aureport takes the second 0 for none.
    fn has_first(&self) -> bool {
        self.first_record.is_some_and(|first| first.0 != 0)
    }

    fn push(&mut self, time: Time) {
        if self.first.len() < RECENT_EVENTS {
            self.first.push(time)
        } else {
            self.least_behind = Some(self.least_behind.map_or(time, |least| least.min(time)));
        }
        if self.last.len() == RECENT_EVENTS {
            self.most_before = self.most_before.max(self.last.pop_front());
        }
        self.last.push_back(time);
        self.most = self.most.max(Some(time));
    }

    /// Adds the part that follows in the log.
    ///
    /// # Errors
    /// An event may have records in both; or with `--compat`, times go back from one to the other.
    pub fn append(&mut self, next: Extent, dialect: Dialect) -> Result<(), NotOrdered> {
        // With `--compat`, events come in the order of their times, on which ties depend.
        let least = next.first.iter().copied().chain(next.least_behind).min();
        if dialect.is_compat() && least.is_some_and(|least| self.most >= Some(least)) {
            return Err(NotOrdered);
        }

        let is_behind = next
            .least_behind
            .is_none_or(|least| Some(least) > self.most);
        if !is_behind || !next.first.iter().all(|time| self.is_new(*time)) {
            return Err(NotOrdered);
        }

        if !self.has_first() {
            self.first_record = next.first_record.or(self.first_record);
        }

        self.last_inside = self.last_inside.max(next.last_inside);
        for time in &next.first {
            self.push(*time);
        }

        if next.least_behind.is_some() {
            // Then there are as many last events as are kept.
            self.least_behind = self.least_behind.or(next.least_behind);
            self.most_before = self.most_before.max(self.last.iter().max().copied());
            self.most_before = self.most_before.max(next.most_before);
            self.last = next.last;
            self.most = self.most.max(next.most);
        }

        Ok(())
    }

    fn begin(&mut self, head: &Head<'_>, range: TimeRange) {
        if !self.has_first() && (range.start_s == 0 || !range.contains(head.sec)) {
            self.first_record = Some((head.sec, head.msec));
        }
        self.push(time(head));
    }
}

/// Index in `window` at which the first event begins that has no record before `at`. `window` begins
/// [`BEFORE_BYTES`] before `at` or where the log begins, and ends [`AFTER_BYTES`] after it or where the log ends.
///
/// # Errors
/// The window does not show the event.
pub fn boundary(
    window: &[u8],
    at: usize,
    is_begin: bool,
    is_end: bool,
    reading: Reading,
) -> Result<usize, NotOrdered> {
    if is_begin && at == 0 {
        return Ok(0);
    }

    let read = |line: &[u8]| match head(line, reading.timeout_s, reading.dialect) {
        Ok(head) => Ok(Some((time(&head), head.node.map(<[u8]>::to_vec)))),
        Err(NoHead::NoRecord) => Ok(None),
        Err(NoHead::BadTime(_)) => Err(NotOrdered),
    };

    // The last record before `at`.
    let mut end = match memchr(b'\n', &window[at.saturating_sub(1)..]) {
        Some(newline) => at.saturating_sub(1) + newline + 1,
        None if is_end => return Ok(window.len()),
        None => return Err(NotOrdered),
    };
    let start = end;

    let before = loop {
        let line_start = match memrchr(b'\n', &window[..end.saturating_sub(1)]) {
            Some(newline) => newline + 1,
            None if is_begin && end > 0 => 0,
            None => return Err(NotOrdered),
        };
        if let Some(found) = read(&window[line_start..end])? {
            break found;
        }
        end = line_start;
    };

    let mut at = start;
    while at < window.len() {
        let length = match memchr(b'\n', &window[at..]) {
            Some(newline) => newline + 1,
            None if is_end => window.len() - at,
            None => return Err(NotOrdered),
        };
        match read(&window[at..at + length])? {
            Some(found) if found != before => return Ok(at),
            _ => at += length,
        }
    }

    if is_end {
        Ok(window.len())
    } else {
        Err(NotOrdered)
    }
}

/// The event that is being put together.
struct Open<'t> {
    head: Head<'t>,
    /// The word with the time, and the blank behind it.
    stamp: &'t [u8],
    is_single: bool,
}

/// Finds events in parts of a log. Its memory is used again for each part.
#[derive(Default)]
pub struct Part {
    places: Vec<RecordSpan>,
}

impl Part {
    /// Calls `each` for every event of `text`, which begins and ends at a [`boundary`].
    ///
    /// # Errors
    /// The records of an event may not stand together, or events not in the order of their times.
    pub fn events<'t>(
        &mut self,
        text: &'t [u8],
        reading: Reading,
        mut each: impl FnMut(EventView<'_>),
    ) -> Result<Extent, NotOrdered> {
        // C's strings end at a zero.
        if reading.dialect.is_compat() && memchr(0, text).is_some() {
            return Err(NotOrdered);
        }
        let most = reading.dialect.line_bytes_max().unwrap_or(usize::MAX);
        let mut extent = Extent::default();
        let mut open: Option<Open<'t>> = None;
        self.places.clear();

        let mut at = 0;
        while at < text.len() {
            let (end, names, next) = line_at(text, at, reading.dialect);
            let line = &text[at..next];
            if line.len() > most {
                return Err(NotOrdered);
            }
            let mut place = RecordSpan {
                kind: 0,
                start: at,
                end: names.map_or(end, |names| names.0),
                names: names.map(|names| (names.1, end)),
            };
            at = next;

            // Most lines continue the open event: comparing their stamps saves reading their heads.
            if let Some(kind) = open.as_ref().and_then(|open| same_event(open, line)) {
                place.kind = crate::kind::number(kind, reading.dialect);
                self.join(open.as_ref(), place)?;
                continue;
            }
            let Some(head) = record_head(line, reading)? else {
                continue;
            };
            place.kind = head.kind;

            // An earlier time would belong before an event that is already given out.
            match &open {
                Some(now) if time(&now.head) == time(&head) && now.head.node == head.node => {
                    self.join(Some(now), place)?;
                    continue;
                }
                _ if !extent.is_new(time(&head)) => return Err(NotOrdered),
                // With `--compat`, events come in the order of their times, on which ties depend.
                _ if reading.dialect.is_compat() && extent.most >= Some(time(&head)) => {
                    return Err(NotOrdered);
                }
                _ => {}
            }

            if let Some(now) = open.take() {
                self.close(text, &now, reading, &mut extent, &mut each);
            }
            extent.begin(&head, reading.range);
            // An end without an event is nothing.
            if head.kind != kinds::EOE {
                self.places.push(place);
                open = Some(Open {
                    stamp: stamp(line, &head),
                    is_single: reading.dialect.is_compat()
                        && kind::is_single(head.kind, reading.dialect),
                    head,
                });
            }
        }

        if let Some(now) = open {
            self.close(text, &now, reading, &mut extent, &mut each);
        }

        Ok(extent)
    }

    fn join(&mut self, open: Option<&Open<'_>>, place: RecordSpan) -> Result<(), NotOrdered> {
        // A second event with the same key: which of them comes first depends on those before.
        if open.is_some_and(|open| open.is_single) && place.kind != kinds::EOE {
            return Err(NotOrdered);
        }
        if open.is_some_and(|open| open.is_single) {
            return Ok(());
        }
        self.places.push(place);
        Ok(())
    }

    fn close(
        &mut self,
        text: &[u8],
        open: &Open<'_>,
        reading: Reading,
        extent: &mut Extent,
        each: &mut impl FnMut(EventView<'_>),
    ) {
        if reading.range.contains(open.head.sec) {
            let time = (open.head.sec, open.head.msec);
            extent.last_inside = extent.last_inside.max(Some(time));
            each(EventView {
                sec: open.head.sec,
                msec: open.head.msec,
                serial: open.head.serial,
                node: open.head.node,
                text,
                places: &self.places,
                objects: &[],
            });
        }

        self.places.clear();
    }
}

/// The head of a line; `None` if it is no record.
fn record_head(line: &[u8], reading: Reading) -> Result<Option<Head<'_>>, NotOrdered> {
    match head(line, reading.timeout_s, reading.dialect) {
        Ok(head) => Ok(Some(head)),
        // An event in JSON, which only the machine turns into records.
        Err(NoHead::NoRecord) if line.first() == Some(&b'{') => Err(NotOrdered),
        // Nor does any other read records behind a prefix.
        Err(NoHead::NoRecord) if !reading.dialect.is_compat() && may_have_record(line) => {
            Err(NotOrdered)
        }
        Err(NoHead::NoRecord) => Ok(None),
        Err(NoHead::BadTime(_)) => Err(NotOrdered),
    }
}

/// End of the line at `at` without its newline, end of its record with the beginning of its interpretations, and where
/// the next line begins.
fn line_at(text: &[u8], at: usize, dialect: Dialect) -> (usize, Option<(usize, usize)>, usize) {
    let rest = &text[at..];
    let (newline, separator) = match memchr2(b'\n', crate::SEPARATOR, rest) {
        Some(found) if rest[found] == crate::SEPARATOR => {
            let newline = memchr(b'\n', &rest[found..]).map(|newline| found + newline);
            (newline, Some((at + found, at + found + 1)))
        }
        found => (found, None),
    };

    let end = newline.map_or(text.len(), |newline| at + newline);
    let names = match separator {
        None if !dialect.is_compat() => without_separator(&text[at..end])
            .map(|(record_end, start)| (at + record_end, at + start)),
        found => found,
    };
    (end, names, newline.map_or(end, |_| end + 1))
}

/// The name of the type of `line`, if it has the same time as the open event, letter by letter, and neither a node.
fn same_event<'l>(open: &Open<'_>, line: &'l [u8]) -> Option<&'l [u8]> {
    if open.stamp.is_empty() || open.head.node.is_some() {
        return None;
    }
    let rest = line.strip_prefix(b"type=")?;
    let end = near(b' ', rest)?;
    rest[end + 1..]
        .starts_with(open.stamp)
        .then_some(&rest[..end])
}

/// The word with the time of a line, and the blank behind it; empty if the line is unusual.
fn stamp<'l>(line: &'l [u8], head: &Head<'_>) -> &'l [u8] {
    let word = || {
        let rest = line.strip_prefix(b"type=")?;
        let rest = &rest[memchr(b' ', rest)? + 1..];
        let end = memchr(b' ', rest)?;
        // As far as the head is looked at.
        (end < 60 && rest.starts_with(b"msg=audit(") && head.node.is_none())
            .then_some(&rest[..=end])
    };
    word().unwrap_or_default()
}
