//! Compares seal and keys after a crash: how far do they agree?

use super::entry::{self, EntryKind, Header, Reason, SealChain, HEADER_BYTES};
use super::state::SealState;

/// The valid part of a seal file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reconciled {
    /// Size in bytes of the part of the seal to keep.
    pub(super) keep: usize,
    /// Number of bytes of the log that the seal covers.
    pub(super) covered: u64,
    /// Whether the seal ends with a checkpoint of reason [`Reason::Close`].
    pub(super) ends_in_order: bool,
    /// Whether the keys are ahead of the seal.
    pub(super) entries_lost: bool,
    /// Whether the chain value at the seal's end differs from the one that the host remembers.
    pub(super) is_altered: bool,
}

/// Reason why a seal file cannot be continued.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The file has no valid header.
    NoHeader,
    /// The header belongs to another series.
    OtherSeries,
}

/// Reads through the seal and advances `state` to its end.
///
/// The keys in `state` may be older than the seal, if they were not synced before a power failure:
/// they are then advanced over entries with valid tags. Entries older than the keys cannot be
/// verified here, which is the point of the scheme; only their form is checked.
pub(super) fn reconcile(seal: &[u8], state: &mut SealState) -> Result<Reconciled, Unusable> {
    let (header, mut chain) = Header::parse(seal).ok_or(Unusable::NoHeader)?;
    if header.id != state.id {
        return Err(Unusable::OtherSeries);
    }

    // Without an entry that the keys can verify, only the remembered chain value shows an alteration.
    let remembered = state.chain;
    let mut is_verified = !state.keys.are_past(header.epoch, 0);
    let mut done = Reconciled {
        keep: HEADER_BYTES,
        covered: 0,
        ends_in_order: false,
        entries_lost: false,
        is_altered: false,
    };

    let mut next = (header.epoch, 0);
    while let Some(found) = entry::next(&seal[done.keep..]) {
        let entry = &found.entry;
        let place = (entry.epoch, entry.index);
        let chain_after = chain.after(found.sized_body);
        // The keys of this entry are erased: only its order can be checked.
        if state.keys.are_past(entry.epoch, entry.index) {
            if place < next {
                break;
            }
        } else {
            let keys = &mut state.keys;
            if place != (keys.epoch, keys.index) || keys.tag(&chain_after.0) != found.tag {
                break;
            }
            is_verified = true;
            if entry.is_checkpoint() {
                keys.next_epoch()
            } else {
                keys.step()
            }
        }
        next = if entry.is_checkpoint() {
            (entry.epoch.saturating_add(1), 0)
        } else {
            (entry.epoch, entry.index.saturating_add(1))
        };
        chain = chain_after;
        note(&mut done, &entry.kind);
        done.keep += found.bytes;
    }

    done.entries_lost = next < (state.keys.epoch, state.keys.index);
    done.is_altered = !done.entries_lost && !is_verified && chain != remembered;
    state.chain = chain;
    state.file = state.file.max(header.file);
    Ok(done)
}

fn note(done: &mut Reconciled, kind: &EntryKind<'_>) {
    done.ends_in_order = false;
    match kind {
        EntryKind::Commit { start, length, .. } => done.covered = start.saturating_add(*length),
        EntryKind::Open { found, sealed, .. } => done.covered = (*sealed).min(*found),
        EntryKind::Checkpoint { reason, .. } => done.ends_in_order = *reason == Reason::Close,
    }
}

/// Makes the header of a new seal file that continues from `state`. Returns its bytes and the chain
/// value after it.
pub(super) fn new_header(state: &SealState) -> (Vec<u8>, SealChain) {
    let header = Header {
        id: state.id,
        epoch: state.keys.epoch,
        file: state.file,
        time_ms: super::now_ms(),
        chain: state.chain.0,
    };
    let bytes = header.to_bytes();
    let chain = Header::parse(&bytes).map_or(state.chain, |(_, chain)| chain);
    (bytes, chain)
}
