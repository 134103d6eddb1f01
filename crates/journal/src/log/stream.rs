//! Everything that was appended: how far it was written, and what still waits in memory.

use std::fs::File;

use super::witness::{Witness, Write};
use crate::counters::Position;
use crate::pending::{Batch, Pending};

/// Bytes that wait in memory while they cannot be written. What does not fit is counted as lost.
pub const PENDING_BYTES_MAX: usize = 4 << 20;

/// What was written since the commit before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Bytes, in all files together.
    pub bytes: u64,
    /// Whole events.
    pub events: u64,
}

/// The stream of lines, across files. Who writes it tells the witness before and after.
#[derive(Default)]
pub(super) struct Stream {
    pending: Pending,
    written: Position,
    /// `written` at the end of the last commit.
    committed: Position,
    witness: Option<Box<dyn Witness>>,
}

impl Stream {
    /// Whether the buffer takes `bytes` more. An empty one takes any number.
    pub(super) fn has_room_for(&self, bytes: usize) -> bool {
        self.pending.is_empty() || self.pending.bytes().len() + bytes <= PENDING_BYTES_MAX
    }

    /// Takes whole events as lines.
    pub(super) fn push(&mut self, lines: &[u8], events: u32) {
        self.pending.push(lines, events);
    }

    /// What waits in memory.
    pub(super) fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Everything up to here was written.
    pub(super) fn written(&self) -> Position {
        self.written
    }

    /// Bytes taken: written or still in memory.
    pub(super) fn taken_bytes(&self) -> u64 {
        self.written.bytes + self.pending.bytes().len() as u64
    }

    /// Has `witness` told of each write from now on.
    pub(super) fn set_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.witness = witness;
    }

    /// `stored` bytes for the first `upto` of the buffer are about to be written at `offset` of
    /// `file`.
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

    /// The first `bytes` of the buffer were written.
    pub(super) fn advance(&mut self, bytes: usize) -> Batch {
        let batch = self.pending.consume(bytes);
        self.written.bytes += batch.bytes as u64;
        self.written.events += batch.events;
        batch
    }

    /// The write has ended, or failed.
    pub(super) fn end_write(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.end(self.written.bytes);
        }
    }

    /// Passes over everything in the buffer as if it had been written.
    pub(super) fn pass_over(&mut self) -> Batch {
        let batch = self.advance(self.pending.bytes().len());
        self.committed = self.written;
        self.end_write();
        batch
    }

    /// Ends a commit; gives what was written since the one before.
    pub(super) fn commit(&mut self) -> Committed {
        let before = std::mem::replace(&mut self.committed, self.written);
        Committed {
            bytes: self.written.bytes - before.bytes,
            events: self.written.events - before.events,
        }
    }

    /// Drops what waits in memory.
    pub(super) fn drop_pending(&mut self) {
        self.pending = Pending::default();
    }
}
