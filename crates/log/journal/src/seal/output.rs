//! A seal file, and the bytes waiting to be written to it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

/// Disk space, in bytes, that a seal reserves beyond its end, so that the last entries can be
/// written when the log has filled the disk.
const RESERVED_BYTES: u64 = 64 << 10;

/// Writes bytes to the end of the file, and keeps them while they cannot be written.
pub(super) struct SealOutput {
    file: Arc<File>,
    /// Bytes that are not in the file yet.
    pub(super) waiting: Vec<u8>,
    size_bytes: u64,
    /// Offset up to which disk space is reserved.
    reserved_bytes: u64,
}

impl SealOutput {
    /// Continues `file`, opened for appending, which has `size_bytes`.
    pub(super) fn new(file: File, size_bytes: u64) -> Self {
        SealOutput {
            file: Arc::new(file),
            waiting: Vec::new(),
            size_bytes,
            reserved_bytes: size_bytes,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes the waiting bytes. After an error the rest keeps waiting.
    pub(super) fn write(&mut self) -> io::Result<()> {
        let mut done = 0;
        let outcome = loop {
            if done == self.waiting.len() {
                break Ok(());
            }
            match rustix::io::write(&*self.file, &self.waiting[done..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => break Err(error.into()),
            }
        };

        self.waiting.drain(..done);
        self.size_bytes += done as u64;
        self.reserve();
        outcome
    }

    fn reserve(&mut self) {
        if self.reserved_bytes >= self.size_bytes + RESERVED_BYTES / 2 {
            return;
        }
        // Not repeated at each write: not all file systems can reserve space, and a full one would
        // fail again.
        self.reserved_bytes = self.size_bytes + RESERVED_BYTES;
        let flags = FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&self.file, flags, self.size_bytes, RESERVED_BYTES);
    }

    /// Releases the reserved space.
    pub(super) fn trim(&self) {
        // Truncation to the same size frees what is reserved beyond it. Waiting entries still need that space.
        if self.waiting.is_empty() {
            let _ = self.file.set_len(self.size_bytes);
        }
    }
}
