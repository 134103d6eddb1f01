//! Bytes waiting to be written, and where each append among them ends.

use std::collections::VecDeque;

/// A number of whole events, and the lines and bytes they take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WholeEvents {
    pub(crate) bytes: usize,
    pub(crate) events: u64,
    pub(crate) records: u64,
}

/// The end of one append: a place where the stream may be cut without tearing an event.
struct Mark {
    /// Offset in everything that was ever pushed.
    end: u64,
    events: u32,
    records: u32,
}

#[derive(Default)]
pub(crate) struct PendingLines {
    bytes: Vec<u8>,
    /// Number of consumed bytes at the front of `bytes`.
    start: usize,
    /// Bytes consumed since this buffer was created.
    consumed: u64,
    marks: VecDeque<Mark>,
    events: u64,
}

impl PendingLines {
    pub(crate) fn push(&mut self, lines: &[u8], events: u32) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(lines);
        if lines.last() != Some(&b'\n') {
            // An unterminated line would run into the next event's.
            self.bytes.push(b'\n');
        }
        let end = self.consumed + self.bytes().len() as u64;
        let newlines = memchr::memchr_iter(b'\n', &self.bytes[before..]).count();
        self.marks.push_back(Mark {
            end,
            events,
            records: u32::try_from(newlines).unwrap_or(u32::MAX),
        });

        self.events += u64::from(events);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.bytes.len()
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    /// Place of a cut, in bytes, that has at least `wanted` bytes (or all) before it and tears no event.
    pub(crate) fn cut_at_or_after(&self, wanted: u64) -> usize {
        let target = self.consumed.saturating_add(wanted.max(1));
        let index = self.marks.partition_point(|mark| mark.end < target);
        match self.marks.get(index) {
            Some(mark) => (mark.end - self.consumed) as usize,
            None => self.bytes().len(),
        }
    }

    /// Size in bytes of the whole appends within the first `count` bytes.
    pub(crate) fn whole_within(&self, count: usize) -> usize {
        let target = self.consumed + count as u64;
        match self.marks.partition_point(|mark| mark.end <= target) {
            0 => 0,
            index => (self.marks[index - 1].end - self.consumed) as usize,
        }
    }

    /// Drops the first `count` bytes. An event counts as consumed with the last byte of its append.
    pub(crate) fn consume(&mut self, count: usize) -> WholeEvents {
        let count = count.min(self.bytes().len());
        self.start += count;
        self.consumed += count as u64;
        let mut batch = WholeEvents {
            bytes: count,
            ..WholeEvents::default()
        };
        while let Some(mark) = self.marks.front().filter(|mark| mark.end <= self.consumed) {
            batch.events += u64::from(mark.events);
            batch.records += u64::from(mark.records);
            self.marks.pop_front();
        }

        self.events -= batch.events;

        // The rest is moved only when it is the smaller part, so that the copying stays linear.
        if self.is_empty() {
            self.bytes.clear();
            self.start = 0;
        } else if self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }

        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_appends_only() {
        let mut pending = PendingLines::default();
        pending.push(b"aa\n", 1);
        pending.push(b"b\nb\n", 2);
        pending.push(b"c", 1);
        assert_eq!(pending.bytes(), b"aa\nb\nb\nc\n");
        assert_eq!(pending.cut_at_or_after(0), 3);
        assert_eq!(pending.cut_at_or_after(3), 3);
        assert_eq!(pending.cut_at_or_after(4), 7);
        assert_eq!(pending.cut_at_or_after(u64::MAX), 9);
        assert_eq!(pending.whole_within(2), 0);
        assert_eq!(pending.whole_within(6), 3);
        assert_eq!(pending.whole_within(9), 9);
    }

    #[test]
    fn consumed_events_are_counted_with_their_last_byte() {
        let mut pending = PendingLines::default();
        pending.push(b"aa\n", 1);
        pending.push(b"b\nb\n", 2);
        assert_eq!(pending.consume(2).events, 0);
        let rest = pending.consume(3);
        assert_eq!((rest.bytes, rest.events, rest.records), (3, 1, 1));
        assert_eq!(pending.bytes(), b"b\n");
        assert_eq!(pending.events(), 2);
        let last = pending.consume(99);
        assert_eq!((last.bytes, last.events, last.records), (2, 2, 2));
        assert!(pending.is_empty());
        pending.push(b"d\n", 1);
        assert_eq!(pending.cut_at_or_after(1), 2);
    }
}
