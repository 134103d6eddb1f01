//! Facts about a file from ioctl(2), and handles of files.

use record::Verity;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use rustix::fs::fstat;
use std::io;

/// `FS_VERITY_HASH_ALG_*` of linux/fsverity.h.
const VERITY_SHA256: u8 = 1;
const VERITY_SHA512: u8 = 2;
/// `FS_IOC_MEASURE_VERITY`, linux/fsverity.h.
const FS_IOC_MEASURE_VERITY: libc::c_ulong = 0xc004_6686;
/// `FS_IOC_FIEMAP`, linux/fs.h.
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
/// `NS_GET_USERNS`, linux/nsfs.h.
const NS_GET_USERNS: libc::c_ulong = 0xb701;
/// Inode number of the first user namespace: `PROC_USER_INIT_INO`, linux/proc_ns.h.
const USER_INIT_INO: u64 = 0xefff_fffd;
/// `MAX_HANDLE_SZ`, linux/exportfs.h.
const HANDLE_BYTES_MAX: usize = 128;

/// `struct fsverity_digest`, linux/fsverity.h, with room for the longest digest.
#[repr(C)]
struct VerityDigest {
    algorithm: u16,
    size: u16,
    digest: [u8; 64],
}

/// `struct fiemap`, linux/fiemap.h, without extents.
#[repr(C)]
#[derive(Default)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

/// `struct file_handle`, linux/fs.h.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    handle: [u8; HANDLE_BYTES_MAX],
}

/// The measurement of fs-verity, if the file has one.
pub(super) fn verity(file: &OwnedFd) -> Option<Verity> {
    let mut found = VerityDigest {
        algorithm: 0,
        size: 64,
        digest: [0; 64],
    };

    // SAFETY: the kernel writes at most `size` bytes of digest, for which there is room.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_MEASURE_VERITY, &raw mut found) };
    let digest = found.digest.get(..usize::from(found.size))?;
    match (result, u8::try_from(found.algorithm).ok()?) {
        (0, VERITY_SHA256) => digest.try_into().ok().map(Verity::Sha256),
        (0, VERITY_SHA512) => digest.try_into().ok().map(Verity::Sha512),
        _ => None,
    }
}

/// Whether anybody has the file open for writing, or is truncating it, now.
///
/// # Errors
/// The answer cannot be found out: this process lacks CAP_LEASE, or `fs.leases-enable` is 0.
pub(super) fn is_written(file: &OwnedFd) -> io::Result<bool> {
    // The kernel grants a lease for reading only if there is no writer: `check_conflicting_open()`,
    // fs/locks.c. Whoever opens the file for writing meanwhile waits until it is given back.
    let lease = |kind: libc::c_int| {
        // SAFETY: the call has a number as its argument.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    };
    if lease(libc::F_RDLCK) == 0 {
        lease(libc::F_UNLCK);
        return Ok(false);
    }

    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EAGAIN) => Ok(true),
        error => Err(error),
    }
}

/// Whether the file has places on a disk. Through overlayfs, that of the layer is asked, which may
/// be in memory.
pub(super) fn is_on_disk(file: &OwnedFd) -> bool {
    let mut map = Fiemap {
        length: u64::MAX,
        ..Fiemap::default()
    };
    // SAFETY: without extents, the kernel writes nothing behind the structure.
    unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) == 0 }
}

/// Whether the user namespace that owns this namespace is the first one, so that only root of the
/// host could change its mounts.
pub(super) fn is_of_host(namespace: &OwnedFd) -> bool {
    // SAFETY: the call has no argument.
    let owner = unsafe { libc::ioctl(namespace.as_raw_fd(), NS_GET_USERNS) };
    if owner < 0 {
        return false;
    }
    // SAFETY: the kernel has just opened it for this caller.
    let owner = unsafe { OwnedFd::from_raw_fd(owner) };
    fstat(&owner).is_ok_and(|stat| stat.st_ino == USER_INIT_INO)
}

/// The file's permanent handle on its file system: name_to_handle_at(2).
pub(super) fn handle(file: &OwnedFd) -> Option<Vec<u8>> {
    let mut found = Handle {
        bytes: HANDLE_BYTES_MAX as u32,
        kind: 0,
        handle: [0; HANDLE_BYTES_MAX],
    };
    let mut mount: libc::c_int = 0;

    // SAFETY: the kernel writes at most `bytes` bytes of handle, for which there is room, and the
    // number of the mount.
    let result = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            c"".as_ptr(),
            &raw mut found,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };

    let handle = found.handle.get(..found.bytes as usize)?;
    (result == 0).then(|| [&found.kind.to_ne_bytes(), handle].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn own(path: &str) -> OwnedFd {
        File::open(path).expect("it is there").into()
    }

    #[test]
    fn files_tell_what_they_are() {
        let exe = own("/proc/self/exe");
        assert_eq!(handle(&exe), handle(&own("/proc/self/exe")));
        assert!(!is_on_disk(&own("/proc/version")));
        assert!(verity(&own("/proc/version")).is_none());
        assert!(!is_of_host(&exe));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("text").to_owned();
        assert!(is_written(&own(&path)).expect("CAP_LEASE, or an own file"));
        let path = file.into_temp_path();
        let path = path.to_str().expect("text");
        // Another test may have forked while the file was open.
        while is_written(&own(path)).expect("CAP_LEASE, or an own file") {
            std::thread::yield_now();
        }
    }
}
