//! What rules cost.

use super::Saving;
use crate::capabilities::Capabilities;
use crate::evaluate::is_inode_rule;
use crate::facts::Identities;
use crate::plan::Plan;
use crate::tables::TooLarge;
use rules::{List, Rule};
use serde::Serialize;

/// What a rule set costs, under Tarsier and under kernel audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Rules of all lists.
    pub rules: usize,
    /// (entry, call) pairs that are watched.
    pub calls_watched: usize,
    /// Rows of the match tables.
    pub table_rows: usize,
    /// Kernel audit: rules of the exit list that every call passes. Rules with `path=` or
    /// `inode=` are not among them: the kernel keeps those by inode.
    pub kernel_passed: usize,
    /// Of those, rules whose conditions are evaluated for a call that no rule names: they are
    /// on every call.
    pub kernel_evaluated: usize,
}

impl Cost {
    /// The cost of `rules` on a host. Paths count as if they named nothing.
    ///
    /// # Errors
    /// The rules do not fit the match tables.
    pub fn of(rules: &[Rule], capabilities: &Capabilities) -> Result<Cost, TooLarge> {
        let plan = Plan::new(rules, capabilities, &Identities::default(), 1)?;
        Ok(Cost {
            rules: rules.len(),
            calls_watched: plan.calls.len(),
            table_rows: plan.rows.len(),
            kernel_passed: rules.iter().filter(|rule| is_passed(rule)).count(),
            kernel_evaluated: rules.iter().filter(|rule| is_evaluated(rule)).count(),
        })
    }
}

fn is_passed(rule: &Rule) -> bool {
    rule.list == List::Exit && !is_inode_rule(rule)
}

fn is_evaluated(rule: &Rule) -> bool {
    is_passed(rule) && rule.syscalls.is_all()
}

/// What is saved when the rules `gone` are replaced by `come`.
pub(super) fn saving(gone: &[Rule], come: &[Rule]) -> Saving {
    let difference = |counts: fn(&Rule) -> bool| {
        let count = |rules: &[Rule]| rules.iter().filter(|rule| counts(rule)).count() as i64;
        count(gone) - count(come)
    };
    Saving {
        rules: difference(|_| true),
        kernel_passed: difference(is_passed),
        kernel_evaluated: difference(is_evaluated),
    }
}
