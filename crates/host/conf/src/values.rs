//! Parsers for the values of auditd.conf, by kind.

use std::path::{Path, PathBuf};

use rustix::fs::{access, Access};
use trust::Program;

use crate::context::Context;
use crate::error::{nearest, ConfigError};
use crate::group::{self, Group};
use crate::{FailureAction, SpaceLimit};

/// Looks the value up among the words of `table`, ignoring case.
pub(super) fn word<T: Copy>(
    context: &Context<'_>,
    table: &[(&'static str, T)],
) -> Result<T, ConfigError> {
    if let Some((_, value)) = table
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(context.value))
    {
        return Ok(*value);
    }

    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    let mut error = context.refuse("no such word", format!("one of {}", names.join(" ")));
    if let ConfigError::Value(bad) = &mut error {
        bad.nearest = nearest(context.value, table.iter().map(|(name, _)| *name));
    }
    Err(error)
}

pub(super) fn yes_no(context: &Context<'_>) -> Result<bool, ConfigError> {
    word(context, &[("yes", true), ("no", false)])
}

/// A decimal number within `range`, digits only.
pub(super) fn number(
    context: &Context<'_>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, ConfigError> {
    let (min, max) = (*range.start(), *range.end());
    let expected = || match max {
        u64::MAX => "a whole number".to_owned(),
        _ => format!("a whole number from {min} to {max}"),
    };
    if !context.value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(context.refuse("not a number of digits only", expected()));
    }

    match context.value.parse::<u64>() {
        Ok(value) if value < min => Err(context.refuse("too small", expected())),
        Ok(value) if value <= max => Ok(value),
        _ => Err(context.refuse("too large", expected())),
    }
}

pub(super) fn space_limit(context: &Context<'_>) -> Result<SpaceLimit, ConfigError> {
    let expected = "a size in MiB, or a percentage from 0% to 99%";
    let (digits, percent) = match context.value.strip_suffix('%') {
        Some(digits) => (digits, true),
        None => (context.value, false),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(context.refuse("neither a number nor a percentage", expected));
    }

    // The size in bytes of a larger value exceeds 64 bits.
    match digits.parse::<u64>() {
        Ok(value) if percent && value <= 99 => Ok(SpaceLimit::Percent(value as u8)),
        Ok(value) if !percent && value <= u64::MAX >> 20 => Ok(SpaceLimit::Mib(value)),
        _ => Err(context.refuse("too large", expected)),
    }
}

pub(super) fn absolute_path(context: &Context<'_>) -> Result<PathBuf, ConfigError> {
    let path = Path::new(context.value);
    if !path.is_absolute() || path.file_name().is_none() || context.value.ends_with('/') {
        return Err(context.refuse("not an absolute file name", "a path such as /dir/file"));
    }
    Ok(path.to_owned())
}

/// A range of ports `N` or `N-M` (`tcp_client_ports`).
pub(super) fn port_range(context: &Context<'_>) -> Result<(u16, u16), ConfigError> {
    let expected = "a port or two ports separated by a dash, 0 to 65535, the smaller one first";
    let refuse = |found: &str| context.refuse(found, expected);
    let (low, high) = context
        .value
        .split_once('-')
        .unwrap_or((context.value, context.value));
    let port = |text: &str| {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            text.parse::<u16>().map_err(|_| refuse("no such port"))
        } else {
            Err(refuse("not a number"))
        }
    };

    match (port(low)?, port(high)?) {
        (low, high) if low <= high => Ok((low, high)),
        _ => Err(refuse("the range is reversed")),
    }
}

/// Seconds, or a number with the unit s, m, h, d or M, which is 30 days (`report_interval` of audit
/// 4.x).
pub(super) fn duration_s(context: &Context<'_>, max_s: u64) -> Result<u64, ConfigError> {
    let expected = format!("seconds, or a number followed by s, m, h, d or M, at most {max_s} s");
    let (digits, unit_s) = match context.value.as_bytes() {
        [.., b's'] => (&context.value[..context.value.len() - 1], 1),
        [.., b'm'] => (&context.value[..context.value.len() - 1], 60),
        [.., b'h'] => (&context.value[..context.value.len() - 1], 3600),
        [.., b'd'] => (&context.value[..context.value.len() - 1], 86_400),
        [.., b'M'] => (&context.value[..context.value.len() - 1], 30 * 86_400),
        _ => (context.value, 1),
    };

    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(context.refuse("not a duration", expected));
    }

    digits
        .parse::<u64>()
        .ok()
        .and_then(|count| count.checked_mul(unit_s))
        .filter(|&seconds| seconds <= max_s)
        .ok_or_else(|| context.refuse("too long", expected))
}

