//! Readers of values.

use std::path::PathBuf;
use std::time::Duration;

use super::{TroubleAction, Words};

/// Descriptions of the value that was found, and of the expected one.
pub(super) type Wrong = (String, String);

pub(super) fn wrong(value: &str, expected: &str) -> Wrong {
    (format!("{value:?}"), expected.into())
}

pub(super) fn word<T: Copy>(value: &str, words: &[(&str, T)]) -> Result<T, Wrong> {
    let found = words
        .iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(value));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        wrong(value, &format!("one of {}", all.join(", ")))
    })
}

pub(super) fn yes_no(value: &str) -> Result<bool, Wrong> {
    word(value, &[("yes", true), ("no", false)])
}

pub(super) fn path(value: &str) -> Result<PathBuf, Wrong> {
    if value.starts_with('/') {
        Ok(PathBuf::from(value))
    } else {
        Err(wrong(value, "a path from the root, such as /FILE"))
    }
}

/// A number of bytes, with K, M, G or T for powers of 1024.
pub(super) fn bytes(value: &str, least: u64, most: u64) -> Result<u64, Wrong> {
    let expected = format!("{least} to {most} bytes, such as 512K, 64M or 20G");
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &value[digits.len()..].to_ascii_uppercase()[..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(wrong(value, &expected)),
    };

    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| wrong(value, &expected))
}

/// A time with `ms`, `s`, `m` or `h`; without, seconds.
pub(super) fn time(value: &str, most: Duration) -> Result<Duration, Wrong> {
    let expected = format!(
        "a time up to {} s, such as 200ms, 10s or 5m",
        most.as_secs()
    );
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ms = match &value[digits.len()..] {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong(value, &expected)),
    };

    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(ms))
        .map(Duration::from_millis)
        .filter(|time| *time <= most)
        .ok_or_else(|| wrong(value, &expected))
}

pub(super) fn list(value: &str) -> Vec<String> {
    value
        .split([',', ' '])
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

pub(super) fn words(value: &str) -> Result<Words, Wrong> {
    let mut words = Words::default();
    for word in list(value) {
        match word.strip_prefix('!') {
            Some("") => return Err(wrong(value, "words, each perhaps after a `!`")),
            Some(rest) => words.exclude.push(rest.to_owned()),
            None => words.include.push(word),
        }
    }
    Ok(words)
}

pub(super) fn action(value: &str) -> Result<TroubleAction, Wrong> {
    let expected = "ignore, syslog, exec /PROGRAM, suspend, single or halt";
    let (name, rest) = value.split_once(' ').unwrap_or((value, ""));
    let action = match (&name.to_ascii_lowercase()[..], rest.trim()) {
        ("ignore", "") => TroubleAction::Ignore,
        ("syslog", "") => TroubleAction::Syslog,
        ("exec", program) => TroubleAction::Exec(path(program)?),
        ("suspend", "") => TroubleAction::Suspend,
        ("single", "") => TroubleAction::Single,
        ("halt", "") => TroubleAction::Halt,
        _ => return Err(wrong(value, expected)),
    };

    Ok(action)
}
