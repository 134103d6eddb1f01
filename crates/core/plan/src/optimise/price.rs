//! What a call pays for the exit list under kernel audit, by two models: instructions that were counted, and nanoseconds
//! that were measured.

use super::working::{Memory, Work, FIRST_CLASS};
use crate::entries::Entries;
use crate::facts::Entry;
use crate::kernel::{
    unwatched_ns, CONDITION_INSTRUCTIONS, EVALUATED_INSTRUCTIONS, EVALUATED_NS, PASSED_INSTRUCTIONS,
};
use abi::{syscall_name, Arch, Field};
use rules::{Condition, List, Rule, Value};
use std::rc::Rc;

/// Price of a call that no rule selects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price {
    /// By the counts of tests/vm/optimise-icount.
    pub(super) instructions: f64,
    /// By the times of bench/results/latency.md.
    pub(super) ns: f64,
}

impl Price {
    pub(super) const NOTHING: Price = Price {
        instructions: 0.0,
        ns: 0.0,
    };

    /// Whether both models agree that this is less than `other`.
    pub(super) fn is_less(self, other: Price) -> bool {
        self.instructions < other.instructions && self.ns < other.ns
    }

    /// Whether this is more than `other` by one of the models.
    pub(super) fn exceeds(self, other: Price) -> bool {
        self.instructions > other.instructions || self.ns > other.ns
    }

    /// The larger price by each model.
    pub(super) fn max(self, other: Price) -> Price {
        Price {
            instructions: self.instructions.max(other.instructions),
            ns: self.ns.max(other.ns),
        }
    }

    pub(super) fn minus(self, other: Price) -> Price {
        Price {
            instructions: self.instructions - other.instructions,
            ns: self.ns - other.ns,
        }
    }

    /// The price of the native call that pays least, which is one that no rule names if there is such a call.
    pub(super) fn least(rules: &[Rule], entries: Entries) -> Price {
        let Some(arch) = entries.arch(Entry::Native) else {
            return Price::NOTHING;
        };

        let memory = Memory::new(entries);
        let exit = rules.iter().filter(|rule| rule.list == List::Exit);
        let works: Vec<Rc<Work>> = exit
            .map(|rule| Rc::new(memory.work(rule.clone())))
            .collect();
        let calls = (0..FIRST_CLASS).filter(|&nr| syscall_name(arch, nr).is_some());
        let prices = calls.map(|nr| Price::of(&works, arch, nr));
        let least = prices.min_by(|a, b| a.instructions.total_cmp(&b.instructions));
        least.unwrap_or(Price::NOTHING)
    }

    /// The price of call `nr` at an entry of architecture `arch`.
    ///
    /// The kernel tests a bit of each rule that it does not store by inode. Where the bit is set, it compares the
    /// conditions in turn until one does not hold: here, the first that is not about the architecture.
    /// (`__audit_filter_op()` and `audit_filter_rules()`, kernel/auditsc.c.)
    pub(super) fn of<'a>(
        works: impl IntoIterator<Item = &'a Rc<Work>>,
        arch: Arch,
        nr: u32,
    ) -> Price {
        let mut passed = 0;
        let mut evaluated = 0.0;
        for work in works.into_iter().filter(|work| !work.by_inode) {
            passed += 1;
            if !work.calls.contains(nr) {
                continue;
            }
            let (conditions, matches) = compared(&work.rule, arch);
            evaluated += evaluation(conditions);
            if matches {
                break;
            }
        }

        Price {
            instructions: evaluated + PASSED_INSTRUCTIONS * f64::from(passed),
            ns: EVALUATED_NS * evaluated / evaluation(2.0) + f64::from(unwatched_ns(passed)),
        }
    }
}

/// Nanoseconds that kernel audit takes to compare the conditions of a rule, up to the first that does not hold, for a call
/// that it names.
pub(crate) fn evaluated_ns(rule: &Rule, arch: Arch) -> f64 {
    EVALUATED_NS * evaluation(compared(rule, arch).0) / evaluation(2.0)
}

/// Instructions to evaluate a rule up to this condition.
fn evaluation(conditions: f64) -> f64 {
    EVALUATED_INSTRUCTIONS + CONDITION_INSTRUCTIONS * conditions
}

/// How many conditions of the rule the kernel compares, and whether all hold.
fn compared(rule: &Rule, arch: Arch) -> (f64, bool) {
    let holds = |condition: &Condition| match (condition.field, &condition.value) {
        (Field::FilterKey, _) => true,
        (Field::Arch, Value::Number(value)) => condition.op.holds(arch.audit_arch(), *value),
        _ => false,
    };

    match rule
        .conditions
        .iter()
        .position(|condition| !holds(condition))
    {
        Some(position) => (position as f64 + 1.0, false),
        None => (rule.conditions.len() as f64, true),
    }
}
