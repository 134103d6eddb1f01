//! Findings of `tarsier doctor` and `tarsier migrate --check`, each about one thing.

use crate::answer::answered;
use anyhow::Result;
use serde::Serialize;
use std::borrow::Cow;
use std::io::Write;

/// Grade of a finding, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// Nothing to do.
    Ok,
    /// The thing works, with a limit that the finding names.
    Warn,
    /// The thing does not work.
    Fail,
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// The thing that was looked at.
    pub(crate) what: Cow<'static, str>,
    /// Description of what was found.
    pub(crate) value: String,
    /// Remedy; never empty unless the level is ok.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn ok(what: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Finding {
        Finding {
            level: Level::Ok,
            what: what.into(),
            value: value.into(),
            remedy: String::new(),
        }
    }

    pub(crate) fn warn(
        what: impl Into<Cow<'static, str>>,
        value: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Finding {
        Finding {
            level: Level::Warn,
            remedy: remedy.into(),
            ..Finding::ok(what, value)
        }
    }

    pub(crate) fn fail(
        what: impl Into<Cow<'static, str>>,
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
pub(crate) fn status(findings: &[Finding]) -> u8 {
    match findings.iter().map(|finding| finding.level).max() {
        None | Some(Level::Ok) => 0,
        Some(Level::Warn) => 1,
        Some(Level::Fail) => 2,
    }
}

/// Prints a finding per line, or all as one JSON object. Returns the exit status.
///
/// # Errors
/// The report cannot be written.
pub(crate) fn print(findings: &[Finding], json: bool) -> Result<u8> {
    let status = status(findings);
    let text = if json {
        let report = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "status": status,
            "findings": findings,
        });
        format!("{report:#}\n")
    } else {
        findings.iter().map(|it| format!("{it}\n")).collect()
    };

    let written = std::io::stdout().write_all(text.as_bytes());
    answered(status, written.map_err(Into::into))
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
