//! `exe=`: the path of the task's executable.

use record::wire::Part;
use std::hash::{BuildHasher, RandomState};

/// The path of the last executable: the next event often has the same one.
#[derive(Default)]
pub(crate) struct Executable {
    walk: Vec<u8>,
    flags: u8,
    path: Vec<u8>,
    /// Hash of the path.
    hash: u64,
    hasher: RandomState,
}

impl Executable {
    /// The path that an EXE part encodes.
    pub(crate) fn of(&mut self, part: &Part<'_>) -> &[u8] {
        if self.path.is_empty() || self.flags != part.flags || self.walk != part.data {
            self.walk.clear();
            self.walk.extend_from_slice(part.data);
            self.flags = part.flags;
            self.path.clear();
            put_path(part, &mut self.path);
            self.hash = self.hasher.hash_one(&self.path);
        }
        &self.path
    }

    /// The path that was returned last, after its hash, which is the same whenever the path is. Nobody can find paths
    /// with the same hash: its key is random.
    pub(crate) fn last(&self) -> (u64, &[u8]) {
        (self.hash, &self.path)
    }
}

/// Appends the path that an EXE part encodes to an empty `path`.
pub(crate) fn put_path(part: &Part<'_>, path: &mut Vec<u8>) {
    part.walked(path);
    // A file that never had a name: simple_dname(), fs/d_path.c.
    if part.is_unreachable() && path.starts_with(b"/memfd:") {
        path.extend_from_slice(b" (deleted)");
    }
}
