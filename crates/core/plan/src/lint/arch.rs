//! Finds rules that forget one of the two system-call tables of a host.

use super::{Examined, Lint};
use crate::facts::Entry;
use crate::optimise::residual::{Kinds, Residual};
use abi::{syscall_name, syscall_number, Arch, Field};
use rules::{Action, Condition, List, Op, Rule, SyscallSet, Value};

/// The lowest number that selects a class of calls.
const FIRST_CLASS: u32 = 2032;

/// Finds rules of the exit list that name calls without their architecture, or of one
/// architecture only.
pub(super) fn find(examined: &mut Examined<'_>) {
    let (native, compat) = (
        examined.capabilities.arch,
        examined.capabilities.arch.compat(),
    );
    let (Some(compat), true) = (compat, examined.capabilities.compat_entry) else {
        return;
    };

    for (i, rule) in examined.rules.iter().enumerate() {
        if rule.list != List::Exit || rule.syscalls.is_all() {
            continue;
        }
        match arch_of(rule) {
            Wanted::Any if names_all_that_match(examined, rule) => {}
            Wanted::Any => {
                if let Some(message) = misread(&rule.syscalls, native, compat) {
                    let remedy = "write it twice, with -F arch=b64 and -F arch=b32 before -S";
                    examined.found(Lint::MissingArch, i, message, remedy.to_owned());
                }
            }
            Wanted::One(arch) if rule.action == Action::Always => {
                let other = if arch == native { compat } else { native };
                if arch == native || arch == compat {
                    twin(examined, i, arch, other);
                }
            }
            _ => {}
        }
    }
}

/// Looks for the calls of rule `i` in rules for the other architecture that differ only in `arch=`.
fn twin(examined: &mut Examined<'_>, i: usize, arch: Arch, other: Arch) {
    let rule = &examined.rules[i];
    let wanted = without_arch(rule);
    let mut watched = SyscallSet::EMPTY;
    for twin in examined.rules {
        let is_on_other = match arch_of(twin) {
            Wanted::One(arch) => arch == other,
            Wanted::Any => true,
            Wanted::Else => false,
        };
        if is_on_other
            && twin.list == rule.list
            && twin.action == rule.action
            && without_arch(twin) == wanted
        {
            for (all, more) in watched.0.iter_mut().zip(&twin.syscalls.0) {
                *all |= more;
            }
        }
    }

    let missing: Vec<&str> = rule
        .syscalls
        .iter()
        .filter(|&nr| nr < FIRST_CLASS)
        .filter_map(|nr| syscall_name(arch, nr))
        .filter(|name| syscall_number(other, name).is_some_and(|nr| !watched.contains(nr)))
        .collect();

    if missing.is_empty() {
        return;
    }
    let (bits, width) = if other.is_64bit() {
        ("b64", 64)
    } else {
        ("b32", 32)
    };

    let message = format!("{width}-bit programs can call {} unseen", some(&missing));
    let remedy = format!("add the same rule with -F arch={bits}");
    examined.found(Lint::OneArch, i, message, remedy);
}

/// Whether `perm=` of the rule decides on calls of both architectures, since the rule names all that have such an access.
fn names_all_that_match(examined: &Examined<'_>, rule: &Rule) -> bool {
    let entries = examined.entries;
    let has_all = |entry| {
        let Some(arch) = entries.arch(entry) else {
            return true;
        };
        let kinds = Kinds::of(arch, entries.lists()).groups.iter();
        kinds
            .filter(|(kind, _)| Residual::of(rule, entries, entry, *kind).is_ok())
            .all(|(_, calls)| calls.iter().all(|nr| rule.syscalls.contains(nr)))
    };

    rule.conditions.iter().any(|c| c.field == Field::Perm)
        && has_all(Entry::Native)
        && has_all(Entry::Compat)
}

enum Wanted {
    Any,
    One(Arch),
    Else,
}

fn arch_of(rule: &Rule) -> Wanted {
    let mut arches = rule.conditions.iter().filter(|c| c.field == Field::Arch);
    match (arches.next(), arches.next()) {
        (None, _) => Wanted::Any,
        (
            Some(Condition {
                op: Op::Eq,
                value: Value::Number(number),
                ..
            }),
            None,
        ) => Arch::from_audit_arch(*number).map_or(Wanted::Else, Wanted::One),
        _ => Wanted::Else,
    }
}

fn without_arch(rule: &Rule) -> Vec<&Condition> {
    let is_compared = |c: &&Condition| !matches!(c.field, Field::Arch | Field::FilterKey);
    rule.conditions.iter().filter(is_compared).collect()
}

/// A message with the meaning of the numbers on the other architecture, if it is different.
fn misread(calls: &SyscallSet, native: Arch, compat: Arch) -> Option<String> {
    let differing = calls
        .iter()
        .filter(|&nr| nr < FIRST_CLASS)
        .filter_map(|nr| {
            let (name, other) = (syscall_name(native, nr)?, syscall_name(compat, nr));
            (other != Some(name)).then_some((name, other))
        });

    let meant: Vec<String> = differing
        .map(|(name, other)| match other {
            Some(other) => format!("{name} ({other})"),
            None => format!("{name} (no call)"),
        })
        .collect();

    if meant.is_empty() {
        return None;
    }

    let meant: Vec<&str> = meant.iter().map(String::as_str).collect();
    Some(format!(
        "no arch=: for 32-bit programs these are other calls: {}",
        some(&meant)
    ))
}

/// The first few of many names.
pub(super) fn some(names: &[&str]) -> String {
    const SHOWN: usize = 6;
    match names.len() {
        n if n > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), n - SHOWN),
        _ => names.join(", "),
    }
}
