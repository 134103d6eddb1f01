//! Rules and status as auditctl prints them.

use daemon::protocol::AuditState;
use rules::{Dialect, ListStyle, RuleSet};
use std::fmt::Write;

/// The rules as `-l` prints them, and messages about rules that cannot be shown.
pub(super) fn rules(
    listed: &[Vec<u8>],
    dialect: Dialect,
    is_interpreted: bool,
    key: Option<&[u8]>,
) -> (String, Vec<String>) {
    let mut set = RuleSet::default();
    let mut unknown = Vec::new();
    for bytes in listed {
        match rules::from_kernel(bytes) {
            Ok(rule) => set.rules.push(rule),
            Err(error) => unknown.push(format!("a rule cannot be shown: {error}")),
        }
    }

    let style = ListStyle {
        dialect,
        is_interpreted,
        ..ListStyle::default()
    };
    let text = if set.rules.is_empty() && !unknown.is_empty() {
        String::new()
    } else {
        set.list(&style, key)
    };

    (text, unknown)
}

/// Whether a listed rule's key contains `text`.
pub(super) fn has_key(bytes: &[u8], text: &[u8]) -> bool {
    let Ok(rule) = rules::from_kernel(bytes) else {
        return false;
    };
    let key = rule.key().unwrap_or_default();
    text.is_empty() || key.windows(text.len()).any(|window| window == text)
}

/// The status as it is printed after a setting; with `is_whole` as for `-s`, and with
/// `is_interpreted` with names for numbers, as for `-s -i`.
pub(super) fn state(state: &AuditState, is_whole: bool, is_interpreted: bool) -> String {
    let name = |names: [&str; 3], value: u32| match names.get(value as usize) {
        Some(name) if is_interpreted => (*name).to_owned(),
        None if is_interpreted => "unknown".to_owned(),
        _ => value.to_string(),
    };
    let enabled = name(["disable", "enabled", "enabled+immutable"], state.enabled);
    let failure = name(["silent", "printk", "panic"], state.failure);
    let mut text = format!("enabled {enabled}\nfailure {failure}\n");
    let numbers = [
        ("pid", state.pid),
        ("rate_limit", state.rate_limit),
        ("backlog_limit", state.backlog_limit),
        ("lost", state.lost),
        ("backlog", state.backlog),
        ("backlog_wait_time", state.backlog_wait_time),
        ("backlog_wait_time_actual", state.backlog_wait_time_actual),
    ];

    for (name, number) in numbers {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} {number}");
    }

    if is_whole {
        let lock = if state.loginuid_immutable_locked {
            "locked"
        } else {
            "unlocked"
        };
        let value = u32::from(state.loginuid_immutable);
        let _ = writeln!(text, "loginuid_immutable {value} {lock}");
    }

    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From `auditctl -s` and `auditctl -s -i` of audit 3.0.9 on Debian 12.
    #[test]
    fn status_is_auditctl_s_line_for_line() {
        let seen = AuditState {
            enabled: 1,
            failure: 1,
            pid: 112,
            backlog_limit: 8192,
            backlog_wait_time: 60000,
            loginuid_immutable: true,
            loginuid_immutable_locked: true,
            ..AuditState::default()
        };
        let numbers = "pid 112\nrate_limit 0\nbacklog_limit 8192\nlost 0\nbacklog 0\n\
                       backlog_wait_time 60000\nbacklog_wait_time_actual 0\n";
        let lock = "loginuid_immutable 1 locked\n";
        let plain = format!("enabled 1\nfailure 1\n{numbers}");
        assert_eq!(state(&seen, true, false), format!("{plain}{lock}"));
        assert_eq!(state(&seen, false, false), plain);
        let named = format!("enabled enabled\nfailure printk\n{numbers}{lock}");
        assert_eq!(state(&seen, true, true), named);
    }
}
