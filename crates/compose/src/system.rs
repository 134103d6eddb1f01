//! What composing asks of the running system.

use event::record::Inode;
use std::ffi::{CStr, CString};

/// The system whose events are composed: [`Host`](crate::Host) where they are made, and a made-up one in tests.
///
/// Nothing fails here: what cannot be found out is `None`, and a record then goes without it. Paths are absolute and
/// seen from the root directory and mount namespace of this process.
pub trait System: Send + Sync {
    /// The object at `path`: stat(2) if `follow`, else lstat(2). Devices are in the kernel's own encoding
    /// ([`kernel_dev`]). A path may be longer than PATH_MAX.
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode>;

    /// `path` without symbolic links, as realpath(3) has it; all of it has to be there.
    fn real_path(&self, path: &CStr) -> Option<Vec<u8>>;

    /// The extended attribute `security.capability` (capabilities(7)) of what `path` leads to, at most 24 bytes.
    fn file_capabilities(&self, path: &CStr) -> Option<Vec<u8>>;

    /// The first `bytes_max` bytes of a file, or all that it has.
    fn read(&self, path: &CStr, bytes_max: u64) -> Option<Vec<u8>>;

    /// The kind of the file system at `path`: `f_type` of statfs(2).
    fn file_system(&self, path: &CStr) -> Option<u32>;

    /// Name of a user.
    fn user(&self, uid: u32) -> Option<String>;

    /// Name of a group.
    fn group(&self, gid: u32) -> Option<String>;

    /// Nanoseconds of CLOCK_MONOTONIC.
    fn monotonic_ns(&self) -> u64;

    /// Nanoseconds of CLOCK_REALTIME.
    fn realtime_ns(&self) -> u64;

    /// Version and patch level of the kernel; zeros if it names itself otherwise.
    fn release(&self) -> (u32, u32);

    /// Whether the kernel's types have this; `false` also where they cannot be read.
    fn kernel_has(&self, sign: Sign<'_>) -> bool;
}

/// What came into the kernel with a change of what it collects for audit, and so tells of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign<'a> {
    /// A function of this name.
    Function(&'a str),
    /// An enumerator of an enumeration.
    Enumerator {
        /// The enumeration.
        of: &'a str,
        /// The enumerator.
        name: &'a str,
    },
    /// A parameter of a function.
    Parameter {
        /// The function.
        function: &'a str,
        /// The parameter.
        name: &'a str,
    },
}

/// A device number of stat(2) in the kernel's own encoding: MKDEV of linux/kdev_t.h.
pub fn kernel_dev(dev: u64) -> u32 {
    rustix::fs::major(dev) << 20 | rustix::fs::minor(dev)
}

/// All of a file, such as those of proc(5).
pub(crate) fn read_all(system: &dyn System, path: &str) -> Option<Vec<u8>> {
    system.read(&CString::new(path).ok()?, u64::MAX)
}
