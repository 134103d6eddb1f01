//! Repairs a COMPACT file that ends in a torn frame.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{FrameHeader, HEAD_BYTES};
use super::MAGIC;

/// Cuts a COMPACT file after its last whole frame. Returns the new size and the number of bytes cut.
pub(crate) fn repair(file: &File, size: u64) -> io::Result<(u64, u64)> {
    let mut at = MAGIC.len() as u64;
    let mut head = [0; HEAD_BYTES];
    let mut payload = Vec::new();
    while at + HEAD_BYTES as u64 <= size {
        file.read_exact_at(&mut head, at)?;
        let Some(head) = FrameHeader::parse(&head) else {
            break;
        };
        let end = at + (HEAD_BYTES as u64) + u64::from(head.stored);
        if end > size {
            break;
        }
        payload.resize(head.stored as usize, 0);
        file.read_exact_at(&mut payload, at + HEAD_BYTES as u64)?;
        if !head.holds(&payload) {
            break;
        }
        at = end;
    }

    if at < size {
        file.set_len(at)?;
    }
    Ok((at, size - at))
}
