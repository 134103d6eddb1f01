//! Rules by workload: `unit=`, `slice=` and `container=`, and what they share with those by the past of a process.
//!
//! The programs keep a class of each cgroup: the numbers of those of its names that rules ask about
//! (crates/kernel/bpf/programs/workloads.h). Where they do not know a cgroup, the daemon decides.

use crate::executables::Executables;
use crate::facts::Identities;
use crate::past::{self, PastNames};
use crate::task::{TaskWorkload, WorkloadName};
use abi::Field;
use identity::Place;
use rules::{Action, Condition, Op, Rule, Value};
use std::collections::BTreeMap;

/// The most names that the rules of a set may have.
pub const NAMES_MAX: usize = 4096;
/// Flag of a class: unit and slice of the cgroups below are those of this one.
pub const IS_SETTLED: u32 = 1;
/// Flag of a class: each cgroup directly below is that of a container.
pub const IS_LXC: u32 = 2;
/// Flag of a class: the cgroup of a machine, whose supervisor is outside of the container.
pub const IS_MACHINE: u32 = 4;
/// Flag of a class: others than root may have chosen its name, or one above it.
pub const IS_DELEGATED: u32 = 8;
/// Number of a container that no rule names. The numbers of names are above.
const SOME_CONTAINER: u32 = 1;

/// Whether a condition on one of Tarsier's own fields holds, in a rule with this action.
pub(crate) fn holds(
    condition: &Condition,
    action: Action,
    workload: &TaskWorkload<'_>,
    identities: &Identities,
) -> bool {
    if condition.field.is_of_process() {
        return past::holds(condition, action, &workload.past, identities);
    }
    let Value::Text(wanted) = &condition.value else {
        return false;
    };

    let holds = |name| {
        let is_same = match name {
            WorkloadName::Unknown => return None,
            WorkloadName::Nothing => is_container(condition, rules::NONE),
            WorkloadName::Is(_) if is_container(condition, rules::NONE) => false,
            WorkloadName::Is(name) => {
                is_container(condition, rules::ANY) || name == wanted.as_slice()
            }
        };
        Some(is_same == (condition.op == Op::Eq))
    };

    let mut each = workload.names(condition.field).map(holds);
    match action {
        Action::Always => each.any(|holds| holds != Some(false)),
        Action::Never => each.all(|holds| holds == Some(true)),
    }
}

/// Whether all conditions of the rule on Tarsier's own fields hold.
pub(crate) fn all_hold(rule: &Rule, workload: &TaskWorkload<'_>, identities: &Identities) -> bool {
    let own = |condition: &&Condition| condition.field.is_own();
    let mut own = rule.conditions.iter().filter(own);
    own.all(|condition| holds(condition, rule.action, workload, identities))
}

/// Whether the rule has a condition on one of Tarsier's own fields.
pub fn asks_own(rule: &Rule) -> bool {
    rule.conditions
        .iter()
        .any(|condition| condition.field.is_own())
}

/// Whether the rule has a condition on the cgroup of a task.
pub fn asks_cgroup(rule: &Rule) -> bool {
    let mut fields = rule.conditions.iter().map(|condition| condition.field);
    fields.any(Field::is_of_cgroup)
}

fn is_container(condition: &Condition, word: &[u8]) -> bool {
    condition.field == Field::Container
        && matches!(&condition.value, Value::Text(text) if text == word)
}

/// The class of a cgroup: `struct workload` of the programs, without its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadClass {
    /// Number of the unit; 0 if no rule names it.
    pub unit: u32,
    /// Number of the slice; 0 if no rule names it.
    pub slice: u32,
    /// Number of the container; 0: none, 1: one that no rule names.
    pub container: u32,
    /// [`IS_SETTLED`] and so on.
    pub flags: u32,
}

/// The names that rules ask about, with their numbers in the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadNames {
    numbers: BTreeMap<(Field, Vec<u8>), u32>,
    /// Whether rules ask about cgroups.
    ask_cgroups: bool,
    /// Labels, and executables of ancestors.
    pub past: PastNames,
    /// Tells these names from those of other rule sets; 0 if no rule asks.
    epoch: u64,
}

