//! The reference evaluator: finds the first rule, in load order, all of whose conditions hold. It is
//! deliberately a plain loop over the rules; every other matcher is tested against it.
//!
//! Source of each comparison: `audit_filter_rules()` and `audit_field_compare()` in
//! kernel/auditsc.c, `audit_comparator()` in kernel/auditfilter.c.

use crate::entries::{calls_of, Entries};
use crate::executables;
use crate::facts::{lies_below, place, places, Facts, Identities, Inode, Name, ObjectId};
use crate::facts::{PathIdentity, Proven};
use crate::uring;
use crate::workload;
use abi::{Compare, Field};
use rules::{Action, Condition, List, Op, Rule, Value};

/// Outcome of matching one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No rule matched, or the action of the first match is `never`.
    Drop,
    /// The rule at this position of the rule set selected the event.
    Record(u32),
    /// The rule at this position may select the event: not everything that its conditions ask about is known.
    Unsure(u32),
}

/// The first match on the exit list of `rules`.
pub fn decide(
    rules: &[Rule],
    entries: Entries,
    facts: &Facts<'_>,
    identities: &Identities,
) -> Decision {
    let candidates = rules.iter().enumerate().filter(|(_, rule)| {
        rule.list == List::Exit
            && calls_of(rule, entries).contains(facts.nr)
            && task_conditions_hold(rule, entries, facts, identities)
    });
    decide_names(
        candidates.map(|(i, rule)| (i as u32, rule)),
        facts,
        identities,
    )
}

/// The first match of an io_uring operation, among the rules that apply to it by [`uring::selects`].
pub fn decide_operation(
    rules: &[Rule],
    entries: Entries,
    twins: bool,
    facts: &Facts<'_>,
    identities: &Identities,
) -> Decision {
    let call = uring::as_call(facts, entries);
    let candidates = rules.iter().enumerate().filter(|(_, rule)| {
        uring::selects(rule, facts.nr, entries, twins)
            && task_conditions_hold(rule, entries, &call, identities)
    });
    decide_names(
        candidates.map(|(i, rule)| (i as u32, rule)),
        facts,
        identities,
    )
}

/// Whether the conditions on the result of an io_uring operation hold. While it is not known, they hold for rules that
/// record, and for no others.
pub(crate) fn result_holds(rule: &Rule, facts: &Facts<'_>) -> bool {
    let on_result = |c: &&Condition| matches!(c.field, Field::Exit | Field::Success);
    if facts.result.is_none() {
        let asks = rule
            .conditions
            .iter()
            .any(|condition| on_result(&condition));
        return !asks || rule.action == Action::Always;
    }

    rule.conditions.iter().filter(on_result).all(|condition| {
        task_condition_holds(
            rule,
            condition,
            Entries::NONE,
            facts,
            &Identities::default(),
        )
    })
}

/// The first match among candidates, in load order, whose conditions on task and call are known to
/// hold.
///
/// The kernel tries the rules of the exit list first. Then it goes through the names and looks for a
/// `path=` or `inode=` rule that matches the name and precedes the match found so far. It ends at the
/// first name with such a rule (`audit_filter_inodes()`, and the comparison of priorities in
/// `audit_filter_rules()`).
pub fn decide_names<'r>(
    candidates: impl Iterator<Item = (u32, &'r Rule)>,
    facts: &Facts<'_>,
    identities: &Identities,
) -> Decision {
    let mut best: Option<(u32, Action)> = None;
    let mut unsure: Option<u32> = None;
    let mut names = facts.names;
    for (position, rule) in candidates {
        let may_win = rule.action == Action::Always && (best.is_none() || is_inode_rule(rule));
        let mut holds = |name| {
            let holds = name_conditions_hold(rule, facts, name, identities);
            if holds.is_none() && may_win {
                unsure = unsure.or(Some(position));
            }
            holds == Some(true)
        };
        if is_inode_rule(rule) {
            if let Some(name) = names.iter().position(|name| holds(Some(name))) {
                best = Some((position, rule.action));
                // A later rule only wins if it matches an earlier name.
                names = &names[..name];
            }
        } else if holds(None) {
            // Later rules have a lower priority.
            best = best.or(Some((position, rule.action)));
            break;
        }
    }

    match (best, unsure) {
        // Of two rules, the one that is known to select the event gives the key.
        (Some((position, Action::Always)), _) => Decision::Record(position),
        (_, Some(first)) => Decision::Unsure(first),
        _ => Decision::Drop,
    }
}

