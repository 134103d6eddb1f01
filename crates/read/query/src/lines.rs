//! Lines of a log from any reader, in a buffer that is reused.

use std::io::{self, ErrorKind, Read};

const BLOCK_BYTES: usize = 1 << 20;
/// Longest line without `--compat`, in bytes. A longer one is cut, so that memory is bounded.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Reads lines, each with its newline if it has one.
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line_bytes_max: usize,
    is_at_end: bool,
}

impl<R: Read> Lines<R> {
    /// Lines of `input`. A line longer than `line_bytes_max` comes in pieces, as from fgets(3).
    pub fn new(input: R, line_bytes_max: Option<usize>) -> Lines<R> {
        Lines {
            input,
            buffer: vec![0; BLOCK_BYTES],
            start: 0,
            end: 0,
            line_bytes_max: line_bytes_max.unwrap_or(LINE_BYTES_MAX),
            is_at_end: false,
        }
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let rest = &self.buffer[self.start..self.end];
            let newline = memchr::memchr(b'\n', &rest[searched..]).map(|at| searched + at + 1);
            searched = rest.len();
            let length = match newline {
                Some(length) => Some(length),
                None if self.is_at_end && rest.is_empty() => return Ok(None),
                None if self.is_at_end || rest.len() >= self.line_bytes_max => Some(rest.len()),
                None => None,
            };
            if let Some(length) = length {
                let length = length.min(self.line_bytes_max);
                let from = self.start;
                self.start += length;
                return Ok(Some(&self.buffer[from..from + length]));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }

        match self.input.read(&mut self.buffer[self.end..]) {
            Ok(0) => self.is_at_end = true,
            Ok(count) => self.end += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }

        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], most: Option<usize>) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(text, most);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().expect("read from memory") {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn long_lines_are_cut_as_by_fgets_and_nothing_is_lost() {
        assert_eq!(lines(b"abcdef\ng", Some(4)), [&b"abcd"[..], b"ef\n", b"g"]);
        assert_eq!(lines(b"abc\n\n", Some(4)), [&b"abc\n"[..], b"\n"]);
        let long = vec![b'x'; 3 << 20];
        assert_eq!(lines(&long, None), [long]);
    }
}
