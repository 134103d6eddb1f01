//! Finds the parts of a log and its seal that belong together, for copies that are not whole yet.

use super::entry::{self, EntryKind, Reason, BODY_BYTES_MAX, HEADER_BYTES, TAG_BYTES};

/// The parts of a log and its seal that can be verified, from the start of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of the seal.
    pub seal_bytes: usize,
    /// Whether the last of the entries says that the log was rotated.
    pub is_rotated: bool,
}

/// The entries of `seal` that are whole and about the first `available` bytes of its log: those of a copy that is
/// under way arrive apart from the log's bytes, and may be ahead or cut.
///
/// Both parts are empty if the header of the seal is not whole. Nothing is verified here. A seal that is damaged before
/// its end is returned whole, so that verification finds it.
pub fn covered(seal: &[u8], available: u64) -> Covered {
    if seal.len() < HEADER_BYTES {
        return Covered::default();
    }

    let mut covered = Covered {
        log_bytes: 0,
        seal_bytes: HEADER_BYTES,
        is_rotated: false,
    };
    while let Some(rest) = seal
        .get(covered.seal_bytes..)
        .filter(|rest| !rest.is_empty())
    {
        let Some(found) = entry::next(rest) else {
            if is_cut(rest) {
                break;
            }
            return Covered {
                log_bytes: available,
                seal_bytes: seal.len(),
                is_rotated: false,
            };
        };
        if let EntryKind::Commit { start, length, .. } = found.entry.kind {
            let end = start.saturating_add(length);

            // The entry is ahead of the log's bytes, which have not all arrived.
            if end > available {
                break;
            }
            covered.log_bytes = covered.log_bytes.max(end);
        }
        covered.is_rotated = matches!(
            found.entry.kind,
            EntryKind::Checkpoint {
                reason: Reason::Rotate,
                ..
            }
        );
        covered.seal_bytes += found.bytes;
    }

    covered
}

/// Whether an entry that is not whole is one whose end has not arrived.
fn is_cut(rest: &[u8]) -> bool {
    let Some(length) = rest.first_chunk() else {
        return true;
    };
    let length = u32::from_le_bytes(*length) as usize;
    // A checkpoint has a signature after its tag: 64 bytes.
    length <= BODY_BYTES_MAX && rest.len() < 4 + length + TAG_BYTES + 64
}
