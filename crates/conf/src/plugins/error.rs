//! What can be wrong with a plugin.

use std::io;
use std::path::PathBuf;

/// Why a plugin, or the directory of plugins, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// A file or directory cannot be read.
    #[error("{}: cannot {call} it: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// What to do.
        remedy: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// A file that others than root control, or that is no regular file.
    #[error("{}: {found}; {remedy}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A line that is not understood.
    #[error("{}:{line}: {found}; expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What was found.
        found: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// Keys that do not make a plugin together.
    #[error("{}: {found}; {remedy}", path.display())]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What is missing or does not fit.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
}
