//! The reference evaluator: the first rule, in load order, all of whose conditions hold. It is
//! deliberately a plain loop over rules; every other matcher is tested against it.
//!
//! Source of each comparison: `audit_filter_rules()` and `audit_field_compare()` in
//! kernel/auditsc.c, `audit_comparator()` in kernel/auditfilter.c.

use crate::facts::{Entry, Facts, Identities, Name, ObjectId};
use abi::{Arch, Compare, Field};
use rules::{Action, Condition, List, Op, Rule, Value};

/// Outcome of matching one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No rule matched, or the first that matched says never.
    Drop,
    /// The rule at this position of the rule set selected it.
    Record(u32),
}

/// Architectures behind the two entries of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries(pub [Option<Arch>; 2]);

impl Entries {
    /// Entries of a host of architecture `native`.
    pub fn of(native: Arch) -> Entries {
        Entries([Some(native), native.compat()])
    }

    /// The architecture of an entry.
    pub fn arch(self, entry: Entry) -> Option<Arch> {
        self.0[entry as usize]
    }

    /// The entry of an `AUDIT_ARCH_*` number.
    pub fn entry(self, audit_arch: u32) -> Option<Entry> {
        [Entry::Native, Entry::Compat]
            .into_iter()
            .find(|&entry| self.arch(entry).is_some_and(|a| a.audit_arch() == audit_arch))
    }
}

/// The first match among the exit list of `rules`.
pub fn decide(
    rules: &[Rule],
    entries: Entries,
    facts: &Facts<'_>,
    identities: &Identities,
) -> Decision {
    let candidates = rules.iter().enumerate().filter(|(_, rule)| {
        rule.list == List::Exit
            && calls_of(rule).contains(facts.nr)
            && task_conditions_hold(rule, entries, facts, identities)
    });
    decide_names(candidates.map(|(i, rule)| (i as u32, rule)), facts, identities)
}

/// The first match among candidates whose conditions on task and call are known to hold.
///
/// Rules on `path=` and `inode=` are looked up per name, and the look-up ends at the first name
/// that some rule matches (`audit_filter_inodes()`); the rest are tried in order.
pub fn decide_names<'r>(
    candidates: impl Iterator<Item = (u32, &'r Rule)>,
    facts: &Facts<'_>,
    identities: &Identities,
) -> Decision {
    let names = facts.names;
    let mut by_list = None;
    let mut by_inode: Option<(usize, u32, Action)> = None;
    for (position, rule) in candidates {
        if is_inode_rule(rule) {
            let limit = by_inode.map_or(names.len(), |(name, _, _)| name);
            let first = names[..limit]
                .iter()
                .position(|name| name_conditions_hold(rule, facts, Some(name), identities));
            if let Some(name) = first {
                by_inode = Some((name, position, rule.action));
            }
        } else if by_list.is_none() && name_conditions_hold(rule, facts, None, identities) {
            by_list = Some((position, rule.action));
        }
    }
    let by_inode = by_inode.map(|(_, position, action)| (position, action));
    match by_list.into_iter().chain(by_inode).min_by_key(|&(position, _)| position) {
        Some((position, Action::Always)) => Decision::Record(position),
        _ => Decision::Drop,
    }
}

/// The calls of a rule, with class selectors (`-S 2032` to `-S 2047`) expanded as the kernel does
/// when it takes the rule: `audit_to_entry_common()`, kernel/auditfilter.c.
pub fn calls_of(rule: &Rule) -> rules::SyscallSet {
    let mut calls = rule.syscalls.clone();
    if calls.is_all() {
        return calls;
    }
    for class in abi::SYSCALL_CLASSES {
        for compat in [false, true] {
            let selector = class.selector(compat);
            if !rule.syscalls.contains(selector) {
                continue;
            }
            calls.0[selector as usize / 32] &= !(1 << (selector % 32));
            let native = Arch::native();
            let arch = if compat { native.compat() } else { Some(native) };
            for nr in arch.into_iter().flat_map(|arch| abi::class_syscalls(arch, class)) {
                calls.insert(nr);
            }
        }
    }
    calls
}

/// A rule that the kernel keeps by inode rather than in the exit list.
pub(crate) fn is_inode_rule(rule: &Rule) -> bool {
    rule.conditions.iter().any(|c| matches!(c.field, Field::Watch | Field::Inode))
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

/// The pair that a `-C` condition compares.
pub(crate) fn compare_of(condition: &Condition) -> Option<Compare> {
    match condition.value {
        Value::Number(number) => Compare::from_number(number),
        Value::Text(_) => None,
    }
}

/// LSM labels, which no engine of ours reads: see [`crate::Exactness`].
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
        Field::Arch => entries.arch(facts.entry).is_some_and(|arch| number(arch.audit_arch())),
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
            let same = facts.exe.is_some() && identities.object(text) == facts.exe;
            same == (condition.op == Op::Eq)
        }
        // What cannot be known selects too much rather than too little.
        field if is_label(field) => rule.action == Action::Always,
        _ => false,
    }
}