/// Whether a new task is audited at all, by the first match on the task list. Rules with other
/// fields than those of [`is_task_field`] never match. `facts` are those of the new task; those of a
/// call are ignored.
pub fn audits_task(rules: &[Rule], facts: &Facts<'_>, identities: &Identities) -> bool {
    let entries = Entries::NONE;
    rules
        .iter()
        .filter(|rule| rule.list == List::Task)
        .find(|rule| {
            rule.conditions.iter().all(|condition| {
                is_task_field(condition.field)
                    && task_condition_holds(rule, condition, entries, facts, identities)
            })
        })
        .is_none_or(|rule| rule.action == Action::Always)
}

/// Whether this engine honours the field on the task list. When a task is created, there is no
/// system call, so conditions on one never hold in the kernel either (`audit_filter_task()`). The
/// kernel does know executables and labels, which this engine does not.
pub fn is_task_field(field: Field) -> bool {
    matches!(
        field,
        Field::Pid
            | Field::Uid
            | Field::Euid
            | Field::Suid
            | Field::Fsuid
            | Field::Gid
            | Field::Egid
            | Field::Sgid
            | Field::Fsgid
            | Field::Loginuid
            | Field::LoginuidSet
            | Field::Sessionid
            | Field::Pers
            | Field::FilterKey
    )
}

/// Whether the kernel stores the rule by inode instead of in the exit list.
pub(crate) fn is_inode_rule(rule: &Rule) -> bool {
    rule.conditions
        .iter()
        .any(|c| matches!(c.field, Field::Watch | Field::Inode))
}

/// Whether a condition can only be decided with the names of the event.
pub fn needs_names(condition: &Condition) -> bool {
    match condition.field {
        Field::Watch
        | Field::Dir
        | Field::Inode
        | Field::Devmajor
        | Field::Devminor
        | Field::ObjUid
        | Field::ObjGid
        | Field::Filetype => true,
        Field::FieldCompare => compares_object(condition),
        _ => false,
    }
}

/// Whether it may not be known if a condition holds: it then does for rules that record, and for no others.
pub(crate) fn may_be_unknown(condition: &Condition) -> bool {
    let field = condition.field;
    is_label(field) || field.is_own() || field == Field::Exe || needs_names(condition)
}

fn compares_object(condition: &Condition) -> bool {
    compare_of(condition).is_some_and(|c| is_object(c.left) || is_object(c.right))
}

fn is_object(field: Field) -> bool {
    matches!(field, Field::ObjUid | Field::ObjGid)
}

/// The pair of fields that a `-C` condition compares.
pub(crate) fn compare_of(condition: &Condition) -> Option<Compare> {
    match condition.value {
        Value::Number(number) => Compare::from_number(number),
        Value::Text(_) => None,
    }
}

/// Whether the field is an LSM label, which the eBPF engines do not read: see [`crate::Exactness`].
pub fn is_label(field: Field) -> bool {
    matches!(
        field,
        Field::SubjUser
            | Field::SubjRole
            | Field::SubjType
            | Field::SubjSen
            | Field::SubjClr
            | Field::ObjUser
            | Field::ObjRole
            | Field::ObjType
            | Field::ObjLevLow
            | Field::ObjLevHigh
    )
}

fn task_conditions_hold(
    rule: &Rule,
    entries: Entries,
    facts: &Facts<'_>,
    identities: &Identities,
) -> bool {
    rule.conditions
        .iter()
        .filter(|condition| !needs_names(condition) && condition.field != Field::Exe)
        .all(|condition| task_condition_holds(rule, condition, entries, facts, identities))
        && executables::hold(rule, &facts.exe, identities)
}

