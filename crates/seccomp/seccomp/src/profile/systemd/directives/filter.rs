//! `SystemCallFilter=` and `SystemCallLog=`.

use super::super::{known, set, unit::Setting};
use super::{add, Unit};
use crate::policy::{Abi, Layer, RuleId};
use crate::profile::{words, ProfileError};
use crate::{Action, Verdict};
use std::collections::BTreeMap;

const KILL: Verdict = Verdict::new(Action::KillProcess, 0);

/// Calls by name, each with the verdict of its own `:ERRNO`, if any, and the index of the
/// assignment.
type Listed = BTreeMap<String, (Option<Verdict>, usize)>;

/// `SystemCallFilter=`: the calls that are allowed, or with `~` denied.
///
/// # Errors
/// systemd does not start the unit.
pub(super) fn filter(unit: &mut Unit<'_>) -> Result<(), ProfileError> {
    let mut refusal = KILL;
    for setting in unit.all("SystemCallErrorNumber") {
        match error(&setting.value) {
            // 0 would be success.
            Some(verdict) if verdict.data() > 0 || verdict == KILL => refusal = verdict,
            _ => unit.note(setting.ignored(&setting.value, ERRNO)),
        }
    }

    let settings = unit.all("SystemCallFilter");
    let Some(first) = settings.first() else {
        return Ok(());
    };

    let is_allow_list = !first.list().0;
    let mut calls = listed(unit, "SystemCallFilter", &settings, is_allow_list);
    let is_empty = is_empty(&calls);
    let has_write_errno = calls.get("write").is_some_and(|call| call.0.is_some());
    allow_write(unit, first, &mut calls, is_allow_list);
    let (default, action) = if is_allow_list {
        // Calls that systemd does not know are treated as too new.
        (super::NO_CALL, Verdict::ALLOW)
    } else {
        (Verdict::ALLOW, refusal)
    };
    let mut layer = unit.permissive(first);
    layer.default = default;
    add_listed(unit, &mut layer, &settings, &calls, action);

    if is_allow_list {
        let id = unit.source(format!("{}: not listed", first.place()));
        // A call that the native ABI does not have is refused as one that systemd does not know.
        let native = unit.native;
        let unlisted = known().filter(|call| !calls.contains_key(*call));
        for call in unlisted.filter(|call| native.number(call).is_some()) {
            for &abi in &unit.family {
                add(&mut layer, abi, call, Vec::new(), refusal, id);
            }
        }
    }

    let reason = match () {
        () if is_allow_list && is_empty => Some("a list of allowed calls that is empty"),
        () if is_allow_list && has_write_errno => Some("write with an errno"),
        () => {
            let own: Vec<Verdict> = calls.values().filter_map(|call| call.0).collect();
            let is_used = is_allow_list || own.len() < calls.len();
            refusal_of_libseccomp(
                &own,
                layer.default,
                if is_used { refusal } else { layer.default },
            )
        }
    };
    if let Some(reason) = reason {
        return Err(ProfileError::new(
            first.place(),
            reason,
            "a list of which systemd makes a filter: systemd does not start the unit",
            "correct the list",
        ));
    }

    // The list may have socketcall or ipc, and calls that they stand for.
    layer.narrower_first();
    unit.policy.layers.push(layer);
    Ok(())
}

/// Whether systemd has no call of the list: libseccomp does not know audit's names, which sets have.
fn is_empty(calls: &Listed) -> bool {
    let is_here =
        |call: &str, abi: Abi| abi.number(call).and_then(|nr| abi.name_of(nr)) == Some(call);
    let has = |call: &String| {
        Abi::EVERY.into_iter().any(|abi| is_here(call, abi)) || words::is_foreign_call(call)
    };
    !calls.keys().any(has)
}

/// Allows write whatever the list says: systemd itself makes that call after it has installed the
/// filter.
fn allow_write(unit: &mut Unit<'_>, first: &Setting, calls: &mut Listed, is_allow_list: bool) {
    let is_changed = if is_allow_list {
        calls.insert("write".to_owned(), (None, 0)) != Some((None, 0))
    } else {
        calls.remove("write").is_some()
    };
    if is_changed {
        unit.note(format!(
            "{}: write is allowed, as by systemd, which needs it",
            first.place()
        ));
    }
}

