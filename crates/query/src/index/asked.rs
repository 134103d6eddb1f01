//! What an index says about one question. Its filters are looked at while it is read, and not kept: the kernel takes
//! longer to give a process new memory than all else here.

use super::ask::{Answer, Needed};
use super::block::{Block, RANGES_MAX};
use super::file::{read_block, Bytes, Subject, TermsView, MAGIC, SUM_BYTES};
use super::terms::{KINDS_MAX, NUMBER_WORDS, TEXT_WORDS};
use std::io::{ErrorKind, Read};

/// Upper bound of the bytes of a block with its terms in an index.
const ENTRY_BYTES_MAX: usize =
    64 + 40 * RANGES_MAX + 4 * (KINDS_MAX + 1) + 8 * (NUMBER_WORDS + TEXT_WORDS);
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// The blocks of a file, and whether each may hold an event that matches.
pub struct Asked {
    /// The file.
    pub subject: Subject,
    /// Blocks of the file; their places are those of the uncompressed text.
    pub blocks: Vec<Block>,
    /// Answer for each of the blocks.
    pub answers: Vec<Answer>,
}

impl Asked {
    /// Asks the index that `input` has in `length` bytes. `None` if that is not an index, or cannot be read.
    pub fn read(input: impl Read, length: u64, needed: &Needed) -> Option<Asked> {
        let body_bytes = length.checked_sub(SUM_BYTES as u64)?;
        let mut window = Window {
            input,
            buffer: Vec::with_capacity(READ_BYTES),
            at: 0,
            left_bytes: body_bytes,
            sum: blake3::Hasher::new(),
        };
        let mut start = Bytes(window.fill()?.strip_prefix(MAGIC)?);
        let subject = Subject::read(&mut start)?;
        let count = usize::try_from(start.u64()?).ok()?;
        let rest = start.0.len();
        window.at = window.buffer.len() - rest;
        let mut asked = Asked {
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
            window.at = window.buffer.len() - rest;
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
    /// Bytes before the sum that were not read yet.
    left_bytes: u64,
    sum: blake3::Hasher,
}

impl<R: Read> Window<R> {
    /// The bytes from here on: at least those of an entry, unless the sum comes earlier.
    fn fill(&mut self) -> Option<&[u8]> {
        if self.buffer.len() - self.at < ENTRY_BYTES_MAX {
            self.buffer.drain(..self.at);
            self.at = 0;
            let start = self.buffer.len();
            let count = self.left_bytes.min((READ_BYTES - start) as u64);
            self.read(count)?;
            self.left_bytes -= count;
            self.sum.update(&self.buffer[start..]);
        }
        Some(&self.buffer[self.at..])
    }

    /// Whether all bytes were used, and the sum that follows is theirs.
    fn is_whole(&mut self) -> bool {
        let is_used = self.left_bytes == 0 && self.at == self.buffer.len();
        self.buffer.clear();
        is_used
            && self.read(SUM_BYTES as u64).is_some()
            && self.sum.finalize().as_bytes()[..] == self.buffer[..]
    }

    /// Appends `count` bytes to the buffer.
    fn read(&mut self, count: u64) -> Option<()> {
        let mut input = self.input.by_ref().take(count);
        loop {
            match input.read_to_end(&mut self.buffer) {
                Ok(_) => return (input.limit() == 0).then_some(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
