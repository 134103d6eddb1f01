//! The queue of one plugin: at most `q_depth` whole lines, and the lines that are being sent.

use std::collections::VecDeque;
use std::io;

use crate::frame::{self, Events};
use conf::plugins::Format;

/// Bytes of lines that are formatted at a time.
const STAGE_BYTES: usize = 64 * 1024;

#[derive(Default)]
pub(crate) struct Queue {
    bytes: VecDeque<u8>,
    /// Length of each line in `bytes`.
    lines: VecDeque<u32>,
    /// Lines in the plugin's format, ready to be sent.
    staged: Vec<u8>,
    /// End of each of these lines in `staged`.
    staged_ends: Vec<usize>,
    /// Bytes of `staged` that were sent.
    sent: usize,
}

impl Queue {
    /// Takes the events that fit. Returns the number of lines left out.
    pub(crate) fn push(&mut self, events: &Events, q_depth: usize) -> usize {
        // Whole events or nothing: a plugin must not see a part of one.
        let count = events.lines_within(q_depth.saturating_sub(self.lines.len()));
        for line in events.first(count) {
            self.bytes.extend(line);
            self.lines.push_back(line.len() as u32);
        }
        events.lines() - count
    }

    /// Number of lines waiting.
    pub(crate) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.sent == self.staged.len()
    }

    /// Discards everything that waits. Returns the number of lines discarded.
    pub(crate) fn clear(&mut self) -> usize {
        let staged = self.staged_ends.iter().filter(|&&end| end > self.sent);
        let count = self.lines.len() + staged.count();
        *self = Queue::default();
        count
    }

    /// Prepares for another reader: a line that the previous one got in part is sent again as a
    /// whole.
    pub(crate) fn start_over(&mut self) {
        let whole = self.staged_ends.partition_point(|&end| end <= self.sent);
        self.sent = match whole {
            0 => 0,
            whole => self.staged_ends[whole - 1],
        };
    }

    /// Sends with `send` until nothing is left or it would block. Returns the number of lines sent.
    pub(crate) fn send(
        &mut self,
        format: Format,
        mut send: impl FnMut(&[u8]) -> io::Result<usize>,
    ) -> (u64, io::Result<()>) {
        let mut lines = 0;
        while !self.is_empty() {
            if self.sent == self.staged.len() {
                self.stage(format);
            }
            match send(&self.staged[self.sent..]) {
                Ok(0) => return (lines, Err(io::ErrorKind::WriteZero.into())),
                Ok(count) => {
                    let before = self.staged_ends.partition_point(|&end| end <= self.sent);
                    self.sent += count;
                    let after = self.staged_ends.partition_point(|&end| end <= self.sent);
                    lines += (after - before) as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return (lines, Err(error)),
            }
        }

        (lines, Ok(()))
    }

    fn stage(&mut self, format: Format) {
        self.staged.clear();
        self.staged_ends.clear();
        self.sent = 0;
        let bytes = self.bytes.make_contiguous();
        let mut taken = 0;
        while self.staged.len() < STAGE_BYTES {
            let Some(len) = self.lines.pop_front() else {
                break;
            };
            let line = &bytes[taken..taken + len as usize];
            frame::append(&mut self.staged, format, line);
            self.staged_ends.push(self.staged.len());
            taken += len as usize;
        }

        self.bytes.drain(..taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(serial: u32) -> String {
        let stamp = format!("msg=audit(1.002:{serial}): ");
        format!("type=SYSCALL {stamp}a=1\ntype=PROCTITLE {stamp}proctitle=61\n")
    }

    #[test]
    fn what_does_not_fit_is_left_out_in_whole_events() {
        let lines: String = (0..4).map(event).collect();
        let events = Events::of(lines.as_bytes());
        let mut queue = Queue::default();
        assert_eq!(queue.push(&events, 7), 6);
        assert_eq!(queue.push(&events, 7), 12);
        assert_eq!(queue.len(), 6);
        assert_eq!(queue.push(&events, 9), 9);
        assert_eq!(queue.clear(), 9);
        assert!(queue.is_empty());
    }

    proptest! {
        /// Readers take any number of bytes at a time, and end at any point. Each reader gets whole
        /// lines except for its last one, and together they get every line exactly once.
        #[test]
        fn no_line_is_lost_or_doubled_by_short_writes_and_dying_readers(
            steps in prop::collection::vec((0usize..400, prop::bool::weighted(0.1)), 1..400),
        ) {
            let lines: String = (0..50).map(event).collect();
            let events = Events::of(lines.as_bytes());
            let mut queue = Queue::default();
            prop_assert_eq!(queue.push(&events, 1000), 0);
            let (mut whole, mut current, mut counted) = (Vec::new(), Vec::new(), 0);
            for (count, dies) in steps {
                let mut is_first = true;
                let (lines, result) = queue.send(Format::String, |bytes| {
                    if count == 0 || !std::mem::take(&mut is_first) {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    let count = count.min(bytes.len());
                    current.extend_from_slice(&bytes[..count]);
                    Ok(count)
                });
                prop_assert!(result.is_ok());
                counted += lines;
                if dies {
                    let end = current.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                    whole.extend_from_slice(&current[..end]);
                    current.clear();
                    queue.start_over();
                }
            }
            let (lines, _) = queue.send(Format::String, |bytes| {
                current.extend_from_slice(bytes);
                Ok(bytes.len())
            });
            whole.extend_from_slice(&current);
            let all: Vec<u8> = events.first(usize::MAX).flatten().copied().collect();
            prop_assert_eq!(whole, all);
            prop_assert_eq!(counted + lines, events.lines() as u64);
            prop_assert!(queue.is_empty());
        }
    }
}
