//! Replaces and deletes our rules in the kernel. While one set replaces another, no event is decided
//! by parts of both.
//!
//! The kernel adds rules one by one, at the end of a list or at its beginning; the first match decides
//! (`audit_filter()` in `kernel/auditsc.c`). The new set is first appended, in order. Meanwhile the
//! old set still decides every event that it matches; any other event is decided by its first match
//! in the new set, once that rule has been added. Then the old set is deleted, from its last rule to
//! its first. The first match of an event decides until it is deleted itself; what is left of the old
//! set then stands before it and does not match the event.
//!
//! A rule that is in both sets cannot be added a second time (EEXIST). In that case the new set is
//! first added in *disguise*: each rule with an additional condition that always holds. It is added
//! as it is once the old set has been deleted; see docs/decisions/0008-kernel-engine.md.

use std::collections::HashSet;

use rustix::io::Errno;

use super::client::AuditSocket;
use super::error::{NetlinkError, TakeOverError};
use super::message::RULE_BYTES_MIN;

/// A rule added to or deleted from the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whether the rule was added; otherwise it was deleted.
    pub is_added: bool,
    /// `struct audit_rule_data` with its strings.
    pub rule: Vec<u8>,
}

/// The changes that turn one rule set into another: of all lists, in order.
#[derive(Debug, Default)]
pub(super) struct Replacement {
    changes: Vec<Change>,
}

/// Offsets of members of `struct audit_rule_data`, in 32-bit words.
const FIELD_COUNT: usize = 2;
const FIELDS: usize = 67;
const VALUES: usize = FIELDS + FIELDS_MAX;
const OPS: usize = VALUES + FIELDS_MAX;
const FIELDS_MAX: usize = 64;
/// `AUDIT_PID` and `AUDIT_GREATER_THAN_OR_EQUAL`: `pid>=0` always holds, since pids are compared as
/// unsigned numbers.
const PID: u32 = 0;
const AT_LEAST: u32 = 0x6000_0000;
/// `AUDIT_FILTER_FS`. Its rules cannot have a `pid` condition, only `fstype`.
const FILTER_FS: u32 = 6;

/// Whether `listed`, as the kernel lists its rules, are `rules`: the same ones in the same order, list by list.
pub(super) fn are_same(listed: &[Vec<u8>], rules: &[Vec<u8>]) -> bool {
    let by_list = |rules: &[Vec<u8>]| {
        let mut sorted = rules.to_vec();
        sorted.sort_by_key(|rule| word(rule, 0));
        sorted
    };
    by_list(listed) == by_list(rules)
}

impl Replacement {
    /// The changes from the rules in `old` to those in `new`. Neither may contain duplicates.
    pub(super) fn between(old: &[Vec<u8>], new: &[Vec<u8>]) -> Replacement {
        let mut lists: Vec<u32> = old.iter().chain(new).map(|rule| word(rule, 0)).collect();
        lists.sort_unstable();
        lists.dedup();
        let mut changes = Vec::new();
        for list in lists {
            let of_list = |rules: &'_ [Vec<u8>]| -> Vec<Vec<u8>> {
                let rules = rules.iter().filter(|rule| word(rule, 0) == list);
                rules.cloned().collect()
            };
            replace_list(list, &of_list(old), &of_list(new), &mut changes);
        }
        Replacement { changes }
    }

    /// Every rule that may be loaded before, during or after the replacement. After a kill, all of
    /// them have to be deleted.
    pub(super) fn ever_loaded<'a>(&'a self, old: &'a [Vec<u8>]) -> impl Iterator<Item = &'a [u8]> {
        let added = self.changes.iter().filter(|change| change.is_added);
        let added = added.map(|change| change.rule.as_slice());
        old.iter().map(Vec::as_slice).chain(added)
    }

    /// Makes the changes and returns them. If the kernel refuses a rule, undoes those already made.
    pub(super) fn carry_out(self, socket: &mut AuditSocket) -> Result<Vec<Change>, TakeOverError> {
        for (done, change) in self.changes.iter().enumerate() {
            let result = if change.is_added {
                socket.add_rule(&change.rule)
            } else {
                socket.delete_rule_if_there(&change.rule)
            };
            if let Err(error) = result {
                undo(socket, &self.changes[..done])?;
                return Err(TakeOverError::Rule {
                    rule: change.rule.clone(),
                    error,
                });
            }
        }

        Ok(self.changes)
    }
}

/// Deletes what was added and adds what was deleted, in reverse order. Deleted rules come back in
/// their old order: they were deleted from the last to the first, and are appended to their list.
fn undo(socket: &mut AuditSocket, done: &[Change]) -> Result<(), NetlinkError> {
    for change in done.iter().rev() {
        if change.is_added {
            socket.delete_rule_if_there(&change.rule)?
        } else {
            match socket.add_rule(&change.rule) {
                Err(error) if error.errno() == Some(Errno::EXIST) => {}
                other => other?,
            }
        }
    }
    Ok(())
}

fn replace_list(list: u32, old: &[Vec<u8>], new: &[Vec<u8>], changes: &mut Vec<Change>) {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new);
    let same = same.count();
    let (old, new) = (&old[same..], &new[same..]);
    let add = |rule: Vec<u8>| Change {
        is_added: true,
        rule,
    };
    let delete = |rule: Vec<u8>| Change {
        is_added: false,
        rule,
    };
    let are_gone: HashSet<&[u8]> = old.iter().map(Vec::as_slice).collect();
    if !new.iter().any(|rule| are_gone.contains(rule.as_slice())) {
        changes.extend(new.iter().cloned().map(add));
        changes.extend(old.iter().rev().cloned().map(delete));
        return;
    }

    // Without a disguise, the rules that both sets have are missing for a moment.
    let disguised: Option<Vec<Vec<u8>>> = match list {
        FILTER_FS => None,
        _ => new.iter().map(|rule| disguise(rule)).collect(),
    };
    let disguised = disguised.unwrap_or_default();
    changes.extend(disguised.iter().cloned().map(add));
    changes.extend(old.iter().rev().cloned().map(delete));
    changes.extend(new.iter().cloned().map(add));

    changes.extend(disguised.into_iter().rev().map(delete));
}

