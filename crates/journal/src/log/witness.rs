//! Somebody who is told of each write before and after it is made.

use std::fs::File;

use super::Journal;
use conf::LogFormat;

/// A write(2) that is about to be made.
#[derive(Debug)]
pub struct Write<'a> {
    /// The file.
    pub file: &'a File,
    /// Its size before.
    pub offset: u64,
    /// Place of the first byte in the stream of everything that was appended, as in [`Journal::taken`].
    pub start: u64,
    /// How much of the stream is written.
    pub len: u64,
    /// How many bytes the file gets.
    pub stored: u64,
    /// These are not the stream's own bytes: a part of them is taken out again.
    pub is_whole: bool,
}

/// Somebody who has to know what is in the file even if this process is killed while it writes.
pub trait Witness: Send {
    /// The write begins.
    fn begin(&mut self, write: &Write<'_>);
    /// It has ended, or failed: the files have the stream up to `written`, and no part of the next event.
    fn end(&mut self, written: u64);
}

impl Journal {
    /// Has `witness` told of each write from now on.
    pub fn set_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.witness = witness;
    }

    /// Bytes taken into the stream since the opening: written or still in memory.
    pub fn taken(&self) -> u64 {
        self.written.bytes + self.pending.bytes().len() as u64
    }

    /// `stored` bytes for the first `upto` of the buffer are about to be written.
    pub(crate) fn begin_write(&mut self, file: &File, upto: usize, stored: u64) {
        let is_whole = self.config.log_format == LogFormat::Compact;
        if let Some(witness) = &mut self.witness {
            witness.begin(&Write {
                file,
                offset: self.size_bytes,
                start: self.written.bytes,
                len: upto as u64,
                stored,
                is_whole,
            });
        }
    }

    pub(crate) fn end_write(&mut self) {
        if let Some(witness) = &mut self.witness {
            witness.end(self.written.bytes);
        }
    }
}
