//! Questions that the kernel itself answers at once, in the calling process: clocks, release, files
//! that it makes from memory. No path here comes from another process.

use compose::KernelFile;
use rustix::fs::{openat, readlink, stat, Mode, OFlags, CWD};
use rustix::time::{clock_gettime, ClockId};
use std::fs::File;
use std::io::Read;

/// See [`compose::System::kernel_file`].
pub(crate) fn file(file: KernelFile) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    open(file)?.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a file to read it.
pub(crate) fn open(file: KernelFile) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Some(File::from(
        openat(CWD, &*file.path(), flags, Mode::empty()).ok()?,
    ))
}

/// See [`compose::System::mount_namespace`].
pub(crate) fn mount_namespace(pid: Option<u32>) -> Option<u64> {
    let found = match pid {
        Some(pid) => stat(format!("/proc/{pid}/ns/mnt")),
        None => stat("/proc/self/ns/mnt"),
    };
    found.ok().map(|namespace| namespace.st_ino)
}

/// The path of the program that a process runs, as /proc shows it.
pub(crate) fn executable(pid: u32) -> Option<Vec<u8>> {
    let link = readlink(format!("/proc/{pid}/exe"), Vec::new()).ok()?;
    Some(link.into_bytes())
}

/// Nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds since 1970 (CLOCK_REALTIME).
pub fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// See [`compose::System::release`].
pub(crate) fn release() -> (u32, u32) {
    let uname = rustix::system::uname();
    let mut numbers = uname
        .release()
        .to_str()
        .unwrap_or_default()
        .split(|c: char| !c.is_ascii_digit())
        .map(|number| number.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}
