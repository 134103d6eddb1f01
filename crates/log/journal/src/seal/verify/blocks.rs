//! Compares the log's bytes with the hashes in its seal.

use std::collections::HashMap;
use std::io::{self, Read};

use super::super::entry::{self, EntryKind};
use super::super::BLOCK_BYTES;

/// A log file that is read once from front to back.
pub(super) struct LogBytes {
    reader: Box<dyn Read>,
    block: Vec<u8>,
    /// Number of bytes read so far.
    pub(super) offset: u64,
    /// Number of newlines among them.
    newlines: u64,
}

/// A block that differs from what was sealed.
pub(super) struct Mismatch {
    /// Offset of the block in the log.
    pub(super) start: u64,
    /// Size of the block when it was sealed.
    pub(super) expected: u64,
    /// Size of the block now; smaller at the end of a shortened log.
    pub(super) available: u64,
    /// The line at `start`, from 1.
    pub(super) line: u64,
    /// The block's hash now.
    pub(super) hash: [u8; 32],
}

impl LogBytes {
    pub(super) fn new(reader: Box<dyn Read>) -> Self {
        LogBytes {
            reader,
            block: vec![0; BLOCK_BYTES],
            offset: 0,
            newlines: 0,
        }
    }

    /// Reads the next `length` bytes block by block. Returns the first block whose hash differs.
    pub(super) fn check(&mut self, length: u64, hashes: &[u8]) -> io::Result<Option<Mismatch>> {
        let mut left = length;
        for hash in hashes.chunks(32) {
            let expected = left.min(BLOCK_BYTES as u64);
            let (start, line) = (self.offset, self.newlines + 1);
            let available = self.fill(expected as usize)?;
            let found = *blake3::hash(&self.block[..available]).as_bytes();
            if found != hash {
                return Ok(Some(Mismatch {
                    start,
                    expected,
                    available: available as u64,
                    line,
                    hash: found,
                }));
            }
            left -= expected;
        }

        Ok(None)
    }

    fn fill(&mut self, count: usize) -> io::Result<usize> {
        let mut done = 0;
        while done < count {
            match self.reader.read(&mut self.block[done..count]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        self.offset += done as u64;
        self.newlines += memchr::memchr_iter(b'\n', &self.block[..done]).count() as u64;
        Ok(done)
    }

    /// Reads to the end. Returns the number of bytes read.
    pub(super) fn rest(&mut self) -> io::Result<u64> {
        let start = self.offset;
        while self.fill(BLOCK_BYTES)? > 0 {}
        Ok(self.offset - start)
    }

    /// Number of the next line, from 1.
    pub(super) fn line(&self) -> u64 {
        self.newlines + 1
    }
}

/// Facts about the whole seal, used to describe a mismatch.
struct Sealed {
    bytes: u64,
    blocks: HashMap<[u8; 32], u64>,
}

fn sealed(mut entries: &[u8]) -> Sealed {
    let mut sealed = Sealed {
        bytes: 0,
        blocks: HashMap::new(),
    };
    while let Some(found) = entry::next(entries) {
        if let EntryKind::Commit {
            start,
            length,
            hashes,
            ..
        } = found.entry.kind
        {
            sealed.bytes = start.saturating_add(length);
            for (number, hash) in hashes.chunks_exact(32).enumerate() {
                let mut block = [0; 32];
                block.copy_from_slice(hash);
                let offset = start.saturating_add((number * BLOCK_BYTES) as u64);
                sealed.blocks.insert(block, offset);
            }
        }
        entries = &entries[found.bytes..];
    }

    sealed
}

/// Describes a mismatch in words. `entries` is the seal after its header.
pub(super) fn describe(mismatch: &Mismatch, log: &mut LogBytes, entries: &[u8]) -> String {
    let sealed = sealed(entries);
    if mismatch.available < mismatch.expected {
        let end = mismatch.start + mismatch.available;
        return format!(
            "truncated or shortened: the log ends at byte {end}, and {} bytes were sealed",
            sealed.bytes
        );
    }
    if let Some(from) = sealed.blocks.get(&mismatch.hash) {
        return format!("reordered: here is what was sealed as the bytes from {from}");
    }

    // A read error here only makes the description less exact.
    let size = log.rest().map_or(sealed.bytes, |_| log.offset);
    match size.cmp(&sealed.bytes) {
        std::cmp::Ordering::Less => format!(
            "bytes are missing: the log is {} bytes shorter than what was sealed",
            sealed.bytes - size
        ),
        std::cmp::Ordering::Greater => format!(
            "altered, or bytes were added: the log is {} bytes longer than what was sealed",
            size - sealed.bytes
        ),
        std::cmp::Ordering::Equal => "altered: not what was sealed".into(),
    }
}
