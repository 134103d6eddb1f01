//! A file of the log, read from a place on together with what stands before, which tells whether the place is still what
//! it was.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::error::MakeError;
use crate::mark::{Mark, Marks, MARKED_BYTES};
use crate::spool::Files;

/// A file that is read.
pub(super) struct Source {
    path: PathBuf,
    file: File,
    number: u64,
    size: u64,
}

/// Text of a file.
pub(super) struct Text {
    number: u64,
    /// Offset of the bytes in the file.
    begin: u64,
    bytes: Vec<u8>,
    /// Number of bytes that stand before what is wanted.
    lead: usize,
}

impl Source {
    /// Opens file `number`.
    pub(super) fn open(spool: &Files, number: u64) -> Result<Source, MakeError> {
        let path = spool.path(number);
        let failed = |call: &'static str| {
            let path = path.clone();
            move |source| MakeError::Io { path, call, source }
        };
        let file = File::open(&path).map_err(failed("open"))?;
        let size = file.metadata().map_err(failed("stat"))?.len();
        Ok(Source {
            file,
            number,
            size,
            path,
        })
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Error for a change noticed at byte `offset`: the file is not the one that was read.
    pub(super) fn changed(&self, offset: u64) -> MakeError {
        MakeError::Changed {
            path: self.path.clone(),
            file: self.number,
            offset,
        }
    }

    fn failed(&self, call: &'static str) -> impl FnOnce(io::Error) -> MakeError + '_ {
        move |source| MakeError::Io {
            path: self.path.clone(),
            call,
            source,
        }
    }

    /// Makes what is in the file durable: never further at the destination than on this disk.
    pub(super) fn sync(&self) -> Result<(), MakeError> {
        let synced = rustix::fs::fdatasync(&self.file).map_err(io::Error::from);
        synced.map_err(self.failed("sync"))
    }

    /// Reads the bytes from `from` to `to`, if what stands before them, and before `to`, is what `marks` say.
    pub(super) fn read(&self, from: u64, to: u64, marks: &Marks) -> Result<Text, MakeError> {
        let lead = from.min(MARKED_BYTES as u64);
        let begin = from - lead;
        let mut bytes = vec![0; (to - begin) as usize];
        match self.file.read_exact_at(&mut bytes, begin) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(self.changed(from));
            }
            read => read.map_err(self.failed("read"))?,
        }

        let lead = lead as usize;
        for (offset, text) in [(from, &bytes[..lead]), (to, &bytes[..])] {
            if !marks.agree(self.number, offset, text) {
                return Err(self.changed(offset));
            }
        }

        Ok(Text {
            number: self.number,
            begin,
            bytes,
            lead,
        })
    }
}

impl Text {
    /// The bytes that were wanted.
    pub(super) fn wanted(&self) -> &[u8] {
        &self.bytes[self.lead..]
    }

    /// The mark of a place in the text, in bytes of the file.
    pub(super) fn mark(&self, offset: u64) -> Mark {
        let end = (offset - self.begin) as usize;
        Mark::of(self.number, offset, &self.bytes[..end])
    }
}