/// Why libseccomp refuses to make a filter with these verdicts on single calls and on the others.
fn refusal_of_libseccomp(
    own: &[Verdict],
    default: Verdict,
    refusal: Verdict,
) -> Option<&'static str> {
    let mut all = own.iter().chain([&refusal]);
    if all.any(|it| it.action() == Action::Errno && it.data() > words::LIBSECCOMP_ERRNO_MAX) {
        return Some("an errno above 4094");
    }
    let has_default = own.contains(&default);
    has_default.then_some("a call with the errno of calls that are not listed (ENOSYS)")
}

/// `SystemCallLog=`: listed calls are allowed and logged; with `~`, all others are.
pub(super) fn log(unit: &mut Unit<'_>) {
    let settings = unit.all("SystemCallLog");
    let Some(first) = settings.first() else {
        return;
    };

    let is_list = !first.list().0;
    let log = Verdict::new(Action::Log, 0);
    let (default, action) = if is_list {
        (Verdict::ALLOW, log)
    } else {
        (log, Verdict::ALLOW)
    };
    let calls = listed(unit, "SystemCallLog", &settings, is_list);
    if !is_list && is_empty(&calls) {
        return;
    }

    let mut layer = unit.permissive(first);
    layer.default = default;
    add_listed(unit, &mut layer, &settings, &calls, action);

    unit.policy.layers.push(layer);
}

/// The calls that are listed by all assignments of a directive. The first one decides whether
/// the list is one of allowed or denied calls; an assignment of the other kind removes calls,
/// or gives them an errno of their own.
fn listed(
    unit: &mut Unit<'_>,
    directive: &str,
    settings: &[&Setting],
    is_allow_list: bool,
) -> Listed {
    let mut listed = Listed::new();
    let is_filter = directive == "SystemCallFilter";
    if is_filter && is_allow_list {
        let implied = set("@default").unwrap_or_default();
        listed.extend(implied.into_iter().map(|call| (call.to_owned(), (None, 0))));
    }

    for (index, setting) in settings.iter().enumerate() {
        let (inverted, items) = setting.list();
        let items: Vec<String> = items.map(str::to_owned).collect();
        for item in &items {
            let (name, own) = match item.split_once(':') {
                Some((name, errno)) if is_filter => match error(errno) {
                    Some(own) if inverted => (name, Some(own)),
                    Some(_) => {
                        let expected = "a call without an errno, or ~ before the list";
                        unit.note(setting.ignored(item, expected));
                        continue;
                    }
                    None => {
                        unit.note(setting.ignored(item, ERRNO));
                        continue;
                    }
                },
                _ => (item.as_str(), None),
            };
            for call in unit.expand(setting, name) {
                if inverted != is_allow_list || own.is_some() {
                    listed.insert(call, (own, index));
                } else {
                    listed.remove(&call);
                }
            }
        }
    }

    listed
}

fn add_listed(
    unit: &mut Unit<'_>,
    layer: &mut Layer,
    settings: &[&Setting],
    listed: &Listed,
    action: Verdict,
) {
    let ids: Vec<RuleId> = settings
        .iter()
        .map(|setting| unit.source(setting.place()))
        .collect();
    for (call, &(own, index)) in listed {
        for abi in unit.family.clone() {
            add(
                layer,
                abi,
                call,
                Vec::new(),
                own.unwrap_or(action),
                ids[index],
            );
        }
    }
}

const ERRNO: &str = "kill, the name of an errno such as EPERM, or a number from 1 to 4095";

/// Parses `kill` or an errno: a name, also in small letters, or a number, also with the prefix of
/// another base.
fn error(text: &str) -> Option<Verdict> {
    if text == "kill" {
        return Some(KILL);
    }
    let based = [("0x", 16), ("0X", 16), ("0b", 2), ("0o", 8), ("0", 8)].into_iter();
    let mut based = based.filter_map(|(prefix, base)| Some((text.strip_prefix(prefix)?, base)));
    let number = match based.next() {
        Some((digits, base)) if !digits.is_empty() => i64::from_str_radix(digits, base).ok()?,
        _ => {
            return Some(Verdict::new(
                Action::Errno,
                words::errno(&text.to_ascii_uppercase())?,
            ))
        }
    };
    let number = u16::try_from(number)
        .ok()
        .filter(|&number| number <= 4095)?;
    Some(Verdict::new(Action::Errno, number))
}