/// The rule with the additional condition `pid>=0`; `None` if the rule has no room for another
/// condition.
fn disguise(rule: &[u8]) -> Option<Vec<u8>> {
    let count = word(rule, FIELD_COUNT) as usize;
    if rule.len() < RULE_BYTES_MIN || count >= FIELDS_MAX {
        return None;
    }

    let mut rule = rule.to_vec();
    let mut set = |place: usize, value: u32| {
        rule[place * 4..][..4].copy_from_slice(&value.to_ne_bytes());
    };
    set(FIELD_COUNT, count as u32 + 1);
    set(FIELDS + count, PID);
    set(VALUES + count, 0);
    set(OPS + count, AT_LEAST);
    Some(rule)
}

/// A member of `struct audit_rule_data`; 0 if the rule is too short.
pub(super) fn word(rule: &[u8], place: usize) -> u32 {
    let bytes = rule.get(place * 4..place * 4 + 4);
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u32::from_ne_bytes)
}

/// Deletes rules, from the last to the first. Rules that are not loaded are not an error.
///
/// # Errors
/// [`TakeOverError::LeftRules`] if some are still loaded afterwards.
pub(super) fn unload(socket: &mut AuditSocket, loaded: &[Vec<u8>]) -> Result<(), TakeOverError> {
    if loaded.is_empty() {
        return Ok(());
    }

    for rule in loaded.iter().rev() {
        socket.delete_rule_if_there(rule)?;
    }

    let left = socket.list_rules()?;
    let count = left.iter().filter(|rule| loaded.contains(rule)).count();
    match count {
        0 => Ok(()),
        _ => Err(TakeOverError::LeftRules { count }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EVENTS: u32 = 8;
    const MASK: usize = 3;

    /// A rule that matches the events in the bit mask `events`.
    fn rule(list: u32, is_always: bool, events: u32) -> Vec<u8> {
        let mut rule = vec![0; RULE_BYTES_MIN];
        let words = [(0, list), (1, u32::from(is_always) * 2), (MASK, events)];
        for (place, value) in words {
            rule[place * 4..][..4].copy_from_slice(&value.to_ne_bytes());
        }
        rule
    }

    /// Whether the first match records the event.
    fn is_recorded(rules: &[Vec<u8>], event: u32) -> bool {
        let matches = |rule: &&Vec<u8>| word(rule, MASK) & 1 << event != 0;
        rules.iter().find(matches).is_some_and(|r| word(r, 1) != 0)
    }

    fn list() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let one = (any::<bool>(), 0..1u32 << EVENTS).prop_map(|(a, events)| rule(4, a, events));
        proptest::collection::vec(one, 0..7).prop_map(|rules| {
            let mut seen = HashSet::new();
            let is_new = |rule: &Vec<u8>| seen.insert(rule.clone());
            rules.into_iter().filter(is_new).collect()
        })
    }

    /// Makes a change as the kernel would; false if the kernel would return an error.
    fn apply(kernel: &mut Vec<Vec<u8>>, change: &Change) -> bool {
        let place = kernel.iter().position(|rule| *rule == change.rule);
        match (change.is_added, place) {
            (true, None) => kernel.push(change.rule.clone()),
            (false, Some(place)) => drop(kernel.remove(place)),
            _ => return false,
        }
        true
    }

    proptest! {
        #[test]
        fn every_event_is_decided_by_one_whole_set_and_the_order_is_the_new_one(
            old in list(),
            mut new in list(),
            shared in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let shared = if old.is_empty() { &[][..] } else { &shared[..] };
            for index in shared {
                let rule = index.get(&old).clone();
                if !new.contains(&rule) {
                    new.insert(index.index(new.len() + 1), rule);
                }
            }
            let mut kernel = old.clone();
            for change in Replacement::between(&old, &new).changes {
                prop_assert!(apply(&mut kernel, &change));
                for event in 0..EVENTS {
                    let verdict = is_recorded(&kernel, event);
                    let allowed = [is_recorded(&old, event), is_recorded(&new, event)];
                    prop_assert!(allowed.contains(&verdict), "event {event}");
                }
            }
            prop_assert_eq!(kernel, new);
        }
    }

    #[test]
    fn a_common_beginning_is_left_alone_and_other_lists_too() {
        let old = [rule(4, true, 1), rule(5, false, 2), rule(4, true, 4)];
        let new = [rule(4, true, 1), rule(4, true, 8), rule(5, false, 2)];
        let changes = Replacement::between(&old, &new).changes;
        let change = |is_added, rule| Change { is_added, rule };
        let expected = [
            change(true, rule(4, true, 8)),
            change(false, rule(4, true, 4)),
        ];
        assert_eq!(changes, expected);
    }

    #[test]
    fn what_file_system_rules_become_is_right_in_the_end() {
        let old = [rule(FILTER_FS, false, 1), rule(FILTER_FS, false, 2)];
        let new = [old[1].clone(), old[0].clone()];
        let mut kernel = old.to_vec();
        for change in Replacement::between(&old, &new).changes {
            assert!(apply(&mut kernel, &change), "{change:?}");
        }
        assert_eq!(kernel, new);
    }
}
