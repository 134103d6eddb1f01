//! Central verification: re-creates each host's log and seals from the messages that arrived, and says what is
//! missing, what is altered, and up to when it is sealed.
//!
//! Whoever takes over a host can stop its stream, but not rewrite what has arrived; whoever takes over the store can
//! remove messages, which leaves a hole, but not change what was sealed.

mod collect;
mod command;
mod fetch;
pub mod ranges;
pub mod rebuild;
mod report;
mod store;
pub mod stored;

use crate::config::Config;
use crate::position::Series;
use journal::seal::verify::{End, Options, Report, SealFinding, VerifyError};
use journal::seal::VerificationKey;
use ranges::Ranges;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Arrived;

/// Result for one series of a host.
#[derive(Debug)]
pub struct SeriesReport {
    /// The series.
    pub series: Series,
    /// Ranges that arrived.
    pub ranges: Ranges,
    /// Result of comparing the seals.
    pub seals: Seals,
    /// Bytes at the end that arrived, and that no seal that arrived covers.
    pub unsealed_bytes: u64,
}

/// Result of comparing the seals of a series.
#[derive(Debug)]
pub enum Seals {
    /// The seals were compared with the bytes that arrived.
    Checked(Report),
    /// The seals cannot be compared.
    Unknown(String),
    /// Nobody asked to compare the seals.
    NotAsked,
}

/// Result for a host.
#[derive(Debug)]
pub struct HostReport {
    /// Name of the host's directory.
    pub host: String,
    /// Series of the host, in the order of their numbers.
    pub series: Vec<SeriesReport>,
    /// Reason why the host cannot be checked.
    pub error: Option<String>,
}

/// The outcome, by exit status: the numbers are those of `tarsier verify`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Complete, and intact up to the end.
    Intact = 0,
    /// Something is missing or altered.
    Altered = 1,
    /// Nothing can be said.
    Unknown = 2,
    /// Complete and intact up to a time; what follows may not have arrived.
    Open = 3,
}

/// Source of keys.
#[derive(Clone, Debug)]
pub enum KeySource {
    /// One key for all hosts.
    One(PathBuf),
    /// `DIR/HOST.key`.
    Directory(PathBuf),
    /// Seals are not compared.
    None,
}

/// Origin of the messages.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A directory with a directory for each host, or with files whose messages name their hosts; or one such file.
    Files(PathBuf),
    /// The Kafka topic or the NATS stream of this configuration.
    Server(Box<Config>),
}

/// Request for a check.
#[derive(Clone, Debug)]
pub struct Request {
    /// Origin of the messages.
    pub from: Origin,
    /// Hosts; none: all.
    pub hosts: Vec<String>,
    /// Source of the keys.
    pub keys: KeySource,
    /// The seal must end no longer ago than this.
    pub age_max: Option<Duration>,
}

/// The store as a whole cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be read.
    #[error("{}: {source}; give the directory that has a directory for each host, or a file", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// Error of the read.
        source: io::Error,
    },
    /// There is no host.
    #[error("{}: no messages in it; store those of each host in files of DIR/HOST", path.display())]
    NoHost {
        /// The directory.
        path: PathBuf,
    },
    /// The server cannot be read to the end.
    #[error("{0}; nothing was verified")]
    Server(String),
    /// The server has no messages.
    #[error("{0}: no messages; is this where the hosts send to?")]
    Empty(String),
    /// The messages of a server cannot be kept until they are verified.
    #[error("a temporary file: {0}; set TMPDIR to a directory with room for twice the log")]
    Scratch(io::Error),
}

/// Checks the hosts of a store, in the order of their names.
///
/// # Errors
/// The store cannot be listed. What is wrong with one host is in its report.
pub fn verify(request: &Request) -> Result<Vec<HostReport>, StoreError> {
    let store = collect::collect(request)?;
    let check = |(host, arrived): (String, Arrived)| {
        let (series, error) = match arrived.error {
            Some(error) => (Vec::new(), Some(error)),
            None => match check_host(request, &host, arrived.messages, &store.sources) {
                Ok(series) => (series, None),
                Err(error) => (Vec::new(), Some(error)),
            },
        };
        HostReport {
            host,
            series,
            error,
        }
    };

    Ok(store.hosts.into_iter().map(check).collect())
}

