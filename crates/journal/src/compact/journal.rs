//! Where the journal writes frames, and mends a file that ends in a torn one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::frame::{Head, HEAD_BYTES};
use super::Writer;
use super::MAGIC;
use crate::error::{RotateError, WriteError};
use crate::log::Journal;
use crate::{recover, rotate};
use conf::LogFormat;

/// About the most text in a frame.
const FRAME_TEXT_BYTES: u64 = 128 << 10;

impl Journal {
    /// Begins to write in the configured form. A file in the other one is rotated away, and kept:
    /// no file holds both.
    pub(crate) fn start_form(&mut self) -> Result<(), RotateError> {
        let wants = self.config.log_format == LogFormat::Compact;
        if wants != self.compact.is_some() {
            self.compact = match wants {
                true => Some(Writer::new().map_err(|source| RotateError {
                    path: self.path.clone(),
                    call: "start of compression for",
                    target: self.path.clone(),
                    source,
                })?),
                false => None,
            };
        }
        if let Some(writer) = &mut self.compact {
            writer.begin_segment();
        }
        let Some(file) = self.file.clone().filter(|_| self.size_bytes > 0) else {
            return Ok(());
        };
        if recover::is_compact(&file).is_ok_and(|is| is != wants) {
            self.rotate_keeping(rotate::keep_all(&self.path))?;
        }
        Ok(())
    }

    /// Writes the first `upto` bytes of the buffer as one frame, or nothing; or fewer of them, if
    /// that would be a large frame: on a full disk each try compresses anew.
    pub(crate) fn write_frame(&mut self, file: &File, upto: usize) -> Result<(), WriteError> {
        let Some(mut writer) = self.compact.take() else {
            return Ok(());
        };
        let upto = upto.min(self.pending.cut_at_or_after(FRAME_TEXT_BYTES));
        let is_new = self.size_bytes == 0;
        let made = writer.frame(&self.pending.bytes()[..upto], is_new);
        if let Ok(frame) = &made {
            self.begin_write(file, upto, frame.len() as u64);
        }
        let written =
            made.and_then(|frame| append_whole(file, frame, self.size_bytes).map(|()| frame));
        let outcome = match written {
            Ok(frame) => {
                self.account_stored(upto, frame);
                self.counters.writes += 1;
                self.write_succeeded();
                Ok(())
            }
            Err(error) => {
                writer.begin_segment();
                Err(self.write_failed(error))
            }
        };
        self.end_write();
        self.compact = Some(writer);
        outcome
    }
}

/// Appends all of `bytes` to a file of `size` bytes; after an error the file has that size again.
fn append_whole(file: &File, bytes: &[u8], size: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::write(file, &bytes[done..]) {
            Ok(count) if count > 0 => done += count,
            Err(rustix::io::Errno::INTR) => {}
            other => {
                // If this fails too, the next opening of the log cuts the torn frame.
                let _ = file.set_len(size);
                return Err(other
                    .err()
                    .map_or(io::ErrorKind::WriteZero.into(), Into::into));
            }
        }
    }
    Ok(())
}

/// Cuts a COMPACT file after its last whole frame: the size then, and the bytes that were cut.
pub(crate) fn repair(file: &File, size: u64) -> io::Result<(u64, u64)> {
    let mut at = MAGIC.len() as u64;
    let mut head = [0; HEAD_BYTES];
    let mut payload = Vec::new();
    while at + HEAD_BYTES as u64 <= size {
        file.read_exact_at(&mut head, at)?;
        let Some(head) = Head::parse(&head) else {
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
