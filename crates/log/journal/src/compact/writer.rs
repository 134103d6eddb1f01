//! Compresses text to frames.

use std::io;

use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

use super::frame::{FrameHeader, HEAD_BYTES};
use super::{MAGIC, SEGMENT_BYTES};

/// zstd level. Log text is repetitive: higher levels take far longer and save a few per cent.
const LEVEL: i32 = 3;
/// zstd window, as log2 of bytes: how far back in the text a frame can refer.
const WINDOW_LOG: u32 = 21;

/// Makes the frames of one file.
pub(crate) struct FrameWriter {
    encoder: Encoder<'static>,
    /// Text in the current segment, in bytes.
    segment_bytes: u64,
    begins_segment: bool,
    frame: Vec<u8>,
}

impl FrameWriter {
    pub(crate) fn new() -> io::Result<Self> {
        let mut encoder = Encoder::new(LEVEL)?;
        encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
        encoder.set_parameter(CParameter::ContentSizeFlag(false))?;
        Ok(FrameWriter {
            encoder,
            segment_bytes: 0,
            begins_segment: true,
            frame: Vec::new(),
        })
    }

    /// Makes the next frame independent of those before it: the file is another one, or a frame was
    /// not written.
    pub(crate) fn begin_segment(&mut self) {
        self.begins_segment = true;
    }

    /// Compresses `text` to a frame. If `is_new` is true, the file's magic bytes come before it.
    pub(crate) fn frame(&mut self, text: &[u8], is_new: bool) -> io::Result<&[u8]> {
        if self.begins_segment || is_new || self.segment_bytes >= SEGMENT_BYTES {
            self.encoder.reinit()?;
            self.segment_bytes = 0;
            self.begins_segment = true;
        }

        self.frame.clear();
        if is_new {
            self.frame.extend_from_slice(MAGIC);
        }
        let head_at = self.frame.len();
        let payload_at = head_at + HEAD_BYTES;
        self.frame.resize(payload_at, 0);
        self.compress(text)?;

        let head = FrameHeader::of(self.begins_segment, text, &self.frame[payload_at..]);
        let head = head.ok_or_else(|| io::Error::other("a frame is too large"))?;
        self.frame[head_at..payload_at].copy_from_slice(&head.to_bytes());
        self.begins_segment = false;
        self.segment_bytes += text.len() as u64;

        Ok(&self.frame)
    }

    fn compress(&mut self, text: &[u8]) -> io::Result<()> {
        let mut input = InBuffer::around(text);
        loop {
            let is_taken = input.pos() == text.len();
            let at = self.frame.len();
            self.frame
                .reserve(zstd::zstd_safe::compress_bound(text.len() - input.pos()));
            let mut out = OutBuffer::around_pos(&mut self.frame, at);
            // Flushed, not ended: the next frame of the segment goes on in the same zstd stream.
            let left = if is_taken {
                self.encoder.flush(&mut out)?
            } else {
                self.encoder.run(&mut input, &mut out)?;
                1
            };
            if is_taken && left == 0 {
                return Ok(());
            }
        }
    }
}
