//! The changes to the rules that are tried.

use super::proof::{commute, reduced};
use super::working::{add, common, Call, Item, Work};
use super::{works, Change, Optimiser, StepKind};
use crate::facts::Entry;
use crate::lint::is_old_watch;
use abi::Arch;
use rules::{Action, Condition, Rule, SyscallSet, Value};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Description of [`StepKind::NarrowWatch`].
const NARROWED: &str =
    "a watch on every call: on either architecture, only these numbers can match";

impl Optimiser {
    /// Drops rules that decide nothing for any call.
    pub(super) fn drop_dead(&mut self) {
        let mut at = 0;
        let mut dead = self.dead();
        while at < self.exit.len() {
            if dead[at] && self.drop_rule(at) {
                dead.remove(at);
            } else {
                at += 1;
            }
        }
    }

    /// Representatives of the `touched` calls, each with the rules that may match it.
    fn lists(&self, touched: &SyscallSet) -> Vec<(Call, Vec<Item>)> {
        let works = works(&self.exit);
        self.memory
            .representatives(&[&works], touched)
            .into_iter()
            .map(|call| (call, self.memory.list(&works, call)))
            .collect()
    }

    fn dead(&self) -> Vec<bool> {
        let mut dead = vec![true; self.exit.len()];
        for (_, list) in self.lists(&SyscallSet::ALL) {
            for item in reduced(list) {
                dead[item.position] = false;
            }
        }
        dead
    }

    fn drop_rule(&mut self, at: usize) -> bool {
        let work = &self.exit[at].work;
        let (kind, description) = self.why_dead(at);
        let mut exit = self.exit.clone();
        let touched = work.calls.clone();
        let gone = vec![exit.remove(at).work.rule.clone()];
        self.attempt(Change {
            kind,
            description,
            exit,
            gone,
            come: Vec::new(),
            touched,
        })
    }

    /// Reason why the rule at `at` decides nothing. Names the rule that decides instead, if it is a single one.
    fn why_dead(&self, at: usize) -> (StepKind, String) {
        let mut others: Option<BTreeSet<usize>> = None;
        let mut is_equal = true;
        for (_, list) in self.lists(&self.exit[at].work.calls) {
            let Some(own) = list.iter().find(|item| item.position == at) else {
                continue;
            };
            let covering: BTreeSet<usize> = list
                .iter()
                .filter(|other| other.position != at && own.residual.implies(&other.residual))
                .map(|other| other.position)
                .collect();
            is_equal &= list
                .iter()
                .any(|other| other.position != at && other.residual == own.residual);
            others = Some(match others {
                Some(known) => known.intersection(&covering).copied().collect(),
                None => covering,
            });
        }

        let Some(others) = others else {
            let description = "never matches: no call can meet its conditions".to_owned();
            return (StepKind::DropNeverMatching, description);
        };

        match others.first() {
            Some(&other) => {
                let at = self.exit[other].work.rule.source.place();
                if is_equal {
                    (
                        StepKind::DropDuplicate,
                        format!("the rule at {at} has the same conditions"),
                    )
                } else {
                    (
                        StepKind::DropShadowed,
                        format!("the rule at {at} decides everything that this one would"),
                    )
                }
            }
            None => (
                StepKind::DropShadowed,
                "other rules together decide everything that this one would".to_owned(),
            ),
        }
    }

    /// Merges rules that differ only in their calls. Returns whether any were merged.
    pub(super) fn merge(&mut self) -> bool {
        let steps = self.steps.len();
        let mut known: HashMap<(Action, Vec<Condition>), Vec<usize>> = HashMap::new();
        let mut at = 0;
        while at < self.exit.len() {
            let earlier = known
                .entry(merge_key(&self.exit[at].work.rule))
                .or_default();
            if earlier
                .iter()
                .any(|&first| self.merge_two(first, at, first))
            {
                // The rule at `at` is gone.
                continue;
            }
            if earlier.iter().any(|&first| self.merge_two(first, at, at)) {
                // A rule before `at` is gone.
                known.clear();
                at = 0;
                continue;
            }
            earlier.push(at);
            at += 1;
        }

        self.steps.len() > steps
    }

