//! Facts about an open object that the kernel has in memory.

use rustix::fd::AsFd;
use rustix::fs::{statx, AtFlags, Statx, StatxFlags};
use rustix::io::Errno;

const S_IFMT: u16 = 0o170000;
const S_IFDIR: u16 = 0o040000;
const S_IFLNK: u16 = 0o120000;

/// Reason why something was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The object does not exist, or cannot be reached.
    Missing,
    /// The look-up would have to wait, or something else keeps it from being known.
    NotNow,
    /// The look-up is not allowed: by a file system in user space, say, which serves its owner only.
    Denied,
}

impl From<Errno> for Fault {
    fn from(errno: Errno) -> Fault {
        match errno {
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::NODATA
            | Errno::OPNOTSUPP
            | Errno::INVAL => Fault::Missing,
            Errno::ACCESS | Errno::PERM => Fault::Denied,
            // For example, no memory or no descriptors, which says nothing about the object.
            _ => Fault::NotNow,
        }
    }
}

/// Attributes of an object that the kernel has in memory, without asking a file system.
pub(crate) fn stat(object: impl AsFd) -> Result<Statx, Fault> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    Ok(statx(object, "", flags, wanted)?)
}

/// The id of the object's mount that is never used again; `None` before Linux 6.8.
pub(crate) fn unique_mount_of(object: impl AsFd) -> Option<u64> {
    const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(object, "", flags, MNT_ID_UNIQUE).ok()?;
    (found.stx_mask & MNT_ID_UNIQUE.bits() != 0).then_some(found.stx_mnt_id)
}

/// Device number that stat(2) shows of the object, in the kernel's own encoding: see
/// [`Devices`](crate::lookup::devices::Devices).
pub(crate) fn dev_of(stat: &Statx) -> u32 {
    stat.stx_dev_major << 20 | stat.stx_dev_minor
}

/// Seconds and nanoseconds of the Unix time.
pub(crate) type FileTime = (i64, u32);

/// The last change of the inode (`st_ctime`).
pub(crate) fn changed(stat: &Statx) -> FileTime {
    (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec)
}

pub(crate) fn is_link(stat: &Statx) -> bool {
    stat.stx_mode & S_IFMT == S_IFLNK
}

/// Whether everybody may make entries in the directory, but may remove only their own.
pub(crate) fn is_sticky_for_all(stat: &Statx) -> bool {
    const STICKY_AND_WRITABLE_FOR_ALL: u16 = 0o1002;
    stat.stx_mode & STICKY_AND_WRITABLE_FOR_ALL == STICKY_AND_WRITABLE_FOR_ALL
}

pub(crate) fn is_directory(stat: &Statx) -> bool {
    stat.stx_mode & S_IFMT == S_IFDIR
}
