//! The blocks of the log that belong to the next entry.

use super::{hash_blocks, BLOCK_BYTES};

/// Hashes of the log's bytes since the last entry, in blocks of [`BLOCK_BYTES`].
#[derive(Default)]
pub(super) struct Blocks {
    length: u64,
    /// 32 bytes for each block that is complete.
    hashes: Vec<u8>,
    /// The start of the block that is not, to be hashed at once.
    rest: Vec<u8>,
}

impl Blocks {
    /// Number of bytes of the log.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds bytes that follow those before.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        let missing = (BLOCK_BYTES - self.rest.len()) % BLOCK_BYTES;
        let (first, bytes) = bytes.split_at(missing.min(bytes.len()));
        self.rest.extend_from_slice(first);
        if self.rest.len() == BLOCK_BYTES {
            self.hash_rest();
        }
        let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        hash_blocks(whole, &mut self.hashes);
        self.rest.extend_from_slice(rest);
    }

    /// The hashes of all blocks, of which the last may be shorter.
    pub(super) fn end(&mut self) -> &[u8] {
        self.hash_rest();
        &self.hashes
    }

    /// Begins the blocks of another entry.
    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.hashes.clear();
        self.rest.clear();
    }

    fn hash_rest(&mut self) {
        hash_blocks(&self.rest, &mut self.hashes);
        self.rest.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_have_the_hashes_of_the_whole(
            pieces in prop::collection::vec(0usize..40_000, 0..8),
        ) {
            let total = pieces.iter().sum::<usize>();
            let bytes: Vec<u8> = (0..total).map(|i| (i * 31 / 7) as u8).collect();
            let mut expected = Vec::new();
            hash_blocks(&bytes, &mut expected);
            let (mut blocks, mut rest) = (Blocks::default(), bytes.as_slice());
            for length in pieces {
                let (piece, after) = rest.split_at(length);
                blocks.add(piece);
                rest = after;
            }
            prop_assert_eq!(blocks.length(), total as u64);
            prop_assert_eq!(blocks.end(), expected);
            blocks.clear();
            prop_assert!(blocks.end().is_empty());
        }
    }
}
