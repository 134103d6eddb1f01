//! How exactly a rule is honoured by an engine.

use crate::capabilities::Capabilities;
use crate::evaluate::{is_label, needs_names};
use abi::Field;
use rules::{Action, List, Rule};
use serde::Serialize;

/// How a rule is honoured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "level", content = "reasons")]
pub enum Exactness {
    /// It selects what it selects in the kernel.
    Exact,
    /// It may select more or less, for these reasons.
    Approximate(Vec<&'static str>),
    /// It has no effect, for this reason.
    NotHonoured(&'static str),
}

/// How the tracepoint engine honours `rule`.
pub(crate) fn exactness(rule: &Rule, _capabilities: &Capabilities) -> Exactness {
    match rule.list {
        List::IoUring => {
            return Exactness::NotHonoured("this engine does not see io_uring operations yet")
        }
        List::Task if rule.action == Action::Always => {
            return Exactness::NotHonoured("recording every call of a task is not supported")
        }
        List::Filesystem => {
            return Exactness::NotHonoured("names on this file system are collected all the same")
        }
        _ => {}
    }
    let mut reasons = Vec::new();
    let mut because = |holds: bool, reason| {
        if holds && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    };
    for condition in &rule.conditions {
        because(
            is_label(condition.field),
            match rule.action {
                Action::Always => "labels are not read: the rule selects whatever the label is",
                Action::Never => "labels are not read: the rule never matches",
            },
        );
        because(
            needs_names(condition),
            "paths of calls that return no descriptor are rebuilt from name and directory",
        );
        because(
            condition.field == Field::Exe,
            "a replaced executable is noticed within a second",
        );
    }
    if reasons.is_empty() {
        Exactness::Exact
    } else {
        Exactness::Approximate(reasons)
    }
}
