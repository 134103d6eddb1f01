//! The interface through which composing reads the running system.

use event::record::Inode;
use std::ffi::{CStr, CString};

/// The system whose events are composed: [`Host`](crate::Host), or in tests [`StaticSystem`](crate::StaticSystem).
///
/// No method fails: what cannot be found out is `None`, and the record is written without it. Paths are absolute, as
/// seen from the root directory and mount namespace of this process.
pub trait System: Send + Sync {
    /// The object at `path`: stat(2) if `follow`, else lstat(2). Devices are in the kernel's own encoding
    /// ([`kernel_dev`]). A path may be longer than PATH_MAX.
    fn inode(&self, path: &CStr, follow: bool) -> Option<Inode>;

    /// `path` without symbolic links, as realpath(3) returns it; `None` if any part of it does not exist.
    fn real_path(&self, path: &CStr) -> Option<Vec<u8>>;

    /// The extended attribute `security.capability` (capabilities(7)) of the object that `path` leads to, at most 24
    /// bytes.
    fn file_capabilities(&self, path: &CStr) -> Option<Vec<u8>>;

    /// The first `bytes_max` bytes of a file; all of a shorter one.
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

    /// Major and minor version of the kernel, such as (6, 12); 0 for a number that uname(2) does not give.
    fn release(&self) -> (u32, u32);

    /// Whether the kernel's BTF types have this sign; `false` also if they cannot be read.
    fn kernel_has(&self, sign: Sign<'_>) -> bool;
}

/// Something in the kernel's BTF types that came with a change in what the kernel collects for audit, and so shows that
/// the kernel has the change.
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

/// The whole contents of a file, for example of proc(5).
pub(crate) fn read_all(system: &dyn System, path: &str) -> Option<Vec<u8>> {
    system.read(&CString::new(path).ok()?, u64::MAX)
}
