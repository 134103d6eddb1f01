//! The BPF file system that contains the directory of pins.

use crate::error::{system, CaptureError};
use rustix::fs::{statfs, Mode};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The standard directory of a capture that outlives its daemon.
pub const STANDARD_PIN_DIR: &str = "/sys/fs/bpf/tarsier";

/// Mount point that distributions use for the BPF file system.
const STANDARD_MOUNT: &str = "/sys/fs/bpf";
/// BPF_FS_MAGIC (linux/magic.h).
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
/// Name of a directory in file systems that Tarsier has mounted, so that it unmounts them again.
const MOUNTED_BY_TARSIER: &str = "tarsier-mounted-this";

fn is_bpf(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.f_type as u64 == BPF_FS_MAGIC)
}

/// Creates the directory; mounts its file system if it is the standard one and not mounted.
pub(super) fn prepare(dir: &Path) -> Result<(), CaptureError> {
    if is_pin_dir(dir)? {
        return Ok(());
    }

    mount_if_missing(dir)?;
    let parent = dir.parent().unwrap_or(Path::new(STANDARD_MOUNT));
    if !is_bpf(parent) {
        return Err(refused(
            dir,
            format!("{} is not on a BPF file system", parent.display()),
            "mount one there (mount -t bpf bpf DIRECTORY), or name a directory below /sys/fs/bpf",
        ));
    }

    rustix::fs::mkdir(dir, Mode::from_raw_mode(0o700))
        .map_err(system(format!("mkdir {}", dir.display())))
}

/// Mounts the standard BPF file system if `path` is below its mount point and it is not mounted.
pub(super) fn mount_if_missing(path: &Path) -> Result<(), CaptureError> {
    let standard = Path::new(STANDARD_MOUNT);
    if path.starts_with(standard) && !is_bpf(standard) {
        mount(standard)?;
    }
    Ok(())
}

fn mount(place: &Path) -> Result<(), CaptureError> {
    let what = |step: &str| format!("{step} {}", place.display());
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("bpf", place, "bpf", flags, c"mode=0700")
        .map_err(system(what("mount of a BPF file system at")))?;

    let mark = place.join(MOUNTED_BY_TARSIER);
    rustix::fs::mkdir(&mark, Mode::from_raw_mode(0o700)).map_err(system(what("mkdir in")))
}

/// Whether the directory exists. It is an error if it exists and is not suitable.
pub(super) fn is_pin_dir(dir: &Path) -> Result<bool, CaptureError> {
    let found = match std::fs::symlink_metadata(dir) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(source) => {
            let what = format!("stat {}", dir.display());
            return Err(CaptureError::System { what, source });
        }
    };

    let fault = if !found.is_dir() || !is_bpf(dir) {
        "not a directory of a BPF file system"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "open to other users"
    } else if dir == Path::new(STANDARD_MOUNT) {
        "shared with other programs"
    } else {
        return Ok(true);
    };

    let remedy = "name a directory that does not exist yet, below /sys/fs/bpf";
    Err(refused(dir, fault.to_owned(), remedy))
}

/// Removes the empty directory; unmounts its file system if Tarsier mounted it and nobody else uses it.
pub(super) fn remove(dir: &Path) -> bool {
    let is_gone = match rustix::fs::rmdir(dir) {
        Ok(()) | Err(Errno::NOENT) => true,
        Err(_) => false,
    };

    if is_gone && dir.starts_with(STANDARD_MOUNT) {
        unmount_unused();
    }
    is_gone
}

/// Unmounts the standard BPF file system if Tarsier mounted it and nobody uses it. A confined daemon cannot do so: the
/// process that starts programs for it does.
pub fn unmount_unused() {
    let standard = Path::new(STANDARD_MOUNT);

    if standard.join(MOUNTED_BY_TARSIER).exists() && is_unused(standard) {
        // Somebody may have started to use it, and then it stays.
        let _ = rustix::mount::unmount(standard, UnmountFlags::DETACH);
    }
}

/// Whether there is nothing but what Tarsier and the kernel (kernel/bpf/preload) put there.
fn is_unused(place: &Path) -> bool {
    let is_known =
        |name: &OsStr| name == MOUNTED_BY_TARSIER || name.as_encoded_bytes().ends_with(b".debug");
    std::fs::read_dir(place).is_ok_and(|mut entries| {
        entries.all(|entry| entry.is_ok_and(|entry| is_known(&entry.file_name())))
    })
}

fn refused(dir: &Path, fault: String, remedy: &'static str) -> CaptureError {
    CaptureError::PinDir {
        dir: dir.to_owned(),
        fault,
        remedy,
    }
}
