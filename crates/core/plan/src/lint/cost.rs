//! What the rules that findings are about cost the calls that they do not select, in nanoseconds of the project's
//! reference machine (see `price` and `kernel`).

use crate::capabilities::Capabilities;
use crate::facts::{Entry, Identities};
use crate::optimise::price::evaluated_ns;
use crate::plan::Plan;
use crate::price::{hook_ns, EVENT_NS};
use abi::{Arch, Field};
use rules::{Action, Condition, Op, Rule, Value};

/// Cost of a rule on all calls.
pub(super) fn of_all_calls(rule: &Rule, capabilities: &Capabilities) -> Option<String> {
    let kernel = in_kernel(rule, capabilities, "each call");
    if rule.action == Action::Never {
        return Some(kernel);
    }
    let plan = planned(rule, capabilities)?;
    let (unwatched, watched) = hook_ns(&plan);
    Some(format!(
        "under Tarsier {} calls pay up to {watched:.0} ns each, and would pay {unwatched:.0} if no rule named them; {kernel}",
        plan.calls.len()
    ))
}

/// Cost of a rule that selects every call.
pub(super) fn of_every_call() -> String {
    format!("under Tarsier {EVENT_NS:.0} ns for each call, in the call and the logger")
}

/// Cost of a rule that every call is compared with under kernel audit, and only there.
pub(super) fn of_evaluation(rule: &Rule, capabilities: &Capabilities) -> String {
    in_kernel(rule, capabilities, "each call")
}

/// What a rule without an architecture costs more than one of the host's architecture.
pub(super) fn of_missing_arch(rule: &Rule, capabilities: &Capabilities) -> Option<String> {
    let mut native = rule.clone();
    native.conditions.insert(0, is_arch(capabilities.arch));
    let (both, native) = (
        planned(rule, capabilities)?,
        planned(&native, capabilities)?,
    );
    let more = both.calls.keys().filter(|call| call.0 == Entry::Compat);
    let mut cost = format!(
        "under Tarsier calls of 32-bit programs are watched too: {}",
        more.count()
    );
    let (before, after) = (hook_ns(&native).0, hook_ns(&both).0);
    if after > before {
        cost += &format!(", and every other call pays {after:.0} ns instead of {before:.0}");
    }

    let kernel = in_kernel(rule, capabilities, "each call with one of its numbers");
    Some(format!("{cost}; {kernel}"))
}

fn in_kernel(rule: &Rule, capabilities: &Capabilities, who: &str) -> String {
    let ns = evaluated_ns(rule, capabilities.arch);
    format!("under kernel audit {who} pays {ns:.0} ns")
}

/// The plan for the rule alone.
fn planned(rule: &Rule, capabilities: &Capabilities) -> Option<Plan> {
    let rules = std::slice::from_ref(rule);
    Plan::new(rules, capabilities, &Identities::default(), 1).ok()
}

fn is_arch(arch: Arch) -> Condition {
    Condition {
        field: Field::Arch,
        op: Op::Eq,
        value: Value::Number(arch.audit_arch()),
    }
}
