//! Sealing: a forward-secure record of what was written to the log, in a file beside it.
//!
//! Every commit adds an *entry* to `LOG.seal`: which bytes of the log it wrote and their BLAKE3
//! hashes, authenticated with a key that is used once, then replaced with its own hash and erased.
//! An attacker who takes over the host later has no key that could have made an earlier entry. Once
//! a second a *checkpoint* is signed with an Ed25519 key that is erased after the signature; the
//! checkpoint contains the public key of the next one. `docs/internals/sealing.md` describes the
//! algorithm, the formats and the limits.
//!
//! * [`Sealer`] is the journal's side; [`init`] creates the keys.
//! * [`verify()`] is the verifier's side: it needs the [`VerificationKey`] and the files.

mod blocks;
mod covered;
mod entry;
mod init;
mod keys;
mod locked;
mod output;
mod reconcile;
mod sealer;
mod state;
mod sync;
pub mod verify;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use covered::{covered, Covered};
pub use init::{init, take_back, InitError};
pub use keys::{KeyError, VerificationKey};
pub(crate) use sealer::Sealer;
pub use verify::verify;

/// Size of the log blocks that are hashed, in bytes: an alteration is located this precisely.
pub const BLOCK_BYTES: usize = 16 * 1024;

/// Path of the seal of `log`.
pub fn seal_path(log: &Path) -> PathBuf {
    with_suffix(log, ".seal")
}

/// Path of the state file, where the host keeps its current keys for `log`.
pub fn state_path(log: &Path) -> PathBuf {
    with_suffix(log, ".sealkey")
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    PathBuf::from(name)
}

/// Appends the hash of each block of `bytes` to `out`.
fn hash_blocks(bytes: &[u8], out: &mut Vec<u8>) {
    for block in bytes.chunks(BLOCK_BYTES) {
        out.extend_from_slice(blake3::hash(block).as_bytes());
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// A time in human-readable form, in UTC.
pub fn time_text(time_ms: u64) -> String {
    let time = i64::try_from(time_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    match time {
        Some(time) => time.to_string(),
        None => format!("{time_ms} ms after 1970"),
    }
}
