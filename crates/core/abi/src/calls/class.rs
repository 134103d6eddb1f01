//! The kernel's classes of system calls, which `-S 2032` to `-S 2047` select.

/// A class of system calls (`AUDIT_CLASS_*` without the `_32` variants, linux/audit.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyscallClass {
    /// Changes directories.
    DirWrite = 0,
    /// Changes attributes.
    ChangeAttr = 2,
    /// Reads.
    Read = 4,
    /// Writes, directories included.
    Write = 6,
    /// Sends signals.
    Signal = 8,
}

/// Every class.
pub const SYSCALL_CLASSES: [SyscallClass; 5] = [
    SyscallClass::DirWrite,
    SyscallClass::ChangeAttr,
    SyscallClass::Read,
    SyscallClass::Write,
    SyscallClass::Signal,
];

impl SyscallClass {
    /// The bit of the class in a row of the table of calls.
    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The number that selects this class in `-S`: 2047 minus the class, and one less for the 32-bit
    /// table of a 64-bit kernel (`is_compat`).
    pub const fn selector(self, is_compat: bool) -> u32 {
        2047 - self as u32 - is_compat as u32
    }
}
