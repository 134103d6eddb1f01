//! The secret of the hashes by which programs recognise marks.

use crate::object_id::ObjectId;

/// SHORT_NAME_MAX of crates/kernel/bpf/programs/names.h.
pub(crate) const SHORT_NAME_BYTES: usize = 32;
/// MARK_FACTOR of crates/kernel/bpf/programs/marks.h.
pub(crate) const FILTER_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// The two factors of the hashes of marks: TABLE_MARK_KEY of crates/kernel/bpf/programs/tables.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkKey([u64; 2]);

impl Default for MarkKey {
    /// A key that everybody knows, for plans that are not armed.
    fn default() -> MarkKey {
        MarkKey::of([FILTER_FACTOR, 0xD6E8_FEB8_6659_FD93])
    }
}

impl MarkKey {
    /// The key of two random numbers. Factors have to be odd: the hash would lose bits of even ones.
    pub(crate) fn of(random: [u64; 2]) -> MarkKey {
        MarkKey(random.map(|word| word | 1))
    }

    /// The factors.
    pub(crate) fn words(self) -> [u64; 2] {
        self.0
    }

    /// One step of a hash: `mark_mix()` of crates/kernel/bpf/programs/marks.h.
    fn mix(self, hash: u64, word: u64) -> u64 {
        let hash = (hash ^ word).wrapping_mul(self.0[0]);
        let hash = (hash ^ hash >> 32).wrapping_mul(self.0[1]);
        hash ^ hash >> 29
    }

    /// Hash of a name, never 0. It is filled with zeros up to 32 bytes or, if it is not shorter than those, 256. No
    /// entry has a longer name.
    pub(crate) fn name(self, name: &[u8]) -> u64 {
        const BYTES: usize = 256;
        let mut bytes = name.to_vec();
        let is_short = name.len() < SHORT_NAME_BYTES;
        bytes.resize(if is_short { SHORT_NAME_BYTES } else { BYTES }, 0);

        let words = bytes.chunks_exact(8).map(|chunk| {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let start = self.mix(1, name.len() as u64);
        words.fold(start, |hash, word| self.mix(hash, word)) | 1
    }

    /// Hash of a path without symbolic links from the root directory `root`, never 0.
    pub(crate) fn path(self, path: &[u8], root: ObjectId) -> u64 {
        const PATH_MARK: u64 = 3;
        let names = path.rsplit(|&byte| byte == b'/');
        let names = names.filter(|name| !name.is_empty());
        let names = names.fold(PATH_MARK, |hash, name| self.mix(hash, self.name(name)));
        self.entry(names, root)
    }

    /// Hash of an object, never 0.
    pub(crate) fn object(self, object: ObjectId) -> u64 {
        self.mix(self.mix(2, object.ino), object.dev.into()) | 1
    }

    /// Hash of an entry of a directory, never 0.
    pub(crate) fn entry(self, name: u64, directory: ObjectId) -> u64 {
        self.mix(name, self.object(directory)) | 1
    }
}
