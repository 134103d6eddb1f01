//! Messages between the daemon and the spawner: JSON datagrams, each with at most one descriptor.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Longest message, in bytes. The arguments of a plugin are from one line of a file.
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// The hidden command of this program for [`Request::Lookup`].
pub const LOOKUP: &str = "lookup-helper";

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum Request {
    /// A plugin, as auditd starts one. It ends with the daemon.
    Plugin {
        /// The program.
        path: PathBuf,
        /// Arguments of the program.
        args: Vec<String>,
        /// Nice value of the program.
        nice: i32,
    },
    /// The program of an EXEC action: no arguments, no environment.
    Exec {
        /// The program.
        path: PathBuf,
    },
    /// sendmail, which reads a message.
    Mail {
        /// The program.
        program: PathBuf,
    },
    /// init, which is asked for another run level.
    Runlevel {
        /// The program.
        program: PathBuf,
        /// 0 or 1.
        level: u8,
    },
    /// This program, as a helper for look-ups.
    Lookup {
        /// What it looks up: the argument of [`LOOKUP`].
        role: String,
    },
    /// The COMMAND of `tarsier run`.
    Command,
    /// No program: clean up what the daemon itself cannot when it ends.
    Tidy,
}

/// The outcome of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    /// The child, which must be reaped even if it could not execute the program.
    pub(crate) pid: Option<i32>,
    /// Why no program was started, as text and, if a call failed, its errno.
    pub(crate) error: Option<(String, Option<i32>)>,
}

impl Reply {
    pub(crate) fn failed(error: &io::Error, pid: Option<i32>) -> Reply {
        Reply {
            pid,
            error: Some((error.to_string(), error.raw_os_error())),
        }
    }

    /// The error, if there is one.
    pub(crate) fn error(&self) -> Option<io::Error> {
        self.error.as_ref().map(|(text, errno)| match errno {
            Some(errno) => io::Error::from_raw_os_error(*errno),
            None => io::Error::other(text.clone()),
        })
    }
}
