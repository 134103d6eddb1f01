//! Somebody who is told of each write before and after it is made.

use std::fs::File;

/// A write(2) that is about to be made.
#[derive(Debug)]
pub struct Write<'a> {
    /// The file.
    pub file: &'a File,
    /// Its size before.
    pub offset: u64,
    /// Place of the first byte in the stream of everything that was appended, as in
    /// [`Journal::taken`](super::Journal::taken).
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
    /// It has ended, or failed: the files have the stream up to `written`, and no part of
    /// the next event.
    fn end(&mut self, written: u64);
}