    /// Merges the rules at `first` and `second` into one at `place_of_both`, which is one of these
    /// places.
    fn merge_two(&mut self, first: usize, second: usize, place_of_both: usize) -> bool {
        let works = [first, second].map(|i| Rc::clone(&self.exit[i].work));
        let gone = works.clone().map(|work| work.rule.clone()).to_vec();
        let is_at_first = place_of_both == first;
        let mut rule = gone[usize::from(!is_at_first)].clone();
        rule.syscalls = gone[0].syscalls.clone();
        add(&mut rule.syscalls, &gone[1].syscalls);
        let mut exit = self.exit.clone();
        exit[place_of_both].work = Rc::new(self.memory.work(rule.clone()));
        exit.remove(if is_at_first { second } else { first });
        let description = format!(
            "{} and {} differ only in their calls",
            gone[0].source.place(),
            gone[1].source.place()
        );

        self.attempt(Change {
            kind: StepKind::Merge,
            description,
            exit,
            gone,
            come: vec![rule],
            // Only for the calls of the rule that moves do the rules change.
            touched: works[usize::from(is_at_first)].calls.clone(),
        })
    }

    /// Restricts watches of directories on every call to the calls that they can match at either entry, so that the
    /// kernel does not evaluate them for others. The rule stays one rule: with one for each architecture, every call
    /// would pass one more, and those whose number the other architecture's rule has would pay for its evaluation.
    /// Rules with `path=` would gain nothing: the kernel looks for those only if a call collected a name with the same
    /// hash.
    pub(super) fn narrow_watches(&mut self) {
        for at in 0..self.exit.len() {
            let work = Rc::clone(&self.exit[at].work);
            if !is_old_watch(&work.rule) || work.by_inode {
                continue;
            }
            let mut calls = SyscallSet::EMPTY;
            for entry in [Entry::Native, Entry::Compat] {
                if let Some(arch) = self.memory.entries.arch(entry) {
                    add(&mut calls, &self.possible(&work, entry, arch));
                }
            }
            let mut rule = work.rule.clone();
            rule.syscalls = calls;
            let mut exit = self.exit.clone();
            exit[at].work = Rc::new(self.memory.work(rule.clone()));
            self.attempt(Change {
                kind: StepKind::NarrowWatch,
                description: NARROWED.to_owned(),
                exit,
                gone: vec![work.rule.clone()],
                come: vec![rule],
                touched: work.calls.clone(),
            });
        }
    }

    /// The calls at `entry` that `work` may match.
    fn possible(&self, work: &Work, entry: Entry, arch: Arch) -> SyscallSet {
        let mut calls = SyscallSet::EMPTY;
        for (kind, group) in &super::residual::Kinds::of(arch, self.memory.entries.lists()).groups {
            if self.memory.residual(work, entry, *kind).is_some() {
                add(&mut calls, group);
            }
        }
        common(&calls, &work.calls)
    }

    /// Moves `never` rules forward, past rules on the same calls that select none of what they drop.
    pub(super) fn hoist_never(&mut self) {
        for at in 1..self.exit.len() {
            if self.exit[at].work.rule.action == Action::Never {
                self.hoist(at);
            }
        }
    }

    fn hoist(&mut self, at: usize) {
        let lists = self.lists(&self.exit[at].work.calls);
        let mut target = 0;
        let mut passed = BTreeSet::new();
        for (_, list) in &lists {
            let Some(own) = list.iter().position(|item| item.position == at) else {
                continue;
            };
            let earlier = &list[..own];
            let stop = earlier.iter().rposition(|item| !commute(item, &list[own]));
            if let Some(stop) = stop {
                target = target.max(earlier[stop].position + 1);
            }
            let differing = |item: &&Item| item.outcome != list[own].outcome;
            passed.extend(earlier.iter().filter(differing).map(|item| item.position));
        }

        // Only past rules on the same calls, since otherwise nothing is saved.
        let Some(&target) = passed.range(target..).next() else {
            return;
        };

        let mut exit = self.exit.clone();
        let placed = exit.remove(at);
        let rule = placed.work.rule.clone();
        let touched = placed.work.calls.clone();
        let description = format!(
            "matches none of the calls that {} rule(s) before it select: calls that it drops are decided sooner",
            passed.range(target..).count()
        );
        exit.insert(target, placed);

        self.attempt(Change {
            kind: StepKind::HoistNever,
            description,
            exit,
            gone: vec![rule.clone()],
            come: vec![rule],
            touched,
        });
    }
}

/// A key that is equal for rules that differ only in their calls and the order of their conditions.
fn merge_key(rule: &Rule) -> (Action, Vec<Condition>) {
    let mut conditions = rule.conditions.clone();
    conditions.sort_by_key(|condition| {
        let value = match &condition.value {
            Value::Number(number) => (*number, Vec::new()),
            Value::Text(text) => (0, text.clone()),
        };
        (condition.field, condition.op as u32, value)
    });
    (rule.action, conditions)
}
