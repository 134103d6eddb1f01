//! An observer that is told of each write before and after it is made.

use std::fs::File;

/// A write(2) that is about to be made.
#[derive(Debug)]
pub struct Write<'a> {
    /// The file.
    pub file: &'a File,
    /// Size of the file before the write.
    pub offset: u64,
    /// Offset of the first byte in the stream of everything appended, counted as in
    /// [`Journal::taken`](super::Journal::taken).
    pub start: u64,
    /// Bytes of the stream that are written.
    pub len: u64,
    /// Bytes by which the file will grow.
    pub stored: u64,
    /// True for a COMPACT frame: its bytes are not those of the stream, so a partial write is
    /// removed.
    pub is_whole: bool,
}

/// An observer that has to know what is in the file even if this process is killed while it writes.
pub trait Witness: Send {
    /// A write is about to begin.
    fn begin(&mut self, write: &Write<'_>);
    /// The write has ended or failed: the files hold the stream up to `written`, and no part of the
    /// next event.
    fn end(&mut self, written: u64);
}
