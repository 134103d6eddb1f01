//! Decompresses frames to text.

use std::io::{self, Read};
use std::path::Path;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::frame::{FrameHeader, HEAD_BYTES};
use super::MAGIC;
use crate::read;

/// Event times in seconds since 1970, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest.
    pub since_s: u32,
    /// The latest.
    pub until_s: u32,
}

impl TimeRange {
    /// All times.
    pub const ALL: TimeRange = TimeRange {
        since_s: 0,
        until_s: u32::MAX,
    };

    fn meets(&self, head: &FrameHeader) -> bool {
        head.first_s <= self.until_s && head.last_s >= self.since_s
    }
}

/// Opens a log file of any form (plain, compressed at its rotation, or COMPACT) and reads its text.
/// A COMPACT file gives only the frames with events in `range`; other files give all of their text.
pub fn open(path: &Path, range: TimeRange) -> io::Result<Box<dyn Read>> {
    let mut file = read::raw(path)?;
    let mut start = vec![0; MAGIC.len()];
    let count = read::fill(&mut file, &mut start)?;
    start.truncate(count);
    if super::is_compact(&start) {
        Ok(Box::new(FrameReader::new(file, range)?))
    } else {
        Ok(Box::new(io::Cursor::new(start).chain(file)))
    }
}

/// Reads the text of a COMPACT file from its first byte.
///
/// # Errors
/// The input cannot be read, or is not COMPACT.
pub fn text(mut file: impl Read) -> io::Result<impl Read> {
    let mut start = vec![0; MAGIC.len()];
    read::fill(&mut file, &mut start)?;
    if super::is_compact(&start) {
        FrameReader::new(file, TimeRange::ALL)
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not a COMPACT file",
        ))
    }
}

/// Reads the text of frames. A torn frame at the end of the file ends the text; damage before that
/// is an error of kind `InvalidData`.
pub struct FrameReader<R> {
    file: R,
    range: TimeRange,
    decoder: Decoder<'static>,
    /// Payloads of this segment that were skipped: later frames of the segment cannot be decoded
    /// without them.
    skipped: Vec<u8>,
    payload: Vec<u8>,
    text: Vec<u8>,
    at: usize,
    offset: u64,
}

impl<R: Read> FrameReader<R> {
    /// Starts to read `file`, which is positioned after the magic bytes.
    fn new(file: R, range: TimeRange) -> io::Result<Self> {
        Ok(FrameReader {
            file,
            range,
            decoder: Decoder::new()?,
            skipped: Vec::new(),
            payload: Vec::new(),
            text: Vec::new(),
            at: 0,
            offset: MAGIC.len() as u64,
        })
    }

    /// Reads the next frame's text; false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        self.text.clear();
        self.at = 0;
        let mut head = [0; HEAD_BYTES];
        let count = read::fill(&mut self.file, &mut head)?;
        if count < HEAD_BYTES {
            return Ok(false);
        }

        let damaged = |offset: u64| {
            let text = format!("the frame at byte {offset} is damaged");
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        };
        let Some(head) = FrameHeader::parse(&head) else {
            return damaged(self.offset);
        };

        self.payload.clear();
        let stored = u64::from(head.stored);
        self.file
            .by_ref()
            .take(stored)
            .read_to_end(&mut self.payload)?;
        if (self.payload.len() as u64) < stored {
            return Ok(false);
        }
        if !head.holds(&self.payload) {
            return damaged(self.offset);
        }

        // Frames of a segment are one zstd stream: only its first can be decoded without the others.
        if head.begins_segment {
            self.decoder.reinit()?;
            self.skipped.clear();
        }
        if !self.range.meets(&head) {
            self.skipped.extend_from_slice(&self.payload);
        } else if self.decode(head.text as usize).is_err() {
            return damaged(self.offset);
        }

        self.offset += HEAD_BYTES as u64 + stored;
        Ok(true)
    }

    /// Decodes the skipped payloads of this segment, then the current frame, which must give `text`
    /// bytes.
    fn decode(&mut self, text: usize) -> io::Result<()> {
        let skipped = std::mem::take(&mut self.skipped);
        for payload in [&skipped, &self.payload] {
            self.text.clear();
            let mut input = InBuffer::around(payload);
            loop {
                let at = self.text.len();
                self.text.reserve(1 << 16);
                let mut out = OutBuffer::around_pos(&mut self.text, at);
                self.decoder.run(&mut input, &mut out)?;
                // zstd may hold more text than the buffer took.
                let is_full = out.pos() == out.capacity();
                if input.pos() == payload.len() && !is_full {
                    break;
                }
            }
        }

        if self.text.len() == text {
            Ok(())
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

impl<R: Read> Read for FrameReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            if !self.next_frame()? {
                return Ok(0);
            }
        }
        let count = out.len().min(self.text.len() - self.at);
        out[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
