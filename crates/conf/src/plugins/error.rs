//! Errors in the configuration of plugins.

use std::io;
use std::path::PathBuf;

/// Why a plugin, or the directory of plugins, cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// A file or directory cannot be read.
    #[error("{}: cannot {call} this file: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// What to do.
        remedy: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is not controlled by root alone, is no regular file, or is not executable.
    #[error("{}: {found}; {remedy}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A line is not valid.
    #[error("{}:{line}: {found}; expected {expected}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What was found.
        found: String,
        /// What the line should contain.
        expected: &'static str,
    },
    /// The keys of a file do not describe a plugin.
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
