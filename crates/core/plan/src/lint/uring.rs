//! Finds what rules on system calls miss because io_uring does it without a system call.

use super::arch::some;
use super::{acts, reloadable, Examined, Lint};
use crate::entries::calls_of;
use abi::{
    syscall_name, uring_op_calls, uring_op_is_audited, uring_op_name, uring_op_number, uring_ops,
    Field,
};
use rules::{Action, Dialect, List, Rule, SyscallSet};
use std::collections::BTreeSet;

/// Finds `always` rules that name calls which io_uring operations can replace, or other calls of the same acts, unless
/// a rule of the io_uring list selects these operations without further conditions. Operations that kernel
/// audit skips (`audit_skip`, io_uring/opdef.c) are ignored.
pub(super) fn find(examined: &mut Examined<'_>) {
    for (i, rule) in examined.rules.iter().enumerate() {
        let is_on_calls = rule.list == List::Exit && rule.action == Action::Always;
        if !is_on_calls || rule.syscalls.is_all() {
            continue;
        }
        let missing: Vec<&str> = operations(examined, rule)
            .into_iter()
            .filter(|&op| !is_watched(examined, op, rule))
            .filter_map(uring_op_name)
            .collect();
        if missing.is_empty() {
            continue;
        }
        let message = format!("not seen through io_uring: {}", some(&missing));
        let remedy = format!("add {}", line(examined, rule, &missing));
        examined.found(Lint::IoUring, i, message, remedy);
    }
}

/// The line that selects operations under the conditions of a rule. Operations have no architecture, and their arguments
/// are not those of calls.
fn line(examined: &Examined<'_>, rule: &Rule, operations: &[&str]) -> String {
    let mut added = rule.clone();
    added.list = List::IoUring;
    added.syscalls = SyscallSet::EMPTY;
    let numbers = operations.iter().filter_map(|name| uring_op_number(name));
    numbers.for_each(|op| added.syscalls.insert(op));
    added
        .conditions
        .retain(|c| c.field != Field::Arch && !acts::is_on_argument(c));
    let line = reloadable(&added, examined.entries, Dialect::V4);
    line.trim().to_owned()
}

fn operations(examined: &Examined<'_>, rule: &Rule) -> BTreeSet<u32> {
    let arches = examined
        .entries
        .arches()
        .into_iter()
        .flatten()
        .filter(|arch| {
            let number = arch.audit_arch();
            rule.conditions
                .iter()
                .all(|condition| match condition.value {
                    rules::Value::Number(value) if condition.field == Field::Arch => {
                        condition.op.holds(number, value)
                    }
                    _ => true,
                })
        });

    let calls = &calls_of(rule, examined.entries);
    let mut names = BTreeSet::new();
    for arch in arches {
        names.extend(calls.iter().filter_map(|nr| syscall_name(arch, nr)));
        if acts::names_calls(rule) {
            let ways = acts::acts_of(rule, arch, examined).flat_map(|act| &act.ways);
            names.extend(ways.map(|way| way.call));
        }
    }

    let does_one = |op: u32| uring_op_calls(op).iter().any(|call| names.contains(call));
    let audited = uring_ops().map(|(op, _)| op);
    audited
        .filter(|&op| uring_op_is_audited(op) && does_one(op))
        .collect()
}

fn is_watched(examined: &Examined<'_>, op: u32, rule: &Rule) -> bool {
    examined.rules.iter().any(|other| {
        other.list == List::IoUring
            && other.action == Action::Always
            && other.syscalls.contains(op)
            && other.conditions.iter().all(|condition| {
                condition.field == Field::FilterKey || rule.conditions.contains(condition)
            })
    })
}
