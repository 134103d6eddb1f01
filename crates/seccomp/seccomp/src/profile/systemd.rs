//! systemd units: `SystemCallFilter=` and the other directives that become seccomp filters
//! (systemd.exec(5); the filters: systemd, src/shared/seccomp-util.c).
//!
//! systemd installs one filter per directive and ABI; here each directive is a layer of one policy.
//! Some arguments are compared by libseccomp on 64 bits although the kernel uses only 32 of them.
//! Here only those 32 are compared, so that a forbidden value cannot hide behind different upper
//! bits.

mod directives;
mod unit;

use super::sets::SETS;
use super::{Context, ProfileError};
use crate::policy::Policy;

/// Parses a unit followed by its drop-ins, or directives without sections. What systemd ignores with
/// a warning is ignored with a note.
///
/// # Errors
/// The text is no unit, or restricts no calls.
pub fn parse(text: &str, context: &Context) -> Result<Policy, ProfileError> {
    directives::policy(unit::read(text)?, context)
}

/// Whether a text has one of the supported directives, or is a unit without any.
pub(super) fn looks_like(text: &str) -> bool {
    text.lines().any(|line| {
        if unit::is_section(line) {
            return true;
        }
        let name = line.split_once('=').map(|parts| parts.0.trim());
        name.is_some_and(unit::is_directive)
    })
}

/// The system calls of a set such as `@system-service`, with nested sets expanded.
pub fn set(name: &str) -> Option<Vec<&'static str>> {
    let members = SETS[SETS.binary_search_by_key(&name, |row| row.0).ok()?].1;
    let mut calls = Vec::new();
    for member in members {
        if member.starts_with('@') {
            calls.extend(set(member).unwrap_or_default())
        } else {
            calls.push(*member)
        }
    }
    calls.sort_unstable();
    calls.dedup();
    Some(calls)
}

/// The calls that systemd knows: not those of the sets in `@known`, which are obsolete (systemd,
/// `seccomp_load_syscall_filter_set_raw`).
pub(super) fn known() -> impl Iterator<Item = &'static str> {
    let known = SETS.iter().filter(|row| row.0 == "@known");
    let members = known.flat_map(|row| row.1.iter().copied());
    members.filter(|name| !name.starts_with('@'))
}

/// The names of all sets.
pub fn set_names() -> impl Iterator<Item = &'static str> {
    SETS.iter().map(|row| row.0)
}

pub(super) fn unknown_set(place: &str, name: &str) -> ProfileError {
    let names: Vec<&str> = set_names().collect();
    ProfileError::new(
        place,
        name,
        "a set of systemd",
        format!("take one of {}", names.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_every_set_is_a_call_or_a_set() {
        for name in set_names() {
            for call in set(name).unwrap_or_default() {
                assert!(!call.starts_with('@'), "{name}: {call}");
            }
        }
        assert!(set("@system-service").is_some_and(|calls| calls.contains(&"openat")));
        assert_eq!(set("@nonsense"), None);
    }
}
