//! COMPACT: ENRICHED text, compressed as it is written.
//!
//! ```text
//! file:  "TARCOMP1" frame…
//! frame: mark "TC"  flags u8  0  stored u32  text u32  first_s u32  last_s u32  check[8]  payload
//! ```
//! A frame holds what one write made of whole lines: `text` bytes of them, in `stored` bytes of
//! payload. The payloads of a *segment* are one zstd stream, flushed after each frame, so that a
//! frame of one event is small too: it refers to the text before it. A segment begins with a frame
//! that says so (flag 1), after at most [`SEGMENT_BYTES`] of text and at every opening of the file;
//! it can be read without the ones before. `first_s` and `last_s` are the earliest and latest event
//! time in the frame: a reader that looks for a time goes from head to head, which is the index.
//! `check` is the start of the BLAKE3 hash of head and payload: a torn frame is not taken for a
//! whole one. Numbers are little-endian.

mod frame;
mod reader;
mod repair;
mod writer;

pub use reader::{open, Reader, TimeRange};
pub(crate) use repair::repair;
pub(crate) use writer::Writer;

/// Text after which a new segment begins.
pub const SEGMENT_BYTES: u64 = 4 << 20;

pub(crate) const MAGIC: &[u8; 8] = b"TARCOMP1";

/// Whether a file that begins with these bytes is COMPACT.
pub fn is_compact(start: &[u8]) -> bool {
    start.starts_with(MAGIC)
}
