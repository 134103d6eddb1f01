//! Finds rules that never decide anything because an earlier one always matches first.

use crate::entries::{calls_of, Entries};
use crate::evaluate::{is_label, may_be_unknown};
use abi::Field;
use rules::{Action, Condition, List, Op, Rule, SyscallSet, Value};

/// For every rule, the position of the first earlier rule of its list that matches whatever the rule
/// matches. `None` does not prove that there is no such rule.
pub(crate) fn shadowing(rules: &[Rule], entries: Entries) -> Vec<Option<u32>> {
    let calls: Vec<SyscallSet> = rules.iter().map(|rule| calls_of(rule, entries)).collect();
    let covers = |earlier: usize, later: usize| {
        let (first, second) = (&rules[earlier], &rules[later]);
        first.list == second.list
            && can_shadow(first)
            && (!first.list.has_syscalls() || includes(&calls[earlier], &calls[later]))
            && first
                .conditions
                .iter()
                .all(|condition| implied(condition, first, second))
    };

    (0..rules.len())
        .map(|i| {
            (0..i)
                .find(|&earlier| covers(earlier, i))
                .map(|earlier| earlier as u32)
        })
        .collect()
}

/// Whether a match of the rule ends its list.
fn can_shadow(rule: &Rule) -> bool {
    match rule.list {
        List::Filesystem => false,
        // A rule without conditions matches nothing on these lists: see `records`.
        List::User | List::Exclude => !rule.conditions.is_empty(),
        _ => true,
    }
}

fn includes(outer: &SyscallSet, inner: &SyscallSet) -> bool {
    outer
        .0
        .iter()
        .zip(&inner.0)
        .all(|(outer, inner)| inner & !outer == 0)
}

/// Whether `condition` of the rule `earlier` holds whenever the rule `later` matches.
fn implied(condition: &Condition, earlier: &Rule, later: &Rule) -> bool {
    if condition.field == Field::FilterKey {
        // On these lists, a key ends the evaluation.
        return !matches!(later.list, List::User | List::Exclude);
    }
    if is_label(condition.field) {
        // Labels are not read: see `evaluate`.
        return earlier.action == Action::Always && later.list.has_syscalls();
    }
    if may_be_unknown(condition) && earlier.action != later.action {
        return false;
    }

    later
        .conditions
        .iter()
        .any(|own| own == condition || implies(own, condition))
}

/// Whether one condition on a value implies another on the same value.
fn implies(own: &Condition, condition: &Condition) -> bool {
    let (Value::Number(value), Value::Number(wanted)) = (&own.value, &condition.value) else {
        return false;
    };
    if own.field != condition.field || own.op != Op::Eq {
        return false;
    }

    match own.field {
        Field::Perm => condition.op == Op::Eq && value & !wanted == 0,
        // Compared with several names or groups, or the number has another meaning.
        Field::Gid
        | Field::Egid
        | Field::FieldCompare
        | Field::Success
        | Field::LoginuidSet
        | Field::Devmajor
        | Field::Devminor
        | Field::ObjUid
        | Field::ObjGid
        | Field::Inode
        | Field::Filetype => false,
        _ => condition.op.holds(*value, *wanted),
    }
}
