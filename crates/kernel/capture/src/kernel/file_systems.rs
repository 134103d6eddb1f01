//! Opens files of the kernel's own file systems. A file system that is not mounted is mounted for this process
//! only, attached to no directory, and stays so: a confined process can mount nothing.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io;
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Opens `path` in the file system of this type, below the first of `places` that has it, or in a private mount.
pub(crate) fn open(
    fs_type: &str,
    places: &[&str],
    path: &str,
    flags: OFlags,
) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    for place in places {
        if let Ok(found) = openat(CWD, format!("{place}/{path}"), flags, Mode::empty()) {
            return Ok(found);
        }
    }
    with_private(fs_type, |root| openat(root, path, flags, Mode::empty()))
}

/// Private mounts, by type.
static PRIVATE: Mutex<BTreeMap<String, OwnedFd>> = Mutex::new(BTreeMap::new());

/// Calls `use_it` with the root directory of a private mount.
fn with_private<T>(
    fs_type: &str,
    use_it: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>,
) -> io::Result<T> {
    let mut private = PRIVATE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(root) = private.get(fs_type) {
        return use_it(root.as_fd());
    }
    let fs = fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&fs)?;
    let root = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let outcome = use_it(root.as_fd());
    private.insert(fs_type.to_owned(), root);
    outcome
}

/// Makes sure that [`open`] will need no further mount for what is in this directory.
pub(crate) fn prepare(fs_type: &str, places: &[&str], directory: &str) -> io::Result<()> {
    open(fs_type, places, directory, OFlags::PATH).map(drop)
}
