//! Errors of opening, writing and rotating the journal.

use std::io;
use std::path::{Path, PathBuf};

/// Error of opening the log. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A system call failed.
    #[error("{}: {call} failed: {source}; {remedy}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system call, or the step of opening that failed.
        call: &'static str,
        /// The error of the call.
        source: io::Error,
        /// Remedy.
        remedy: &'static str,
    },
    /// The path is not something that a log may be.
    #[error("{}: {found}; {remedy}", path.display())]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// Description of what was found instead.
        found: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// Another process writes this log.
    #[error("{}: another process holds the lock of this log; stop it, or log to another file", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
}

impl OpenError {
    pub(crate) fn io(path: &Path, call: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let remedy = match source.raw_os_error() {
            Some(libc::EROFS) => "the file system is read-only: log elsewhere or remount it",
            Some(libc::EACCES | libc::EPERM) => "run as root, or give a log file of your own",
            Some(libc::ENOENT) => "create the directory above it",
            Some(libc::ENOTDIR) => "part of the path is not a directory: correct it",
            Some(libc::ENOSPC | libc::EDQUOT) => "free space on this file system",
            Some(libc::EMFILE | libc::ENFILE) => "raise the limit of open files",
            _ => "check the path and its file system",
        };

        OpenError::Io {
            path: path.to_owned(),
            call,
            source,
            remedy,
        }
    }

    pub(crate) fn refused(path: &Path, found: impl Into<String>, remedy: &'static str) -> Self {
        OpenError::Refused {
            path: path.to_owned(),
            found: found.into(),
            remedy,
        }
    }

    /// The errno of the system call that failed, if that was the cause.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            OpenError::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// A batch could not be written completely. What was not written is still in the buffer and is
/// tried again at the next commit; the file ends in whole lines.
#[derive(Debug, thiserror::Error)]
#[error("{}: write failed: {source}; {pending_events} events wait in memory", path.display())]
pub struct WriteError {
    /// The log file.
    pub path: PathBuf,
    /// The error of write(2).
    pub source: io::Error,
    /// Events that were appended and are not in the file yet.
    pub pending_events: u64,
}

impl WriteError {
    /// Whether the file system is full, rather than broken.
    pub fn is_full(&self) -> bool {
        is_full(&self.source)
    }
}

pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// The log could not be rotated. Writing goes on in the file that was current.
#[derive(Debug, thiserror::Error)]
#[error("{}: rotation failed: {call} {}: {source}", path.display(), target.display())]
pub struct RotateError {
    /// The log file.
    pub path: PathBuf,
    /// The step that failed.
    pub call: &'static str,
    /// The file that the step was to change.
    pub target: PathBuf,
    /// The error of the step.
    pub source: io::Error,
}
