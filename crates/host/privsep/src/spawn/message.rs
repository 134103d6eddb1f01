//! Messages between the daemon and the spawner.
//!
//! The daemon sends a [`Request`] with one end of a socket pair, the gate. Everything about this request comes back
//! through the gate, and a program is executed only after the daemon has answered [`Reply::Started`]. So the end of a
//! spawner at any time leaves no doubt: a gate that closes before `Started` means that no program runs or ever will.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// Longest message, in bytes. The arguments of a plugin are from one line of a file.
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// The hidden command of this program that makes it a spawner: see [`serve_as`](crate::spawn::serve_as).
pub const COMMAND: &str = "spawner";
/// Mode of a spawner: as the daemon's child.
pub(crate) const SIBLING: &str = "sibling";
/// Mode of a spawner: as an instance of a service.
pub(crate) const SERVICE: &str = "service";
/// The hidden command of this program for [`Request::Lookup`].
pub const LOOKUP: &str = "lookup-helper";

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
        /// Kind of look-ups: the argument of [`LOOKUP`].
        role: String,
    },
    /// The COMMAND of `tarsier run`.
    Command,
    /// Another spawner, which is asked through its standard input.
    Spawner,
    /// No program: a signal to what a spawner has started, and what has become of another user since. In place of a
    /// standard input comes a descriptor of the process.
    Signal {
        /// SIGTERM, SIGKILL or SIGHUP.
        number: i32,
    },
    /// No program: the machine is halted, for auditctl's -f 2.
    Halt,
    /// No program: what the daemon cannot put away itself at its end.
    Tidy,
    /// No program: a change of a log file, for which the daemon has lost its right.
    Log(LogChange),
}

/// A change of the files of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogChange {
    /// Opens a file for writing.
    Open {
        /// The file.
        path: PathBuf,
        /// Flags of open(2). Those that are not for writing a file are left out.
        flags: u32,
        /// Mode of a new file.
        mode: u32,
    },
    /// Renames a file in its directory.
    Rename {
        /// The file.
        from: PathBuf,
        /// New name of the file.
        to: PathBuf,
    },
    /// Removes a file.
    Remove {
        /// The file.
        path: PathBuf,
    },
}

/// First message of a spawner to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Process id of the spawner.
    pub(crate) pid: i32,
}

/// The daemon's answer to [`Reply::Started`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Go;

/// Outcome of a request, sent through its gate. [`Reply::Done`] may have a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// This process waits for [`Go`], and then executes the program. Both it and the spawner say so.
    Started(i32),
    /// A request that starts no program is done.
    Done,
    /// There is no program: the reason as text and, if a call failed, as its errno.
    Failed(String, Option<i32>),
}

impl Reply {
    pub(crate) fn failed(error: &io::Error) -> Reply {
        Reply::Failed(error.to_string(), error.raw_os_error())
    }
}

/// The error that [`Reply::Failed`] tells.
pub(crate) fn error_of(text: String, errno: Option<i32>) -> io::Error {
    match errno {
        Some(errno) => io::Error::from_raw_os_error(errno),
        None => io::Error::other(text),
    }
}
