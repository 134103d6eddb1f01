//! Errors of making a batch.

use std::io;
use std::path::PathBuf;

use crate::position::Position;

/// The log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// A system call failed.
    #[error("{}: cannot {call} a log file: {source}; check the file system", path.display())]
    Io {
        /// The link.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Error of the call.
        source: io::Error,
    },
    /// Text of a file that was read is not in it any more.
    #[error("{}: it was cut or rewritten before byte {offset}", path.display())]
    Changed {
        /// The link.
        path: PathBuf,
        /// Number of the file.
        file: u64,
        /// Offset at which the change was noticed, in bytes.
        offset: u64,
    },
    /// A batch that has to be sent again cannot be made again.
    #[error("{}: the batch up to {to} cannot be made again: {reason}", path.display())]
    Lost {
        /// The link.
        path: PathBuf,
        /// End of the batch.
        to: Position,
        /// Reason for the failure.
        reason: String,
    },
}
