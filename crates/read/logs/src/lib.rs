//! Logs as people have them: files, rotated sets, directories of hosts, archives → text.
//!
//! * [`find`]: what a path stands for: which files, in which order, and which were left out.
//! * [`Log::open`]: the text of one, decompressed by its content.
//! * [`check`]: whether there are records in it, before anything is said about it.

mod decode;
mod find;
mod hosts;
mod log;
mod names;
mod sniff;

pub use decode::decoded;
pub use find::{find, set, LeftOut, LogSet};
pub use log::{bytes_read, count_read, Log};
pub use sniff::{check, no_records, Contents};

use std::path::PathBuf;

/// A log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system does not give the file.
    #[error("{}: {}", path.display(), reason(error))]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Error of the system, or of the decompressor.
        error: std::io::Error,
    },
    /// A file without records.
    #[error(
        "{name}: no audit records in it: expected lines as type=SYSCALL msg=audit(1700000000.123:456): …, also behind \
         the prefix of syslog, in JSON, compressed (gzip, xz, bzip2, zstd, lz4), or in a tar archive{hint}"
    )]
    NoRecords {
        /// Name of the log.
        name: String,
        /// What the file may be.
        hint: String,
    },
    /// A directory or archive without logs.
    #[error("{}: no logs in it: expected audit.log, its rotated files, or directories with them", path.display())]
    NoLogs {
        /// Directory or archive.
        path: PathBuf,
    },
}

/// The system's text of an error, without its number.
fn reason(error: &std::io::Error) -> String {
    // The system has no such error: it comes from what undoes a compression.
    if error.kind() == std::io::ErrorKind::UnexpectedEof {
        return "the compressed text breaks off: the file is not whole".to_owned();
    }

    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
