//! Opens files of the kernel's own file systems. A file system that is not mounted is mounted for this process
//! only, attached to no directory.

use rustix::fd::OwnedFd;
use rustix::fs::{openat, Mode, OFlags, CWD};
use rustix::io;
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};

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
    let fs = fsopen(fs_type, FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&fs)?;
    let root = fsmount(&fs, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    openat(root, path, flags, Mode::empty())
}
