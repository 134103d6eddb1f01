//! Rules by the past of a process: `label=` and `ancestor_exe=`.
//!
//! The programs keep a class of each process: one bit for each label and each executable of ancestors that rules ask
//! about (crates/kernel/bpf/programs/process_class.h). Where they do not know a process, the daemon decides.

use crate::executables::Executables;
use crate::facts::Identities;
use crate::task::{RunExe, TaskPast};
use abi::Field;
use rules::{Action, Condition, Op, Rule, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The most labels, and the most executables of ancestors, that the rules of a set may ask about: one bit each.
pub const PAST_NAMES_MAX: usize = 32;
/// Flag of a class: the process may have more labels.
pub const LABELS_ARE_OPEN: u32 = 1;
/// Flag of a class: the process may have more ancestors.
pub const ANCESTORS_ARE_OPEN: u32 = 2;
/// Flag of a class: the executable that the process runs is not known.
pub const OWN_IS_OPEN: u32 = 4;

/// Whether the process has this label, or an ancestor that ran this executable; `None` if that is not known.
fn has(past: &TaskPast<'_>, field: Field, name: &[u8], identities: &Identities) -> Option<bool> {
    if field == Field::Label {
        let has = past.labels.contains(&name);
        return (has || past.are_all_labels).then_some(has);
    }

    let mut is_known = past.are_all_ancestors;
    for exe in past.ancestors {
        match is_run(exe, name, identities) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => is_known = false,
        }
    }

    is_known.then_some(false)
}

/// Whether the executable is the one that a rule names by this path. Not known if there is another file now.
fn is_run(exe: &RunExe<'_>, path: &[u8], identities: &Identities) -> Option<bool> {
    if identities.object(path) == Some(exe.object) {
        return Some(true);
    }
    let canonical = identities.of(path).map(|identity| &*identity.canonical);
    let is_same_path = exe.path == path || canonical == Some(exe.path);
    (!is_same_path).then_some(false)
}

/// Whether a condition on the past of a process holds, in a rule with this action.
pub(crate) fn holds(
    condition: &Condition,
    action: Action,
    past: &TaskPast<'_>,
    identities: &Identities,
) -> bool {
    let Value::Text(name) = &condition.value else {
        return false;
    };
    match has(past, condition.field, name, identities) {
        Some(has) => has == (condition.op == Op::Eq),
        None => action == Action::Always,
    }
}

/// Whether the rule has a condition on the past of a process.
pub fn asks_past(rule: &Rule) -> bool {
    let mut fields = rule.conditions.iter().map(|condition| condition.field);
    fields.any(Field::is_of_process)
}

/// The class of a process: `struct process_class` of the programs, without its epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessClass {
    /// Number of the program that it runs, which each execve changes.
    pub image: u64,
    /// Bits of the executables that its ancestors ran.
    pub ancestors: u32,
    /// Bits of the executable that it runs.
    pub own: u32,
    /// Bits of its labels.
    pub labels: u32,
    /// [`LABELS_ARE_OPEN`] and so on.
    pub flags: u32,
}

impl ProcessClass {
    /// Whether the programs can have made `next` of this class of the same process: they only add labels, and change
    /// what they know of the executable only when the process executes another one.
    pub fn may_become(&self, next: &ProcessClass) -> bool {
        let keeps = |flag: u32| self.flags & flag == next.flags & flag;
        let keeps_own = self.own == next.own && keeps(OWN_IS_OPEN);
        self.ancestors == next.ancestors
            && keeps(ANCESTORS_ARE_OPEN)
            && self.labels & !next.labels == 0
            && self.flags & LABELS_ARE_OPEN & !next.flags == 0
            && (self.image != next.image || keeps_own)
    }
}

/// The labels and executables of ancestors that rules ask about, each with the number of its bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PastNames(BTreeMap<(Field, Vec<u8>), u32>);

