//! Reasons why a file is not trusted.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

/// The group and others may write.
const WRITABLE: u32 = 0o022;
/// The sticky bit: only owners rename and remove entries of the directory.
const STICKY: u32 = 0o1000;

/// Requirement for owner and mode.
const ROOT_ONLY: &str = "it must be writable by root only";

/// Reason why a file or directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file or directory on the way cannot be read.
    #[error("{}: {call}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system call.
        call: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// Somebody other than root can change the file.
    #[error(
        "{}: {}{fault}; {}",
        path.display(),
        Above(path, at),
        fault.remedy(at)
    )]
    Untrusted {
        /// The file that was asked for.
        path: PathBuf,
        /// The file, link or directory above that is not trusted.
        at: PathBuf,
        /// Fault of that file, link or directory.
        fault: Fault,
    },
}

impl TrustError {
    pub(crate) fn io(path: &Path, call: &'static str, source: impl Into<io::Error>) -> TrustError {
        TrustError::Io {
            path: path.to_owned(),
            call,
            source: source.into(),
        }
    }

    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, TrustError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Names the directory or link that is not trusted, if it is not the file itself.
struct Above<'p>(&'p Path, &'p Path);

impl fmt::Display for Above<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 {
            Ok(())
        } else {
            write!(f, "{} on the way to it is ", self.1.display())
        }
    }
}

/// Fault of a file, link or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Another user owns it.
    Owner(u32),
    /// The group or others may write (the permissions of the mode).
    Mode(u32),
    /// Not a regular file.
    Irregular,
    /// The owner may not execute the file (the permissions of the mode).
    NotExecutable(u32),
}

impl Fault {
    /// Fault of a directory that leads to the file, if it has one.
    pub(crate) fn of_directory_above(stat: &Stat) -> Option<Fault> {
        match Fault::of(stat) {
            Some(Fault::Mode(mode)) if mode & STICKY != 0 => None,
            fault => fault,
        }
    }

    /// Fault of a regular file, if it has one.
    pub(crate) fn of_file(stat: &Stat) -> Option<Fault> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Fault::of(stat),
            _ => Some(Fault::Irregular),
        }
    }

    /// Fault of a program, if it has one.
    pub(crate) fn of_program(stat: &Stat) -> Option<Fault> {
        let mode = stat.st_mode & 0o7777;
        let fault = (mode & 0o100 == 0).then_some(Fault::NotExecutable(mode));
        Fault::of_file(stat).or(fault)
    }

    /// Fault of owner and mode, if there is one.
    pub(crate) fn of(stat: &Stat) -> Option<Fault> {
        let mode = stat.st_mode & 0o7777;
        match mode & WRITABLE {
            _ if Fault::of_owner(stat).is_some() => Fault::of_owner(stat),
            0 => None,
            _ => Some(Fault::Mode(mode)),
        }
    }

    /// Fault of the owner, if there is one. The mode of a symbolic link means nothing.
    pub(crate) fn of_owner(stat: &Stat) -> Option<Fault> {
        let own = rustix::process::geteuid().as_raw();
        let is_ours = stat.st_uid == 0 || stat.st_uid == own;
        (!is_ours).then_some(Fault::Owner(stat.st_uid))
    }

    fn remedy(self, at: &Path) -> String {
        let at = at.display();
        match self {
            Fault::Owner(_) => format!("{ROOT_ONLY}: run: chown -h root {at}"),
            Fault::Mode(_) => format!("{ROOT_ONLY}: run: chmod go-w {at}"),
            Fault::NotExecutable(_) => format!("run: chmod 0750 {at}"),
            Fault::Irregular => "name a regular file".to_owned(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Owner(uid) => write!(f, "owned by uid {uid}, not by root"),
            Fault::Mode(mode) => write!(f, "writable by group or others (mode {mode:04o})"),
            Fault::NotExecutable(mode) => write!(f, "not executable (mode {mode:04o})"),
            Fault::Irregular => f.write_str("not a regular file"),
        }
    }
}
