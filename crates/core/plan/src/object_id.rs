//! Identity of objects of file systems.

/// Identity of a file-system object; `dev` in the kernel's encoding (major << 20 | minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// Device of the file system.
    pub dev: u32,
    /// Inode number.
    pub ino: u64,
}
