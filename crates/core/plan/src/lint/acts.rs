//! Finds calls that do what a rule watches, and that no rule watches: mount without fsopen, chmod without fchmodat2.

use super::{reloadable, Examined, Lint};
use crate::entries::calls_of;
use abi::{syscall_number, Act, Arch, Argument, Field, Meant, Way};
use rules::{Action, Condition, Dialect, List, Op, Rule, SyscallSet, Value};
use std::collections::HashSet;

/// A rule that selects calls of one architecture.
struct Watch<'a> {
    arch: Arch,
    calls: SyscallSet,
    /// The conditions that say whose calls are meant.
    base: Vec<&'a Condition>,
    arguments: Vec<&'a Condition>,
}

impl<'a> Watch<'a> {
    fn of(rule: &'a Rule, examined: &Examined<'_>) -> Option<Watch<'a>> {
        let is_on_calls = rule.list == List::Exit && rule.action == Action::Always;
        is_on_calls.then_some(())?;
        Some(Watch {
            arch: arch(examined, rule)?,
            calls: calls_of(rule, examined.entries),
            base: base(rule),
            arguments: arguments(rule).collect(),
        })
    }

    /// Whether whoever is selected by the conditions `base` is selected if he makes a call in this way.
    fn sees(&self, way: &Way, nr: u32, base: &[&Condition]) -> bool {
        let is_way = |c: &&Condition| {
            way.argument
                .is_some_and(|argument| is_argument(c, argument))
        };
        self.calls.contains(nr)
            && self.arguments.iter().all(is_way)
            && self.base.iter().all(|c| base.contains(c))
    }
}

/// Finds `always` rules that name some calls of an act, unless rules with no further conditions name the others. Each
/// missing call is reported once, at the first rule that misses it.
pub(super) fn find(examined: &mut Examined<'_>) {
    let rules = examined.rules;
    let watches: Vec<Option<Watch<'_>>> =
        rules.iter().map(|rule| Watch::of(rule, examined)).collect();
    let mut reported = HashSet::new();
    for (i, (rule, watch)) in rules.iter().zip(&watches).enumerate() {
        let (Some(Watch { arch, base, .. }), true) = (watch.as_ref(), names_calls(rule)) else {
            continue;
        };
        let acts: Vec<&Act> = acts_of(rule, *arch, examined).collect();
        for act in acts {
            let same_arch = watches.iter().flatten().filter(|other| other.arch == *arch);
            let others: Vec<&Watch<'_>> = same_arch.collect();
            let is_missing = |way: &&Way| {
                let is_seen = |nr| others.iter().any(|other| other.sees(way, nr, base));
                number(way, *arch).is_some_and(|nr| !is_seen(nr))
            };
            let is_new =
                |way: &&Way| reported.insert((*arch, base.clone(), way.call, way.argument));
            let missing: Vec<&Way> = act.ways.iter().filter(is_missing).filter(is_new).collect();
            if missing.is_empty() {
                continue;
            }
            let message = format!("programs can {} unseen: {}", act.name, shown(&missing));
            let remedy = remedy(rule, act, &missing, *arch, examined);
            examined.found(Lint::OtherCalls, i, message, remedy);
        }
    }
}

/// The acts that a rule means by the calls that it names on an architecture.
pub(super) fn acts_of<'a>(
    rule: &'a Rule,
    arch: Arch,
    examined: &'a Examined<'_>,
) -> impl Iterator<Item = &'static Act> + 'a {
    let calls = calls_of(rule, examined.entries);
    let on_arguments: Vec<&Condition> = arguments(rule).collect();
    abi::acts().iter().filter(move |act| {
        act.ways.iter().any(|way| {
            let is_named = number(way, arch).is_some_and(|nr| calls.contains(nr));
            is_named && means(way, &on_arguments)
        })
    })
}

/// Whether a rule with these conditions on arguments means the act by this call.
fn means(way: &Way, on_arguments: &[&Condition]) -> bool {
    let is_way = |c: &&Condition| {
        way.argument
            .is_some_and(|argument| is_argument(c, argument))
    };
    match way.meant {
        Meant::Never => false,
        Meant::ByArgument => !on_arguments.is_empty() && on_arguments.iter().all(is_way),
        Meant::ByCall if way.argument.is_some() => on_arguments.iter().all(is_way),
        // An argument that no act is about narrows what the call does by itself.
        Meant::ByCall => on_arguments.is_empty() || !is_an_act(way.call, on_arguments),
    }
}

/// Whether the conditions make the call one of an act of its own.
fn is_an_act(call: &str, on_arguments: &[&Condition]) -> bool {
    let mut ways = abi::acts().iter().flat_map(|act| &act.ways);
    ways.any(|way| {
        let argument = if way.call == call { way.argument } else { None };
        argument.is_some_and(|argument| on_arguments.iter().all(|c| is_argument(c, argument)))
    })
}

