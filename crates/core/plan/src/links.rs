//! Hard links of the objects that rules name.
//!
//! Where calls are seen when they are over, the object behind a name that a call has removed, or replaced by a rename, is
//! gone: only its name tells. If an object of a `path=` rule may have other names, any removal may be one of it. The
//! daemon sees which objects have several; what makes links is watched, so that none is new to it.

use crate::call_plan::CallPlan;
use crate::entries::Entries;
use crate::facts::{Entry, Identities};
use crate::tables;
use crate::uring;
use abi::{shape, Field, NameUse, Shape};
use rules::{Action, Condition, List, Op, Rule, Value};
use std::collections::BTreeMap;

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
    let watched = [Entry::Native, Entry::Compat, Entry::Uring];
    let watched = watched.into_iter().filter(is_watched);
    let made = watched.flat_map(|entry| {
        let all = match entry {
            Entry::Uring => uring::OPERATIONS,
            _ => tables::CALLS,
        };
        let numbers = (0..all as u32).filter(move |&nr| {
            let uses = shape_of(entry, nr, entries)
                .paths
                .map(|path| path.map(|p| p.use_));
            uses.contains(&Some(NameUse::LinkSource))
        });
        numbers.map(move |nr| (entry, nr))
    });
    made.collect()
}

/// The objects that a call or an operation touches.
pub(crate) fn shape_of(entry: Entry, nr: u32, entries: Entries) -> Shape {
    match (entry, entries.arch(entry)) {
        (Entry::Uring, _) => uring::shape_of_op(nr),
        (_, Some(arch)) => shape(arch, nr),
        (_, None) => Shape::PLAIN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, IoUring, ObjectId, PathIdentity, Plan};

    /// The calls and operations that are watched for links that they make, and whether objects have several.
    fn watched(rule: &str, has_links: bool, trampoline: bool) -> (Vec<(Entry, u32)>, bool) {
        let capabilities = Capabilities {
            io_uring: IoUring::Twins,
            trampoline,
            ..Capabilities::assumed(abi::Arch::X86_64)
        };
        let conf = PathIdentity {
            object: Some(ObjectId { dev: 1, ino: 9 }),
            has_links,
            ..PathIdentity::default()
        };
        let mut identities = Identities::default();
        identities.insert(b"/etc/conf".to_vec(), conf);
        let rules = [crate::test_rule::rule(rule)];
        let plan = Plan::new(&rules, &capabilities, &identities, 1).expect("it is one rule");
        let makes = |key: &&(Entry, u32)| {
            let row = plan.call_row(key.0, key.1);
            row.spec & tables::SPEC_MAKES_LINKS != 0
        };
        let made = plan.calls.keys().filter(makes).copied().collect();
        (made, plan.rows[tables::LINKS].a != 0)
    }

    #[test]
    fn what_makes_links_is_watched_while_a_rule_on_a_path_may_miss_one() {
        const RULE: &str = "-a always,exit -F arch=b64 -S unlinkat -F path=/etc/conf";
        const LINK: (Entry, u32) = (Entry::Native, 86);
        const LINKAT: (Entry, u32) = (Entry::Native, 265);
        const OPERATION: (Entry, u32) = (Entry::Uring, 39);
        let all = vec![LINK, LINKAT, OPERATION];
        assert_eq!(watched(RULE, false, false), (all.clone(), false));
        assert_eq!(watched(RULE, true, false), (all, true));
        assert_eq!(
            watched(RULE, true, true),
            (Vec::new(), false),
            "hooks see objects"
        );
        let opens = RULE.replace("unlinkat", "openat");
        assert_eq!(watched(&opens, true, false).0, []);
        let below = RULE.replace("path=/etc/conf", "dir=/etc");
        assert_eq!(watched(&below, true, false).0, []);
    }
}
