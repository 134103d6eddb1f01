//! The changes to the rules that are tried.

use super::proof::{commute, reduced};
use super::working::{add, common, Call, Item, Work};
use super::{Change, Optimiser, Placed, StepKind};
use crate::evaluate::is_inode_rule;
use crate::facts::Entry;
use crate::lint::is_old_watch;
use abi::{syscall_name, Arch, Field};
use rules::{Action, Condition, Op, Rule, SyscallSet, Value};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

/// Limit of the conditions of a rule: `AUDIT_MAX_FIELDS` less one.
const CONDITIONS_MAX: usize = 63;
/// The lowest number that selects a class of calls.
const FIRST_CLASS: u32 = 2032;

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

    fn works(&self) -> Vec<Rc<Work>> {
        self.exit.iter().map(|p| Rc::clone(&p.work)).collect()
    }

    /// Representatives of the `touched` calls, each with the rules that may match it.
    fn lists(&self, touched: &SyscallSet) -> Vec<(Call, Vec<Item>)> {
        let works = self.works();
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

    /// Splits rules that name calls without their architecture, if it makes a difference.
    pub(super) fn split_arches(&mut self) {
        let [Some(native), Some(compat)] = self.memory.entries.arches() else {
            return;
        };
        let mut at = 0;
        while at < self.exit.len() {
            let rule = &self.exit[at].work.rule;
            if let Some(example) = misread(rule, native, compat) {
                let calls = &rule.syscalls;
                let parts = [native, compat].map(|arch| (arch, calls.clone()));
                let description = format!("no arch=: {example}");
                self.replace_by_arch(at, StepKind::SplitArch, description, &parts);
            }
            at += 1;
        }
    }

    /// Restricts watches of directories on every call to the calls that they can match, so that the
    /// kernel does not evaluate them for others. Rules with `path=` would gain nothing: the kernel
    /// looks for those only if a call collected a name with the same hash.
    pub(super) fn narrow_watches(&mut self) {
        let mut at = 0;
        while at < self.exit.len() {
            let work = &self.exit[at].work;
            if is_old_watch(&work.rule) && !is_inode_rule(&work.rule) {
                let parts: Vec<(Arch, SyscallSet)> = [Entry::Native, Entry::Compat]
                    .into_iter()
                    .filter_map(|entry| {
                        let arch = self.memory.entries.arch(entry)?;
                        Some((arch, self.possible(work, entry, arch)))
                    })
                    .filter(|(_, calls)| !calls.is_empty())
                    .collect();
                let description = "a watch on every call: only these can match".to_owned();
                self.replace_by_arch(at, StepKind::NarrowWatch, description, &parts);
            }
            at += 1;
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

    /// Replaces the rule at `at` by one for each architecture.
    fn replace_by_arch(
        &mut self,
        at: usize,
        kind: StepKind,
        description: String,
        parts: &[(Arch, SyscallSet)],
    ) {
        let placed = self.exit[at].clone();
        let rule = placed.work.rule.clone();
        if parts.is_empty() || rule.conditions.len() >= CONDITIONS_MAX {
            return;
        }
        let come: Vec<Rule> = parts
            .iter()
            .map(|(arch, calls)| with_arch(&rule, *arch, calls.clone()))
            .collect();
        let mut exit = self.exit.clone();
        let replacement = come.iter().map(|rule| Placed {
            work: Rc::new(self.memory.work(rule.clone())),
            home: placed.home,
        });
        exit.splice(at..=at, replacement);
        self.attempt(Change {
            kind,
            description,
            exit,
            gone: vec![rule],
            come,
            touched: placed.work.calls.clone(),
        });
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

/// For a rule without an architecture: the meaning on both architectures of a number for which they
/// differ, if there is one.
fn misread(rule: &Rule, native: Arch, compat: Arch) -> Option<String> {
    let names_arch = rule.conditions.iter().any(|c| c.field == Field::Arch);
    if names_arch || rule.syscalls.is_all() {
        return None;
    }
    let calls = rule.syscalls.iter().filter(|&nr| nr < FIRST_CLASS);
    let differing = calls.filter_map(|nr| {
        let names = (syscall_name(native, nr), syscall_name(compat, nr));
        (names.0 != names.1).then_some((nr, names))
    });
    let shown = |name: Option<&'static str>| name.unwrap_or("no call");
    differing
        .take(1)
        .next()
        .map(|(nr, (name, other))| format!("call {nr} is {} or {}", shown(name), shown(other)))
}

fn with_arch(rule: &Rule, arch: Arch, syscalls: SyscallSet) -> Rule {
    let mut rule = rule.clone();
    rule.conditions.insert(
        0,
        Condition {
            field: Field::Arch,
            op: Op::Eq,
            value: Value::Number(arch.audit_arch()),
        },
    );
    rule.syscalls = syscalls;
    rule
}