fn task_condition_holds(
    rule: &Rule,
    condition: &Condition,
    entries: Entries,
    facts: &Facts<'_>,
    identities: &Identities,
) -> bool {
    let op = condition.op;
    let value = match &condition.value {
        Value::Number(value) => *value,
        Value::Text(_) => return text_condition_holds(rule, condition, facts, identities),
    };
    let number = |left: u32| op.holds(left, value);

    match condition.field {
        Field::Pid => number(facts.pid),
        Field::Ppid => number(facts.ppid),
        Field::Uid => number(facts.uid),
        Field::Euid => number(facts.euid),
        Field::Suid => number(facts.suid),
        Field::Fsuid => number(facts.fsuid),
        Field::Gid => group_holds(op, facts.gid, facts.groups, value),
        Field::Egid => group_holds(op, facts.egid, facts.groups, value),
        Field::Sgid => number(facts.sgid),
        Field::Fsgid => number(facts.fsgid),
        Field::Loginuid => number(facts.auid),
        Field::LoginuidSet => number(u32::from(facts.auid != u32::MAX)),
        Field::Sessionid => number(facts.ses),
        Field::Pers => number(facts.personality),
        Field::Arch => entries
            .arch(facts.entry)
            .is_some_and(|arch| number(arch.audit_arch())),
        Field::Exit => facts.audit_result().is_some_and(|ret| number(ret as u32)),
        Field::Success => facts
            .return_valid()
            .is_some_and(|valid| op.holds(valid, if value != 0 { 1 } else { 2 })),
        Field::Arg0 => number(facts.args[0] as u32),
        Field::Arg1 => number(facts.args[1] as u32),
        Field::Arg2 => number(facts.args[2] as u32),
        Field::Arg3 => number(facts.args[3] as u32),
        Field::Perm => {
            let holds = accesses(facts, entries) & value != 0;
            holds == (op == Op::Eq)
        }
        Field::SaddrFam => facts.saddr_fam.is_some_and(number),
        Field::FieldCompare => own_ids_hold(condition, facts),
        _ => false,
    }
}

fn text_condition_holds(
    rule: &Rule,
    condition: &Condition,
    facts: &Facts<'_>,
    identities: &Identities,
) -> bool {
    match condition.field {
        Field::FilterKey => true,
        field if field.is_own() => {
            workload::holds(condition, rule.action, &facts.workload, identities)
        }
        // A condition that cannot be decided rather selects too much than too little.
        field if is_label(field) => rule.action == Action::Always,
        _ => false,
    }
}

/// Conditions on `gid` and `egid`: `=` also tests the supplementary groups; `!=` is its negation.
fn group_holds(op: Op, id: u32, groups: &[u32], value: u32) -> bool {
    match op {
        Op::Eq => id == value || groups.contains(&value),
        Op::Ne => id != value && !groups.contains(&value),
        _ => op.holds(id, value),
    }
}

/// `AUDIT_PERM_*` bits of the call: `audit_match_perm()`.
fn accesses(facts: &Facts<'_>, entries: Entries) -> u32 {
    let Some(arch) = entries.arch(facts.entry) else {
        return 0;
    };

    let class = abi::perm_class(arch, facts.nr, entries.lists());
    if class.socketcall {
        return if facts.args[0] == 2 {
            abi::PERM_WRITE
        } else {
            0
        };
    }

    match class.open {
        Some(_) => {
            let any = abi::PERM_READ | abi::PERM_WRITE;
            facts.open_flags.map_or(any, abi::PermClass::open_bits)
        }
        None => class.bits(),
    }
}

pub(crate) fn own_id(field: Field, facts: &Facts<'_>) -> Option<u32> {
    Some(match field {
        Field::Uid => facts.uid,
        Field::Euid => facts.euid,
        Field::Suid => facts.suid,
        Field::Fsuid => facts.fsuid,
        Field::Loginuid => facts.auid,
        Field::Gid => facts.gid,
        Field::Egid => facts.egid,
        Field::Sgid => facts.sgid,
        Field::Fsgid => facts.fsgid,
        _ => return None,
    })
}

fn own_ids_hold(condition: &Condition, facts: &Facts<'_>) -> bool {
    let Some(pair) = compare_of(condition) else {
        return false;
    };
    if !is_equality(condition.op) {
        return false;
    }
    match (own_id(pair.left, facts), own_id(pair.right, facts)) {
        (Some(left), Some(right)) => condition.op.holds(left, right),
        _ => false,
    }
}

fn is_equality(op: Op) -> bool {
    matches!(op, Op::Eq | Op::Ne)
}

