//! Errors in the configuration of plugins.

use std::io;
use std::path::PathBuf;

use trust::TrustError;

/// Reason why a plugin, or the directory of plugins, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// A file or directory cannot be read.
    #[error("{}: cannot {call} this file: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// Remedy.
        remedy: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file can be changed by others than root, is not a regular file, or is not executable.
    #[error(transparent)]
    Untrusted(TrustError),
    /// The file is too large.
    #[error("{}: more than {limit_bytes} bytes; no plugin's file is that large; name the right one", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size, in bytes.
        limit_bytes: u64,
    },
    /// A line is not valid.
    #[error("{}:{line}: {found}; expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// Description of the text found instead.
        found: String,
        /// Expected contents of the line.
        expected: &'static str,
    },
    /// The keys of a file do not describe a plugin.
    #[error("{}: {found}; {remedy}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// The key that is missing or wrong, and how.
        found: String,
        /// Remedy.
        remedy: &'static str,
    },
}
