//! The stream of everything appended: how far it was written, and what still waits in memory.

use std::fs::File;

use super::witness::{Witness, Write};
use crate::counters::Position;
use crate::pending::{PendingLines, WholeEvents};

/// Limit of the bytes waiting in memory while they cannot be written. What does not fit is counted
/// as lost.
pub const PENDING_BYTES_MAX: usize = 4 << 20;

/// Amount written since the previous commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Number of bytes, over all files.
    pub bytes: u64,
    /// Number of whole events.
    pub events: u64,
}

/// The stream of lines, across files. Whoever writes from it tells the witness before and after.
#[derive(Default)]
pub(super) struct LineStream {
    pending: PendingLines,
    written: Position,
    /// `written` at the end of the last commit.
    committed: Position,
    witness: Option<Box<dyn Witness>>,
}

impl LineStream {
    /// Whether the buffer can take `bytes` more. An empty buffer takes any number.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.pending.is_empty() || self.pending.bytes().len() + bytes <= PENDING_BYTES_MAX
    }

    /// Takes whole events as lines.
    pub(super) fn push(&mut self, lines: &[u8], events: u32) {
        self.pending.push(lines, events);
    }

    /// The lines that wait in memory.
    pub(super) fn pending(&self) -> &PendingLines {
        &self.pending
    }

    /// Position up to which everything was written.
    pub(super) fn written(&self) -> Position {
        self.written
    }

    /// Bytes appended, whether written or still in memory.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.written.bytes + self.pending.bytes().len() as u64
    }

    /// Calls `witness` before and after each write from now on.
    pub(super) fn set_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.witness = witness;
    }

    /// Tells the witness that `stored` bytes, which hold the first `upto` bytes of the buffer, are
    /// about to be written at `offset` of `file`.
    pub(super) fn begin_write(
        &mut self,
        file: &File,
        offset: u64,
        upto: usize,
        stored: u64,
        is_whole: bool,
    ) {
        if let Some(witness) = &mut self.witness {
            witness.begin(&Write {
                file,
                offset,
                start: self.written.bytes,
                len: upto as u64,
                stored,
                is_whole,
            });
        }
    }

    /// Removes the first `bytes` of the buffer, which were written.
    pub(super) fn advance(&mut self, bytes: usize) -> WholeEvents {
        let batch = self.pending.consume(bytes);
        self.written.bytes += batch.bytes as u64;
        self.written.events += batch.events;
        batch
    }

    /// Tells the witness that the write has ended or failed.
    pub(super) fn end_write(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.end(self.written.bytes);
        }
    }

    /// Discards everything in the buffer and counts it as written.
    pub(super) fn pass_over(&mut self) -> WholeEvents {
        let batch = self.advance(self.pending.bytes().len());
        self.committed = self.written;
        self.end_write();
        batch
    }

    /// Ends a commit. Returns what was written since the previous one.
    pub(super) fn commit(&mut self) -> Committed {
        let before = std::mem::replace(&mut self.committed, self.written);
        Committed {
            bytes: self.written.bytes - before.bytes,
            events: self.written.events - before.events,
        }
    }

    /// Drops what waits in memory.
    pub(super) fn drop_pending(&mut self) {
        self.pending = PendingLines::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Records where writes begin and end in the stream.
    struct Notes(Arc<Mutex<Vec<(&'static str, u64)>>>);

    impl Witness for Notes {
        fn begin(&mut self, write: &Write<'_>) {
            self.0.lock().unwrap().push(("begin", write.start));
        }

        fn end(&mut self, written: u64) {
            self.0.lock().unwrap().push(("end", written));
        }
    }

    #[test]
    fn a_commit_covers_every_write_since_the_one_before() {
        let mut stream = LineStream::default();
        stream.push(b"a\n", 1);
        stream.push(b"bb\n", 1);
        stream.advance(2);
        stream.advance(2);
        let first = Committed {
            bytes: 4,
            events: 1,
        };
        assert_eq!(stream.commit(), first, "half of the second event");
        assert_eq!(stream.commit(), Committed::default());
        assert_eq!((stream.written().bytes, stream.taken_bytes()), (4, 5));
        stream.advance(1);
        assert_eq!(
            stream.commit(),
            Committed {
                bytes: 1,
                events: 1
            }
        );
    }

    #[test]
    fn what_is_passed_over_belongs_to_no_commit_and_the_witness_is_told_its_end() {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let mut stream = LineStream::default();
        stream.set_witness(Some(Box::new(Notes(Arc::clone(&notes)))));
        stream.push(b"a\nb\n", 2);
        let file = tempfile::tempfile().unwrap();
        stream.begin_write(&file, 0, 4, 4, false);
        stream.advance(0);
        stream.end_write();
        assert_eq!(stream.pass_over().events, 2);
        assert_eq!(stream.commit(), Committed::default());
        assert_eq!(
            *notes.lock().unwrap(),
            [("begin", 0), ("end", 0), ("end", 4)]
        );
    }

    #[test]
    fn the_buffer_takes_one_append_of_any_size_and_then_none_past_its_limit() {
        let mut stream = LineStream::default();
        assert!(stream.has_room_for(PENDING_BYTES_MAX + 1));
        stream.push(b"a\n", 1);
        assert!(stream.has_room_for(PENDING_BYTES_MAX - 2));
        assert!(!stream.has_room_for(PENDING_BYTES_MAX - 1));
        stream.drop_pending();
        assert!(stream.has_room_for(PENDING_BYTES_MAX + 1));
    }
}
