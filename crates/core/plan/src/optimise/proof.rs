//! Shows that two lists of rules select the same events with the same keys.
//!
//! For every call, the rules that may match it are brought into a normal form by steps that change no
//! decision. Equal forms prove equal decisions for every task, argument, result and name. This is
//! checked for all calls of both entries, by one call of each kind (see [`Memory::representatives`]).
//! Then the reference evaluator decides random calls with both lists.

use super::sample::Sampler;
use super::working::{Call, Item, Memory, Work};
use crate::evaluate::decide;
use crate::evaluate::Decision;
use rules::{Rule, SyscallSet};
use serde::Serialize;
use std::rc::Rc;

/// Extent of the proof that a step is equivalent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// Number of calls whose rules were compared, each as a representative of its kind.
    pub calls: usize,
    /// Number of random calls that the reference evaluator decided alike.
    pub samples: usize,
}

/// Shows, if it can, that `before` and `after` select the same events. They contain all rules on the
/// `touched` calls, for which the two sets may differ.
pub(super) fn prove(
    memory: &Memory,
    before: &[Rc<Work>],
    after: &[Rc<Work>],
    touched: &SyscallSet,
    sampler: &mut Sampler,
    samples: usize,
) -> Option<Proof> {
    let calls = memory.representatives(&[before, after], touched);
    let alike = |&call: &Call| {
        let (old, new) = (memory.list(before, call), memory.list(after, call));
        is_same(&old, &new) || is_same(&normal(old), &normal(new))
    };
    if !calls.iter().all(alike) {
        return None;
    }

    agree(memory, before, after, touched, sampler, samples).then_some(Proof {
        calls: calls.len(),
        samples,
    })
}

/// Shows, if it can, that a `never` rule in front of `rules` changes nothing that these select: none of them can match a
/// call that it can match.
pub(super) fn prove_apart(
    memory: &Memory,
    rules: &[Rc<Work>],
    never: &Rc<Work>,
    sampler: &mut Sampler,
    samples: usize,
) -> Option<Proof> {
    let first = std::slice::from_ref(never);
    let calls = memory.representatives(&[rules, first], &never.calls);
    let is_apart =
        |&call: &Call| memory.list(first, call).is_empty() || memory.list(rules, call).is_empty();
    if !calls.iter().all(is_apart) {
        return None;
    }

    let after: Vec<Rc<Work>> = first.iter().chain(rules).cloned().collect();
    agree(memory, rules, &after, &never.calls, sampler, samples).then_some(Proof {
        calls: calls.len(),
        samples,
    })
}

/// Whether the reference evaluator decides random calls alike with both lists.
fn agree(
    memory: &Memory,
    before: &[Rc<Work>],
    after: &[Rc<Work>],
    touched: &SyscallSet,
    sampler: &mut Sampler,
    samples: usize,
) -> bool {
    let rules = |work: &[Rc<Work>]| -> Vec<Rule> { work.iter().map(|w| w.rule.clone()).collect() };
    let (old, new) = (rules(before), rules(after));
    (0..samples).all(|_| {
        let sample = sampler.call(&old, touched);
        let facts = sample.facts();
        let decided = |rules: &[Rule]| {
            let decision = decide(rules, memory.entries, &facts, sampler.identities());
            outcome(rules, decision)
        };
        decided(&old) == decided(&new)
    })
}

/// The visible outcome of a decision: the key of the record, or `None` if there is no record.
fn outcome(rules: &[Rule], decision: Decision) -> Option<Vec<u8>> {
    match decision {
        Decision::Drop => None,
        Decision::Record(rule) | Decision::Unsure(rule) => {
            let rule = rules.get(rule as usize)?;
            Some(rule.key().unwrap_or_default().to_vec())
        }
    }
}

fn is_same(a: &[Item], b: &[Item]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(a, b)| a.outcome == b.outcome && a.residual == b.residual)
}

/// Whether the order of two neighbours does not matter: they never match the same call, or have the
/// same outcome and are both stored by inode or both not. After two rules by inode, the names left
/// for later rules are the same in either order. But a rule by inode replaces the decision of an
/// earlier one that matched a later name, and other rules do not: with one of each, the order matters.
pub(super) fn commute(a: &Item, b: &Item) -> bool {
    is_alike(a, b) || a.residual.excludes(&b.residual)
}

fn is_alike(a: &Item, b: &Item) -> bool {
    a.outcome == b.outcome && a.by_inode == b.by_inode
}

/// The list without rules that decide nothing, in a canonical order.
pub(super) fn normal(list: Vec<Item>) -> Vec<Item> {
    let kept = reduced(list);
    let mut rest = kept;
    let mut ordered = Vec::with_capacity(rest.len());
    while !rest.is_empty() {
        // Among the rules that can come first, the one that sorts first.
        let first = (0..rest.len())
            .filter(|&i| rest[..i].iter().all(|earlier| commute(earlier, &rest[i])))
            .min_by_key(|&i| (rest[i].outcome, hash(&rest[i])))
            .unwrap_or(0);
        ordered.push(rest.remove(first));
    }

    ordered
}

fn hash(item: &Item) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    item.residual.hash(&mut hasher);
    hasher.finish()
}

/// The list without rules that decide nothing: those for which an earlier rule matches whatever they
/// match, or a later rule does so with the same outcome and they can be moved next to it.
pub(super) fn reduced(list: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::with_capacity(list.len());
    for item in list {
        let is_shadowed = kept
            .iter()
            .any(|earlier| item.residual.implies(&earlier.residual));
        if !is_shadowed {
            kept.push(item);
        }
    }

    let mut i = kept.len();
    while i > 0 {
        i -= 1;
        if is_covered(&kept, i) {
            kept.remove(i);
        }
    }

    kept
}

fn is_covered(list: &[Item], i: usize) -> bool {
    for later in i + 1..list.len() {
        if is_alike(&list[i], &list[later]) && list[i].residual.implies(&list[later].residual) {
            return true;
        }
        if !commute(&list[i], &list[later]) {
            return false;
        }
    }
    false
}
