//! Objects of rules that a call may have removed by another of their hard links.
//!
//! Where a call is seen when it is over, what it has removed at a name, or replaced by a rename, is gone. The kernel's audit
//! compares the object. Each change of an object's links is a change of the object, so that one which has not changed
//! for a while was not removed.

use crate::system::System;
use plan::{Identities, Name, ObjectId, Proven};
use record::wire::{self, Event};
use rules::Rule;
use std::ffi::CString;

/// Time between a change of an object and the end of the call that has made it: a task may wait for a processor.
const LATE_NS: u64 = 10_000_000_000;

/// The objects of `path=` conditions of `rules` that `event` may have removed by a name that no rule has.
pub(crate) fn removed<'r>(
    event: &Event<'_>,
    rules: impl Iterator<Item = &'r Rule>,
    identities: &Identities,
    system: &dyn System,
) -> Vec<Name> {
    let devices: Vec<Option<u32>> = [0, 1]
        .into_iter()
        .filter_map(|index| device(event, index))
        .collect();
    if devices.is_empty() {
        return Vec::new();
    }

    let paths = rules.flat_map(|rule| &rule.conditions);
    let mut names: Vec<Name> = Vec::new();
    for path in paths.filter_map(plan::path_of) {
        let Some(object) = identities.of(path).and_then(|known| known.object) else {
            continue;
        };
        let is_there = devices
            .iter()
            .any(|dev| dev.is_none_or(|d| d == object.dev));
        if is_there && may_have_changed(path, object, event, system) {
            names.push(possibly(object));
        }
    }

    names
}

/// The device of the directory in which path argument `index` has removed such a name; `None` inside if it is not known.
fn device(event: &Event<'_>, index: u8) -> Option<Option<u32>> {
    let found = event.found(index)?;
    let is_known_before = event
        .before(index)
        .is_some_and(|before| before.known & wire::TARSIER_FOUND_ENTRY != 0);
    if found.known & wire::TARSIER_FOUND_OTHER_LINKS == 0 || is_known_before {
        return None;
    }

    let has_parent = found.known & wire::TARSIER_FOUND_PARENT != 0;
    Some(has_parent.then_some(found.parent.dev))
}

/// Whether the object at a rule's path may have changed since a little before the end of the call.
fn may_have_changed(path: &[u8], object: ObjectId, event: &Event<'_>, system: &dyn System) -> bool {
    let Ok(path) = CString::new(path) else {
        return false;
    };
    let now = system.inode(&path, false);
    let links = system.hard_links(&path);
    let is_it = now.is_some_and(|now| (now.dev, now.ino) == (object.dev, object.ino));
    let Some(links) = links.filter(|_| is_it) else {
        return true;
    };

    let age_ns = system
        .monotonic_ns()
        .saturating_sub(event.header().frame.time_ns);
    let ended_ns = system.realtime_ns().saturating_sub(age_ns);
    links.changed_ns.saturating_add(LATE_NS) >= ended_ns
}

/// A name of an object that the call may have reached.
fn possibly(object: ObjectId) -> Name {
    let inode = plan::Inode {
        id: object,
        mode: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
    };
    Name {
        inode: Some(inode),
        existed: true,
        is_possible: true,
        object: Proven::AtEnd,
        place: Proven::AtEnd,
        ..Name::default()
    }
}
