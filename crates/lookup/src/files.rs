//! Looks up objects at paths, in the calling process.

use crate::message::{put_object, CAPABILITIES_BYTES, DIRECTORIES_MAX};
use crate::object::{stat, Fault};
use crate::walk::{self, Access};
use compose::{directories_above, HEAD_BYTES_MAX};
use event::record::Inode;
use plan::ObjectId;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{fstatfs, getxattr, openat, readlinkat, Dir, Mode, OFlags, Statx, CWD};
use std::fs::File;
use std::io::Read;

const S_IFMT: u16 = 0o170000;
const S_IFREG: u16 = 0o100000;
/// Most names of a directory that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// Suffix that the kernel appends to the path of a removed object.
const REMOVED: &[u8] = b" (deleted)";

/// An object without a path of its own, for calls that take no O_PATH descriptor.
fn by_descriptor(object: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", object.as_raw_fd())
}

fn id(object: &OwnedFd, stat: &Statx, access: &mut Access<'_>) -> ObjectId {
    ObjectId {
        dev: access.device(object, stat),
        ino: stat.stx_ino,
    }
}

/// See [`compose::System::inode`].
pub(crate) fn inode(path: &[u8], follow: bool, access: &mut Access<'_>) -> Result<Inode, Fault> {
    let object = walk::open(path, follow, access)?;
    let stat = stat(&object)?;
    Ok(Inode {
        ino: stat.stx_ino,
        dev: access.device(&object, &stat),
        mode: stat.stx_mode,
        ouid: stat.stx_uid,
        ogid: stat.stx_gid,
        rdev: stat.stx_rdev_major << 20 | stat.stx_rdev_minor,
    })
}

/// The answer to [`Question::Above`](crate::message::Question::Above): the first
/// [`DIRECTORIES_MAX`] directories that exist.
pub(crate) fn above(path: &[u8], prefix: u32, access: &mut Access<'_>) -> Result<Vec<u8>, Fault> {
    let (mut found, mut fault) = (Vec::new(), None);
    for dir in directories_above(path, prefix as usize).take(DIRECTORIES_MAX) {
        match inode(dir, true, access) {
            Ok(Inode { dev, ino, .. }) => put_object(ObjectId { dev, ino }, &mut found),
            Err(Fault::Missing) => {}
            Err(Fault::NotNow) => fault = Some(Fault::NotNow),
        }
    }
    // Some are better than none.
    match fault {
        Some(fault) if found.is_empty() => Err(fault),
        _ => Ok(found),
    }
}

/// See [`compose::System::real_path`].
pub(crate) fn real_path(path: &[u8], access: &mut Access<'_>) -> Result<Vec<u8>, Fault> {
    let object = walk::open_every_link(path, access)?;
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
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, access)?;
    let stat = stat(&object)?;
    let id = id(&object, &stat, access);
    if of.is_some_and(|of| of != id) {
        return Err(Fault::Missing);
    }
    if !access.may_wait(&object, &stat) {
        return Err(Fault::NotNow);
    }
    let mut value = [0; CAPABILITIES_BYTES];
    let len = getxattr(by_descriptor(&object), "security.capability", &mut value)?;
    Ok(value[..len.min(value.len())].to_vec())
}

/// See [`compose::System::head`]. Opens only a regular file, and reads it only if it is still the
/// same one.
pub(crate) fn head(
    path: &[u8],
    of: Option<ObjectId>,
    bytes_max: u32,
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    read(path, of, bytes_max.min(HEAD_BYTES_MAX).into(), access)
}

/// The first bytes of a regular file, as [`head`] has them.
pub(crate) fn read(
    path: &[u8],
    of: Option<ObjectId>,
    bytes_max: u64,
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, access)?;
    let found = stat(&object)?;
    let is_regular = |stat: &Statx| stat.stx_mode & S_IFMT == S_IFREG;
    let found_id = id(&object, &found, access);
    if !is_regular(&found) || of.is_some_and(|of| of != found_id) {
        return Err(Fault::Missing);
    }
    if !access.may_wait(&object, &found) {
        return Err(Fault::NotNow);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, by_descriptor(&object), flags, Mode::empty())?;
    let opened = stat(&file)?;
    if !is_regular(&opened) || id(&file, &opened, access) != found_id {
        return Err(Fault::Missing);
    }
    let file = File::from(file);
    let mut bytes = Vec::new();
    match file.take(bytes_max).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(Fault::NotNow),
    }
}

/// The names in a directory, as far as there are no more than [`ENTRIES_MAX`].
pub(crate) fn entries(path: &[u8], access: &mut Access<'_>) -> Result<Vec<Vec<u8>>, Fault> {
    let object = walk::open(path, true, access)?;
    if !access.may_wait(&object, &stat(&object)?) {
        return Err(Fault::NotNow);
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = Dir::new(openat(&object, ".", flags, Mode::empty())?)?;
    let entries = dir.take(ENTRIES_MAX).flatten();
    Ok(entries
        .map(|entry| entry.file_name().to_bytes().to_vec())
        .collect())
}

/// See [`compose::System::file_system`].
pub(crate) fn file_system(path: &[u8], access: &mut Access<'_>) -> Result<u32, Fault> {
    let object = walk::open(path, true, access)?;
    if !access.may_wait(&object, &stat(&object)?) {
        return Err(Fault::NotNow);
    }
    Ok(fstatfs(&object)?.f_type as u32)
}
