//! The bytes of a seal file: a header, then entries. Numbers are little-endian.
//!
//! ```text
//! header: "TARSEAL1"  id[16]  epoch u32  file u32  time_ms u64  chain[32]  check[16]
//! entry:  length u32 of body  body  tag[32]  (checkpoint: signature[64])
//! body:   kind u8  epoch u32  index u32  time_ms u64  …
//!   COMMIT, LATE   start u64  length u64  hash[32] of each block of the log's bytes
//!   CHECKPOINT     reason u8  size u64  next_public[32]
//!   OPEN           flags u8  found u64  sealed u64  cut u64
//! chain:  after the header BLAKE3(header); after an entry BLAKE3(chain before, length, body)
//! tag:    BLAKE3 keyed with the entry's key, of the chain after it
//! ```

use super::keys::{PublicKey, SeriesId};
use super::BLOCK_BYTES;

const MAGIC: &[u8; 8] = b"TARSEAL1";
/// Size of the header in bytes.
pub(super) const HEADER_BYTES: usize = 88;
const CHECKED_BYTES: usize = HEADER_BYTES - 16;
/// Size of the part of a body that every kind has, in bytes.
const HEAD_BYTES: usize = 17;
pub(super) const TAG_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 64;
/// Limit of blocks in one entry; more bytes take several entries.
pub(super) const BLOCKS_MAX: usize = 4096;
pub(super) const BODY_BYTES_MAX: usize = HEAD_BYTES + 16 + 32 * BLOCKS_MAX;

const COMMIT: u8 = 1;
const LATE: u8 = 2;
const CHECKPOINT: u8 = 3;
const OPEN: u8 = 4;

/// OPEN: the seal ended in order before (with a checkpoint of reason [`Reason::Close`]).
pub(super) const IN_ORDER: u8 = 1;
/// OPEN: the host's keys were ahead of the seal: entries are missing.
pub(super) const ENTRIES_LOST: u8 = 2;
/// OPEN: the first entry of the series; what the log held before was never sealed.
pub(super) const FIRST: u8 = 4;

/// A running hash over header and entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealChain(pub(super) [u8; 32]);

impl SealChain {
    fn after_header(header: &[u8]) -> Self {
        SealChain(*blake3::hash(header).as_bytes())
    }

    /// The chain value after an entry with this length and body.
    pub(super) fn after(self, sized_body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(sized_body);
        SealChain(*hasher.finalize().as_bytes())
    }
}

/// The start of a seal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: SeriesId,
    /// Epoch of the file's first entry.
    pub(super) epoch: u32,
    /// Number of the file in its series, from 0.
    pub(super) file: u32,
    pub(super) time_ms: u64,
    /// Chain value at the end of the previous file.
    pub(super) chain: [u8; 32],
}

impl Header {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&self.id);
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.file.to_le_bytes());
        bytes.extend_from_slice(&self.time_ms.to_le_bytes());
        bytes.extend_from_slice(&self.chain);

        // This is not for protection, which the chain gives. It keeps a damaged epoch from being
        // believed.
        let check = blake3::hash(&bytes);
        bytes.extend_from_slice(&check.as_bytes()[..16]);
        bytes
    }

    /// Decodes the header at the start of `bytes`. Returns it and the chain value after it.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Self, SealChain)> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        let mut fields = FieldDecoder(bytes);
        let magic: [u8; 8] = fields.take()?;
        let header = Header {
            id: fields.take()?,
            epoch: fields.u32()?,
            file: fields.u32()?,
            time_ms: fields.u64()?,
            chain: fields.take()?,
        };

        let check = blake3::hash(&bytes[..CHECKED_BYTES]);
        let is_whole = &magic == MAGIC && bytes[CHECKED_BYTES..] == check.as_bytes()[..16];
        is_whole.then(|| (header, SealChain::after_header(bytes)))
    }
}

/// Reason for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A checkpoint is due.
    Periodic,
    /// The log is being rotated: another file follows.
    Rotate,
    /// The journal was closed or suspended in order.
    Close,
}

/// The content of an entry, by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryKind<'a> {
    /// Bytes `start..start + length` of the log. `is_late`: they were found when the log was
    /// opened.
    Commit {
        is_late: bool,
        start: u64,
        length: u64,
        hashes: &'a [u8],
    },
    /// The end of an epoch.
    Checkpoint {
        reason: Reason,
        /// Number of bytes of the log that this seal covers.
        size: u64,
        next_public: PublicKey,
    },
    /// The journal was opened.
    Open {
        flags: u8,
        /// Size of the log then, after repair.
        found: u64,
        /// Number of bytes of the log that this seal covered.
        sealed: u64,
        /// Bytes removed from the seal's own torn end.
        cut: u64,
    },
}

/// An entry of a seal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SealEntry<'a> {
    pub(super) epoch: u32,
    pub(super) index: u32,
    pub(super) time_ms: u64,
    pub(super) kind: EntryKind<'a>,
}

