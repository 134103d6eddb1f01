//! The place that verification has reached in a chain of seals.

use super::super::entry::SealChain;
use super::super::keys::PublicKey;

/// The place reached among the entries of a seal.
#[derive(Clone)]
pub(super) struct SealPosition {
    /// Epoch of the next entry.
    pub(super) epoch: u32,
    pub(super) index: u32,
    pub(super) chain: SealChain,
    /// Verifies the checkpoint of `epoch`.
    pub(super) public: Option<PublicKey>,
    pub(super) time_ms: u64,
    /// The last entry says that the log was rotated.
    pub(super) is_rotated: bool,
    /// The last entry says that the journal was closed.
    pub(super) is_closed: bool,
}