fn check_host(
    request: &Request,
    host: &str,
    messages: Vec<stored::Stored>,
    sources: &[PathBuf],
) -> Result<Vec<SeriesReport>, String> {
    let key = match &request.keys {
        KeySource::None => None,
        KeySource::One(path) => Some(VerificationKey::read(path)),
        KeySource::Directory(path) => {
            Some(VerificationKey::read(&path.join(format!("{host}.key"))))
        }
    };
    let key = key.transpose().map_err(|error| error.to_string());
    let check = |(series, ranges)| {
        let scratch =
            tempfile::tempdir().map_err(|error| format!("a temporary directory: {error}"))?;
        let (seals, unsealed_bytes, ranges) = match &key {
            Ok(None) => (Seals::NotAsked, 0, ranges),
            Ok(Some(key)) => check_seals(request, ranges, sources, key, scratch.path())?,
            Err(error) => (Seals::Unknown(error.clone()), 0, ranges),
        };
        Ok(SeriesReport {
            series,
            ranges,
            seals,
            unsealed_bytes,
        })
    };

    ranges::sort(messages).into_iter().map(check).collect()
}

fn check_seals(
    request: &Request,
    mut ranges: Ranges,
    sources: &[PathBuf],
    key: &VerificationKey,
    scratch: &Path,
) -> Result<(Seals, u64, Ranges), String> {
    let rebuilt = rebuild::rebuild(&ranges, sources, scratch)
        .map_err(|error| format!("{}: {error}", scratch.display()))?;
    ranges.contradictions.extend(rebuilt.misfits);
    let options = Options {
        is_complete: false,
        age_max: None,
    };
    let seals = match journal::seal::verify(&rebuilt.logs, key, options) {
        _ if !rebuilt.has_seals => Seals::Unknown(
            "no seal arrived; set seal = yes on the host, and format = raw in its forward.conf"
                .into(),
        ),
        Ok(mut report) => {
            if rebuilt.is_rotated {
                // Another file follows, of which nothing has arrived.
                report.end = End::Open;
            }
            age(&mut report, &rebuilt.logs, request.age_max);
            Seals::Checked(report)
        }
        Err(VerifyError::NotSealed { .. }) => Seals::Unknown(
            "what arrived before the first hole has no seal: nothing can be compared".into(),
        ),
        Err(error) => Seals::Unknown(error.to_string()),
    };

    Ok((seals, rebuilt.unsealed_bytes, ranges))
}

/// Holds an end that is not in order against the age that is allowed: an older one is a finding, as for a log here.
fn age(report: &mut Report, logs: &[PathBuf], age_max: Option<Duration>) {
    let (Some(age_max), Some(path), false) = (age_max, logs.last(), report.is_closed()) else {
        return;
    };

    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_ms = now.map_or(0, |since| since.as_millis() as u64);
    let age = Duration::from_millis(now_ms.saturating_sub(report.until_ms().unwrap_or(0)));
    if age <= age_max {
        report.end = End::Vouched;
    } else if report.finding.is_none() {
        report.finding = Some(SealFinding {
            path: path.clone(),
            bytes: None,
            line: None,
            sealed_ms: None,
            what: format!("its seal ends {} s ago and was not closed", age.as_secs()),
        });
    }
}

impl SeriesReport {
    /// The outcome of the series.
    pub fn verdict(&self) -> Verdict {
        let is_whole = self.ranges.holes.is_empty() && self.ranges.contradictions.is_empty();
        match &self.seals {
            _ if !is_whole => Verdict::Altered,
            Seals::NotAsked if self.ranges.filtered > 0 => Verdict::Open,
            Seals::NotAsked => Verdict::Intact,
            Seals::Unknown(_) => Verdict::Unknown,
            Seals::Checked(report) if !report.is_intact() => Verdict::Altered,
            // The bytes of filtered events are not here: only what is before them was compared.
            Seals::Checked(_) if self.ranges.filtered > 0 => Verdict::Open,
            Seals::Checked(report) if report.end == End::Vouched => Verdict::Intact,
            Seals::Checked(report) if report.is_closed() && self.unsealed_bytes == 0 => {
                Verdict::Intact
            }
            Seals::Checked(_) => Verdict::Open,
        }
    }
}

/// The outcome of all hosts: the worst of theirs.
pub fn verdict(hosts: &[HostReport]) -> Verdict {
    let of_host = |host: &HostReport| match host.error {
        Some(_) => vec![Verdict::Unknown],
        None => host.series.iter().map(SeriesReport::verdict).collect(),
    };
    let all: Vec<Verdict> = hosts.iter().flat_map(of_host).collect();
    let worst = [Verdict::Altered, Verdict::Unknown, Verdict::Open];
    worst
        .into_iter()
        .find(|verdict| all.contains(verdict))
        .unwrap_or(Verdict::Intact)
}

pub use command::command;
pub use report::{print, to_json};
