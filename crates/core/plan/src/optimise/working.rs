//! Rules of the exit list that are being optimised, with their conditions for every call.

use super::residual::{CallKind, Kinds, Residual};
use crate::entries::{calls_of, Entries};
use crate::evaluate::is_inode_rule;
use crate::facts::Entry;
use abi::{syscall_name, Arch, Field};
use rules::{Action, Condition, Dialect, Rule, SyscallSet};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The lowest number that selects a class of calls.
pub(super) const FIRST_CLASS: u32 = 2032;

/// The visible outcome of a match: the key that is recorded, or `None` for `never`.
pub(super) type Outcome = Option<Vec<u8>>;

/// A rule that is being optimised.
pub(super) struct Work {
    pub(super) rule: Rule,
    /// The calls of the rule, with class selectors expanded.
    pub(super) calls: SyscallSet,
    /// Number of the rule's conditions in [`Memory`].
    conditions: usize,
    /// Number of the rule's outcome in [`Memory`].
    pub(super) outcome: usize,
    /// Whether the kernel stores the rule by inode.
    pub(super) by_inode: bool,
}

/// A rule that may match a certain call.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) residual: Rc<Residual>,
    pub(super) outcome: usize,
    /// Whether the kernel stores the rule by inode.
    pub(super) by_inode: bool,
    /// Position of the rule in the list that it was taken from.
    pub(super) position: usize,
}

type Known = HashMap<(usize, Entry, CallKind), Option<Rc<Residual>>>;

/// A cache of what was found out about conditions.
pub(super) struct Memory {
    pub(super) entries: Entries,
    conditions: RefCell<HashMap<(Action, Vec<Condition>), usize>>,
    outcomes: RefCell<HashMap<Outcome, usize>>,
    known: RefCell<Known>,
}

impl Memory {
    pub(super) fn new(entries: Entries) -> Memory {
        Memory {
            entries,
            conditions: RefCell::default(),
            outcomes: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// Prepares a rule of the exit list.
    pub(super) fn work(&self, rule: Rule) -> Work {
        let mut conditions: Vec<Condition> = rule.conditions.clone();
        conditions.retain(|condition| condition.field != Field::FilterKey);
        let outcome: Outcome = match rule.action {
            Action::Always => Some(rule.key().unwrap_or_default().to_vec()),
            Action::Never => None,
        };
        Work {
            calls: calls_of(&rule, self.entries),
            conditions: number(&self.conditions, (rule.action, conditions)),
            outcome: number(&self.outcomes, outcome),
            by_inode: is_inode_rule(&rule),
            rule,
        }
    }

    /// The conditions of `work` that are left for calls of `kind`; `None` if it can match none.
    pub(super) fn residual(
        &self,
        work: &Work,
        entry: Entry,
        kind: CallKind,
    ) -> Option<Rc<Residual>> {
        let key = (work.conditions, entry, kind);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let residual = Residual::of(&work.rule, self.entries, entry, kind)
            .ok()
            .map(Rc::new);
        self.known.borrow_mut().insert(key, residual.clone());
        residual
    }

    /// The rules that may match `call`, in order.
    pub(super) fn list(&self, rules: &[Rc<Work>], call: Call) -> Vec<Item> {
        let about = rules.iter().enumerate();
        about
            .filter(|(_, work)| work.calls.contains(call.nr))
            .filter_map(|(position, work)| {
                let residual = self.residual(work, call.entry, call.kind)?;
                Some(Item {
                    residual,
                    outcome: work.outcome,
                    by_inode: work.by_inode,
                    position,
                })
            })
            .collect()
    }

    /// The native calls whose names every version of auditctl knows: those that no rule can match, and the others.
    pub(super) fn by_naming(&self, rules: &[Rc<Work>], arch: Arch) -> [SyscallSet; 2] {
        let mut sets = [SyscallSet::EMPTY; 2];
        let kinds = Kinds::of(arch, self.entries.lists());
        let has_name = |&nr: &u32| syscall_name(arch, nr).is_some();
        let is_known = |nr: &u32| Dialect::V3.knows_call(arch, *nr);
        for nr in (0..FIRST_CLASS).filter(has_name).filter(is_known) {
            let call = Call {
                entry: Entry::Native,
                nr,
                kind: kinds.kind(nr),
            };
            let is_named = !self.list(rules, call).is_empty();
            sets[usize::from(is_named)].insert(nr);
        }

        sets
    }

    /// Calls among `touched` that represent all of them: every other call has the same rules with the
    /// same conditions as one of these.
    pub(super) fn representatives(&self, rules: &[&[Rc<Work>]], touched: &SyscallSet) -> Vec<Call> {
        let mut named = SyscallSet::EMPTY;
        for work in rules.iter().flat_map(|rules| rules.iter()) {
            if !work.calls.is_all() {
                add(&mut named, &work.calls);
            }
        }

        let mut calls = Vec::new();
        for entry in [Entry::Native, Entry::Compat] {
            let Some(arch) = self.entries.arch(entry) else {
                continue;
            };
            let kinds = Kinds::of(arch, self.entries.lists());
            let call = |nr| Call {
                entry,
                nr,
                kind: kinds.kind(nr),
            };
            calls.extend(common(&named, touched).iter().map(call));
            for (_, group) in &kinds.groups {
                let rest = common(group, touched);
                calls.extend(rest.iter().find(|&nr| !named.contains(nr)).map(call));
            }
        }

        calls
    }
}

/// A call, and the kind that it represents.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) entry: Entry,
    pub(super) nr: u32,
    pub(super) kind: CallKind,
}

fn number<K: std::hash::Hash + Eq>(known: &RefCell<HashMap<K, usize>>, key: K) -> usize {
    let mut known = known.borrow_mut();
    let next = known.len();
    *known.entry(key).or_insert(next)
}

/// Adds the calls of `more` to `calls`.
pub(super) fn add(calls: &mut SyscallSet, more: &SyscallSet) {
    for (word, more) in calls.0.iter_mut().zip(&more.0) {
        *word |= more;
    }
}

/// The calls in both.
pub(super) fn common(a: &SyscallSet, b: &SyscallSet) -> SyscallSet {
    let mut both = a.clone();
    for (word, other) in both.0.iter_mut().zip(&b.0) {
        *word &= other;
    }
    both
}