impl PastNames {
    /// The names in the conditions of `rules`. `executables` has numbers from 1 for those of ancestors.
    pub(crate) fn of(rules: &[Rule], executables: &Executables) -> PastNames {
        let conditions = rules.iter().flat_map(|rule| &rule.conditions);
        let asked: BTreeSet<(Field, &Vec<u8>)> = conditions
            .filter(|condition| condition.field.is_of_process())
            .filter_map(|condition| match &condition.value {
                Value::Text(name) => Some((condition.field, name)),
                Value::Number(_) => None,
            })
            .collect();

        let mut labels = 0..;
        let numbered = asked.into_iter().map(|(field, name)| {
            let bit = match field {
                Field::Label => labels.next().unwrap_or_default(),
                _ => executables.number(name) - 1,
            };
            ((field, name.clone()), bit)
        });

        PastNames(numbered.collect())
    }

    /// Whether there are no more names than bits.
    pub(crate) fn fit(&self) -> bool {
        self.0.values().all(|&bit| (bit as usize) < PAST_NAMES_MAX)
    }

    /// Whether rules ask about nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Field, name and number of the bit of each.
    pub fn iter(&self) -> impl Iterator<Item = (Field, &[u8], u32)> {
        let names = self.0.iter();
        names.map(|((field, name), &bit)| (*field, name.as_slice(), bit))
    }

    /// The bit that stands for a name; `None` if no rule asks about it.
    pub(crate) fn bit(&self, field: Field, name: &[u8]) -> Option<u32> {
        let bit = self.0.get(&(field, name.to_vec()))?;
        Some(1 << bit)
    }

    /// The bits that the programs have for a process; `None` if not all is known.
    pub(crate) fn value(
        &self,
        field: Field,
        past: &TaskPast<'_>,
        identities: &Identities,
    ) -> Option<u32> {
        let mut names = self.iter().filter(|(of, ..)| *of == field);
        names.try_fold(0, |bits, (_, name, bit)| {
            let is_set = has(past, field, name, identities)?;
            Some(bits | u32::from(is_set) << bit)
        })
    }