impl SealEntry<'_> {
    pub(super) fn is_checkpoint(&self) -> bool {
        matches!(self.kind, EntryKind::Checkpoint { .. })
    }

    /// Appends the entry's length and body to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.push(match self.kind {
            EntryKind::Commit { is_late: false, .. } => COMMIT,
            EntryKind::Commit { is_late: true, .. } => LATE,
            EntryKind::Checkpoint { .. } => CHECKPOINT,
            EntryKind::Open { .. } => OPEN,
        });
        out.extend_from_slice(&self.epoch.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.time_ms.to_le_bytes());

        match &self.kind {
            EntryKind::Commit {
                start,
                length,
                hashes,
                ..
            } => {
                out.extend_from_slice(&start.to_le_bytes());
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(hashes);
            }
            EntryKind::Checkpoint {
                reason,
                size,
                next_public,
            } => {
                out.push(*reason as u8);
                out.extend_from_slice(&size.to_le_bytes());
                out.extend_from_slice(next_public);
            }
            EntryKind::Open {
                flags,
                found,
                sealed,
                cut,
            } => {
                out.push(*flags);
                for number in [found, sealed, cut] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
            }
        }

        let length = (out.len() - length_at - 4) as u32;
        out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }

    fn parse(body: &[u8]) -> Option<SealEntry<'_>> {
        let mut fields = FieldDecoder(body);
        let [kind] = fields.take()?;
        let (epoch, index, time_ms) = (fields.u32()?, fields.u32()?, fields.u64()?);
        let kind = match kind {
            COMMIT | LATE => {
                let (start, length) = (fields.u64()?, fields.u64()?);
                let hashes = std::mem::take(&mut fields.0);
                let blocks = length.div_ceil(BLOCK_BYTES as u64);

                // The rest of the body is the hashes: exactly one for each block of the length.
                if length == 0 || blocks.checked_mul(32)? != hashes.len() as u64 {
                    return None;
                }
                start.checked_add(length)?;
                EntryKind::Commit {
                    is_late: kind == LATE,
                    start,
                    length,
                    hashes,
                }
            }
            CHECKPOINT => EntryKind::Checkpoint {
                reason: match fields.take()? {
                    [0] => Reason::Periodic,
                    [1] => Reason::Rotate,
                    [2] => Reason::Close,
                    _ => return None,
                },
                size: fields.u64()?,
                next_public: fields.take()?,
            },
            OPEN => {
                let [flags] = fields.take()?;
                EntryKind::Open {
                    flags,
                    found: fields.u64()?,
                    sealed: fields.u64()?,
                    cut: fields.u64()?,
                }
            }
            _ => return None,
        };

        fields.0.is_empty().then_some(SealEntry {
            epoch,
            index,
            time_ms,
            kind,
        })
    }
}

/// An entry as decoded from a file.
pub(super) struct DecodedEntry<'a> {
    pub(super) entry: SealEntry<'a>,
    /// Length and body: the bytes that go into the chain.
    pub(super) sized_body: &'a [u8],
    pub(super) tag: [u8; TAG_BYTES],
    /// Only of a checkpoint.
    pub(super) signature: Option<[u8; SIGNATURE_BYTES]>,
    /// Size of the whole entry.
    pub(super) bytes: usize,
}

/// Decodes the entry at the start of `bytes`; `None` unless it is whole and well-formed.
pub(super) fn next(bytes: &[u8]) -> Option<DecodedEntry<'_>> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    if !(HEAD_BYTES..=BODY_BYTES_MAX).contains(&length) {
        return None;
    }

    let sized_body = bytes.get(..4 + length)?;
    let entry = SealEntry::parse(&sized_body[4..])?;
    let mut rest = FieldDecoder(&bytes[4 + length..]);
    let tag = rest.take()?;
    let signature = if entry.is_checkpoint() {
        Some(rest.take()?)
    } else {
        None
    };

    Some(DecodedEntry {
        bytes: bytes.len() - rest.0.len(),
        entry,
        sized_body,
        tag,
        signature,
    })
}

/// Decodes fields in order, from the front.
struct FieldDecoder<'a>(&'a [u8]);

impl FieldDecoder<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn header_is_what_was_written_and_any_flipped_bit_is_noticed() {
        let header = Header {
            id: [5; 16],
            epoch: 77,
            file: 3,
            time_ms: 1_700_000_000_123,
            chain: [8; 32],
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert_eq!(Header::parse(&bytes).unwrap().0, header);
        for bit in 0..HEADER_BYTES * 8 {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&wrong), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = next(&bytes);
            let _ = Header::parse(&bytes);
        }

        #[test]
        fn entries_are_what_was_written(
            epoch: u32, index: u32, time_ms: u64, start in 0..1u64 << 40, length in 1..200_000u64,
            late: bool,
        ) {
            let hashes = vec![6; 32 * length.div_ceil(BLOCK_BYTES as u64) as usize];
            let kind = EntryKind::Commit { is_late: late, start, length, hashes: &hashes };
            let entry = SealEntry { epoch, index, time_ms, kind };
            let mut bytes = Vec::new();
            entry.write(&mut bytes);
            let body = bytes.len();
            bytes.extend_from_slice(&[4; TAG_BYTES]);
            prop_assert!(next(&bytes[..bytes.len() - 1]).is_none());
            bytes.push(0);
            let found = next(&bytes).unwrap();
            prop_assert_eq!(&found.entry, &entry);
            prop_assert_eq!(found.sized_body.len(), body);
            prop_assert_eq!(found.bytes, bytes.len() - 1);
        }
    }
}
