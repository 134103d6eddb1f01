//! The index beside a log file, as searches and `tarsier verify --index` use it.

use super::logs::is_converted;
use anyhow::{Context, Result};
pub(crate) use journal::index::{follow_rotation, index_path};
use query::index::{Index, IndexAnswer, Needed};
use std::fs;
use std::path::Path;

/// The index of a log file, if there is one that can be used.
fn load(log: &Path) -> Option<Index> {
    journal::index::load(log, is_converted)
}

/// What the index of a log file says about a question, if there is one that can be used.
pub(crate) fn ask(log: &Path, needed: &Needed) -> Option<IndexAnswer> {
    journal::index::ask(log, needed, is_converted)
}

/// Makes the index of a log file and puts it beside it.
///
/// # Errors
/// The file cannot be read, or has JSON or lines of over 64 MiB, or the index cannot be written.
pub(crate) fn build(log: &Path) -> Result<Index> {
    journal::index::build(log).with_context(|| log.display().to_string())
}

/// Whether a search may make the index of this file without being asked.
pub(crate) fn is_for_index(log: &Path) -> bool {
    rustix::process::geteuid().is_root() && journal::index::is_for_index(log)
}

/// Result of `tarsier verify --index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The log has no index.
    None,
    /// The index is that of the log.
    Right,
    /// The index is of another file or version, or damaged; searches do not use it.
    Unused,
    /// The index says that it is of this file, but the log has another one.
    Wrong,
}

/// Compares the index of a log file with what the log gives.
///
/// # Errors
/// The log cannot be read.
pub(crate) fn verify(log: &Path) -> Result<Verdict> {
    let path = index_path(log);
    if fs::symlink_metadata(&path).is_err() {
        return Ok(Verdict::None);
    }
    let Some(index) = load(log) else {
        return Ok(Verdict::Unused);
    };

    let made = journal::index::make(log).with_context(|| log.display().to_string())?;
    Ok(if made.to_bytes() == index.to_bytes() {
        Verdict::Right
    } else {
        Verdict::Wrong
    })
}
