//! A directory whose entries are used by name.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::Dir;

use crate::error::TrustError;
use crate::walk::{self, Links};

/// An open directory in which nobody but root makes or replaces entries.
pub struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory that only root can change.
    ///
    /// # Errors
    /// The directory cannot be opened, or somebody else can change it or the path to it.
    pub fn open(path: &Path, links: Links) -> Result<Directory, TrustError> {
        Ok(Directory {
            fd: walk::find(path, links)?.open_directory()?,
            path: path.to_owned(),
        })
    }

    /// The path with which it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of the entries, in the order of the directory, without `.` and `..`.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
