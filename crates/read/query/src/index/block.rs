//! Blocks of a log: where they begin, and the times of their events.

use crate::head::{head, Head};
use crate::prefix::may_have_record;
use crate::Dialect;
use abi::record_type as kinds;
use memchr::{memchr, memrchr};

/// Nominal length of a block in bytes.
pub const BLOCK_BYTES: u64 = 1 << 20;
/// Bytes after the nominal end of a block in which its end is looked for.
pub const WINDOW_BYTES: usize = 1 << 16;
/// Longest block, in bytes. Only lines of many MiB make one.
pub(crate) const LONGEST_BYTES: u64 = 64 << 20;
/// Most time ranges of a block; further ones are merged.
pub(crate) const RANGES_MAX: usize = 16;
/// Time between events from which they are in different ranges.
const GAP_S: u64 = 60;
/// Ranges that gaps may make; the others are for events out of order.
const GAP_RANGES: usize = 8;

/// Time of an event: second, millisecond, serial.
pub type Stamp = (u64, u32, u64);

/// Ranges of times in which the events of a block are, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub start: u64,
    /// Byte behind the last.
    pub end: u64,
    /// Times of the events. Empty if no line is a record.
    pub ranges: Vec<(Stamp, Stamp)>,
    /// Whether it has an end-of-event record, with which no event begins.
    pub has_eoe: bool,
    /// Whether it has lines of `log_format = JSON`, or records behind a prefix, whose events are not in the ranges.
    pub has_json: bool,
    /// The range that is still growing.
    pub(crate) chain: usize,
    pub(crate) last: Option<Stamp>,
}

impl Block {
    /// The block of this text, which begins at byte `start`.
    pub fn of(text: &[u8], start: u64) -> Block {
        let mut block = Block {
            start,
            end: start + text.len() as u64,
            ..Block::default()
        };

        let (mut at, mut open) = (0, &b""[..]);
        while at < text.len() {
            let rest = &text[at..];
            // Most lines are of the event before.
            let known = same_event(rest, open);
            let end =
                memchr(b'\n', &rest[known..]).map_or(rest.len(), |newline| known + newline + 1);
            at += end;
            if known > 0 {
                continue;
            }
            let line = &rest[..end];
            open = b"";
            let Ok(head) = head(line, 0, Dialect::Own) else {
                block.has_json |= line.starts_with(b"{") || may_have_record(line);
                continue;
            };
            block.add(&head);
            if head.kind != kinds::EOE {
                open = stamp(line).unwrap_or_default();
            }
        }

        block
    }

    /// Counts a record in.
    pub(crate) fn add(&mut self, head: &Head<'_>) {
        self.has_eoe |= head.kind == kinds::EOE;
        let stamp = (head.sec, head.msec, head.serial);
        if self.last == Some(stamp) {
            return;
        }

        self.last = Some(stamp);
        let count = self.ranges.len();
        let Some(chain) = self.ranges.get_mut(self.chain) else {
            self.ranges.push((stamp, stamp));
            return;
        };

        if stamp >= chain.1 {
            if stamp.0 - chain.1 .0 > GAP_S && count < GAP_RANGES {
                self.chain = count;
                self.ranges.push((stamp, stamp));
            } else {
                chain.1 = stamp;
            }
        } else if stamp < chain.0 {
            self.add_late(stamp);
        }
    }

    fn add_late(&mut self, stamp: Stamp) {
        let near = |range: &(Stamp, Stamp)| {
            stamp.0 <= range.1 .0.saturating_add(GAP_S)
                && range.0 .0 <= stamp.0.saturating_add(GAP_S)
        };
        let chain = self.chain;

        let late = self
            .ranges
            .iter()
            .enumerate()
            .position(|(at, range)| at != chain && near(range));
        let at = match late {
            Some(at) => at,
            None if self.ranges.len() < RANGES_MAX => {
                self.ranges.push((stamp, stamp));
                return;
            }
            None => usize::from(self.chain == 0),
        };

        let range = &mut self.ranges[at];
        *range = (range.0.min(stamp), range.1.max(stamp));
    }

    /// The latest time.
    pub fn latest(&self) -> Option<Stamp> {
        self.ranges.iter().map(|range| range.1).max()
    }

