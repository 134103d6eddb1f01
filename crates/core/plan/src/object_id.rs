//! Identity of objects of file systems.

use serde::{Deserialize, Serialize};

/// Identity of a file-system object; `dev` in the kernel's encoding (major << 20 | minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// Device of the file system.
    pub dev: u32,
    /// Inode number.
    pub ino: u64,
}
