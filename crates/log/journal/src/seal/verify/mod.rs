//! Verification: is the log what was sealed, and up to when?

mod blocks;
mod file;
mod position;
mod report;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::keys::{Keys, SeriesId};
use super::{now_ms, state, state_path, time_text, VerificationKey};
use position::SealPosition;
use report::FileCheck;
pub use report::{Checked, End, Note, Report, SealFinding};

/// Time to wait before a second check: a running journal writes the log first and its seal a moment
/// later.
const LIVE_WAIT: Duration = Duration::from_millis(250);

/// Checks beyond those of the files themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The list is complete, and its last file is the current log. Then its end is checked too: a
    /// rotated file must have a successor, and the seal must reach the host's own keys.
    pub is_complete: bool,
    /// The seal must end no longer ago than this, unless it was closed in order.
    pub age_max: Option<Duration>,
}

/// Reason why the log cannot be verified.
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
        /// Path where its seal would be.
        seal: PathBuf,
    },
    /// The seal was made with another key.
    #[error("{}: sealed with keys of series {found}, but the given key belongs to {expected}; \
             give the key that `tarsier seal init` made for this log", path.display())]
    OtherKey {
        /// The seal.
        path: PathBuf,
        /// The seal's series.
        found: String,
        /// The key's series.
        expected: String,
    },
    /// A public key cannot verify this seal without the files before it.
    #[error("{}: begins with epoch {epoch}, and the files before it are not given: a public key \
             can only be followed from the first file on; use the key with its secret", path.display())]
    NoAnchor {
        /// The seal.
        path: PathBuf,
        /// The first epoch of the seal.
        epoch: u32,
    },
}

pub(super) fn id_text(id: &SeriesId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Verifies log files, oldest first, each with its seal beside it.
///
/// Stops at the first place that differs from what was sealed, and returns it in
/// [`Report::finding`].
pub fn verify(
    logs: &[PathBuf],
    key: &VerificationKey,
    options: Options,
) -> Result<Report, VerifyError> {
    let mut report = Report::default();
    let mut position: Option<SealPosition> = None;
    // Read before the seal: a running journal's keys are ahead of a seal that was read earlier.
    let host = logs.last().and_then(|log| state::peek(&state_path(log)));
    let mut unsealed: Vec<&PathBuf> = Vec::new();
    for (number, log) in logs.iter().enumerate() {
        let is_last = number + 1 == logs.len();
        let checked = match check(
            log,
            key,
            position.as_ref(),
            is_last && is_being_written(log),
        )? {
            Some(checked) => checked,
            None if position.is_some() => {
                let what = "its seal is missing".to_owned();
                report.finding = Some(SealFinding::of_file(log, what));
                return Ok(report);
            }
            None => {
                unsealed.push(log);
                continue;
            }
        };
        if position.is_none() {
            report.note_beginning(&unsealed, &checked, log);
        }
        let end = report.take(log, checked);
        if report.finding.is_some() {
            return Ok(report);
        }
        position = end;
    }

    let (Some(log), Some(end)) = (logs.last(), position) else {
        let path = logs.first().cloned().unwrap_or_default();
        let seal = super::seal_path(&path);
        return Err(VerifyError::NotSealed { path, seal });
    };

    check_end(&mut report, log, &end, key, host, options);
    report.end = how_it_ends(log, &end, key, host, options);
    Ok(report)
}

/// Whether a journal holds the lock of the log.
fn is_being_written(log: &Path) -> bool {
    let lock = FlockOperation::NonBlockingLockShared;
    std::fs::File::open(log)
        .is_ok_and(|file| rustix::fs::flock(&file, lock) == Err(Errno::WOULDBLOCK))
}

/// Checks a file, and checks it again if the journal may have written to it meanwhile.
fn check(
    log: &Path,
    key: &VerificationKey,
    before: Option<&SealPosition>,
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

/// Whether anything vouches for the end of the last file. What [`check_end`] finds is not known here.
fn how_it_ends(
    log: &Path,
    end: &SealPosition,
    key: &VerificationKey,
    host: Option<(SeriesId, u32, u32)>,
    options: Options,
) -> End {
    let is_host_s = host.is_some_and(|(id, ..)| id == key.id);

    if end.is_closed || end.is_rotated && !options.is_complete {
        return End::InOrder;
    }

    // A journal that holds the lock would have used newer keys for anything that was cut off.
    let is_held = options.is_complete && is_host_s && is_being_written(log);
    if options.age_max.is_some() || is_held {
        End::Vouched
    } else {
        End::Open
    }
}

/// Checks that nothing is missing after the end of the last file.
fn check_end(
    report: &mut Report,
    log: &Path,
    end: &SealPosition,
    key: &VerificationKey,
    host: Option<(SeriesId, u32, u32)>,
    options: Options,
) {
    let mut find = |what: String| report.finding = Some(SealFinding::of_file(log, what));
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

/// Keys for the first entry of `epoch`.
fn keys_at(secret: &[u8; 32], epoch: u32) -> Keys {
    let mut keys = Keys::first(secret);
    while keys.epoch < epoch {
        keys.next_epoch();
    }
    keys
}
