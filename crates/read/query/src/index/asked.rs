//! What an index says about one question. Its filters are looked at while it is read, and not kept: the kernel takes
//! longer to give a process new memory than all else here.

use super::ask::{Answer, Needed};
use super::block::{Block, RANGES_MAX};
use super::file::{read_block, Bytes, Subject, TermsView, MAGIC, SUM_BYTES};
use super::terms::{KINDS_MAX, NUMBER_WORDS, TEXT_WORDS};
use std::io::Read;

/// Upper bound of the bytes of a block with its terms in an index.
const ENTRY_BYTES_MAX: usize =
    64 + 40 * RANGES_MAX + 4 * (KINDS_MAX + 1) + 8 * (NUMBER_WORDS + TEXT_WORDS);
/// Bytes that are read at once: as many as BLAKE3 is fast with, and of which each piece begins at a multiple.
const READ_BYTES: usize = 1 << 15;

/// The blocks of a file, and whether each may hold an event that matches.
pub struct IndexAnswer {
    /// The file.
    pub subject: Subject,
    /// Blocks of the file; their places are those of the uncompressed text.
    pub blocks: Vec<Block>,
    /// Answer for each of the blocks.
    pub answers: Vec<Answer>,
}

impl IndexAnswer {
    /// Asks the index that `input` has in `length` bytes. `None` if that is not an index, or cannot be read.
    pub fn read(input: impl Read, length: u64, needed: &Needed) -> Option<IndexAnswer> {
        let body_bytes = length.checked_sub(SUM_BYTES as u64)?;
        let mut window = Window {
            input,
            buffer: vec![0; READ_BYTES + ENTRY_BYTES_MAX],
            at: 0,
            end: 0,
            left_bytes: body_bytes,
            sum: blake3::Hasher::new(),
        };

        let mut start = Bytes(window.fill()?.strip_prefix(MAGIC)?);
        let subject = Subject::read(&mut start)?;
        let count = usize::try_from(start.u64()?).ok()?;
        let rest = start.0.len();
        window.at = window.end - rest;
        let mut asked = IndexAnswer {
            subject,
            blocks: Vec::new(),
            answers: Vec::new(),
        };

        let mut end = 0;
        for _ in 0..count {
            let mut bytes = Bytes(window.fill()?);
            let block = read_block(&mut bytes, &mut end)?;
            let answer = needed.ask(&TermsView::read(&mut bytes)?);
            let rest = bytes.0.len();
            window.at = window.end - rest;
            asked.blocks.push(block);
            asked.answers.push(answer);
        }

        window.is_whole().then_some(asked)
    }
}

/// Part of a file that ends in a sum of its bytes.
struct Window<R> {
    input: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were used.
    at: usize,
    /// Bytes of the buffer that were read.
    end: usize,
    /// Bytes before the sum that were not read yet.
    left_bytes: u64,
    sum: blake3::Hasher,
}

impl<R: Read> Window<R> {
    /// The bytes from here on: at least those of an entry, unless the sum comes earlier.
    fn fill(&mut self) -> Option<&[u8]> {
        if self.end - self.at < ENTRY_BYTES_MAX {
            self.buffer.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
            let start = self.end;
            let count = self.left_bytes.min(READ_BYTES as u64);
            self.read(count as usize)?;
            self.left_bytes -= count;
            self.sum.update(&self.buffer[start..self.end]);
        }
        Some(&self.buffer[self.at..self.end])
    }

    /// Whether all bytes were used, and the sum that follows is theirs.
    fn is_whole(&mut self) -> bool {
        let is_used = self.left_bytes == 0 && self.at == self.end;
        self.end = 0;
        is_used
            && self.read(SUM_BYTES).is_some()
            && self.sum.finalize().as_bytes()[..] == self.buffer[..SUM_BYTES]
    }

    /// Reads `count` bytes behind those of the buffer.
    fn read(&mut self, count: usize) -> Option<()> {
        let part = self.buffer.get_mut(self.end..self.end + count)?;
        self.input.read_exact(part).ok()?;
        self.end += count;
        Some(())
    }
}
