//! The messages on the control socket: one line of JSON in each direction, the request first.

mod in_force;
mod makers;
mod status;

pub(crate) use in_force::beginning;
pub use in_force::{LeftOut, RulesInForce, RulesOrigin};
pub use makers::{MakerCost, MakerCosts, MakerKind, MakerOrder};
pub use status::{ConfinementStatus, PluginStatus, RuleCost, SpawnerStatus, Status};

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Longest request in bytes, including its newline: enough for 4,000 rules in the kernel's binary
/// form.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Name of the control socket in the run directory.
pub(super) const SOCKET: &str = "tarsier.sock";

/// Path of the control socket below a run directory.
pub fn socket_path(run_dir: &Path) -> PathBuf {
    run_dir.join(SOCKET)
}

/// A client's request.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// The engine, its events and losses; answered with a [`Status`].
    Status,
    /// Cost of each rule; answered with a list of [`RuleCost`].
    RuleCosts,
    /// Costs of the makers of events; answered with [`MakerCosts`], or with an [`Answer`] if the engine does not know
    /// these makers.
    MakerCosts {
        /// Property by which makers are told apart.
        by: MakerKind,
        /// Count by which they are sorted.
        order: MakerOrder,
        /// Number of makers wanted; the others are counted together.
        top: usize,
        /// Whether only the last 10 to 20 s count.
        recent: bool,
    },
    /// Stop the daemon. With `keep`, capture goes on for the next daemon.
    Stop {
        /// Leave pinned programs in place.
        keep: bool,
    },
    /// State that `auditctl -s` shows.
    Audit,
    /// The rules, in the order in which they are tried.
    Rules,
    /// Apply changes, all of them or none.
    Apply {
        /// The changes, in order.
        steps: Vec<Step>,
        /// Index of the first step that is skipped if it is refused (`-i`, `-c`), like all after
        /// it.
        tolerate_from: usize,
    },
}

/// One change. Rules are `struct audit_rule_data` in hexadecimal.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// `-a`, `-w`
    Append(String),
    /// `-A`
    Prepend(String),
    /// `-d`, `-W`
    Delete(String),
    /// `-D`; with text in hexadecimal only rules whose key contains it
    DeleteAll(Option<String>),
    /// `-e`
    Enabled(u32),
    /// `-f`
    Failure(u32),
    /// `-b`
    Backlog(u32),
    /// `-r`
    Rate(u32),
    /// `--backlog_wait_time`
    BacklogWaitTime(u32),
    /// `--loginuid-immutable`
    LoginuidImmutable,
    /// `-R`, whose lines are steps of their own. Changes nothing; a lock (`-e 2`) refuses it.
    ReadFile,
    /// `--reset-lost`
    ResetLost,
    /// `--reset_backlog_wait_time_actual`
    ResetBacklogWaitTimeActual,
    /// `-t`
    Trim,
    /// `-q`
    MakeEquivalent,
    /// `-m`: the text between the quotes of `msg='…'`.
    Message(String),
}

/// The daemon's answer to every request except those whose description names another.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Reason why the request as a whole was refused.
    pub error: Option<String>,
    /// State afterwards, for [`Request::Audit`] and [`Request::Apply`].
    pub audit: Option<AuditState>,
    /// Rules as `struct audit_rule_data` in hexadecimal, for [`Request::Rules`].
    pub rules: Vec<String>,
    /// The value of a counter before it was reset.
    pub value: Option<u32>,
    /// The text about what the daemon leaves behind.
    #[serde(default)]
    pub note: Option<String>,
    /// Steps that were refused. If one of them was not to be skipped, nothing was changed.
    pub refused: Vec<Refused>,
}

/// A step that was refused.
#[derive(Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The step's index in the request.
    pub step: usize,
    /// The errno that the kernel would have returned, if any.
    pub errno: Option<i32>,
    /// Reason, in words.
    pub reason: String,
}

/// State that `auditctl -s` shows.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditState {
    /// 0 off, 1 on, 2 on and locked.
    pub enabled: u32,
    /// 0 silent, 1 printk, 2 panic.
    pub failure: u32,
    /// The daemon's process id, 0 if there is none.
    pub pid: u32,
    /// Limit of records per second; 0 means no limit.
    pub rate_limit: u32,
    /// Limit of waiting records; 0 means no limit.
    pub backlog_limit: u32,
    /// Number of records lost.
    pub lost: u32,
    /// Number of records waiting.
    pub backlog: u32,
    /// Longest wait for room in the backlog, in clock ticks.
    pub backlog_wait_time: u32,
    /// Sum of the waits for room in the backlog, in clock ticks.
    pub backlog_wait_time_actual: u32,
    /// Whether a login uid that is set can no longer be changed.
    pub loginuid_immutable: bool,
    /// Whether `loginuid_immutable` is locked.
    pub loginuid_immutable_locked: bool,
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// Decodes what [`hex`] encodes; `None` if the text is not hexadecimal.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some((digit(high)? << 4) | digit(low)?),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_comes_back_and_nothing_else_is_taken() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&bytes)), Some(bytes));
        for wrong in ["0", "zz", "0x", "0 ", "é"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn requests_are_one_line() {
        let request = Request::Apply {
            steps: vec![Step::Message("two\nlines".to_owned()), Step::Trim],
            tolerate_from: 1,
        };
        let text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains('\n'));
        assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
    }
}
