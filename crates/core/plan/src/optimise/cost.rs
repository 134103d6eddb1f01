//! Cost of rules.

use super::price::Price;
use super::Saving;
use crate::capabilities::Capabilities;
use crate::evaluate::is_inode_rule;
use crate::facts::Identities;
use crate::plan::Plan;
use crate::tables::TooLarge;
use rules::{List, Rule};
use serde::Serialize;

/// The cost of a rule set, under Tarsier and under kernel audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Number of rules of all lists.
    pub rules: usize,
    /// Number of pairs of entry and call that are watched.
    pub calls_watched: usize,
    /// Number of rows of the match tables.
    pub table_rows: usize,
    /// Under kernel audit, the number of rules of the exit list that are tried for every call. Rules
    /// with `path=` or `inode=` are not among them, since the kernel stores those by inode.
    pub kernel_passed: usize,
    /// The number of those rules that apply to all calls, so that their conditions are evaluated
    /// even for a call that no rule names.
    pub kernel_evaluated: usize,
    /// Instructions that kernel audit takes to try the rules for the native call that pays least, by counts. That is a
    /// call that no rule names, if there is one.
    pub kernel_instructions: u32,
    /// Nanoseconds for that, by measured times.
    pub kernel_ns: u32,
}

impl Cost {
    /// The cost of `rules` on a host. Paths are treated as if they named no object.
    ///
    /// # Errors
    /// The rules do not fit the match tables.
    pub fn of(rules: &[Rule], capabilities: &Capabilities) -> Result<Cost, TooLarge> {
        let least = Price::least(rules, capabilities.entries());
        let plan = Plan::new(rules, capabilities, &Identities::default(), 1)?;
        Ok(Cost {
            rules: rules.len(),
            calls_watched: plan.calls.len(),
            table_rows: plan.rows.len(),
            kernel_passed: rules.iter().filter(|rule| is_passed(rule)).count(),
            kernel_evaluated: rules.iter().filter(|rule| is_evaluated(rule)).count(),
            kernel_instructions: least.instructions.round() as u32,
            kernel_ns: least.ns.round() as u32,
        })
    }
}

fn is_passed(rule: &Rule) -> bool {
    rule.list == List::Exit && !is_inode_rule(rule)
}

fn is_evaluated(rule: &Rule) -> bool {
    is_passed(rule) && rule.syscalls.is_all()
}

/// Saving made by replacing the rules `gone` by `come`.
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
