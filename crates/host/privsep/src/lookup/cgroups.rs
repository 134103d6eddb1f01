//! The cgroup2 hierarchy of this machine. The kernel answers from memory, at paths of mounts that
//! only root makes, so the daemon may ask directly.
//!
//! Cgroups are opened by their ids, which open_by_handle_at(2) takes on this file system: no path
//! is too long or deep, and the result is the right cgroup or nothing.

use crate::lookup::kernel;
use compose::{Cgroup, KernelFile};
use rustix::fs::{fstat, open, openat, statfs, Dir, FileType, Mode, OFlags};
use std::ffi::{CString, OsStr};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// `f_type` of cgroup2: linux/magic.h.
const CGROUP2_SUPER_MAGIC: i64 = 0x6367_7270;
/// Type of a handle that is an id (`FILEID_KERNFS`, linux/exportfs.h).
const FILEID_KERNFS: i32 = 0xfe;
/// Usual places of the hierarchy: alone, and beside hierarchies of version 1.
const USUAL: [&[u8]; 2] = [b"/sys/fs/cgroup", b"/sys/fs/cgroup/unified"];

/// See [`compose::System::cgroups`].
pub(crate) fn all(found: &mut dyn FnMut(u64, Cgroup)) -> bool {
    let Some(root) = root() else {
        return false;
    };

    let mut parents = vec![Cgroup::ROOT];
    while let Some(parent) = parents.pop() {
        // A cgroup that is gone has been removed meanwhile.
        let Some(dir) = by_id(root.as_fd(), parent) else {
            if parent == Cgroup::ROOT {
                return false;
            }
            continue;
        };
        let is_of_root = is_of_root(&dir);
        each_in(dir, |id, name| {
            parents.push(id);
            let cgroup = Cgroup {
                parent,
                name,
                is_of_root,
            };
            found(id, cgroup);
        });
    }

    true
}

/// See [`compose::System::cgroup`].
pub(crate) fn one(id: u64) -> Option<Cgroup> {
    let dir = by_id(root()?.as_fd(), id)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = openat(&dir, "..", flags, Mode::empty()).ok()?;
    let parent = fstat(&above).ok()?.st_ino;
    let is_of_root = is_of_root(&above);
    let mut found = None;
    each_in(above, |other, name| {
        if other == id {
            found = Some(Cgroup {
                parent,
                name,
                is_of_root,
            });
        }
    });

    found
}

/// Whether nobody but root may make cgroups in this directory.
fn is_of_root(dir: &OwnedFd) -> bool {
    let others = (Mode::WGRP | Mode::WOTH).bits();
    fstat(dir).is_ok_and(|stat| stat.st_uid == 0 && stat.st_mode & others == 0)
}

/// Passes on the cgroups of a directory with their ids, which are the inode numbers.
fn each_in(dir: OwnedFd, mut take: impl FnMut(u64, Box<[u8]>)) {
    let Ok(entries) = Dir::new(dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        if entry.file_type() == FileType::Directory && !matches!(name, b"." | b"..") {
            take(entry.ino(), name.into());
        }
    }
}

/// The directory of a cgroup; `None` if there is none.
fn by_id(root: BorrowedFd<'_>, id: u64) -> Option<OwnedFd> {
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        id: [u8; 8],
    }

    let mut handle = Handle {
        bytes: size_of::<u64>() as u32,
        kind: FILEID_KERNFS,
        id: id.to_ne_bytes(),
    };
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;

    // SAFETY: the handle has the layout of struct file_handle, and as many bytes behind it as it says.
    let fd = unsafe {
        let handle = (&raw mut handle).cast::<libc::file_handle>();
        libc::open_by_handle_at(root.as_raw_fd(), handle, flags)
    };

    // SAFETY: a new descriptor, which nothing else owns.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The root of the hierarchy, at the first mount that shows it.
fn root() -> Option<OwnedFd> {
    let mounts = kernel::file(KernelFile::Mounts)?;
    let mut places: Vec<Vec<u8>> = mounts.split(|&b| b == b'\n').filter_map(place).collect();
    places.sort_by_key(|place| !USUAL.contains(&&**place));
    places.iter().find_map(|place| opened(place))
}

/// Directory at which a line of mountinfo (proc_pid_mountinfo(5)) mounts the whole hierarchy, if it does.
fn place(line: &[u8]) -> Option<Vec<u8>> {
    let mut fields = line.split(|&byte| byte == b' ').skip(3);
    let (root, place) = (fields.next()?, fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    (root == b"/" && rest.next()? == b"cgroup2").then(|| unescaped(place))
}

/// Undoes the octal escapes of mountinfo: mangle(), fs/proc_namespace.c.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| rest.get(at).filter(|d| (b'0'..=b'7').contains(d));
        let octal = || Some((digit(1)?, digit(2)?, digit(3)?));
        match octal() {
            Some((a, b, c)) if first == b'\\' => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &rest[4..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }

    bytes
}

/// The mount at this path, if it shows the hierarchy from its root.
fn opened(place: &[u8]) -> Option<OwnedFd> {
    let path = CString::new(OsStr::from_bytes(place).as_bytes()).ok()?;
    if statfs(&path).ok()?.f_type as i64 != CGROUP2_SUPER_MAGIC {
        return None;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = open(&path, flags, Mode::empty()).ok()?;
    (fstat(&dir).ok()?.st_ino == Cgroup::ROOT).then_some(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_the_whole_hierarchy_are_found() {
        let cases: [(&[u8], Option<&[u8]>); 4] = [
            (
                b"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:4 - cgroup2 cgroup2 rw",
                Some(b"/sys/fs/cgroup/unified"),
            ),
            (
                b"41 31 0:38 / /a\\040b\\134 rw - cgroup2 cgroup2 rw",
                Some(b"/a b\\"),
            ),
            (b"41 31 0:38 /part /mnt rw - cgroup2 cgroup2 rw", None),
            (
                b"32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu",
                None,
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(place(line).as_deref(), expected);
        }
    }
}
