//! Rewrites rules into equivalent, cheaper ones.
//!
//! The exit list is rewritten step by step; other lists are left as they are. A step is only made if
//! it is shown to change no decision (see `proof`), under kernel audit as well as under any engine, and if it costs no call
//! more by both models of what kernel audit costs (see `price`).
//! Nothing is assumed about security labels. `never` rules at the end of the list stay, because in
//! the kernel they also suppress the SYSCALL record that would accompany other records.

mod cost;
mod leading;
pub(crate) mod price;
mod proof;
pub(crate) mod residual;
mod sample;
mod steps;
mod working;

pub use cost::Cost;
pub use leading::lead_with_never;
pub use proof::Proof;

use crate::entries::Entries;
use crate::lint::reloadable;
use price::Price;
use rules::{Dialect, List, Rule, SyscallSet};
use sample::Sampler;
use serde::Serialize;
use std::rc::Rc;
use working::{common, Memory, Work};

/// Kind of change that a step makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Drops a rule that no call can meet.
    DropNeverMatching,
    /// Drops a rule that has the same conditions as another one.
    DropDuplicate,
    /// Drops a rule whose calls are decided by other rules with the same result.
    DropShadowed,
    /// Merges two rules that differ only in their calls.
    Merge,
    /// Replaces a watch of a directory by a rule that names the calls it can match.
    NarrowWatch,
    /// Moves a `never` rule before rules that do not select what it drops.
    HoistNever,
    /// Puts a `never` rule on the calls that no rule can match before all others.
    LeadingNever,
}

/// One change, shown to select the same events with the same keys.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Kind of the step.
    pub kind: StepKind,
    /// Description in words.
    pub description: String,
    /// The rules that are removed, as text that can be read back.
    pub before: Vec<String>,
    /// The rules that replace them.
    pub after: Vec<String>,
    /// Saving made by the step.
    pub saving: Saving,
    /// Proof that the step is equivalent.
    pub proof: Proof,
}

/// Saving made by a step. Negative numbers mean that the step adds something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Saving {
    /// Number of rules.
    pub rules: i64,
    /// Number of rules that kernel audit tries for every call.
    pub kernel_passed: i64,
    /// Number of those rules whose conditions are evaluated even for a call that no rule names.
    pub kernel_evaluated: i64,
}

/// The rule set that was found, and the steps that lead to it.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// The rules, in the order in which they are tried. A merged rule has the source of its first part.
    pub rules: Vec<Rule>,
    /// The changes, in the order in which they were made.
    pub steps: Vec<Step>,
    /// Number of changes that were tried but could not be shown to be equivalent, or not to cost any call more.
    pub refused: usize,
}

/// Effort of checking each step.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Number of random calls that the reference evaluator decides for each step.
    pub samples: usize,
    /// Seed of the random calls: the same seed gives the same calls.
    pub seed: u64,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort {
            samples: 200,
            seed: 1,
        }
    }
}

/// Rewrites `rules` for a host with these entries. [`Cost::of`] tells what that saves in total.
pub fn optimise(rules: &[Rule], entries: Entries, effort: Effort) -> Optimised {
    let mut optimiser = Optimiser::new(rules, entries, effort);
    optimiser.run();
    optimiser.finish(rules)
}

/// A rule and its original position.
#[derive(Clone)]
struct Placed {
    work: Rc<Work>,
    home: usize,
}

fn works(placed: &[Placed]) -> Vec<Rc<Work>> {
    placed
        .iter()
        .map(|placed| Rc::clone(&placed.work))
        .collect()
}

struct Optimiser {
    memory: Memory,
    sampler: Sampler,
    samples: usize,
    exit: Vec<Placed>,
    steps: Vec<Step>,
    refused: usize,
}

/// A change that has not been made yet.
struct Change {
    kind: StepKind,
    description: String,
    /// The whole exit list after the change.
    exit: Vec<Placed>,
    /// The rules that are removed; `come` are those that replace them.
    gone: Vec<Rule>,
    come: Vec<Rule>,
    /// The calls whose rules change.
    touched: SyscallSet,
}

impl Optimiser {
    fn new(rules: &[Rule], entries: Entries, effort: Effort) -> Optimiser {
        let memory = Memory::new(entries);
        let exit = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.list == List::Exit)
            .map(|(home, rule)| Placed {
                work: Rc::new(memory.work(rule.clone())),
                home,
            })
            .collect();

        Optimiser {
            memory,
            sampler: Sampler::new(rules, entries, effort.seed),
            samples: effort.samples,
            exit,
            steps: Vec::new(),
            refused: 0,
        }
    }

    fn run(&mut self) {
        self.drop_dead();
        self.narrow_watches();
        if self.merge() {
            self.drop_dead();
        }
        self.hoist_never();
    }

    /// Makes a change if it is shown to be equivalent and not to cost any call more. Returns whether it was made.
    fn attempt(&mut self, change: Change) -> bool {
        match self.prove(&change) {
            Some(proof) if !self.costs_more(&change) => {
                self.make(change, proof);
                true
            }
            _ => {
                self.refused += 1;
                false
            }
        }
    }

    /// Shows, if it can, that the change selects the same events.
    fn prove(&mut self, change: &Change) -> Option<Proof> {
        let touched = &change.touched;
        let about = |placed: &[Placed]| -> Vec<Rc<Work>> {
            let works = placed.iter().map(|placed| &placed.work);
            works
                .filter(|work| !common(&work.calls, touched).is_empty())
                .cloned()
                .collect()
        };

        proof::prove(
            &self.memory,
            &about(&self.exit),
            &about(&change.exit),
            touched,
            &mut self.sampler,
            self.samples,
        )
    }

    /// Whether a call whose rules change would pay more, by one of the models.
    fn costs_more(&self, change: &Change) -> bool {
        let (before, after) = (works(&self.exit), works(&change.exit));
        let calls = self
            .memory
            .representatives(&[&before, &after], &change.touched);
        calls.into_iter().any(|call| {
            let Some(arch) = self.memory.entries.arch(call.entry) else {
                return false;
            };
            let price = |works: &[Rc<Work>]| Price::of(works, arch, call.nr);
            price(&after).exceeds(price(&before))
        })
    }

    fn make(&mut self, change: Change, proof: Proof) {
        let text = |rules: &[Rule]| -> Vec<String> {
            rules
                .iter()
                .map(|rule| reloadable(rule, self.memory.entries, Dialect::V3))
                .collect()
        };

        let saving = cost::saving(&change.gone, &change.come);
        self.steps.push(Step {
            kind: change.kind,
            description: change.description,
            before: text(&change.gone),
            after: text(&change.come),
            saving,
            proof,
        });

        self.exit = change.exit;
    }

    /// Returns the rules of all lists. Rules of other lists keep their places among the exit rules.
    fn finish(self, rules: &[Rule]) -> Optimised {
        let mut others = rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.list != List::Exit)
            .peekable();
        let mut all = Vec::new();

        for placed in self.exit {
            while let Some((_, rule)) = others.next_if(|(position, _)| *position < placed.home) {
                all.push(rule.clone());
            }
            all.push(placed.work.rule.clone());
        }

        all.extend(others.map(|(_, rule)| rule.clone()));
        Optimised {
            rules: all,
            steps: self.steps,
            refused: self.refused,
        }
    }
}
