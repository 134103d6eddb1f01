//! Verification: is the log what was sealed, and up to when?

mod blocks;
mod file;
mod place;
mod report;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::keys::{Keys, SeriesId};
use super::{now_ms, state, state_path, time_text, VerificationKey};
use place::Place;
use report::FileCheck;
pub use report::{Checked, Finding, Note, Report};

/// A running journal writes the log first and its seal a moment later.
const LIVE_WAIT: Duration = Duration::from_millis(250);

/// What is looked at besides the files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The files are all that there is: the last one is the current log. Then its end is looked at
    /// too: a following file, and what the host's own keys say, must be there.
    pub is_complete: bool,
    /// The seal must reach to within this long before now, unless it was closed in order.
    pub age_max: Option<Duration>,
}

/// Why nothing can be said about the log.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// A file cannot be read.
    #[error("{}: {source}; name log files that exist, and run as their owner", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No file has a seal.
    #[error("{}: no seal beside it ({}); it was not written with seal = yes, or its seal was removed",
            path.display(), seal.display())]
    NotSealed {
        /// The first file.
        path: PathBuf,
        /// Where its seal would be.
        seal: PathBuf,
    },
    /// The seal belongs to another key.
    #[error("{}: sealed by the series {found}, and the key is that of {expected}; \
             give the key that was made with it", path.display())]
    OtherKey {
        /// The seal.
        path: PathBuf,
        /// Its series.
        found: String,
        /// The key's.
        expected: String,
    },
    /// A public key cannot begin here.
    #[error("{}: begins with epoch {epoch}, and the files before it are not given: a public key \
             can only be followed from the first file on; use the key with its secret", path.display())]
    NoAnchor {
        /// The seal.
        path: PathBuf,
        /// Its first epoch.
        epoch: u32,
    },
}

pub(super) fn id_text(id: &SeriesId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Verifies log files, oldest first, each with its seal beside it.
///
/// Ends with the first place that is not what was sealed, which is in [`Report::finding`].
pub fn verify(
    logs: &[PathBuf],
    key: &VerificationKey,
    options: Options,
) -> Result<Report, VerifyError> {
    let mut report = Report::default();
    let mut place: Option<Place> = None;
    // Looked at before the seal is read: a running journal is further on afterwards, not before.
    let host = logs.last().and_then(|log| state::peek(&state_path(log)));
    let mut unsealed: Vec<&PathBuf> = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let is_last = number + 1 == logs.len();
        let checked = match check(log, key, place.as_ref(), is_last && is_being_written(log))? {
            Some(checked) => checked,
            None if place.is_some() => {
                let what = "its seal is missing".to_owned();
                report.finding = Some(Finding::of_file(log, what));
                return Ok(report);
            }
            None => {
                unsealed.push(log);
                continue;
            }
        };
        if place.is_none() {
            report.note_beginning(&unsealed, &checked, log);
        }
        let end = report.take(log, checked);
        if report.finding.is_some() {
            return Ok(report);
        }
        place = end;
    }
    let (Some(log), Some(end)) = (logs.last(), place) else {
        let path = logs.first().cloned().unwrap_or_default();
        let seal = super::seal_path(&path);
        return Err(VerifyError::NotSealed { path, seal });
    };
    check_end(&mut report, log, &end, key, host, options);
    Ok(report)
}

/// Whether a journal holds the lock of the log.
fn is_being_written(log: &Path) -> bool {
    let lock = FlockOperation::NonBlockingLockShared;
    std::fs::File::open(log)
        .is_ok_and(|file| rustix::fs::flock(&file, lock) == Err(Errno::WOULDBLOCK))
}

/// Checks a file, and checks it again if it may have been written to meanwhile.
fn check(
    log: &Path,
    key: &VerificationKey,
    before: Option<&Place>,
    is_live: bool,
) -> Result<Option<FileCheck>, VerifyError> {
    let first = file::check(log, key, before)?;
    match first {
        Some(check) if is_live && check.finding.is_some() => {
            std::thread::sleep(LIVE_WAIT);
            file::check(log, key, before)
        }
        other => Ok(other),
    }
}

/// What the end of the last file says about what should follow.
fn check_end(
    report: &mut Report,
    log: &Path,
    end: &Place,
    key: &VerificationKey,
    host: Option<(SeriesId, u32, u32)>,
    options: Options,
) {
    let mut find = |what: String| report.finding = Some(Finding::of_file(log, what));
    if !options.is_complete {
        return;
    }
    if end.is_rotated {
        return find("the log was rotated after it, and the file that followed is missing".into());
    }
    if let Some((id, epoch, index)) = host {
        if id == key.id && (epoch, index) > (end.epoch, end.index) {
            return find(format!(
                "its seal ends before entry {}.{}, and this host's keys are at {epoch}.{index}: \
                 the end of log and seal was removed",
                end.epoch, end.index
            ));
        }
    }
    if let (Some(age_max), false) = (options.age_max, end.is_closed) {
        let age = Duration::from_millis(now_ms().saturating_sub(end.time_ms));
        if age > age_max {
            find(format!(
                "its seal ends {} s ago ({}) and was not closed: the end of both may have been \
                 removed",
                age.as_secs(),
                time_text(end.time_ms)
            ));
        }
    }
}

/// The keys of the first entry of `epoch`.
fn keys_at(secret: &[u8; 32], epoch: u32) -> Keys {
    let mut keys = Keys::first(secret);
    while keys.epoch < epoch {
        keys.next_epoch();
    }
    keys
}
