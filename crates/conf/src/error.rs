//! What can be wrong with a configuration file, and what in it is not honoured yet.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A line of a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 if it is about the file as a whole.
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

/// Something accepted that does not do what it says in auditd, or that deserves a second look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Where it is set.
    pub place: Place,
    /// The key as auditd.conf(5) spells it; empty if the notice is about the line itself.
    pub key: &'static str,
    /// One line: what was asked and what happens in its place.
    pub text: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

/// Why a configuration file is refused.
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
        /// What the resolver says.
        source: std::io::Error,
    },
    /// The file cannot be read.
    #[error("{}: cannot {call} the configuration file: {source}; {remedy}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system call that failed.
        call: &'static str,
        /// What to do.
        remedy: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The file is not one that root alone controls.
    #[error("{}: {found}; {remedy}", path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What was found.
        found: String,
        /// What to do.
        remedy: &'static str,
    },
    /// The line is not `key = value`.
    #[error("{place}: {found}; expected `key = value` with blanks around the `=`")]
    Syntax {
        /// Where.
        place: Place,
        /// What was found.
        found: String,
    },
    /// No such key.
    #[error(
        "{place}: unknown keyword {key:?}{}; see auditd.conf(5)",
        did_you_mean(nearest)
    )]
    UnknownKey {
        /// Where.
        place: Place,
        /// The key as written.
        key: String,
        /// The closest key.
        nearest: Option<&'static str>,
    },
    /// The key does not take this value.
    #[error(transparent)]
    Value(Box<BadValue>),
    /// Two keys contradict each other.
    #[error("{}: {found}; {remedy}", path.display())]
    Conflict {
        /// The file.
        path: PathBuf,
        /// What contradicts what.
        found: String,
        /// What to do.
        remedy: String,
    },
}

/// A value that its key does not take.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "{place}: {key} = {value}: {found}; expected {expected}{}",
    did_you_mean(nearest)
)]
pub struct BadValue {
    /// Where.
    pub place: Place,
    /// The key.
    pub key: &'static str,
    /// The value as written.
    pub value: String,
    /// What is wrong with it.
    pub found: String,
    /// What the key takes.
    pub expected: String,
    /// The closest word.
    pub nearest: Option<&'static str>,
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean {name}?)"))
}

/// The candidate that is closest to `word` by edit distance, case ignored, if one is close enough
/// to be a likely typing error.
pub(super) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
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
