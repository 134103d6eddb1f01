//! COMPACT: ENRICHED text, compressed as it is written.
//!
//! ```text
//! file:  "TARCOMP1" frame…
//! frame: mark "TC"  flags u8  0  stored u32  text u32  first_s u32  last_s u32  check[8]  payload
//! ```
//! Each write of whole lines makes one frame: `text` bytes of lines in `stored` bytes of payload.
//! The payloads of a *segment* form one zstd stream that is flushed after each frame, so that even
//! a frame of a single event is small: it refers to the text before it. A segment begins with a
//! frame that has flag 1 set, after at most [`SEGMENT_BYTES`] of text and whenever the file is
//! opened; it can be read without the segments before it. `first_s` and `last_s` are the earliest
//! and latest event time in the frame: a reader that looks for a time skips from header to header,
//! which is the index. `check` is the start of the BLAKE3 hash of header and payload: it keeps a
//! torn frame from being taken for a whole one. Numbers are little-endian.

mod frame;
mod reader;
mod repair;
mod writer;

pub use reader::{open, text, FrameReader, TimeRange};
pub(crate) use repair::repair;
pub(crate) use writer::FrameWriter;

/// Size of the text, in bytes, after which a new segment begins.
pub const SEGMENT_BYTES: u64 = 4 << 20;

pub(crate) const MAGIC: &[u8; 8] = b"TARCOMP1";

/// Whether a file that starts with these bytes is in COMPACT format.
pub fn is_compact(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}
