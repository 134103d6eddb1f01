//! The second stage of matching: finds the rule that selects an event, once the names of the event are known.

use crate::cgroups::CgroupPath;
use crate::generation::Generation;
use crate::identify::object;
use crate::past::Past;
use crate::resolve::{
    aliases, entries, has_moved_its_way, paths_of_entry, used_later, Item, Resolver,
};
use abi::exit::ENOENT;
use abi::Field;
use plan::{
    Decision, Entry, Executable, Facts, Identities, Name, ObjectId, Proven, Shape, TaskPast,
    TaskWorkload,
};
use record::record::NameType;
use record::wire::{self, Event};
use rules::{List, Rule};
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of the newest rule sets, the current one included, that are kept in any case.
const KEPT: usize = 8;
/// Time for which others are kept after they were replaced: a task that is preempted in the middle of a call may send
/// its event late.
const KEPT_NS: u64 = 60_000_000_000;
/// Largest number of rule sets kept of which no event waits for a result.
const KEPT_MAX: usize = 64;

/// The rule sets whose events may still come, newest first.
#[derive(Default)]
pub(crate) struct Generations(VecDeque<Known>);

impl Generations {
    /// Adds a rule set at this time of the monotonic clock, and forgets those whose events cannot be expected any more:
    /// none waits for a result, so that it is not needed.
    pub(crate) fn add(
        &mut self,
        generation: Arc<Generation>,
        now_ns: u64,
        is_needed: impl Fn(u64) -> bool,
    ) {
        let mut known = Known::new(generation, self.0.front());
        known.since_ns = now_ns;
        self.0.push_front(known);
        // Each was replaced when the one before it in the list was added.
        let mut replaced_ns = now_ns;
        let mut place = 0;
        self.0.retain(|known| {
            let is_recent = place < KEPT_MAX && now_ns.saturating_sub(replaced_ns) < KEPT_NS;
            let is_kept = place < KEPT || is_recent || is_needed(known.generation.plan.generation);
            replaced_ns = known.since_ns;
            place += 1;
            is_kept
        });
    }

    /// The rule set with this number, if it is kept.
    pub(crate) fn of(&mut self, number: u64) -> Option<&mut Known> {
        let mut all = self.0.iter_mut();
        all.find(|known| known.generation.plan.generation == number)
    }

    /// A rule set without rules, for an event whose own is not kept: what selected it is not known, and no other set may
    /// decide it. `None` before the first rule set.
    pub(crate) fn in_place_of_unknown(&self) -> Option<Arc<Generation>> {
        let newest = &self.0.front()?.generation;
        Some(Arc::new(newest.without_rules()))
    }
}

/// A rule set, with the state of its paths.
pub(crate) struct Known {
    pub(crate) generation: Arc<Generation>,
    /// The objects of the rules' paths, kept up to date from events.
    pub(crate) identities: Identities,
    /// Whether the filesystem list has rules, which may leave out names.
    leaves_out: bool,
    /// When it was added, by the monotonic clock.
    since_ns: u64,
}

impl Known {
    /// A rule set that replaces `before`, from which it takes over the moves of directories.
    fn new(generation: Arc<Generation>, before: Option<&Known>) -> Known {
        let mut identities = generation.identities.clone();
        if let Some(before) = before {
            identities.keep_moves(&before.identities);
        }
        let is_about = |rule: &Rule| rule.list == List::Filesystem;
        Known {
            leaves_out: generation.plan.rules.iter().any(is_about),
            generation,
            identities,
            since_ns: 0,
        }
    }