/// `log_group`: a number or a name.
pub(super) fn group(context: &Context<'_>) -> Result<Group, ConfigError> {
    let name = context.value.to_owned();
    let expected = "the name or number of a group that exists";
    if context.value.as_bytes()[0].is_ascii_digit() {
        return match context.value.parse() {
            // chown(2) leaves the group unchanged for (gid_t)-1.
            Ok(gid) if gid != u32::MAX => Ok(Group { gid, name }),
            _ => Err(context.refuse("not a group number", expected)),
        };
    }

    match group::lookup(context.value) {
        Ok(Some(gid)) => Ok(Group { gid, name }),
        Ok(None) => Err(context.refuse("no such group", expected)),
        Err(error) => {
            Err(context.refuse(format!("the group cannot be looked up: {error}"), expected))
        }
    }
}

#[derive(Clone, Copy)]
pub(super) enum ActionWord {
    Ignore,
    Syslog,
    Rotate,
    Email,
    Exec,
    Suspend,
    Single,
    Halt,
}

const SPACE_ACTIONS: &[(&str, ActionWord)] = &[
    ("ignore", ActionWord::Ignore),
    ("syslog", ActionWord::Syslog),
    ("rotate", ActionWord::Rotate),
    ("email", ActionWord::Email),
    ("exec", ActionWord::Exec),
    ("suspend", ActionWord::Suspend),
    ("single", ActionWord::Single),
    ("halt", ActionWord::Halt),
];

const FULL_ACTIONS: &[(&str, ActionWord)] = &[
    ("ignore", ActionWord::Ignore),
    ("syslog", ActionWord::Syslog),
    ("rotate", ActionWord::Rotate),
    ("exec", ActionWord::Exec),
    ("suspend", ActionWord::Suspend),
    ("single", ActionWord::Single),
    ("halt", ActionWord::Halt),
];

const ERROR_ACTIONS: &[(&str, ActionWord)] = &[
    ("ignore", ActionWord::Ignore),
    ("syslog", ActionWord::Syslog),
    ("exec", ActionWord::Exec),
    ("suspend", ActionWord::Suspend),
    ("single", ActionWord::Single),
    ("halt", ActionWord::Halt),
];

/// `space_left_action`, `admin_space_left_action`.
pub(super) fn space_action(context: &mut Context<'_>) -> Result<FailureAction, ConfigError> {
    failure_action(context, SPACE_ACTIONS)
}

/// `disk_full_action`: any action but EMAIL.
pub(super) fn full_action(context: &mut Context<'_>) -> Result<FailureAction, ConfigError> {
    failure_action(context, FULL_ACTIONS)
}

/// `disk_error_action`: any action but EMAIL and ROTATE.
pub(super) fn error_action(context: &mut Context<'_>) -> Result<FailureAction, ConfigError> {
    failure_action(context, ERROR_ACTIONS)
}

fn failure_action(
    context: &mut Context<'_>,
    table: &[(&'static str, ActionWord)],
) -> Result<FailureAction, ConfigError> {
    let chosen = word(context, table)?;
    if let (Some(extra), false) = (context.option, matches!(chosen, ActionWord::Exec)) {
        let text = format!(
            "{:?} after {} is ignored, as in auditd",
            extra, context.value
        );
        context.notice(text);
    }

    let key = context.key;
    Ok(match chosen {
        ActionWord::Ignore => FailureAction::Ignore,
        ActionWord::Syslog => FailureAction::Syslog,
        ActionWord::Rotate => FailureAction::Rotate,
        ActionWord::Suspend => FailureAction::Suspend,
        ActionWord::Exec => FailureAction::Exec(program(context)?),
        ActionWord::Email => {
            let sendmail = Path::new(crate::SENDMAIL);
            if context.check_files && access(sendmail, Access::EXEC_OK).is_err() {
                context.notice(format!(
                    "{key} = EMAIL: {} cannot be run: no mail is sent; the warning goes to syslog only",
                    sendmail.display()
                ));
            }
            FailureAction::Email
        }
        ActionWord::Single => FailureAction::Single,
        ActionWord::Halt => FailureAction::Halt,
    })
}

/// The program of an EXEC action: an absolute path to a regular file that only root can change and
/// that has one of the modes that auditd accepts (`check_exe_name()`).
pub(super) fn program(context: &Context<'_>) -> Result<PathBuf, ConfigError> {
    let expected =
        "EXEC and the absolute path of a program owned by root with mode 0750, 0755, 0550 \
                    or 0555";
    let Some(option) = context.option else {
        return Err(context.refuse("the program is missing", expected));
    };

    let path = PathBuf::from(option);
    if !path.is_absolute() {
        return Err(context.refuse(format!("{option} is not absolute"), expected));
    }
    if !context.check_files {
        return Ok(path);
    }

    let program =
        Program::find(&path).map_err(|error| context.refuse(error.to_string(), expected))?;
    match program.mode() & 0o777 {
        0o750 | 0o755 | 0o550 | 0o555 => Ok(path),
        mode => Err(context.refuse(format!("{option} has mode {mode:04o}"), expected)),
    }
}
