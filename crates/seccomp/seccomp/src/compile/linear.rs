//! Rules one after the other, as libseccomp tests them, or groups of them: for calls whose conditions
//! combine to more cases than they are.

use super::code::{Code, CodeId, Graph};
use super::diagram::{self, Diagrams};
use super::forms::{Form, Shape};
use super::{code_of, Order, CALL_NODES_MAX};
use crate::code as op;
use crate::policy::{Compare, Condition, Rule};
use crate::Verdict;
use std::collections::HashMap;

/// Rules of one call in one layer: the first that matches decides.
pub(super) struct Stage<'a> {
    pub(super) rules: Vec<&'a Rule>,
    pub(super) default: Verdict,
    /// Whether arguments have 64 bits; if not, upper halves are taken as 0.
    pub(super) wide: bool,
}

/// The code for stages, newest layer first: the strictest verdict of all, and among equally strict
/// ones the first. `answer` maps a verdict to what the filter returns for it.
pub(super) fn linear(
    graph: &mut Graph,
    stages: &[Stage],
    form: Form,
    answer: &dyn Fn(Verdict) -> Verdict,
) -> CodeId {
    let mut chain = Chain {
        graph,
        stages,
        form,
        answer,
        known: HashMap::new(),
    };
    chain.from(0, None)
}

struct Chain<'a> {
    graph: &'a mut Graph,
    stages: &'a [Stage<'a>],
    form: Form,
    answer: &'a dyn Fn(Verdict) -> Verdict,
    known: HashMap<(usize, Option<Verdict>), CodeId>,
}

impl Chain<'_> {
    /// The code from a stage on; `so_far` is the verdict of those before it.
    fn from(&mut self, stage: usize, so_far: Option<Verdict>) -> CodeId {
        if let Some(&code) = self.known.get(&(stage, so_far)) {
            return code;
        }

        let Some(Stage {
            rules,
            default,
            wide,
        }) = self.stages.get(stage)
        else {
            let verdict = so_far.unwrap_or(Verdict::ALLOW);
            return self.graph.add(Code::Return((self.answer)(verdict)));
        };

        let with = |verdict: Verdict| so_far.map_or(verdict, |newer| newer.or_stricter(verdict));
        // Built from the end: the default applies if no rule does.
        let mut code = self.from(stage + 1, Some(with(*default)));
        for group in groups(rules, self.form).iter().rev() {
            let yes = self.from(stage + 1, Some(with(group[0].verdict)));
            code = match self.together(group, *wide, yes, code) {
                Some(code) => code,
                None => self.in_turn(group, *wide, yes, code),
            };
        }

        self.known.insert((stage, so_far), code);
        code
    }

    /// Code that goes to `yes` if one of several rules matches; `None` if its diagram would be too
    /// large.
    fn together(&mut self, rules: &[&Rule], wide: bool, yes: CodeId, no: CodeId) -> Option<CodeId> {
        if rules.len() < 2 {
            return None;
        }

        let mut diagrams = Diagrams::new(self.form.order);
        diagrams.limit_growth(CALL_NODES_MAX);
        let any = diagrams.any(rules, wide).ok()?;
        let leaf = |_: &mut Graph, verdict| if verdict == diagram::TRUE { yes } else { no };
        let mut codes = HashMap::new();
        Some(code_of(self.graph, &diagrams, any, &leaf, &mut codes))
    }

    /// Code that tests one rule after the other and goes to `yes` if one matches.
    fn in_turn(&mut self, rules: &[&Rule], wide: bool, yes: CodeId, no: CodeId) -> CodeId {
        rules.iter().rev().fold(no, |no, rule| {
            let mut conditions: Vec<&Condition> = rule.conditions.iter().collect();
            conditions.sort_by_key(|condition| condition.arg);
            if self.form.order == Order::Ascending {
                conditions.reverse();
            }
            conditions.into_iter().fold(yes, |yes, condition| {
                test(self.graph, condition, wide, yes, no)
            })
        })
    }
}

/// Whether a form of these rules differs from the others: groups of one rule are the rules, and a single
/// group is a diagram.
pub(super) fn is_of_its_own(stages: &[Stage], form: Form) -> bool {
    form.shape != Shape::Groups
        || stages.iter().any(|stage| {
            let groups = groups(&stage.rules, form);
            groups.len() > 1 && groups.iter().any(|group| group.len() > 1)
        })
}