impl WorkloadNames {
    /// Numbers the names in the conditions of `rules`, in the order of their text.
    /// `executables` are those that they name.
    pub fn of(rules: &[Rule], executables: &Executables) -> WorkloadNames {
        let conditions = rules.iter().flat_map(|rule| &rule.conditions);
        let own: Vec<&Condition> = conditions.filter(|c| c.field.is_of_cgroup()).collect();
        let mut numbers = BTreeMap::new();
        for condition in &own {
            let is_word = [rules::ANY, rules::NONE].map(|word| is_container(condition, word));
            if let (Value::Text(text), [false, false]) = (&condition.value, is_word) {
                numbers.insert((condition.field, text.clone()), 0);
            }
        }

        let above = SOME_CONTAINER + 1;
        numbers
            .values_mut()
            .zip(above..)
            .for_each(|(number, next)| *number = next);
        let past = PastNames::of(rules, executables);
        let of_cgroups = numbers
            .iter()
            .map(|((field, text), &number)| (*field, text.as_slice(), number));
        let epoch = if own.is_empty() && past.is_empty() {
            0
        } else {
            epoch(of_cgroups.chain(past.iter()))
        };

        WorkloadNames {
            ask_cgroups: !own.is_empty(),
            numbers,
            past,
            epoch,
        }
    }

    /// Tells these names from those of other rule sets; 0 if no rule asks about workloads.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether rules ask about the cgroups of tasks.
    pub fn ask_cgroups(&self) -> bool {
        self.ask_cgroups
    }

    /// Field, text and number of each name of a unit, slice or container.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &[u8], u32)> {
        let numbers = self.numbers.iter();
        numbers.map(|((field, text), &number)| (*field, text.as_slice(), number))
    }

    /// Number of names of units, slices and containers.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are no names of units, slices and containers.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The class of a cgroup; `None` if others than root may have chosen what decides it.
    pub fn class(&self, place: &Place<'_>) -> Option<WorkloadClass> {
        let workload = TaskWorkload::at(place, false);
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        place.is_proven().then_some(WorkloadClass {
            unit: self.value(Field::Unit, workload.unit)?,
            slice: self.value(Field::Slice, workload.slice)?,
            container: self.value(Field::Container, workload.containers.made)?,
            flags: flag(place.is_settled, IS_SETTLED)
                | flag(place.is_lxc, IS_LXC)
                | flag(place.is_machine, IS_MACHINE)
                | flag(!place.is_of_root, IS_DELEGATED),
        })
    }

    /// The number that the programs have for a name; `None` if the name is not known.
    pub(crate) fn value(&self, field: Field, name: WorkloadName<'_>) -> Option<u32> {
        let text = match name {
            WorkloadName::Unknown => return None,
            WorkloadName::Nothing => return Some(0),
            WorkloadName::Is(text) => text,
        };
        let other = match field {
            Field::Container => SOME_CONTAINER,
            _ => 0,
        };
        Some(self.number(field, text).unwrap_or(other))
    }

    fn number(&self, field: Field, text: &[u8]) -> Option<u32> {
        self.numbers.get(&(field, text.to_vec())).copied()
    }

    /// The closed range of numbers with which a condition `=` on one of Tarsier's own fields holds.
    pub(crate) fn range(&self, condition: &Condition) -> Option<(u32, u32)> {
        if is_container(condition, rules::NONE) {
            return Some((0, 0));
        }
        if is_container(condition, rules::ANY) {
            return Some((SOME_CONTAINER, u32::MAX));
        }
        let Value::Text(text) = &condition.value else {
            return None;
        };
        let number = self.number(condition.field, text)?;
        Some((number, number))
    }
}