    /// Finds the rule that selects `event`, whose names `resolver` has found. `cgroup` is the path of its task's cgroup,
    /// if rules ask about it and it is known, and whether that was cut; `past` that of its process, if rules ask. First
    /// leaves out the names on file systems that rules of the filesystem list exclude.
    pub(crate) fn decide(
        &mut self,
        event: &Event<'_>,
        resolver: &mut Resolver,
        shape: &Shape,
        cgroup: Option<CgroupPath>,
        past: Option<&Past<'_>>,
    ) -> Decision {
        if self.leaves_out {
            let rules = &self.generation.plan.rules;
            resolver.leave_out(|kind| plan::leaves_out(rules, kind));
        }

        follow(&mut self.identities, event, resolver, shape);
        if !event.has_flag(wire::TARSIER_UNDECIDED) {
            return Decision::Record(event.header().rule);
        }

        let is_cut = cgroup.as_ref().is_some_and(|path| path.is_cut);
        let place = cgroup.as_ref().map(CgroupPath::place);
        let workload = place.as_ref().map(|place| TaskWorkload::at(place, is_cut));
        let asked = Asked {
            event,
            shape,
            workload: TaskWorkload {
                past: past.map_or(TaskPast::UNKNOWN, Past::of_task),
                ..workload.unwrap_or(TaskWorkload::UNKNOWN)
            },
        };

        decide(&self.generation, &self.identities, resolver, &asked)
    }
}

/// Updates the objects of the rules' paths if the call created, deleted or renamed one of them. A rule is about the
/// object that has its path when the event is matched (audit_update_watch(), kernel/audit_watch.c); a rule on a
/// directory goes on applying to it under each new name.
fn follow(identities: &mut Identities, event: &Event<'_>, resolver: &mut Resolver, shape: &Shape) {
    let succeeded = event.exit().is_some_and(record::record::is_success);
    if identities.is_empty() || !succeeded {
        return;
    }

    let concerns = |item: &Item| {
        let is_change = matches!(item.nametype, NameType::Delete | NameType::Create);
        let name = item.path.rsplit(|&byte| byte == b'/').next();
        is_change && name.is_some_and(|name| identities.concern(name))
    };
    if !resolver.items().iter().any(concerns) {
        return;
    }

    let changes = changed_entries(identities, event, resolver, shape);
    let of_type = |wanted| changes.iter().filter(move |change| change.0 == wanted);
    for (_, path, _) in of_type(NameType::Delete) {
        identities.replaced(path, None);
    }

    for (_, path, object) in of_type(NameType::Create) {
        identities.replaced(path, *object);
        let same = |other: &&Change| object.is_some() && other.2 == *object;
        if let Some((_, from, _)) = of_type(NameType::Delete).find(same) {
            identities.moved(from, path);
        }
    }
}

/// What a call did to an entry, its path as rules have it, and the object.
type Change = (NameType, Vec<u8>, Option<ObjectId>);

/// The entries that the call made, removed or renamed, by their paths and by their directories. The path of a task in another
/// mount namespace does not count if its directory is known: it may lead to a file of its own.
fn changed_entries(
    identities: &Identities,
    event: &Event<'_>,
    resolver: &mut Resolver,
    shape: &Shape,
) -> Vec<Change> {
    let names = resolver.names(event, shape);
    let items = resolver.items();
    let by_path = items
        .iter()
        .zip(names)
        .filter(|(_, name)| name.directory.is_none());
    let change =
        |(item, name): (&Item, Name)| (item.nametype, name.path, name.inode.map(|inode| inode.id));
    let mut changes: Vec<Change> = by_path.map(change).collect();

    for item in items {
        let object = item.inode.map(object);
        let paths = paths_of_entry(items, item, identities);
        changes.extend(paths.into_iter().map(|path| (item.nametype, path, object)));
    }

    changes
}

/// An event that the first stage left undecided.
struct Asked<'a> {
    event: &'a Event<'a>,
    shape: &'a Shape,
    workload: TaskWorkload<'a>,
}

