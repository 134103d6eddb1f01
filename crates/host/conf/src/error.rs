//! Errors in a configuration file, and notices about keys that are not honoured.

use std::fmt;
use std::io;
use std::path::PathBuf;

use trust::TrustError;

/// A line of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; 0 for the file as a whole.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file.display()),
            line => write!(f, "{}:{line}", self.file.display()),
        }
    }
}

/// A setting that is accepted although it does not do what it does in auditd, or is suspicious.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Place of the setting.
    pub place: Place,
    /// The key as auditd.conf(5) spells it; empty if the notice is about the line itself.
    pub key: &'static str,
    /// One line: what was set and what happens instead.
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Reason for refusing a configuration file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The host's name cannot be resolved as `name_format` asks.
    #[error(
        "name_format = {format}: {host} cannot be resolved: {source}; enter the host in \
             /etc/hosts, or use another name_format"
    )]
    NodeName {
        /// FQD or NUMERIC.
        format: &'static str,
        /// The host's name.
        host: String,
        /// Error of the resolver.
        source: std::io::Error,
    },
    /// The file cannot be read.
    #[error("{}: cannot {call} the configuration file: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call that failed.
        call: &'static str,
        /// Remedy.
        remedy: &'static str,
        /// Error of the system call.
        source: io::Error,
    },
    /// The file is not controlled by root alone, or not a regular file.
    #[error(transparent)]
    Untrusted(TrustError),
    /// The file is too large.
    #[error("{}: larger than {limit_bytes} bytes; no auditd.conf is that large; name the right file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The largest size, in bytes.
        limit_bytes: u64,
    },
    /// The line is not `key = value`.
    #[error("{place}: {found}; expected `key = value` with blanks around the `=`")]
    Syntax {
        /// Place of the line.
        place: Place,
        /// Description of the text found instead.
        found: String,
    },
    /// The key does not exist.
    #[error(
        "{place}: unknown keyword {key:?}{}; see auditd.conf(5)",
        did_you_mean(nearest)
    )]
    UnknownKey {
        /// Place of the line.
        place: Place,
        /// The key as written.
        key: String,
        /// The most similar key, if one is similar enough.
        nearest: Option<&'static str>,
    },
    /// The key does not accept this value.
    #[error(transparent)]
    Value(Box<BadValue>),
    /// Two keys contradict each other.
    #[error("{}: {found}; {remedy}", path.display())]
    Conflict {
        /// The file.
        path: PathBuf,
        /// The contradiction.
        found: String,
        /// Remedy.
        remedy: String,
    },
}

impl ConfigError {
    /// The line that is wrong, counted from 1; 0 for the file as a whole.
    pub fn line(&self) -> usize {
        match self {
            ConfigError::Syntax { place, .. } | ConfigError::UnknownKey { place, .. } => place.line,
            ConfigError::Value(bad) => bad.place.line,
            _ => 0,
        }
    }
}

/// A value that its key does not accept.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{place}: {key} = {value}: {found}; expected {expected}{}",
    did_you_mean(nearest)
)]
pub struct BadValue {
    /// Place of the line.
    pub place: Place,
    /// The key.
    pub key: &'static str,
    /// The value as written.
    pub value: String,
    /// Fault found in the value.
    pub found: String,
    /// Values that the key accepts.
    pub expected: String,
    /// The most similar word, if one is similar enough.
    pub nearest: Option<&'static str>,
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

/// The candidate with the smallest edit distance to `word`, ignoring case, if `word` is likely a
/// misspelling of it.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<u8> = word
        .bytes()
        .take(64)
        .map(|b| b.to_ascii_lowercase())
        .collect();
    let limit = 1 + word.len() / 4;
    candidates
        .into_iter()
        .map(|name| (distance(&word, name.as_bytes()), name))
        .min()
        .filter(|(distance, _)| *distance <= limit)
        .map(|(_, name)| name)
}

fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, &from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let same = usize::from(from != to.to_ascii_lowercase());
            let best = (diagonal + same).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], best);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_offers_likely_typing_errors_only() {
        let names = ["flush", "freq", "num_logs", "log_file"];
        assert_eq!(nearest("fluhs", names), Some("flush"));
        assert_eq!(nearest("NUM_LOG", names), Some("num_logs"));
        assert_eq!(nearest("something_else", names), None);
        assert_eq!(nearest("", ["abc"]), None);
    }
}