    /// The earliest time.
    pub fn earliest(&self) -> Option<Stamp> {
        self.ranges.iter().map(|range| range.0).min()
    }
}

/// Beginning of the second word of a line.
const BEFORE_TIME: &[u8] = b" msg=audit(";
/// Bytes of a line in which `head` looks for the time.
const HEAD_BYTES: usize = 80;

/// End of the first word of `text`, if it is a type.
fn type_end(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"type=")?;
    let rest = &rest[..rest.len().min(40)];
    let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\n'))?;
    (rest[end] == b' ').then_some(5 + end)
}

/// The second word of a line up to the end of the time, with the blank before it, if `head` takes this text for the
/// time.
fn stamp(line: &[u8]) -> Option<&[u8]> {
    let start = type_end(line)?;
    let rest = &line[start..line.len().min(HEAD_BYTES)];
    let time = rest.strip_prefix(BEFORE_TIME)?;
    let end = time.iter().position(|byte| matches!(byte, b' ' | b')'))?;
    let length = BEFORE_TIME.len() + end + 1;
    // As `head` requires of the word.
    (time[end] == b')' && length > 19).then_some(&rest[..length])
}

/// Bytes of the line at the beginning of `text` up to the end of its time, if this is `stamp`; otherwise 0.
fn same_event(text: &[u8], stamp: &[u8]) -> usize {
    if stamp.is_empty() {
        return 0;
    }
    match type_end(text) {
        Some(end) if end + stamp.len() <= HEAD_BYTES && text[end..].starts_with(stamp) => {
            end + stamp.len()
        }
        _ => 0,
    }
}

/// Lines with their newlines.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = match memchr(b'\n', rest) {
            Some(at) => at + 1,
            None if rest.is_empty() => return None,
            None => rest.len(),
        };
        let (line, after) = rest.split_at(length);
        rest = after;
        Some(line)
    })
}

/// Best end of a block within `window`, a part of a log: the first line at which all earlier events of the window are
/// complete, else the first line. 0 if no line begins in the window.
pub fn cut(window: &[u8]) -> usize {
    let Some(first) = memchr(b'\n', window) else {
        return 0;
    };
    let Some(end) = memrchr(b'\n', window) else {
        return 0;
    };

    let mut at = first + 1;
    let mut places: Vec<(usize, Stamp)> = Vec::new();
    for line in lines(&window[at..=end]) {
        if let Ok(head) = head(line, 0, Dialect::Own) {
            places.push((at, (head.sec, head.msec, head.serial)));
        }
        at += line.len();
    }

    let mut earliest_after: Vec<Stamp> = places.iter().map(|place| place.1).collect();
    for number in (1..places.len()).rev() {
        earliest_after[number - 1] = earliest_after[number - 1].min(earliest_after[number]);
    }

    let mut latest = None;
    for (number, (at, stamp)) in places.iter().enumerate() {
        if latest.is_some_and(|latest| earliest_after[number] > latest) {
            return *at;
        }
        latest = latest.max(Some(*stamp));
    }

    // In the event of a single time, or interleaved ones, blocks overlap.
    first + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(sec: u64, serial: u64) -> String {
        format!("type=SYSCALL msg=audit({sec}.000:{serial}): arch=1\n")
    }

    #[test]
    fn a_block_ends_where_no_event_is_open() {
        let text = [
            "rest of a line\n".to_owned(),
            record(1_700_000_000, 1),
            record(1_700_000_000, 2),
            record(1_700_000_000, 1),
            record(1_700_000_000, 3),
        ]
        .concat();
        let at = cut(text.as_bytes());
        assert_eq!(&text[at..], record(1_700_000_000, 3));
        assert_eq!(cut(b"no line ends here"), 0);
    }

    #[test]
    fn late_events_have_ranges_of_their_own() {
        let text = [
            record(1_700_000_100, 5),
            record(1_700_000_000, 4),
            record(1_700_000_101, 6),
        ]
        .concat();
        let block = Block::of(text.as_bytes(), 0);
        let range = |from: (u64, u64), to: (u64, u64)| ((from.0, 0, from.1), (to.0, 0, to.1));
        assert_eq!(
            block.ranges,
            [
                range((1_700_000_100, 5), (1_700_000_101, 6)),
                range((1_700_000_000, 4), (1_700_000_000, 4)),
            ]
        );
    }
}