/// The lines to add: one for all calls that are to be watched whatever their arguments are, and one for each other.
fn remedy(rule: &Rule, act: &Act, missing: &[&Way], arch: Arch, examined: &Examined<'_>) -> String {
    let mut of_act = act.ways.iter().filter_map(|way| way.argument);
    let has_own = arguments(rule).next().is_some();
    let is_known = of_act.any(|argument| arguments(rule).all(|c| is_argument(c, argument)));
    if has_own && !is_known {
        return "add rules on them, with the arguments that mean the same there".to_owned();
    }

    let line = |ways: &[&Way], argument: Option<Argument>| {
        let mut added = rule.clone();
        added.syscalls = SyscallSet::EMPTY;
        let numbers = ways.iter().filter_map(|way| number(way, arch));
        numbers.for_each(|nr| added.syscalls.insert(nr));
        let at = added.conditions.iter().position(is_on_argument);
        added.conditions.retain(|c| !is_on_argument(c));
        if let Some(argument) = argument {
            // Before the key, which is printed last.
            let at = at.unwrap_or_else(|| before_key(&added));
            added.conditions.insert(at, condition(argument));
        }
        reloadable(&added, examined.entries, Dialect::V4)
            .trim()
            .to_owned()
    };

    let (narrowed, whole): (Vec<&Way>, Vec<&Way>) =
        missing.iter().partition(|way| way.argument.is_some());
    let mut lines = Vec::new();
    if !whole.is_empty() {
        lines.push(line(&whole, None));
    }

    lines.extend(narrowed.iter().map(|way| line(&[way], way.argument)));
    let mut text = format!("add {}", lines.join("; and "));
    let unknown: Vec<String> = missing
        .iter()
        .filter_map(|way| Some((way, number(way, arch)?)))
        .filter(|(_, nr)| !Dialect::V3.knows_call(arch, *nr))
        .map(|(way, nr)| format!("{} is {nr}", way.call))
        .collect();

    if !unknown.is_empty() {
        text.push_str(&format!(" (for auditctl 3: {})", unknown.join(", ")));
    }

    text
}

fn before_key(rule: &Rule) -> usize {
    let key = rule
        .conditions
        .iter()
        .position(|c| c.field == Field::FilterKey);
    key.unwrap_or(rule.conditions.len())
}

fn shown(ways: &[&Way]) -> String {
    let shown = ways.iter().map(|way| match way.argument {
        None => way.call.to_owned(),
        Some(argument) => format!("{} with {}", way.call, text(argument)),
    });
    shown.collect::<Vec<String>>().join(", ")
}

fn text(argument: Argument) -> String {
    let condition = condition(argument);
    let op = condition.op.symbol();
    format!("a{}{op}{:#x}", argument.index, argument.value)
}

fn condition(argument: Argument) -> Condition {
    let fields = [Field::Arg0, Field::Arg1, Field::Arg2, Field::Arg3];
    Condition {
        field: fields[usize::from(argument.index) % fields.len()],
        op: if argument.is_mask {
            Op::BitMask
        } else {
            Op::Eq
        },
        value: Value::Number(argument.value),
    }
}

fn is_argument(found: &Condition, argument: Argument) -> bool {
    *found == condition(argument)
}

fn number(way: &Way, arch: Arch) -> Option<u32> {
    syscall_number(arch, way.call)
}

/// Whether a rule names calls one by one. Those that `perm=` selects are what the access means.
pub(super) fn names_calls(rule: &Rule) -> bool {
    let has_access = rule.conditions.iter().any(|c| c.field == Field::Perm);
    !rule.syscalls.is_all() && !has_access
}

/// The architecture whose calls a rule is about: the host's without `arch=`.
fn arch(examined: &Examined<'_>, rule: &Rule) -> Option<Arch> {
    let mut arches = rule.conditions.iter().filter(|c| c.field == Field::Arch);
    match (arches.next(), arches.next()) {
        (None, _) => examined.entries.arches()[0],
        (Some(one), None) if one.op == Op::Eq => match one.value {
            Value::Number(number) => Arch::from_audit_arch(number),
            Value::Text(_) => None,
        },
        _ => None,
    }
}

/// The conditions that say whose calls are meant, without those on arguments, sorted.
fn base(rule: &Rule) -> Vec<&Condition> {
    let is_meant =
        |c: &&Condition| !matches!(c.field, Field::Arch | Field::FilterKey) && !is_on_argument(c);
    let mut found: Vec<&Condition> = rule.conditions.iter().filter(is_meant).collect();
    found.sort_by_cached_key(|c| format!("{c:?}"));
    found
}

fn arguments(rule: &Rule) -> impl Iterator<Item = &Condition> {
    rule.conditions.iter().filter(|c| is_on_argument(c))
}

pub(super) fn is_on_argument(condition: &Condition) -> bool {
    matches!(
        condition.field,
        Field::Arg0 | Field::Arg1 | Field::Arg2 | Field::Arg3
    )
}
