//! The reference evaluator: finds the first rule, in load order, all of whose conditions hold. It is
//! deliberately a plain loop over the rules; every other matcher is tested against it.
//!
//! Source of each comparison: `audit_filter_rules()` and `audit_field_compare()` in
//! kernel/auditsc.c, `audit_comparator()` in kernel/auditfilter.c.

use crate::entries::{calls_of, Entries};
use crate::facts::{
    lies_below, place, places, Executable, Facts, Identities, Inode, Name, ObjectId,
};
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

/// Whether the conditions on the result of a call hold.
pub(crate) fn result_holds(rule: &Rule, facts: &Facts<'_>) -> bool {
    let on_result = |c: &&Condition| matches!(c.field, Field::Exit | Field::Success);
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
    let mut names = facts.names;
    for (position, rule) in candidates {
        if is_inode_rule(rule) {
            let holds = |name| name_conditions_hold(rule, facts, Some(name), identities);
            if let Some(name) = names.iter().position(holds) {
                best = Some((position, rule.action));
                // A later rule only wins if it matches an earlier name.
                names = &names[..name];
            }
        } else if name_conditions_hold(rule, facts, None, identities) {
            // Later rules have a lower priority.
            best = best.or(Some((position, rule.action)));
            break;
        }
    }
    match best {
        Some((position, Action::Always)) => Decision::Record(position),
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
        .filter(|condition| !needs_names(condition))
        .all(|condition| task_condition_holds(rule, condition, entries, facts, identities))
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
        Value::Text(text) => return text_condition_holds(rule, condition, text, facts, identities),
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
    text: &[u8],
    facts: &Facts<'_>,
    identities: &Identities,
) -> bool {
    match condition.field {
        Field::FilterKey => true,
        Field::Exe => {
            let is_run = is_run(&facts.exe, text, identities);
            let is_wanted = condition.op == Op::Eq;
            is_run.map_or(rule.action == Action::Always, |is_run| is_run == is_wanted)
        }
        field if field.is_own() => {
            workload::holds(condition, rule.action, &facts.workload, identities)
        }
        // A condition that cannot be decided rather selects too much than too little.
        field if is_label(field) => rule.action == Action::Always,
        _ => false,
    }
}

/// Whether the executable is the one that a rule names by `path`; `None` if that is not known.
fn is_run(exe: &Executable<'_>, path: &[u8], identities: &Identities) -> Option<bool> {
    let wanted = identities.object(path);
    let is_same = |object: Option<ObjectId>| object.is_some() && object == wanted;
    let is_object = is_same(exe.object);
    let is_named = exe
        .at
        .map_or(is_object, |at| at == path || is_same(identities.object(at)));
    (is_object == is_named).then_some(is_object)
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

/// Whether the conditions on names hold. Each condition of a rule may be met by a different name,
/// but in an inode rule, those on the object itself must be met by `name`.
pub(crate) fn name_conditions_hold(
    rule: &Rule,
    facts: &Facts<'_>,
    name: Option<&Name>,
    identities: &Identities,
) -> bool {
    let considered = name.map_or(facts.names, std::slice::from_ref);
    if considered.iter().any(|name| name.is_unknown) {
        return rule.action == Action::Always;
    }
    rule.conditions
        .iter()
        .filter(|condition| needs_names(condition))
        .all(|condition| match condition.field {
            Field::Dir => dir_holds(condition, facts, identities),
            Field::Filetype => file_type_holds(condition, facts.names),
            Field::FieldCompare => facts
                .names
                .iter()
                .any(|name| object_compare_holds(condition, name, facts)),
            _ => considered
                .iter()
                .any(|name| name_holds(condition, name, identities)),
        })
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

/// The object of a name as rules see it; `None` if there was one that is no longer known.
fn object_of(name: &Name) -> Option<Inode> {
    name.inode.or((!name.existed).then_some(NO_OBJECT))
}

fn name_holds(condition: &Condition, name: &Name, identities: &Identities) -> bool {
    let value = match (condition.field, &condition.value) {
        (Field::Watch, Value::Text(path)) => return watch_holds(name, path, identities),
        (_, Value::Number(value)) => *value,
        _ => return false,
    };
    let number = |left: u32| condition.op.holds(left, value);
    let Some(inode) = object_of(name) else {
        return false;
    };
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
fn file_type_holds(condition: &Condition, names: &[Name]) -> bool {
    let Value::Number(value) = condition.value else {
        return false;
    };
    let found = names
        .iter()
        .filter_map(|name| name.inode)
        .any(|inode| inode.mode & 0o170000 == value);
    found != (condition.op == Op::Ne)
}

fn watch_holds(name: &Name, path: &[u8], identities: &Identities) -> bool {
    let known = identities.of(path);
    let object: Option<ObjectId> = known.and_then(|known| known.object);
    let same_object = name.inode.is_some_and(|inode| Some(inode.id) == object);
    let same_name = (name.inode.is_some() || name.existed)
        && !name.path.is_empty()
        && name.path == place(known, path);
    same_object || same_name
}

fn dir_holds(condition: &Condition, facts: &Facts<'_>, identities: &Identities) -> bool {
    let Value::Text(dir) = &condition.value else {
        return false;
    };
    let known = identities.of(dir);
    let covers = |name: &Name| {
        let mut places = places(known, dir);
        places.any(|place| lies_below(&name.path, place))
    };
    // The directory may also be mounted elsewhere, or have been renamed.
    let names = facts.names;
    let is_itself = |name: &Name, object| name.inode.is_some_and(|inode| inode.id == object);
    let shows =
        |object| facts.above.contains(&object) || names.iter().any(|name| is_itself(name, object));
    let object = known.and_then(|known| known.object);
    object.is_some_and(shows)
        || names
            .iter()
            .any(|name| (name.inode.is_some() || name.existed) && covers(name))
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
fn object_compare_holds(condition: &Condition, name: &Name, facts: &Facts<'_>) -> bool {
    let (Some(pair), Some(inode)) = (compare_of(condition), object_of(name)) else {
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