/// Whether the conditions on names hold; `None` if that is not known. Each condition of a rule may be met by a different
/// name, but in an inode rule, those on the object itself must be met by `name`. In a `never` rule, only what the call
/// itself used counts, and only as the kernel's audit sees it: nothing is left out because of what may be so.
pub(crate) fn name_conditions_hold(
    rule: &Rule,
    facts: &Facts<'_>,
    name: Option<&Name>,
    identities: &Identities,
) -> Option<bool> {
    let considered = name.map_or(facts.names, std::slice::from_ref);
    let excludes = rule.action == Action::Never;
    let asked = rule.conditions.iter().filter(|c| needs_names(c));
    let each = asked.map(|condition| match condition.field {
        Field::Dir => dir_holds(condition, facts, identities, excludes),
        Field::Filetype => file_type_holds(condition, facts.names, excludes),
        Field::FieldCompare => some_name(facts.names, |name| {
            let object = owned_object_of(name, excludes)?;
            Some(object_compare_holds(condition, object, facts))
        }),
        Field::ObjUid | Field::ObjGid => some_name(considered, |name| {
            let object = owned_object_of(name, excludes)?;
            Some(inode_condition_holds(condition, object))
        }),
        Field::Watch => some_name(considered, |name| {
            watch_holds(condition, name, identities, excludes)
        }),
        _ => some_name(considered, |name| {
            Some(inode_condition_holds(condition, object_of(name, excludes)?))
        }),
    });

    all(each)
}

/// Whether all hold: `false` if one does not, else `None` if one is not known.
fn all(each: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut result = Some(true);
    for holds in each {
        match holds {
            Some(false) => return Some(false),
            None => result = None,
            Some(true) => {}
        }
    }
    result
}

/// Whether a condition holds for some name: `true` if it does for one, else `None` if it is not known for one.
fn some_name(names: &[Name], holds: impl Fn(&Name) -> Option<bool>) -> Option<bool> {
    let mut result = Some(false);
    for name in names {
        let outcome = if name.is_unknown { None } else { holds(name) };
        match outcome {
            Some(true) if name.is_possible => result = None,
            Some(true) => return Some(true),
            None => result = None,
            Some(false) => {}
        }
    }
    result
}

/// The values that the kernel compares for a name without an object: `audit_alloc_name()`.
const NO_OBJECT: Inode = Inode {
    id: ObjectId {
        dev: 0,
        ino: u64::MAX,
    },
    mode: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
};

/// The object of a name as rules see it; `None` if it is not known. For a rule that `excludes`, it has to be the one that
/// the call itself used; for others, what was looked up later has to do if it is an object.
fn object_of(name: &Name, excludes: bool) -> Option<Inode> {
    if excludes && name.object < Proven::InCall {
        return None;
    }
    name.inode.or((!name.existed).then_some(NO_OBJECT))
}

/// The same, with the owner that the call found.
fn owned_object_of(name: &Name, excludes: bool) -> Option<Inode> {
    if !name.is_owner_changed {
        object_of(name, excludes)
    } else {
        None
    }
}

/// A condition with a number on the object of a name.
fn inode_condition_holds(condition: &Condition, inode: Inode) -> bool {
    let Value::Number(value) = condition.value else {
        return false;
    };

    let number = |left: u32| condition.op.holds(left, value);
    match condition.field {
        Field::Inode => inode_holds(condition.op, inode.id.ino as u32, value),
        Field::Devmajor => number(inode.id.dev >> 20) || number(inode.rdev >> 20),
        Field::Devminor => number(inode.id.dev & 0xfffff) || number(inode.rdev & 0xfffff),
        Field::ObjUid => number(inode.uid),
        Field::ObjGid => number(inode.gid),
        _ => false,
    }
}

/// Conditions on `inode`. `inode!=` is only tested for inodes in the hash bucket of its value
/// (`audit_hash_ino()`, kernel/audit.h).
fn inode_holds(op: Op, ino: u32, value: u32) -> bool {
    const BUCKETS: u32 = 32;
    ino % BUCKETS == value % BUCKETS && op.holds(ino, value)
}

/// `filetype=` holds if some name has the type, `filetype!=` if none has (`audit_match_filetype()`).
fn file_type_holds(condition: &Condition, names: &[Name], excludes: bool) -> Option<bool> {
    let Value::Number(value) = condition.value else {
        return Some(false);
    };
    let has_type = some_name(names, |name| {
        Some(object_of(name, excludes)?.mode & 0o170000 == value)
    });
    has_type.map(|has_type| has_type != (condition.op == Op::Ne))
}

