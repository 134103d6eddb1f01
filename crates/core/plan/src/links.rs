//! Hard links of the objects that rules name.
//!
//! Where calls are seen when they are over, the object behind a name that a call has removed, or replaced by a rename, is
//! gone: only its name tells. If an object of a `path=` rule may have other names, any removal may be one of it. The
//! daemon sees which objects have several; what makes links is watched, so that none is new to it.

use crate::call_plan::CallPlan;
use crate::entries::Entries;
use crate::facts::{Entry, Identities};
use crate::shape::NameUse;
use abi::Field;
use rules::{Action, Condition, List, Op, Rule, Value};
use std::collections::BTreeMap;

/// The calls that make hard links.
const MAKERS: [&str; 2] = ["link", "linkat"];

/// The paths of `path=` conditions of rules that record.
fn paths(rules: &[Rule]) -> impl Iterator<Item = &[u8]> {
    let of_exit = |rule: &&Rule| rule.list == List::Exit && rule.action == Action::Always;
    let conditions = rules.iter().filter(of_exit).flat_map(|r| &r.conditions);
    conditions.filter_map(path)
}

/// The path of a `path=` condition.
pub fn path(condition: &Condition) -> Option<&[u8]> {
    match (condition.field, condition.op, &condition.value) {
        (Field::Watch, Op::Eq, Value::Text(path)) => Some(path),
        _ => None,
    }
}

/// Whether an object of a `path=` condition may have several hard links.
pub(crate) fn are_several(rules: &[Rule], identities: &Identities) -> bool {
    paths(rules).any(|path| identities.of(path).is_some_and(|known| known.has_links))
}

/// The calls and operations to watch for hard links that they make: none if no rule is on a path, or no watched call
/// removes names.
pub(crate) fn makers(
    rules: &[Rule],
    calls: &BTreeMap<(Entry, u32), CallPlan>,
    entries: Entries,
) -> Vec<(Entry, u32)> {
    let removes = |call: &CallPlan| {
        let mut uses = call.shape.paths.iter().flatten().map(|path| path.use_);
        uses.any(|used| matches!(used, NameUse::Delete | NameUse::Rename))
    };
    if paths(rules).next().is_none() || !calls.values().any(removes) {
        return Vec::new();
    }

    // To watch an entry of which no call is watched would cost all of its calls.
    let is_watched = |entry: &Entry| calls.keys().any(|key| key.0 == *entry);
    let numbers = |entry: Entry, name: &str| match entry {
        Entry::Uring => abi::uring_op_number(name),
        _ => abi::syscall_number(entries.arch(entry)?, name),
    };
    let watched = [Entry::Native, Entry::Compat, Entry::Uring];
    let watched = watched.into_iter().filter(is_watched);
    let made = watched.flat_map(|entry| {
        let made = MAKERS.iter().filter_map(move |name| numbers(entry, name));
        made.map(move |nr| (entry, nr))
    });
    made.collect()
}