/// The rule that selects an event that the first stage left undecided.
fn decide(
    generation: &Generation,
    identities: &Identities,
    resolver: &mut Resolver,
    asked: &Asked<'_>,
) -> Decision {
    let &Asked {
        event,
        shape,
        workload,
    } = asked;
    let mut names = resolver.names(event, shape);

    // A call that fails before it finds an object has not reached its directory either, as the kernel sees it.
    let is_there = |name: &Name| name.inode.is_some() || name.existed;
    let has_reached = names.iter().any(is_there);
    let mut above: Vec<ObjectId> = if has_reached {
        let above = event.above();
        above.map(|(ino, dev)| ObjectId { dev, ino }).collect()
    } else {
        Vec::new()
    };
    let are_above_used = names.iter().all(|name| name.place == Proven::InCall);
    let on_directory = |rule: &Rule| {
        let mut fields = rule.conditions.iter().map(|condition| condition.field);
        fields.any(|field| field == Field::Dir)
    };
    if generation
        .remaining(event)
        .any(|(_, rule)| on_directory(rule))
    {
        above.extend(resolver.directories_above(&names));
    }
    names.extend(aliases(event, identities));
    names.extend(entries(resolver.items(), identities));

    // What is not known now may be what a rule names, unless the call found nothing.
    let has_found = has_reached || event.exit() != Some(ENOENT);
    if has_found && resolver.was_refused() {
        names.push(Name::unknown());
    }

    let facts = Facts {
        names: &names,
        above: &above,
        are_above_used,
        ..facts_of_task(event, workload)
    };

    let decide = |facts: &Facts<'_>| {
        let remaining = generation.remaining(event);
        generation
            .plan
            .decide_remaining(remaining, facts, identities)
    };

    let decision = decide(&facts);
    if decision != Decision::Drop || !(used_later(event, shape) || has_moved_its_way(event)) {
        return decision;
    }

    // What the names lead to is not what the call used, or not for sure.
    let names = [&names[..], &[Name::unknown()]].concat();
    decide(&Facts {
        names: &names,
        ..facts
    })
}

/// The facts of an event but its names.
fn facts_of_task<'a>(event: &Event<'_>, workload: TaskWorkload<'a>) -> Facts<'a> {
    let header = event.header();
    Facts {
        entry: if event.has_flag(wire::TARSIER_URING) {
            Entry::Uring
        } else if event.has_flag(wire::TARSIER_COMPAT) {
            Entry::Compat
        } else {
            Entry::Native
        },
        nr: event.call_number(),
        args: [
            header.args[0],
            header.args[1],
            header.args[2],
            header.args[3],
        ],
        result: event.exit(),
        pid: header.pid,
        ppid: header.ppid,
        auid: header.auid,
        ses: header.ses,
        uid: header.uid,
        euid: header.euid,
        suid: header.suid,
        fsuid: header.fsuid,
        gid: header.gid,
        egid: header.egid,
        sgid: header.sgid,
        fsgid: header.fsgid,
        groups: &[],
        personality: header.personality,
        exe: Executable::default(),
        open_flags: None,
        saddr_fam: None,
        names: &[],
        above: &[],
        are_above_used: false,
        workload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Capabilities, Plan};
    use std::collections::BTreeSet;

    fn generation(number: u64) -> Arc<Generation> {
        let plan = Plan::for_kernel(&[], &Capabilities::assumed(abi::Arch::X86_64), number);
        let urgent = BTreeSet::new();
        Arc::new(Generation::new(plan, Identities::default(), urgent))
    }

    fn found(generations: &mut Generations, number: u64) -> Option<u64> {
        let known = generations.of(number)?;
        Some(known.generation.plan.generation)
    }

    #[test]
    fn rule_sets_are_found_by_number_and_no_other_one_takes_their_place() {
        let mut generations = Generations::default();
        assert!(generations.of(1).is_none() && generations.in_place_of_unknown().is_none());
        let newest = 3 * KEPT as u64;
        for number in 1..=newest {
            generations.add(generation(number), number * KEPT_NS, |_| false);
        }
        assert_eq!(found(&mut generations, newest), Some(newest));
        let oldest = newest - KEPT as u64 + 1;
        assert_eq!(found(&mut generations, oldest), Some(oldest));
        assert_eq!(found(&mut generations, oldest - 1), None);
        let stand_in = generations.in_place_of_unknown().expect("a rule set");
        assert!(stand_in.plan.rules.is_empty());
    }

    #[test]
    fn a_rule_set_is_kept_while_an_event_of_it_waits_or_may_come() {
        let mut generations = Generations::default();
        for number in 1..=1_000 {
            generations.add(generation(number), 0, |number| number == 5);
        }
        assert_eq!(found(&mut generations, 5), Some(5));
        assert_eq!(
            found(&mut generations, 1_000 - KEPT_MAX as u64 + 2),
            Some(938)
        );
        assert!(generations.0.len() <= KEPT_MAX + 1);
        generations.add(generation(1_001), 0, |_| false);
        assert_eq!(found(&mut generations, 5), None);
    }
}
