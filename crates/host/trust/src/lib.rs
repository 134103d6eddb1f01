//! Whether only root can change a file, each directory above it up to `/`, and each symbolic link
//! on the way. Files that the daemon reads or runs must be like this: whoever can change them
//! decides what root does.
//!
//! | what | demanded |
//! |---|---|
//! | owner | root, or the user that this process runs as |
//! | mode of a file | not writable by group or others |
//! | mode of a directory above | the same, or with the sticky bit: nobody else renames entries there |
//! | mode of a directory whose entries are listed | not writable by group or others |
//!
//! Each part of the path is checked through the descriptor that leads to the next, and the file
//! through the descriptor that is read ([`open`]) or whose entry is executed ([`Program`]). Nobody
//! but root can then change what is found there. This is sshd's StrictModes, but up to `/`.

mod directory;
mod error;
mod program;
mod walk;

use std::fs::File;
use std::path::Path;

pub use directory::Directory;
pub use error::{Fault, TrustError};
pub use program::Program;
pub use walk::Links;

/// Opens a regular file that only root can change, for reading.
///
/// # Errors
/// The file cannot be opened, or somebody else can change it. Links: [`Links`].
pub fn open(path: &Path, links: Links) -> Result<File, TrustError> {
    walk::find(path, links)?.open()
}
