//! Finds what rules on system calls miss because io_uring does it without a system call.

use super::arch::some;
use super::{Examined, Lint};
use crate::entries::calls_of;
use abi::{syscall_name, uring_op_is_audited, uring_op_name, uring_op_number, Field};
use rules::{Action, List, Rule};
use std::collections::BTreeSet;

/// Calls and their operations, where the names differ.
const RENAMED: [(&str, &str); 3] = [
    ("accept4", "accept"),
    ("pipe2", "pipe"),
    ("renameat2", "renameat"),
];

/// Finds `always` rules that name calls which io_uring operations can replace, unless a rule of
/// the io_uring list selects these operations without further conditions. Operations that kernel
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
        let remedy = format!(
            "add -a always,io_uring -S {} with the same conditions but arch=",
            missing.join(",")
        );
        examined.found(Lint::IoUring, i, message, remedy);
    }
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
    let calls = calls_of(rule, examined.entries);
    arches
        .flat_map(|arch| calls.iter().filter_map(move |nr| syscall_name(arch, nr)))
        .filter_map(operation)
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

/// The operation that does the same as the call `name`, if kernel audit does not skip it.
fn operation(name: &str) -> Option<u32> {
    let renamed = RENAMED.iter().find(|row| row.0 == name);
    uring_op_number(renamed.map_or(name, |row| row.1)).filter(|&op| uring_op_is_audited(op))
}
