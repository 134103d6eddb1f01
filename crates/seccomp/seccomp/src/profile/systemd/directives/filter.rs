//! `SystemCallFilter=` and `SystemCallLog=`.

use super::super::{set, unit::Setting};
use super::{add, Unit};
use crate::policy::{Layer, RuleId};
use crate::profile::words;
use crate::{Action, Verdict};
use std::collections::BTreeMap;

const KILL: Verdict = Verdict::new(Action::KillProcess, 0);

/// Calls by name, each with the verdict of its own `:ERRNO`, if any, and the index of the
/// assignment.
type Listed = BTreeMap<String, (Option<Verdict>, usize)>;

/// `SystemCallFilter=`: the calls that are allowed, or with `~` denied.
pub(super) fn filter(unit: &mut Unit<'_>) {
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
        return;
    };

    let is_allow_list = !first.list().0;
    let calls = listed(unit, "SystemCallFilter", &settings, is_allow_list);
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
        let known = set("@known").unwrap_or_default();
        for call in known
            .into_iter()
            .filter(|call| native.number(call).is_some())
        {
            if !calls.contains_key(call) {
                for &abi in unit.family {
                    add(&mut layer, abi, call, Vec::new(), refusal, id);
                }
            }
        }
    }

    unit.policy.layers.push(layer);
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
        for &abi in unit.family {
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

/// Parses `kill` or an errno.
fn error(text: &str) -> Option<Verdict> {
    if text == "kill" {
        return Some(KILL);
    }
    Some(Verdict::new(Action::Errno, words::errno(text)?))
}
