//! The plan for the kernel engine: what rules cost if the kernel's own audit matches them.

use crate::decided::DecidedIn;
use crate::entries::calls_of;
use crate::explain::{Explanation, RuleExplanation};
use crate::plan::Plan;
use abi::Field;
use rules::{List, Op, Rule};

/// Notes that apply to every rule under the kernel engine.
pub const KERNEL_NOTES: [&str; 3] = [
    "the kernel tries the rules one after the other, and collects the names of every call while \
     there is a rule",
    "processes that were started before audit was first enabled have no audit context, and their \
     calls are not seen: boot with audit=1",
    "events that the kernel's backlog cannot hold are lost there; -b sets its size",
];

/// Number of rules, and the nanoseconds that they add to getppid(2), which none of them names.
/// Measured on the project's reference machine (bench/results/latency.md).
const MEASURED_NS: [(u32, u32); 6] = [
    (0, 42),
    (1, 204),
    (10, 209),
    (50, 282),
    (100, 606),
    (160, 859),
];

/// Instructions of kernel audit on Linux 6.12 (tests/vm/optimise-icount): to pass a rule, whose mask does not name the
/// call; to begin to evaluate one that names it; and to compare each of its conditions, up to the first that does not hold.
pub(crate) const PASSED_INSTRUCTIONS: f64 = 8.0;
pub(crate) const EVALUATED_INSTRUCTIONS: f64 = 43.0;
pub(crate) const CONDITION_INSTRUCTIONS: f64 = 52.0;

/// Nanoseconds to evaluate a rule up to its second condition, measured on the project's reference machine
/// (bench/results/latency.md: 160 rules, getppid, watched and not).
pub(crate) const EVALUATED_NS: f64 = 26.0;

/// Nanoseconds that `rules` rules add to a call that none of them names. Interpolates and
/// extrapolates the measured values linearly.
pub(crate) fn unwatched_ns(rules: u32) -> u32 {
    let last = MEASURED_NS.len() - 1;
    let above = MEASURED_NS.iter().position(|(count, _)| rules <= *count);
    let above = above.unwrap_or(last).max(1);
    let ((x0, y0), (x1, y1)) = (MEASURED_NS[above - 1], MEASURED_NS[above]);
    let slope = f64::from(y1 - y0) / f64::from(x1 - x0);
    let ns = f64::from(y0) + slope * (f64::from(rules) - f64::from(x0));
    ns.round() as u32
}

/// Nanoseconds that the rules of a plan add to a call that none of them names.
pub(crate) fn call_ns(plan: &Plan) -> u32 {
    let listed = plan.rules.iter().filter(|rule| is_tried_in_order(rule));
    unwatched_ns(u32::try_from(listed.count()).unwrap_or(u32::MAX))
}

/// Explains a plan of [`Plan::for_kernel`].
pub fn explain_kernel(plan: &Plan) -> Explanation {
    let rules = plan.rules.iter().zip(&plan.notes);
    let rules = rules.map(|(rule, note)| {
        let (calls, cost) = cost(plan, rule);
        RuleExplanation {
            rule: rule.to_string(),
            list: rule.list.name(),
            source: rule.source.place(),
            hooks: Vec::new(),
            calls,
            operations: Vec::new(),
            decided_in: DecidedIn::Kernel,
            cost,
            exactness: note.exactness.clone(),
            shadowed_by: note.shadowed_by.map(|position| position + 1),
        }
    });

    Explanation {
        engine: "kernel",
        hooks: plan.hooks.clone(),
        unwatched_ns: call_ns(plan),
        watched_calls: 0,
        watched_operations: 0,
        table_rows: 0,
        notes: KERNEL_NOTES.map(str::to_owned).to_vec(),
        gaps: Vec::new(),
        rules: rules.collect(),
    }
}

/// Whether the kernel tries the rule in turn. It finds exit rules on one file by the file's inode
/// (`audit_filter_inodes()` in `kernel/auditsc.c`), and tries all others.
fn is_tried_in_order(rule: &Rule) -> bool {
    let by_inode = |field| matches!(field, Field::Watch | Field::Inode);
    let mut conditions = rule.conditions.iter();
    rule.list == List::Exit && !conditions.any(|c| by_inode(c.field) && c.op == Op::Eq)
}

/// The number of calls that the rule names, and what it costs.
fn cost(plan: &Plan, rule: &Rule) -> (u32, &'static str) {
    if rule.list != List::Exit {
        return (0, "none");
    }

    let calls = calls_of(rule, plan.entries);
    let count = calls.iter().count() as u32;
    let cost = if !is_tried_in_order(rule) {
        "tried when a call names its file"
    } else if rule.syscalls.is_all() {
        "its conditions are tried on every call"
    } else {
        "a bit test on every call, its conditions on these"
    };

    (count, cost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_those_that_were_measured_and_lie_between_them() {
        for (rules, ns) in MEASURED_NS {
            assert_eq!(unwatched_ns(rules), ns, "{rules}");
        }
        assert_eq!(unwatched_ns(75), 444);
        assert_eq!(unwatched_ns(260), 1281);
        assert!((0..3000).all(|rules| unwatched_ns(rules) <= unwatched_ns(rules + 1)));
    }
}
