//! What `tarsier doctor` says of one thing.

use serde::Serialize;

/// How well something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Nothing to do.
    Ok,
    /// `tarsier run` works, with a limit that the finding names.
    Warn,
    /// `tarsier run` does not work, or records nothing.
    Fail,
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    /// What was looked at.
    pub(super) what: &'static str,
    /// What was found.
    pub(super) value: String,
    /// What to do; never empty unless the level is ok.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) remedy: String,
}

impl Finding {
    pub(super) fn ok(what: &'static str, value: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            what,
            value: value.into(),
            remedy: String::new(),
        }
    }

    pub(super) fn warn(
        what: &'static str,
        value: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level: Level::Warn,
            remedy: remedy.into(),
            ..Finding::ok(what, value)
        }
    }

    pub(super) fn fail(
        what: &'static str,
        value: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level: Level::Fail,
            ..Finding::warn(what, value, remedy)
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        };
        write!(f, "{level:<5} {}: {}", self.what, self.value)?;
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, " — {remedy}"),
        }
    }
}

/// The exit status for a report: 0 all is ok, 1 something is limited, 2 something does not work.
pub(super) fn status(findings: &[Finding]) -> u8 {
    match findings.iter().map(|finding| finding.level).max() {
        None | Some(Level::Ok) => 0,
        Some(Level::Warn) => 1,
        Some(Level::Fail) => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_finding_decides_the_status() {
        let ok = Finding::ok("a", "1");
        let warn = Finding::warn("b", "2", "do");
        let fail = Finding::fail("c", "3", "do");
        assert_eq!(status(&[]), 0);
        assert_eq!(status(&[ok.clone(), ok.clone()]), 0);
        assert_eq!(status(&[ok.clone(), warn.clone(), ok.clone()]), 1);
        assert_eq!(status(&[fail, warn, ok]), 2);
    }

    #[test]
    fn a_finding_is_one_line_with_its_remedy() {
        assert_eq!(Finding::ok("BTF", "there").to_string(), "ok    BTF: there");
        let warn = Finding::warn("clock", "not set", "start a time service");
        assert_eq!(
            warn.to_string(),
            "warn  clock: not set — start a time service"
        );
    }
}
