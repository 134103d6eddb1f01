//! Digests that are known already.

use crate::lookup::object::FileTime;
use record::SHA256_BYTES;
use std::collections::HashMap;

/// Number of files in one generation of the cache. There are two of them.
const FILES_MAX: usize = 4096;

/// Identity of a file's contents: as long as these fields are the same, so are the contents,
/// provided that the last change was not just now.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Contents {
    /// Device numbers: that of the file system, and the one that stat(2) shows.
    pub(super) dev: (u32, u32),
    pub(super) ino: u64,
    /// Last change of the inode.
    pub(super) changed: FileTime,
    pub(super) size: u64,
    /// Handle of the file, where an inode number is not enough.
    pub(super) handle: Vec<u8>,
}

/// A SHA-256 digest.
pub(super) type Digest = [u8; SHA256_BYTES];

/// Digests by contents. Those that were used least recently are forgotten first.
#[derive(Default)]
pub(super) struct Cache {
    young: HashMap<Contents, Digest>,
    old: HashMap<Contents, Digest>,
}

impl Cache {
    pub(super) fn get(&mut self, contents: &Contents) -> Option<Digest> {
        if let Some(digest) = self.young.get(contents) {
            return Some(*digest);
        }
        let (contents, digest) = self.old.remove_entry(contents)?;
        self.insert(contents, digest);
        Some(digest)
    }

    pub(super) fn insert(&mut self, contents: Contents, digest: Digest) {
        if self.young.len() >= FILES_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(contents, digest);
    }

    pub(super) fn clear(&mut self) {
        *self = Cache::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contents(ino: u64) -> Contents {
        Contents {
            dev: (1, 1),
            ino,
            changed: (5, 6),
            size: 7,
            handle: Vec::new(),
        }
    }

    /// The digest that belongs to these contents, and to no others.
    fn digest_of(contents: &Contents) -> Digest {
        let mut digest = [0; SHA256_BYTES];
        let parts = [
            u64::from(contents.dev.0),
            contents.ino,
            contents.changed.1.into(),
            contents.size,
        ];
        for (bytes, part) in digest.chunks_exact_mut(8).zip(parts) {
            bytes.copy_from_slice(&part.to_ne_bytes());
        }
        digest
    }

    fn some_contents() -> impl Strategy<Value = Contents> {
        (0..3_u32, 0..40_u64, 0..3_u32, 0..3_u64).prop_map(|(dev, ino, nanoseconds, size)| {
            Contents {
                dev: (dev, dev),
                ino,
                changed: (9, nanoseconds),
                size,
                handle: Vec::new(),
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_found_is_the_digest_of_these_contents(
            steps in prop::collection::vec((any::<bool>(), some_contents()), 1..400),
        ) {
            let mut cache = Cache::default();
            let mut inserted = std::collections::HashSet::new();
            for (is_new, contents) in steps {
                if is_new {
                    cache.insert(contents.clone(), digest_of(&contents));
                    inserted.insert(contents);
                } else {
                    let expected = inserted.contains(&contents).then(|| digest_of(&contents));
                    prop_assert_eq!(cache.get(&contents), expected);
                }
            }
        }
    }

    #[test]
    fn what_is_used_stays_and_memory_is_bounded() {
        let mut cache = Cache::default();
        cache.insert(contents(0), [9; SHA256_BYTES]);
        for ino in 1..10 * FILES_MAX as u64 {
            cache.insert(contents(ino), [0; SHA256_BYTES]);
            assert_eq!(cache.get(&contents(0)), Some([9; SHA256_BYTES]), "{ino}");
            assert!(cache.young.len() + cache.old.len() <= 2 * FILES_MAX);
        }
        assert_eq!(cache.get(&contents(1)), None);
        cache.clear();
        assert_eq!(cache.get(&contents(0)), None);
    }
}
