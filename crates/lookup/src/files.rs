//! Looks up objects at paths, in the calling process.

use crate::message::CAPABILITIES_BYTES;
use crate::object::{dev_of, stat, Fault};
use crate::walk::{self, Gate};
use compose::HEAD_BYTES_MAX;
use event::record::Inode;
use plan::ObjectId;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{fstatfs, getxattr, openat, readlinkat, Mode, OFlags, Statx, CWD};
use std::fs::File;
use std::io::Read;

const S_IFMT: u16 = 0o170000;
const S_IFREG: u16 = 0o100000;
/// What the kernel appends to the path of a removed object.
const REMOVED: &[u8] = b" (deleted)";

/// An object without a path of its own, for calls that take no O_PATH descriptor.
fn by_descriptor(object: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", object.as_raw_fd())
}

/// See [`compose::System::inode`].
pub(crate) fn inode(path: &[u8], follow: bool, gate: &mut dyn Gate) -> Result<Inode, Fault> {
    let stat = stat(walk::open(path, follow, gate)?)?;
    Ok(Inode {
        ino: stat.stx_ino,
        dev: dev_of(&stat),
        mode: stat.stx_mode,
        ouid: stat.stx_uid,
        ogid: stat.stx_gid,
        rdev: stat.stx_rdev_major << 20 | stat.stx_rdev_minor,
    })
}

/// See [`compose::System::real_path`].
pub(crate) fn real_path(path: &[u8], gate: &mut dyn Gate) -> Result<Vec<u8>, Fault> {
    let object = walk::open_every_link(path, gate)?;
    let real = readlinkat(CWD, by_descriptor(&object), Vec::new())?.into_bytes();
    let is_removed = real.ends_with(REMOVED) && stat(&object)?.stx_nlink == 0;
    match real.first() {
        Some(b'/') if !is_removed => Ok(real),
        _ => Err(Fault::Missing),
    }
}

/// See [`compose::System::file_capabilities`].
pub(crate) fn capabilities(
    path: &[u8],
    of: Option<ObjectId>,
    gate: &mut dyn Gate,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, gate)?;
    let stat = stat(&object)?;
    // btrfs and overlayfs, which have no block device, show another number here than the kernel's own.
    let is_same = |of: ObjectId| {
        of.ino == stat.stx_ino
            && (of.dev == dev_of(&stat) || of.dev >> 20 == 0 && stat.stx_dev_major == 0)
    };
    if of.is_some_and(|of| !is_same(of)) {
        return Err(Fault::Missing);
    }
    if !gate.may_wait(dev_of(&stat)) {
        return Err(Fault::NotNow);
    }
    let mut value = [0; CAPABILITIES_BYTES];
    let len = getxattr(by_descriptor(&object), "security.capability", &mut value)?;
    Ok(value[..len.min(value.len())].to_vec())
}

/// See [`compose::System::head`]. Only a regular file is opened, and only if it is still the same one then.
pub(crate) fn head(
    path: &[u8],
    of: Option<ObjectId>,
    bytes_max: u32,
    gate: &mut dyn Gate,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, gate)?;
    let found = stat(&object)?;
    let id = |stat: &Statx| (dev_of(stat), stat.stx_ino);
    if found.stx_mode & S_IFMT != S_IFREG || of.is_some_and(|of| (of.dev, of.ino) != id(&found)) {
        return Err(Fault::Missing);
    }
    if !gate.may_wait(dev_of(&found)) {
        return Err(Fault::NotNow);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, by_descriptor(&object), flags, Mode::empty())?);
    let opened = stat(&file)?;
    if opened.stx_mode & S_IFMT != S_IFREG || id(&opened) != id(&found) {
        return Err(Fault::Missing);
    }
    let mut bytes = Vec::new();
    let most = bytes_max.min(HEAD_BYTES_MAX).into();
    match file.take(most).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Fault::NotNow),
    }
}

/// See [`compose::System::file_system`].
pub(crate) fn file_system(path: &[u8], gate: &mut dyn Gate) -> Result<u32, Fault> {
    let object = walk::open(path, true, gate)?;
    if !gate.may_wait(dev_of(&stat(&object)?)) {
        return Err(Fault::NotNow);
    }
    Ok(fstatfs(&object)?.f_type as u32)
}
