//! A seal file, and what is to be written to it.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::fs::FallocateFlags;

/// Room that a seal has on the disk beyond its end, so that the last entries of a log that filled the
/// disk can be written.
const RESERVED_BYTES: u64 = 64 << 10;

/// Bytes go to the end of the file, and wait while they cannot.
pub(super) struct Output {
    file: Arc<File>,
    /// What is not in the file yet.
    pub(super) waiting: Vec<u8>,
    size_bytes: u64,
    /// Up to where the disk has room for it.
    reserved_bytes: u64,
}

impl Output {
    /// Goes on in `file`, opened for appending, which has `size_bytes`.
    pub(super) fn new(file: File, size_bytes: u64) -> Self {
        Output {
            file: Arc::new(file),
            waiting: Vec::new(),
            size_bytes,
            reserved_bytes: size_bytes,
        }
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Writes what waits. After an error the rest waits on.
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
        // Tried once for so many bytes: not all file systems can, and a full one need not be asked each time.
        self.reserved_bytes = self.size_bytes + RESERVED_BYTES;
        let flags = FallocateFlags::KEEP_SIZE;
        let _ = rustix::fs::fallocate(&self.file, flags, self.size_bytes, RESERVED_BYTES);
    }

    /// Gives back the room that is not needed any more.
    pub(super) fn trim(&self) {
        if self.waiting.is_empty() {
            let _ = self.file.set_len(self.size_bytes);
        }
    }
}
