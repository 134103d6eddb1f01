//! Equivalent, cheaper rules.
//!
//! The exit list is rewritten step by step; other lists are left as they are. A step is made only
//! when it is shown to change no decision (see `proof`), under kernel audit as under any
//! engine: what security labels are is not assumed, and `never` rules at the end of the list stay,
//! because in the kernel they also withhold the SYSCALL record that would accompany other records.

mod cost;
mod proof;
pub(crate) mod residual;
mod sample;
mod steps;
mod working;

pub use cost::Cost;
pub use proof::Proof;

use crate::entries::Entries;
use crate::lint::reloadable;
use rules::{List, Rule, SyscallSet};
use sample::Sampler;
use serde::Serialize;
use std::rc::Rc;
use working::{common, Memory, Work};

/// What a step does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Drops a rule that no call can meet.
    DropNeverMatching,
    /// Drops a rule that asks what another one asks.
    DropDuplicate,
    /// Drops a rule whose calls others decide with the same result.
    DropShadowed,
    /// Makes one rule of two that differ only in their calls.
    Merge,
    /// Says which architecture is meant where the numbers of the calls are different calls.
    SplitArch,
    /// Names the calls that the watch of a directory can see, for each architecture.
    NarrowWatch,
    /// Moves a `never` rule before rules that do not select what it does.
    HoistNever,
}

/// One change, shown to select the same events with the same keys.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// What kind.
    pub kind: StepKind,
    /// In words.
    pub description: String,
    /// The rules that go, as text that can be read again.
    pub before: Vec<String>,
    /// The rules that come in their place.
    pub after: Vec<String>,
    /// What it changes: positive numbers are saved.
    pub saving: Saving,
    /// What it was shown with.
    pub proof: Proof,
}

/// What a step saves. Negative numbers are what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Saving {
    /// Rules.
    pub rules: i64,
    /// Rules of kernel audit that every call passes.
    pub kernel_passed: i64,
    /// Of those, rules whose conditions are evaluated for a call that no rule names.
    pub kernel_evaluated: i64,
}

/// A rule set and the equivalent one that was found.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// The rules, in the order that decides. A merged rule has the source of its first part.
    pub rules: Vec<Rule>,
    /// The changes, in the order in which they were made.
    pub steps: Vec<Step>,
    /// Changes that were tried and could not be shown to be equivalent.
    pub refused: usize,
}

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Random calls that the reference evaluator decides for each step.
    pub samples: usize,
    /// Where random calls start: the same seed makes the same calls.
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

/// Rewrites `rules` for a host with these entries. What that saves in all, [`Cost::of`] says.
pub fn optimise(rules: &[Rule], entries: Entries, effort: Effort) -> Optimised {
    let mut optimiser = Optimiser::new(rules, entries, effort);
    optimiser.run();
    optimiser.finish(rules)
}

/// A rule and the position it had at first.
#[derive(Clone)]
struct Placed {
    work: Rc<Work>,
    home: usize,
}

struct Optimiser {
    memory: Memory,
    sampler: Sampler,
    samples: usize,
    exit: Vec<Placed>,
    steps: Vec<Step>,
    refused: usize,
}

/// A change that is not made yet.
struct Change {
    kind: StepKind,
    description: String,
    /// The whole exit list after it.
    exit: Vec<Placed>,
    /// Rules that go and rules that come.
    gone: Vec<Rule>,
    come: Vec<Rule>,
    /// Calls whose rules it changes.
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
        self.split_arches();
        self.narrow_watches();
        if self.merge() {
            self.drop_dead();
        }
        self.hoist_never();
    }

    /// Makes a change if it is shown to be equivalent.
    fn attempt(&mut self, change: Change) -> bool {
        let touched = &change.touched;
        let about = |placed: &[Placed]| -> Vec<Rc<Work>> {
            let works = placed.iter().map(|placed| &placed.work);
            works
                .filter(|work| !common(&work.calls, touched).is_empty())
                .cloned()
                .collect()
        };
        let proof = proof::prove(
            &self.memory,
            &about(&self.exit),
            &about(&change.exit),
            touched,
            &mut self.sampler,
            self.samples,
        );
        let Some(proof) = proof else {
            self.refused += 1;
            return false;
        };
        let text = |rules: &[Rule]| -> Vec<String> {
            rules
                .iter()
                .map(|rule| reloadable(rule, self.memory.entries))
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
        true
    }

    /// The rules of all lists: those of other lists where they were among the exit rules.
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
