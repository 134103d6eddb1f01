//! Cuts the text of any reader into blocks.

use super::block::{cut, BLOCK_BYTES, LONGEST_BYTES, WINDOW_BYTES};
use super::{Block, Terms};
use std::io::{self, ErrorKind, Read};

/// The blocks of a text.
pub struct Blocks<R> {
    input: R,
    buffer: Vec<u8>,
    /// Place of the buffer in the text.
    start: u64,
    /// Bytes of the buffer that were given out.
    taken: usize,
    /// Place at which a block would end without the search for a better place.
    nominal: u64,
    block_bytes: u64,
    window_bytes: usize,
    is_at_end: bool,
}

impl<R: Read> Blocks<R> {
    /// The blocks of what `input` gives.
    pub fn new(input: R) -> Blocks<R> {
        Blocks::of_sizes(input, BLOCK_BYTES, WINDOW_BYTES)
    }

    /// Like [`Blocks::new`], with blocks of another size, for tests.
    pub fn of_sizes(input: R, block_bytes: u64, window_bytes: usize) -> Blocks<R> {
        Blocks {
            block_bytes,
            window_bytes,
            input,
            buffer: Vec::new(),
            start: 0,
            taken: 0,
            nominal: 0,
            is_at_end: false,
        }
    }

    /// Place and text of the next block.
    ///
    /// # Errors
    /// The input cannot be read, or a block would be longer than 64 MiB.
    pub fn next_block(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        self.buffer.drain(..self.taken);
        self.start += self.taken as u64;
        self.taken = 0;
        loop {
            self.nominal += self.block_bytes;
            let Some(from) = self.nominal.checked_sub(self.start) else {
                continue;
            };
            if from > LONGEST_BYTES - self.window_bytes as u64 {
                return Err(io::Error::other("a line of over 64 MiB"));
            }
            let from = from as usize;
            self.fill(from + self.window_bytes)?;
            let end = match self.buffer.get(from..) {
                Some(window) => match cut(&window[..window.len().min(self.window_bytes)]) {
                    0 if self.is_at_end => self.buffer.len(),
                    0 => continue,
                    length => from + length,
                },
                None => self.buffer.len(),
            };
            if end == 0 {
                if self.is_at_end && self.buffer.is_empty() {
                    return Ok(None);
                } else {
                    continue;
                }
            }
            self.taken = end;
            return Ok(Some((self.start, &self.buffer[..end])));
        }
    }

    fn fill(&mut self, count: usize) -> io::Result<()> {
        while !self.is_at_end && self.buffer.len() < count {
            let missing = (count - self.buffer.len()) as u64;
            match (&mut self.input)
                .take(missing)
                .read_to_end(&mut self.buffer)
            {
                Ok(read) => self.is_at_end = (read as u64) < missing,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }

        Ok(())
    }

    /// All blocks, with their terms.
    ///
    /// # Errors
    /// The errors of [`Blocks::next_block`].
    pub fn all(mut self) -> io::Result<(Vec<Block>, Vec<Terms>)> {
        let (mut blocks, mut terms) = (Vec::new(), Vec::new());
        while let Some((start, text)) = self.next_block()? {
            blocks.push(Block::of(text, start));
            terms.push(Terms::of(text));
        }
        Ok((blocks, terms))
    }
}