    /// The class of a process with this past that runs `exe`, if that is known, as its program number `image`.
    pub fn class(
        &self,
        past: &TaskPast<'_>,
        (image, exe): (u64, Option<&RunExe<'_>>),
        identities: &Identities,
    ) -> ProcessClass {
        let labels = self.value(Field::Label, past, identities);
        let ancestors = self.value(Field::AncestorExe, past, identities);
        let own = exe.and_then(|exe| {
            let run = TaskPast {
                ancestors: std::slice::from_ref(exe),
                are_all_ancestors: true,
                ..TaskPast::UNKNOWN
            };
            self.value(Field::AncestorExe, &run, identities)
        });

        let open = |bits: Option<u32>, flag: u32| if bits.is_none() { flag } else { 0 };
        ProcessClass {
            image,
            ancestors: ancestors.unwrap_or(0),
            own: own.unwrap_or(0),
            labels: labels.unwrap_or(0),
            flags: open(labels, LABELS_ARE_OPEN)
                | open(ancestors, ANCESTORS_ARE_OPEN)
                | open(own, OWN_IS_OPEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ObjectId, PathIdentity};
    use crate::test_rule::rule;

    fn object(ino: u64) -> ObjectId {
        ObjectId { dev: 1, ino }
    }

    fn identities() -> Identities {
        let mut identities = Identities::default();
        for (path, ino) in [("/bin/a", 1), ("/bin/b", 2)] {
            let identity = PathIdentity {
                canonical: path.into(),
                object: Some(object(ino)),
                ..PathIdentity::default()
            };
            identities.insert(path.into(), identity);
        }
        identities
    }

    fn run(path: &'static str, ino: u64) -> RunExe<'static> {
        RunExe {
            path: path.as_bytes(),
            object: object(ino),
        }
    }

    #[test]
    fn conditions_hold_by_what_is_known_and_never_rules_not_by_what_is_not() {
        let identities = identities();
        let (a, moved) = (run("/bin/a", 1), run("/bin/a", 9));
        let past = |ancestors: &'static [RunExe<'static>], are_all| TaskPast {
            labels: &[b"web"],
            are_all_labels: are_all,
            ancestors,
            are_all_ancestors: are_all,
        };
        let of_a: &'static [RunExe<'static>] = Box::leak(Box::new([a]));
        let of_moved: &'static [RunExe<'static>] = Box::leak(Box::new([moved]));
        // Condition, past, and whether it holds for `always` and for `never`.
        let cases = [
            ("label=web", past(&[], true), [true, true]),
            ("label=web", past(&[], false), [true, true]),
            ("label!=web", past(&[], false), [false, false]),
            ("label=db", past(&[], true), [false, false]),
            ("label!=db", past(&[], true), [true, true]),
            ("label=db", past(&[], false), [true, false]),
            ("label!=db", past(&[], false), [true, false]),
            ("ancestor_exe=/bin/a", past(of_a, false), [true, true]),
            ("ancestor_exe=/bin/b", past(of_a, true), [false, false]),
            ("ancestor_exe=/bin/b", past(of_a, false), [true, false]),
            ("ancestor_exe!=/bin/b", past(of_a, true), [true, true]),
            // The file that ran was another one.
            ("ancestor_exe=/bin/a", past(of_moved, true), [true, false]),
        ];
        for (condition, past, expected) in cases {
            let found = [Action::Always, Action::Never].map(|action| {
                let line = format!("-a never,exit -F {condition}");
                holds(&rule(&line).conditions[0], action, &past, &identities)
            });
            assert_eq!(found, expected, "{condition} {past:?}");
        }
    }

    #[test]
    fn a_class_has_a_bit_for_each_name_that_rules_ask_about() {
        let identities = identities();
        let lines = [
            "-a never,exit -F label=web -F ancestor_exe=/bin/a",
            "-a never,exit -F label=db -F exe=/bin/b",
        ];
        let rules: Vec<Rule> = lines.iter().map(|line| rule(line)).collect();
        let executables = Executables::of(&rules, &identities);
        let names = PastNames::of(&rules, &executables);
        let all: Vec<_> = names.iter().collect();
        let expected: [(Field, &[u8], u32); 3] = [
            (Field::Label, b"db", 0),
            (Field::Label, b"web", 1),
            (Field::AncestorExe, b"/bin/a", 0),
        ];
        assert_eq!(all, expected);
        let past = TaskPast {
            labels: &[b"web"],
            are_all_labels: true,
            ancestors: &[run("/bin/b", 2)],
            are_all_ancestors: true,
        };
        let expected = ProcessClass {
            image: 7,
            labels: 2,
            own: 1,
            ..ProcessClass::default()
        };
        let exe = run("/bin/a", 1);
        assert_eq!(names.class(&past, (7, Some(&exe)), &identities), expected);
        let unknown = names.class(&TaskPast::UNKNOWN, (0, None), &identities);
        assert_eq!(
            unknown.flags,
            LABELS_ARE_OPEN | ANCESTORS_ARE_OPEN | OWN_IS_OPEN
        );
    }

    #[test]
    fn a_class_only_gains_labels_and_another_executable_with_another_image() {
        let class = ProcessClass {
            image: 7,
            ancestors: 1,
            own: 2,
            labels: 1,
            flags: 0,
        };
        let next = |change: fn(&mut ProcessClass)| {
            let mut next = class;
            change(&mut next);
            class.may_become(&next)
        };
        assert!(next(|_| ()));
        assert!(next(|class| class.labels = 3));
        assert!(next(|class| class.flags = LABELS_ARE_OPEN));
        assert!(next(|class| (class.image, class.own) = (8, 0)));
        assert!(!next(|class| class.labels = 2));
        assert!(!next(|class| class.own = 0));
        assert!(!next(|class| class.flags = OWN_IS_OPEN));
        assert!(!next(|class| class.ancestors = 3));
        assert!(!next(|class| class.flags = ANCESTORS_ARE_OPEN));
    }
}
