//! Which rules of the files are in force, and which are not.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Origin of the rules in force.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RulesOrigin {
    /// The files, all of them.
    #[default]
    Files,
    /// The rules that were last in force without an error, since the files have errors.
    LastGood,
    /// The lines of the files that are right.
    GoodLines,
    /// Requests: auditctl has deleted all rules since, and loaded others.
    Requests,
    /// The rules that are locked until the next boot (`-e 2`), whatever the files have.
    Locked,
}

/// Longest reason that is kept, in bytes.
const WHY_BYTES_MAX: usize = 500;

impl RulesOrigin {
    /// The name that records and JSON have.
    pub fn name(self) -> &'static str {
        match self {
            RulesOrigin::Files => "files",
            RulesOrigin::LastGood => "last-good",
            RulesOrigin::GoodLines => "good-lines",
            RulesOrigin::Requests => "requests",
            RulesOrigin::Locked => "locked",
        }
    }
}

/// A line or file of rules or settings that is not in force.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// The file or directory.
    pub file: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: u32,
    /// The reason.
    pub why: String,
    /// Whether it is one of auditd.conf, not of the rules.
    #[serde(default)]
    pub is_setting: bool,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.why),
            line => write!(f, "{}:{line}: {}", self.file, self.why),
        }
    }
}

/// The rules that the last start or reload put in force, compared with the files.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct RulesInForce {
    /// Origin of the rules.
    pub origin: RulesOrigin,
    /// BLAKE3 digest, in hexadecimal, of the rules and settings that were put in force.
    pub digest: String,
    /// Time at which the last good rules were first in force, in seconds since 1970, if they are in force instead of the
    /// files.
    pub good_since_s: Option<i64>,
    /// Lines and files that are not in force: the first [`RulesInForce::LISTED_MAX`].
    pub left_out: Vec<LeftOut>,
    /// Number of all lines and files that are not in force.
    pub left_out_count: usize,
}

impl RulesInForce {
    /// Limit of the lines that are listed; further ones are counted.
    pub const LISTED_MAX: usize = 1000;
    /// Limit of the lines that are shown to people and written to the log.
    pub const SHOWN_MAX: usize = 20;

    /// Adds what is not in force.
    pub fn leave_out(&mut self, left_out: impl IntoIterator<Item = LeftOut>) {
        for mut one in left_out {
            self.left_out_count += 1;
            if self.left_out.len() < Self::LISTED_MAX {
                // Reasons name words of the line, which may be long.
                one.why = beginning(&one.why, WHY_BYTES_MAX).to_owned();
                self.left_out.push(one);
            }
        }
    }

    /// All settings of the file are in force now, of which `count` were not.
    pub fn forget_settings(&mut self, count: usize) {
        self.left_out.retain(|one| !one.is_setting);
        self.left_out_count -= count;
    }

    /// The state in a line, if anything is not in force.
    pub fn summary(&self) -> Option<String> {
        let first = self.left_out.first()?;
        let (lines, are) = match self.left_out_count {
            1 => ("1 line or file".to_owned(), "is"),
            count => (format!("{count} lines or files"), "are"),
        };
        let instead = match self.origin {
            RulesOrigin::LastGood => {
                "; the rules that were last in force without an error are in force instead"
            }
            _ => "",
        };

        let which = match self.left_out_count {
            1 => "",
            _ => "the first: ",
        };
        Some(format!(
            "{lines} of rules and settings {are} NOT in force{instead} ({which}{first})"
        ))
    }
}

/// The first bytes of a text, up to the end of a character.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_force_is_counted_beyond_what_is_listed() {
        let mut rules = RulesInForce::default();
        assert_eq!(rules.summary(), None);
        let line = |line| LeftOut {
            file: "a.rules".to_owned(),
            line,
            why: "wrong".to_owned(),
            is_setting: false,
        };
        rules.leave_out([line(3)]);
        let text = rules.summary().unwrap();
        assert_eq!(
            text,
            "1 line or file of rules and settings is NOT in force (a.rules:3: wrong)"
        );
        rules.leave_out((4..2000).map(line));
        assert_eq!((rules.left_out.len(), rules.left_out_count), (1000, 1997));
        assert!(rules.summary().unwrap().starts_with("1997 lines or files"));
    }
}
