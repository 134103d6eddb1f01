//! Landlock (landlock(7)): where this process may still write. Reading is not restricted.

use crate::confine::in_force::LandlockInForce;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;

/// LANDLOCK_ACCESS_FS_* of include/uapi/linux/landlock.h.
mod access {
    pub(super) const EXECUTE: u64 = 1 << 0;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const REMOVE_DIR: u64 = 1 << 4;
    pub(super) const REMOVE_FILE: u64 = 1 << 5;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_DIR: u64 = 1 << 7;
    pub(super) const MAKE_REG: u64 = 1 << 8;
    pub(super) const MAKE_SOCK: u64 = 1 << 9;
    pub(super) const MAKE_FIFO: u64 = 1 << 10;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    pub(super) const MAKE_SYM: u64 = 1 << 12;
    pub(super) const REFER: u64 = 1 << 13;
    pub(super) const TRUNCATE: u64 = 1 << 14;
}
use access::*;

const CREATE_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// A place where a process writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Writable {
    /// A file that exists.
    File(PathBuf),
    /// A directory in which regular files and sockets are made, changed, renamed and removed.
    Directory(PathBuf),
    /// A directory in which sockets are made and removed.
    Sockets(PathBuf),
    /// A directory like [`Writable::Directory`], in which directories are made, moved and removed too.
    Tree(PathBuf),
}

impl Writable {
    /// Path of the place.
    pub fn path(&self) -> &PathBuf {
        let (Writable::File(path)
        | Writable::Directory(path)
        | Writable::Sockets(path)
        | Writable::Tree(path)) = self;
        path
    }

    fn access(&self) -> u64 {
        let directory = WRITE_FILE | TRUNCATE | MAKE_REG | MAKE_SOCK | REMOVE_FILE | REFER;
        match self {
            Writable::File(_) => WRITE_FILE | TRUNCATE,
            Writable::Directory(_) => directory,
            Writable::Sockets(_) => MAKE_SOCK | REMOVE_FILE,
            Writable::Tree(_) => directory | MAKE_DIR | REMOVE_DIR,
        }
    }
}

/// `struct landlock_ruleset_attr` of the first version; later ones append.
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// The version of Landlock that the kernel reports.
fn abi() -> io::Result<u32> {
    // SAFETY: with this flag the kernel reads nothing.
    let version = unsafe {
        let none = std::ptr::null::<RulesetAttr>();
        libc::syscall(libc::SYS_landlock_create_ruleset, none, 0, CREATE_VERSION)
    };
    match u32::try_from(version) {
        Ok(version) => Ok(version),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// The rights restricted here that a version knows.
fn handled(abi: u32) -> u64 {
    let first = EXECUTE
        | WRITE_FILE
        | REMOVE_DIR
        | REMOVE_FILE
        | MAKE_CHAR
        | MAKE_DIR
        | MAKE_REG
        | MAKE_SOCK
        | MAKE_FIFO
        | MAKE_BLOCK
        | MAKE_SYM;

    match abi {
        0..=1 => first,
        2 => first | REFER,
        _ => first | REFER | TRUNCATE,
    }
}

/// Forbids this thread, and those that it starts, to write elsewhere. A place that does not exist is left out.
pub(crate) fn restrict(writable: &[Writable]) -> io::Result<LandlockInForce> {
    let abi = abi()?;
    let handled = handled(abi);
    let attr = RulesetAttr {
        handled_access_fs: handled,
    };

    // SAFETY: the kernel reads as many bytes as it is told.
    let ruleset = unsafe {
        let size = size_of::<RulesetAttr>();
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size, 0)
    };
    if ruleset < 0 {
        return Err(io::Error::last_os_error());
    }

    // SAFETY: the kernel has just made this descriptor for us.
    let ruleset = unsafe { OwnedFd::from_raw_fd(ruleset as i32) };
    let mut paths = Vec::new();
    for place in writable {
        if allow(&ruleset, place, handled)? {
            paths.push(place.path().clone());
        }
    }

    // SAFETY: no pointers.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    match result {
        0 => Ok(LandlockInForce { abi, paths }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Adds a place to the rules. Returns whether it exists.
fn allow(ruleset: &OwnedFd, place: &Writable, handled: u64) -> io::Result<bool> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(object) = rustix::fs::open(place.path(), flags, Mode::empty()) else {
        return Ok(false);
    };

    let attr = PathBeneathAttr {
        allowed_access: place.access() & handled,
        parent_fd: object.as_raw_fd(),
    };

    // SAFETY: the kernel reads the attribute, which has the layout of this kind of rule.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            RULE_PATH_BENEATH,
            &raw const attr,
            0,
        )
    };

    match result {
        0 => Ok(true),
        _ => Err(io::Error::last_os_error()),
    }
}
