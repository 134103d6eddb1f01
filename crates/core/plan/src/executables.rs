//! The executables that rules name.

use crate::facts::{Executable, Identities, ObjectId};
use crate::marks::Marks;
use abi::Field;
use rules::{Action, Condition, Op, Rule, Value};
use std::collections::BTreeMap;

/// The numbers of the executables that rules name. Paths of the same file have the same number.
#[derive(Clone, Debug, Default)]
pub struct Executables {
    /// Numbers of the files that exist.
    pub by_object: BTreeMap<ObjectId, u32>,
    /// Numbers of the paths.
    by_path: BTreeMap<Vec<u8>, u32>,
}

impl Executables {
    /// Numbers the executables of all conditions, from 1: first those of `ancestor_exe=`, then those of `exe=`.
    pub fn of(rules: &[Rule], identities: &Identities) -> Executables {
        let mut executables = Executables::default();
        let mut last = 0;
        let of = |field| executable_paths(rules, field);
        for path in of(Field::AncestorExe).chain(of(Field::Exe)) {
            if executables.by_path.contains_key(path) {
                continue;
            }
            let mut next = || {
                last += 1;
                last
            };
            let number = match identities.object(path) {
                Some(object) => *executables.by_object.entry(object).or_insert_with(next),
                None => next(),
            };
            executables.by_path.insert(path.to_vec(), number);
        }

        executables
    }

    /// The marks of the executables: of the files, and of the entries that the paths name.
    pub(crate) fn marks(&self, identities: &Identities) -> Marks {
        let objects = self
            .by_object
            .iter()
            .map(|(&object, &number)| (number, object));
        let places = self.by_path.iter();
        let places = places.filter_map(|(path, &number)| Some((number, identities.of(path)?)));
        let places = places.filter(|(_, place)| !place.canonical.is_empty());
        Marks::of_executables(objects, places, identities)
    }

    /// The numbers of an executable: by its file, and by its name; 0 where no rule names it.
    pub(crate) fn numbers(&self, exe: &Executable<'_>, identities: &Identities) -> [u32; 2] {
        let of = |object| self.by_object.get(&object).copied();
        let of_object = exe.object.and_then(of).unwrap_or(0);
        let of_name = exe.at.map(|at| {
            let of_path = self.by_path.get(at).copied();
            let of_path = of_path.or_else(|| identities.object(at).and_then(of));
            of_path.unwrap_or(0)
        });
        [of_object, of_name.unwrap_or(of_object)]
    }

    pub(crate) fn number(&self, path: &[u8]) -> u32 {
        // Every path of the rules has a number.
        self.by_path.get(path).copied().unwrap_or(u32::MAX)
    }
}

/// Whether the conditions on the executable hold. If it may be one of several, a rule that records needs one with which all
/// of them hold; a `never` rule needs them to hold with each.
pub(crate) fn hold(rule: &Rule, exe: &Executable<'_>, identities: &Identities) -> bool {
    let asked = |condition: &&Condition| condition.field == Field::Exe;
    let hold = |is_run: &dyn Fn(&[u8]) -> bool| {
        let mut conditions = rule.conditions.iter().filter(asked);
        conditions.all(|condition| match &condition.value {
            Value::Text(path) => is_run(path) == (condition.op == Op::Eq),
            Value::Number(_) => false,
        })
    };
    let is_same = |object: Option<ObjectId>, path: &[u8]| {
        object.is_some() && object == identities.object(path)
    };

    let by_object = hold(&|path| is_same(exe.object, path));
    let is_other = |at: &&[u8]| !is_same(exe.object, at);
    let Some(at) = exe.at.filter(is_other) else {
        return by_object;
    };
    let by_name = hold(&|path| at == path || is_same(identities.object(at), path));
    let by_neither = hold(&|_| false);
    let each = [by_object, by_name, by_neither];
    match rule.action {
        Action::Always => each.contains(&true),
        Action::Never => !each.contains(&false),
    }
}

fn executable_paths(rules: &[Rule], field: Field) -> impl Iterator<Item = &Vec<u8>> {
    let conditions = rules.iter().flat_map(|rule| &rule.conditions);
    conditions.filter_map(move |condition| match &condition.value {
        Value::Text(path) if condition.field == field => Some(path),
        _ => None,
    })
}