/// A number for a set of names, which is not 0: FNV-1a of 64 bits.
fn epoch<'a>(names: impl Iterator<Item = (Field, &'a [u8], u32)>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let bytes = names.flat_map(|(field, text, number)| {
        let head = [field.number(), number, text.len() as u32].map(u32::to_le_bytes);
        head.into_iter().flatten().chain(text.iter().copied())
    });
    let hash = bytes.fold(BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rule::rule;

    fn place(path: &str) -> Place<'_> {
        Place::of(path.as_bytes(), path.len())
    }

    fn holds_at(line: &str, path: &str) -> bool {
        let place = place(path);
        let workload = TaskWorkload::at(&place, false);
        all_hold(&rule(line), &workload, &Identities::default())
    }

    #[test]
    fn a_condition_compares_the_outermost_unit_its_slice_and_the_innermost_container() {
        let nested = "/system.slice/lxc.payload.outer/system.slice/a.service/lxc/inner";
        let cases = [
            ("unit=a.service", "/system.slice/a.service/below", true),
            ("unit=a.service", "/system.slice/b.service/a.service", false),
            ("unit!=a.service", "/", true),
            ("slice=a.slice", "/a.slice/b.service", true),
            ("slice=a.slice", "/a.slice/a-b.slice/b.service", false),
            ("container=any", "/system.slice/a.service", false),
            ("container=none", "/system.slice/a.service", true),
            ("container!=none", nested, true),
            ("container=a", "/lxc.payload.a/below", true),
            ("container=inner", nested, false),
            ("container=outer", nested, false),
            ("unit=a.service", nested, false),
        ];
        for (condition, path, expected) in cases {
            let line = format!("-a never,exit -F {condition}");
            assert_eq!(holds_at(&line, path), expected, "{condition} {path}");
        }
    }

    #[test]
    fn what_is_not_known_is_recorded_and_never_left_out() {
        for condition in ["unit=a.service", "unit!=a.service", "container=none"] {
            for (action, expected) in [("always", true), ("never", false)] {
                let rule = rule(&format!("-a {action},exit -F {condition}"));
                assert_eq!(
                    all_hold(&rule, &TaskWorkload::UNKNOWN, &Identities::default()),
                    expected
                );
            }
        }
        let place = place("/system.slice/a.service/n");
        let cut = TaskWorkload::at(&place, true);
        let all_hold = |line: &str| all_hold(&rule(line), &cut, &Identities::default());
        assert!(all_hold("-a never,exit -F unit=a.service"));
        assert!(!all_hold("-a never,exit -F container=none"));
    }

    #[test]
    fn names_that_others_may_have_chosen_hide_nothing_and_leave_out_nothing() {
        let held_at = |condition: &str, path: &str, of_root: &str| {
            ["always", "never"].map(|action| {
                let place = Place::of(path.as_bytes(), of_root.len());
                let workload = TaskWorkload::at(&place, false);
                let rule = rule(&format!("-a {action},exit -F {condition}"));
                all_hold(&rule, &workload, &Identities::default())
            })
        };
        let (unsure, yes, no) = ([true, false], [true, true], [false, false]);
        let path = "/user.slice/user@7.service/lxc.payload.a/lxc.payload.b";
        let of_root = "/user.slice/user@7.service";
        for condition in [
            "container=none",
            "container=a",
            "container=b",
            "container!=a",
        ] {
            assert_eq!(held_at(condition, path, of_root), unsure, "{condition}");
        }
        assert_eq!(held_at("container=c", path, of_root), no);
        assert_eq!(held_at("unit=user@7.service", path, of_root), yes);
        // Root of a container may name what is in it.
        let path = "/lxc.payload.a/lxc.payload.b";
        assert_eq!(held_at("container=a", path, path), unsure);
        assert_eq!(held_at("container=none", path, path), no);
        assert_eq!(held_at("container!=c", path, path), yes);
        assert_eq!(held_at("unit=a.service", "/a.service", ""), unsure);
    }

    #[test]
    fn the_epoch_tells_sets_of_names_apart() {
        let names = |lines: &[&str]| {
            let rules: Vec<Rule> = lines.iter().map(|line| rule(line)).collect();
            WorkloadNames::of(&rules, &Executables::default())
        };
        let a = "-a never,exit -F unit=a.service";
        assert_eq!(names(&["-a never,exit -F uid=0"]).epoch(), 0);
        assert_ne!(names(&["-a never,exit -F container=any"]).epoch(), 0);
        assert_eq!(names(&[a]), names(&[a, "-a always,exit -F uid=0", a]));
        let others = [
            names(&["-a never,exit -F unit=b.service"]),
            names(&[a, "-a never,exit -F unit=b.service"]),
            names(&["-a never,exit -F container=a.service"]),
        ];
        for other in others {
            assert_ne!(other.epoch(), names(&[a]).epoch());
        }
    }

    #[test]
    fn classes_have_the_numbers_that_conditions_ask_for() {
        let lines = [
            "-a never,exit -F unit=a.service",
            "-a never,exit -F slice=system.slice",
            "-a never,exit -F container=inner",
        ];
        let rules: Vec<Rule> = lines.iter().map(|line| rule(line)).collect();
        let names = WorkloadNames::of(&rules, &Executables::default());
        let class = |path: &str| names.class(&place(path)).expect("root gave the names");
        assert_eq!(class("/"), WorkloadClass::default());
        let delegated = Place::of(b"/system.slice/lxc.payload.a", "/system.slice".len());
        assert_eq!(names.class(&delegated), None);
        let found = class("/system.slice/a.service/lxc/inner");
        let numbers = [found.unit, found.slice, found.container];
        let ranges = rules.iter().map(|rule| names.range(&rule.conditions[0]));
        let wanted: Vec<u32> = ranges.map(|range| range.expect("a name").0).collect();
        assert_eq!(numbers.to_vec(), wanted);
        assert_eq!(found.flags, IS_SETTLED);
        assert_eq!(class("/lxc/other").container, SOME_CONTAINER);
        assert_eq!(class("/system.slice").flags, 0);
        assert_eq!(class("/lxc").flags, IS_SETTLED | IS_LXC);
        let machine = class("/machine.slice/machine-m.scope");
        assert_eq!(machine.flags, IS_SETTLED | IS_MACHINE);
    }
}