/// Rules that are tested together: those of neighbours with one verdict whose first argument is the
/// same, or each alone.
fn groups<'a>(rules: &[&'a Rule], form: Form) -> Vec<Vec<&'a Rule>> {
    if form.shape != Shape::Groups {
        return rules.iter().map(|&rule| vec![rule]).collect();
    }

    let first = |rule: &&Rule| first_argument(rule, form.order);
    let alike = rules.chunk_by(|one, next| one.verdict == next.verdict);
    let groups = alike.flat_map(|alike| {
        let mut sorted = alike.to_vec();
        sorted.sort_by_key(first);
        let groups = sorted.chunk_by(|one, next| first(one) == first(next));
        groups.map(<[_]>::to_vec).collect::<Vec<_>>()
    });

    groups.collect()
}

/// The argument that is tested first, and whether only some of its bits are; `None` without conditions.
fn first_argument(rule: &Rule, order: Order) -> Option<(u8, bool)> {
    let arguments = rule.conditions.iter().map(|condition| {
        let is_masked = matches!(condition.compare, Compare::MaskedEq { .. });
        (condition.arg, is_masked)
    });
    match order {
        Order::Ascending => arguments.min(),
        Order::Descending => arguments.max(),
    }
}

/// Code that goes to `yes` if the condition holds.
fn test(graph: &mut Graph, condition: &Condition, wide: bool, yes: CodeId, no: CodeId) -> CodeId {
    let (arg, value) = (condition.arg, condition.value);
    match condition.compare {
        Compare::Eq => masked(graph, (arg, wide), u64::MAX, value, [yes, no]),
        Compare::Ne => masked(graph, (arg, wide), u64::MAX, value, [no, yes]),
        Compare::MaskedEq { mask } if value & !mask == 0 => {
            masked(graph, (arg, wide), mask, value, [yes, no])
        }
        Compare::MaskedEq { .. } => no,
        Compare::Ge => at_least(graph, (arg, wide), value, yes, no),
        Compare::Lt => at_least(graph, (arg, wide), value, no, yes),
        Compare::Gt => match value.checked_add(1) {
            Some(first) => at_least(graph, (arg, wide), first, yes, no),
            None => no,
        },
        Compare::Le => match value.checked_add(1) {
            Some(first) => at_least(graph, (arg, wide), first, no, yes),
            None => yes,
        },
    }
}

/// Loads a half of an argument and goes on with `then`.
fn load(graph: &mut Graph, arg: u8, low: bool, then: CodeId) -> CodeId {
    let offset = 16 + 8 * u32::from(arg) + if low { 0 } else { 4 };
    graph.add(Code::Load { offset, then })
}

fn masked(
    graph: &mut Graph,
    (arg, wide): (u8, bool),
    mask: u64,
    value: u64,
    [yes, no]: [CodeId; 2],
) -> CodeId {
    let low = masked_half(graph, arg, true, mask as u32, value as u32, [yes, no]);
    let (mask, value) = ((mask >> 32) as u32, (value >> 32) as u32);
    if wide {
        return masked_half(graph, arg, false, mask, value, [low, no]);
    }

    // The upper half is known to be 0.
    if value == 0 {
        low
    } else {
        no
    }
}

fn masked_half(
    graph: &mut Graph,
    arg: u8,
    low: bool,
    mask: u32,
    value: u32,
    [yes, no]: [CodeId; 2],
) -> CodeId {
    let jump = |op, k, yes, no| Code::Test { op, k, yes, no };
    // JSET tests "any bit of the mask": for 0 and for a single bit it saves the AND.
    let then = match (mask, value) {
        (0, _) => return yes,
        (u32::MAX, value) => graph.add(jump(op::JEQ, value, yes, no)),
        (mask, 0) => graph.add(jump(op::JSET, mask, no, yes)),
        (mask, value) if mask == value && mask.is_power_of_two() => {
            graph.add(jump(op::JSET, mask, yes, no))
        }
        (mask, value) => {
            let then = graph.add(jump(op::JEQ, value, yes, no));
            graph.add(Code::Mask { mask, then })
        }
    };

    // Both ways may be the same.
    if then == yes || then == no {
        then
    } else {
        load(graph, arg, low, then)
    }
}

fn at_least(
    graph: &mut Graph,
    (arg, wide): (u8, bool),
    bound: u64,
    yes: CodeId,
    no: CodeId,
) -> CodeId {
    let (high, low) = ((bound >> 32) as u32, bound as u32);
    let jump = |op, k, yes, no| Code::Test { op, k, yes, no };
    let low = match low {
        0 => yes,
        low => {
            let test = graph.add(jump(op::JGE, low, yes, no));
            load(graph, arg, true, test)
        }
    };

    if !wide {
        return if high == 0 { low } else { no };
    }

    let equal = match high {
        0 => yes,
        // Smaller ones are left.
        _ => no,
    };
    let equal = graph.add(jump(op::JEQ, high, low, equal));
    let test = match high {
        0 => equal,
        high => graph.add(jump(op::JGT, high, yes, equal)),
    };
    if test == yes || test == no {
        test
    } else {
        load(graph, arg, false, test)
    }
}
