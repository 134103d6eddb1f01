//! Looks up objects at paths, in the calling process.

use crate::lookup::message::{Above, CAPABILITIES_BYTES};
use crate::lookup::object::{stat, Fault};
use crate::lookup::walk::{self, Access, Root};
use compose::HEAD_BYTES_MAX;
use plan::ObjectId;
use record::record::Inode;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{fstatfs, getxattr, openat, readlinkat, Dir, Mode, OFlags, Statx, CWD};
use std::fs::File;
use std::io::Read;

const S_IFMT: u16 = 0o170000;
const S_IFREG: u16 = 0o100000;
const EXECUTABLE: u16 = 0o111;
/// `f_type` of file systems whose files the kernel makes: linux/magic.h, fs/configfs/mount.c, fs/binfmt_misc.c,
/// fs/smackfs.
const OF_THE_KERNEL: [u32; 15] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0xcafe_4a11, // bpf
    0x6265_6570, // configfs
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinuxfs
    0x4341_5d53, // smackfs
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
];
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
        label: 0,
    })
}

/// The answer to [`Question::Above`](crate::lookup::message::Question::Above): one walk up by `..`, of at most `steps_max` steps.
pub(crate) fn above(path: &[u8], steps_max: u32, access: &mut Access<'_>) -> Result<Above, Fault> {
    let mut above = Above {
        objects: Vec::new(),
        is_all: true,
    };
    let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    if end <= access.prefix() {
        return Ok(above);
    }

    let root = Root::of(path, access)?;
    let mut dir = walk::open_deepest(&path[..end], access)?;
    loop {
        let (id, up) = (
            id(&dir, &stat(&dir)?, access),
            walk::parent(&dir, &root, access),
        );
        match up {
            // A root directory is above everything.
            Ok(None) => return Ok(above),
            Ok(Some(parent)) if (above.objects.len() as u32) < steps_max && !access.is_over() => {
                above.objects.push(id);
                dir = parent;
            }
            // Some are better than none.
            Ok(Some(_)) | Err(_) => {
                above.is_all = false;
                return Ok(above);
            }
        }
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

/// See [`compose::System::head`]. Opens only a regular file that somebody may execute, where programs are, and reads it
/// only if it is still the same one. Of another, that says nothing: it may have taken the place of a program.
pub(crate) fn head(
    path: &[u8],
    of: Option<ObjectId>,
    bytes_max: u32,
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, access)?;
    let is_executable = stat(&object)?.stx_mode & EXECUTABLE != 0;
    if is_regular(&stat(&object)?) && !(is_executable && holds_programs(&object)?) {
        return Err(Fault::NotNow);
    }
    read_object(&object, of, bytes_max.min(HEAD_BYTES_MAX).into(), access)
}

/// Whether programs may be on the file system of the object. On those of the kernel's own, to read a file may be to do
/// something, or show what only root may see.
fn holds_programs(object: &OwnedFd) -> Result<bool, Fault> {
    let kind = fstatfs(object)?.f_type as u32;
    Ok(!OF_THE_KERNEL.contains(&kind))
}

fn is_regular(stat: &Statx) -> bool {
    stat.stx_mode & S_IFMT == S_IFREG
}

/// The first bytes of a regular file.
pub(crate) fn read(
    path: &[u8],
    of: Option<ObjectId>,
    bytes_max: u64,
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    let object = walk::open(path, true, access)?;
    read_object(&object, of, bytes_max, access)
}

fn read_object(
    object: &OwnedFd,
    of: Option<ObjectId>,
    bytes_max: u64,
    access: &mut Access<'_>,
) -> Result<Vec<u8>, Fault> {
    let found = stat(object)?;
    let found_id = id(object, &found, access);
    if !is_regular(&found) || of.is_some_and(|of| of != found_id) {
        return Err(Fault::Missing);
    }
    if !access.may_wait(object, &found) {
        return Err(Fault::NotNow);
    }

    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(CWD, by_descriptor(object), flags, Mode::empty())?;
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
