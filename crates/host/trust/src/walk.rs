//! Walks from `/` to a file, one descriptor after the other.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{fstat, openat, readlinkat, FileType, Mode, OFlags, Stat, CWD};
use rustix::io::Errno;

use crate::error::{Fault, TrustError};

/// MAXSYMLINKS of the kernel: links that one path may lead through.
const LINKS_MAX: u32 = 40;
/// Opens a directory only to walk on from it.
const HANDLE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// NONBLOCK, so that open(2) does not wait for the writer of a FIFO that took the file's place.
const READ: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// Whether the last name of a path may be a symbolic link. Links before it are followed. Root must
/// own each link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed.
    Follow,
    /// A link is an error (ELOOP).
    Refuse,
}

/// A file, in a directory that only root can change.
pub(crate) struct Found {
    /// The path that was asked for.
    pub(crate) path: PathBuf,
    pub(crate) directory: OwnedFd,
    /// The true path of `directory`.
    pub(crate) parent: PathBuf,
    /// The name in `directory`; `.` for `/`.
    pub(crate) name: OsString,
    pub(crate) stat: Stat,
}

impl Found {
    /// The true path.
    pub(crate) fn at(&self) -> PathBuf {
        match self.name.as_encoded_bytes() {
            b"." => self.parent.clone(),
            _ => self.parent.join(&self.name),
        }
    }

    /// The error of a fault of the file itself.
    pub(crate) fn demand(&self, fault: Option<Fault>) -> Result<(), TrustError> {
        match fault {
            None => Ok(()),
            Some(fault) => Err(untrusted(&self.path, &self.at(), fault)),
        }
    }

    /// Opens the file for reading, and checks what was opened.
    pub(crate) fn open(self) -> Result<File, TrustError> {
        // A device must not be opened to find out what it is.
        self.demand(Fault::of_file(&self.stat))?;
        let file = openat(&self.directory, &self.name, READ, Mode::empty())
            .map_err(|errno| TrustError::io(&self.path, "open", errno))?;
        let stat = fstat(&file).map_err(|errno| TrustError::io(&self.path, "stat", errno))?;
        self.demand(Fault::of_file(&stat))?;
        Ok(File::from(file))
    }

    /// Opens the directory, and checks what was opened.
    pub(crate) fn open_directory(self) -> Result<OwnedFd, TrustError> {
        let flags = READ | OFlags::DIRECTORY;
        let directory = openat(&self.directory, &self.name, flags, Mode::empty())
            .map_err(|errno| TrustError::io(&self.path, "open", errno))?;
        let stat = fstat(&directory).map_err(|errno| TrustError::io(&self.path, "stat", errno))?;
        self.demand(Fault::of(&stat))?;
        Ok(directory)
    }
}

fn untrusted(path: &Path, at: &Path, fault: Fault) -> TrustError {
    // Relative paths and links name another file than the one that is at fault only if it is.
    let is_itself = std::path::absolute(path).is_ok_and(|absolute| absolute == at);
    TrustError::Untrusted {
        path: path.to_owned(),
        at: if is_itself {
            path.to_owned()
        } else {
            at.to_owned()
        },
        fault,
    }
}

/// Finds a file that only root can replace. The owner and mode of the file itself are not checked.
pub(crate) fn find(path: &Path, links: Links) -> Result<Found, TrustError> {
    let absolute =
        std::path::absolute(path).map_err(|source| TrustError::io(path, "getcwd", source))?;
    let mut walk = Walk {
        path,
        directory: root(path)?,
        parent: PathBuf::from("/"),
        rest: VecDeque::new(),
        links_left: LINKS_MAX,
    };
    walk.put_first(&absolute)?;
    walk.run(links)
}

struct Walk<'p> {
    /// The path that was asked for.
    path: &'p Path,
    directory: OwnedFd,
    /// The true path of `directory`.
    parent: PathBuf,
    rest: VecDeque<OsString>,
    links_left: u32,
}

impl Walk<'_> {
    fn run(mut self, links: Links) -> Result<Found, TrustError> {
        while let Some(name) = self.rest.pop_front() {
            let handle = openat(&self.directory, &name, HANDLE, Mode::empty())
                .map_err(|errno| self.io("open", &name, errno))?;
            let stat = fstat(&handle).map_err(|errno| self.io("stat", &name, errno))?;
            let is_last = self.rest.is_empty();
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink if is_last && links == Links::Refuse => {
                    return Err(TrustError::io(self.path, "open", Errno::LOOP));
                }
                FileType::Symlink => {
                    self.demand(&name, Fault::of_owner(&stat))?;
                    self.follow(&name, &handle)?;
                }
                _ if is_last && name != ".." => return Ok(self.found(name, stat)),
                FileType::Directory => {
                    let at = self.at(&name);
                    self.demand(&name, Fault::of_directory_above(&stat))?;
                    (self.directory, self.parent) = (handle, at);
                }
                _ => return Err(self.io("open", &name, Errno::NOTDIR)),
            }
        }

        let stat = fstat(&self.directory).map_err(|errno| self.io("stat", ".".as_ref(), errno))?;
        Ok(self.found(".".into(), stat))
    }

    fn found(self, name: OsString, stat: Stat) -> Found {
        Found {
            path: self.path.to_owned(),
            directory: self.directory,
            parent: self.parent,
            name,
            stat,
        }
    }

    /// Continues where a link leads.
    fn follow(&mut self, name: &OsStr, link: &OwnedFd) -> Result<(), TrustError> {
        if self.links_left == 0 {
            return Err(self.io("open", name, Errno::LOOP));
        }
        self.links_left -= 1;
        let target =
            readlinkat(link, c"", Vec::new()).map_err(|errno| self.io("readlink", name, errno))?;
        self.put_first(Path::new(&OsString::from_vec(target.into_bytes())))
    }

    /// Puts the names of `path` before those that are left. An absolute path begins at `/`.
    fn put_first(&mut self, path: &Path) -> Result<(), TrustError> {
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.rest.push_front(name.to_owned()),
                Component::ParentDir => self.rest.push_front("..".into()),
                Component::RootDir => {
                    (self.directory, self.parent) = (root(self.path)?, PathBuf::from("/"));
                }
                Component::CurDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    /// The true path of an entry of the current directory.
    fn at(&self, name: &OsStr) -> PathBuf {
        match name.as_encoded_bytes() {
            b".." => self.parent.parent().unwrap_or(&self.parent).to_owned(),
            _ => self.parent.join(name),
        }
    }

    fn demand(&self, name: &OsStr, fault: Option<Fault>) -> Result<(), TrustError> {
        match fault {
            None => Ok(()),
            Some(fault) => Err(untrusted(self.path, &self.at(name), fault)),
        }
    }

    fn io(&self, call: &'static str, name: &OsStr, errno: Errno) -> TrustError {
        TrustError::io(&self.at(name), call, errno)
    }
}

fn root(path: &Path) -> Result<OwnedFd, TrustError> {
    let directory = openat(CWD, "/", HANDLE | OFlags::DIRECTORY, Mode::empty())
        .map_err(|errno| TrustError::io(path, "open /", errno))?;
    let stat = fstat(&directory).map_err(|errno| TrustError::io(path, "stat /", errno))?;
    match Fault::of_directory_above(&stat) {
        None => Ok(directory),
        Some(fault) => Err(untrusted(path, Path::new("/"), fault)),
    }
}