/// `gid` and `egid`: `=` also searches the supplementary groups, `!=` is its negation.
fn group_holds(op: Op, id: u32, groups: &[u32], value: u32) -> bool {
    match op {
        Op::Eq => id == value || groups.contains(&value),
        Op::Ne => id != value && !groups.contains(&value),
        _ => op.holds(id, value),
    }
}

/// `AUDIT_PERM_*` bits of the call: `audit_match_perm()`.
fn accesses(facts: &Facts<'_>, entries: Entries) -> u32 {
    let Some(arch) = entries.arch(facts.entry) else { return 0 };
    let class = abi::perm_class(arch, facts.nr);
    if class.socketcall {
        return if facts.args[0] == 2 { abi::PERM_WRITE } else { 0 };
    }
    match (class.open, facts.open_flags) {
        (Some(_), Some(flags)) => abi::PermClass::open_bits(flags),
        (Some(_), None) => 0,
        (None, _) => class.bits(),
    }
}

fn own_id(field: Field, facts: &Facts<'_>) -> Option<u32> {
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
    let Some(pair) = compare_of(condition) else { return false };
    match (own_id(pair.left, facts), own_id(pair.right, facts)) {
        (Some(left), Some(right)) => condition.op.holds(left, right),
        _ => false,
    }
}

/// Whether the conditions on names hold. Conditions of one rule may each be met by another name,
/// except that in an inode rule all of them are about `name`.
pub(crate) fn name_conditions_hold(
    rule: &Rule,
    facts: &Facts<'_>,
    name: Option<&Name>,
    identities: &Identities,
) -> bool {
    let considered = name.map_or(facts.names, std::slice::from_ref);
    rule.conditions.iter().filter(|condition| needs_names(condition)).all(|condition| {
        if condition.field == Field::Dir {
            return dir_holds(condition, facts.names, identities);
        }
        considered.iter().any(|name| name_holds(condition, name, facts, identities))
    })
}

fn name_holds(
    condition: &Condition,
    name: &Name,
    facts: &Facts<'_>,
    identities: &Identities,
) -> bool {
    let op = condition.op;
    match (&condition.field, &condition.value) {
        (Field::Watch, Value::Text(path)) => watch_holds(name, path, identities),
        (Field::Inode, Value::Number(value)) => {
            name.inode.is_some_and(|inode| op.holds(inode.id.ino as u32, *value))
        }
        (Field::Devmajor, Value::Number(value)) => name.inode.is_some_and(|inode| {
            op.holds(inode.id.dev >> 20, *value) || op.holds(inode.rdev >> 20, *value)
        }),
        (Field::Devminor, Value::Number(value)) => name.inode.is_some_and(|inode| {
            op.holds(inode.id.dev & 0xfffff, *value) || op.holds(inode.rdev & 0xfffff, *value)
        }),
        (Field::ObjUid, Value::Number(value)) => {
            name.inode.is_some_and(|inode| op.holds(inode.uid, *value))
        }
        (Field::ObjGid, Value::Number(value)) => {
            name.inode.is_some_and(|inode| op.holds(inode.gid, *value))
        }
        (Field::Filetype, Value::Number(value)) => {
            name.inode.is_some_and(|inode| op.holds(inode.mode & 0o170000, *value))
        }
        (Field::FieldCompare, _) => object_compare_holds(condition, name, facts),
        _ => false,
    }
}

fn watch_holds(name: &Name, path: &[u8], identities: &Identities) -> bool {
    let object: Option<ObjectId> = identities.object(path);
    let same_object = name.inode.is_some_and(|inode| Some(inode.id) == object);
    let same_name = (name.inode.is_some() || name.existed)
        && !name.path.is_empty()
        && name.path == identities.canonical(path);
    same_object || same_name
}

fn dir_holds(condition: &Condition, names: &[Name], identities: &Identities) -> bool {
    let Value::Text(dir) = &condition.value else { return false };
    let dir = identities.canonical(dir);
    names.iter().any(|name| (name.inode.is_some() || name.existed) && lies_below(&name.path, dir))
}

/// `path` is `dir` or lies below it.
pub fn lies_below(path: &[u8], dir: &[u8]) -> bool {
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    match path.strip_prefix(dir) {
        Some(rest) => !path.is_empty() && (rest.is_empty() || rest[0] == b'/'),
        None => false,
    }
}

/// `-C` against the owner of an object.
fn object_compare_holds(condition: &Condition, name: &Name, facts: &Facts<'_>) -> bool {
    let (Some(pair), Some(inode)) = (compare_of(condition), name.inode) else { return false };
    let (own, object) =
        if is_object(pair.left) { (pair.right, pair.left) } else { (pair.left, pair.right) };
    let owner = if object == Field::ObjUid { inode.uid } else { inode.gid };
    own_id(own, facts).is_some_and(|own| condition.op.holds(own, owner))
}
