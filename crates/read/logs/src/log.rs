//! A log, and its text.

use crate::decode::{decoded, peek, Ahead};
use crate::names::is_log_of_archive;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes before the name `ustar` in the header of a tar archive.
const TAR_MAGIC_AT: usize = 257;
/// Bytes by which a tar archive is told.
pub(crate) const TAR_BYTES: usize = TAR_MAGIC_AT + 5;

/// Bytes of files and of standard input that this process has read as logs.
static BYTES_READ: AtomicU64 = AtomicU64::new(0);

/// Bytes of files and of standard input that this process has read as logs, before they were decompressed.
pub fn bytes_read() -> u64 {
    BYTES_READ.load(Ordering::Relaxed)
}

/// Counts bytes that were read, or need not be read, without [`Log::open`].
pub fn count_read(bytes: u64) {
    BYTES_READ.fetch_add(bytes, Ordering::Relaxed);
}

/// A file whose bytes count.
struct Counted<R>(R);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(out)?;
        count_read(count as u64);
        Ok(count)
    }
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Log {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
    /// A file in a tar archive.
    Member {
        /// The archive, which may be compressed.
        archive: PathBuf,
        /// Name of the file in it.
        name: String,
    },
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Log::File(path) => path.display().fmt(f),
            Log::Stdin => f.write_str("standard input"),
            Log::Member { archive, name } => write!(f, "{}: {name}", archive.display()),
        }
    }
}

impl Log {
    /// The text of the log, decompressed.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + Send>> {
        match self {
            Log::File(path) => Ok(decoded(Counted(File::open(path)?))?.0),
            Log::Stdin => {
                let (start, text) = peek(decoded(Counted(io::stdin()))?.0, TAR_BYTES);
                if is_tar(&start) {
                    Ok(members_of(text))
                } else {
                    Ok(text)
                }
            }
            Log::Member { archive, name } => member(archive.clone(), name.clone()),
        }
    }
}

/// Whether a file with these first bytes is a tar archive.
pub(crate) fn is_tar(start: &[u8]) -> bool {
    start.get(TAR_MAGIC_AT..) == Some(b"ustar")
}

/// One file of an archive.
fn member(archive: PathBuf, name: String) -> io::Result<Box<dyn BufRead + Send>> {
    let text = Ahead::made_by(move |out| {
        let mut archive = tar::Archive::new(decoded(Counted(File::open(archive)?))?.0);
        for entry in archive.entries()? {
            let mut entry = entry?;
            if entry.path()?.to_string_lossy() == name {
                io::copy(&mut entry, out)?;
                return Ok(());
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the archive has no such file any more",
        ))
    });

    Ok(decoded(text)?.0)
}

/// The logs of an archive that can be read only once, in its order.
fn members_of(archive: Box<dyn BufRead + Send>) -> Box<dyn BufRead + Send> {
    Box::new(Ahead::made_by(move |out| {
        let mut archive = tar::Archive::new(archive);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = entry.path()?.to_string_lossy().into_owned();
            if entry.header().entry_type().is_file() && is_log_of_archive(&name) {
                // The text of a member may be compressed, and is in memory for that: logs of a report are small.
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                io::copy(&mut decoded(io::Cursor::new(bytes))?.0, out)?;
            }
        }
        Ok(())
    }))
}