/// Whether a name leads to the object of a `path=` condition. The kernel compares device and inode. The name counts, too,
/// for rules that record: what is there now may have been made a moment ago.
fn watch_holds(
    condition: &Condition,
    name: &Name,
    identities: &Identities,
    excludes: bool,
) -> Option<bool> {
    let Value::Text(path) = &condition.value else {
        return Some(false);
    };

    let known = identities.of(path);
    let watched = known.and_then(|known| known.object);
    let is_object = name.inode.is_some_and(|inode| Some(inode.id) == watched);
    if excludes {
        return (name.object == Proven::InCall).then_some(is_object);
    }

    let is_there = name.inode.is_some() || name.existed;
    let directories = name.directory.zip(known.and_then(|known| known.directory));
    let is_other_place = directories.is_some_and(|(one, other)| one != other);
    let has_path = !name.path.is_empty() && name.path == place(known, path);
    let is_named = is_there && has_path && !is_other_place;
    let is_known = name.object > Proven::Later;

    (is_object || is_named || is_known).then_some(is_object || is_named)
}

/// Whether something that the call touched is a directory, or below it. The kernel looks for the object of the directory
/// above each object, up to the root of its file system. For rules that record, the path counts, too.
fn dir_holds(
    condition: &Condition,
    facts: &Facts<'_>,
    identities: &Identities,
    excludes: bool,
) -> Option<bool> {
    let Value::Text(dir) = &condition.value else {
        return Some(false);
    };
    if !excludes {
        return dir_may_hold(dir, facts, identities);
    }

    let is_shown = |object: &ObjectId| {
        let is_it = |name: &Name| {
            let is_used = name.object == Proven::InCall && !name.is_possible;
            is_used && name.inode.is_some_and(|inode| inode.id == *object)
        };
        let is_above = facts.are_above_used && facts.above.contains(object);
        is_above || facts.names.iter().any(is_it)
    };

    let mut objects = identities.of(dir)?.objects_of_load();
    objects.any(|object| is_shown(&object)).then_some(true)
}

fn dir_may_hold(dir: &[u8], facts: &Facts<'_>, identities: &Identities) -> Option<bool> {
    let known = identities.of(dir);
    let objects: Vec<ObjectId> = known.into_iter().flat_map(PathIdentity::objects).collect();
    // The directory may also be mounted elsewhere, or have been renamed.
    if facts.above.iter().any(|above| objects.contains(above)) {
        // What is above is known; a name that may have led nowhere need not have reached it.
        let is_reached = |name: &Name| {
            let is_sure = !name.is_possible && !name.is_unknown;
            is_sure && (name.inode.is_some() || name.existed)
        };
        return facts.names.iter().any(is_reached).then_some(true);
    }

    // The kernel's rule stays with a directory that was renamed; if it was removed, its number may be another's.
    let former = known.map_or(&[][..], |known| &known.former);
    let is_former = facts.above.iter().any(|above| former.contains(above));
    some_name(facts.names, |name| {
        let is_there = name.inode.is_some() || name.existed;
        let is_in = |objects: &[ObjectId]| name.inode.is_some_and(|i| objects.contains(&i.id));
        let covers = |place| !name.is_path_moot && lies_below(&name.path, place);
        let is_below = is_in(&objects) || is_there && places(known, dir).any(covers);
        // The directory may be mounted elsewhere.
        let is_known = !is_there || name.is_proven() && !is_former && !is_in(former);
        (is_below || is_known).then_some(is_below)
    })
}

/// Whether a rule of the filesystem list leaves out names on file systems of this kind (`f_type` of
/// statfs(2)). As in `__audit_inode()` of kernel/auditsc.c, one condition that holds is enough.
pub fn leaves_out(rules: &[Rule], kind: u32) -> bool {
    let is_about =
        |rule: &&Rule| rule.list == rules::List::Filesystem && rule.action == Action::Never;
    let holds = |condition: &Condition| match condition.value {
        Value::Number(value) => condition.field == Field::Fstype && condition.op.holds(kind, value),
        Value::Text(_) => false,
    };
    let mut rules = rules.iter().filter(is_about);
    rules.any(|rule| rule.conditions.iter().any(holds))
}

/// Whether a `-C` condition on the owner or group of an object holds.
fn object_compare_holds(condition: &Condition, inode: Inode, facts: &Facts<'_>) -> bool {
    let Some(pair) = compare_of(condition) else {
        return false;
    };
    let (own, object) = if is_object(pair.left) {
        (pair.right, pair.left)
    } else {
        (pair.left, pair.right)
    };
    let owner = if object == Field::ObjUid {
        inode.uid
    } else {
        inode.gid
    };

    is_equality(condition.op)
        && own_id(own, facts).is_some_and(|own| condition.op.holds(own, owner))
}
