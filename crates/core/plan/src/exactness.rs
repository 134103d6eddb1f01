//! Exactness with which an engine honours a rule.

use crate::capabilities::{Capabilities, IoUring};
use crate::evaluate::{is_label, is_task_field, needs_names};
use crate::records::ending_field;
use crate::workload::asks_own;
use abi::{Arch, Field};
use rules::{Action, Condition, List, Op, Rule};
use serde::Serialize;

/// Exactness with which a rule is honoured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "level", content = "reasons")]
pub enum Exactness {
    /// The rule selects what it selects in the kernel, apart from the notes on the engine.
    Exact,
    /// The rule may select more or less than in the kernel, for these reasons.
    Approximate(Vec<&'static str>),
    /// The rule has no effect, for this reason.
    NotHonoured(&'static str),
}

/// Notes that apply to every rule under the tracepoint engine.
pub const TRACEPOINT_NOTES: [&str; 4] = [
    "calls that a seccomp filter ends with an errno are recorded; kernel auditing does not \
     see them",
    "names are resolved after the call: what another process renames or removes in between may \
     be recorded without its inode",
    "arguments, results and the ids of the task are those that kernel auditing compares",
    "no IPC, IPC_SET_PERM and TIME_* records accompany a call",
];

/// Notes that apply to every rule under the trampoline engine.
pub const TRAMPOLINE_NOTES: [&str; 2] = [
    "objects are taken while the call acts on them; a name that a failed chmod, chown or the like was \
     given is read when the call is over",
    TRACEPOINT_NOTES[2],
];

/// Exactness with which the kernel's audit honours `rule`.
pub(crate) fn kernel_exactness(rule: &Rule) -> Exactness {
    if asks_own(rule) {
        Exactness::NotHonoured(
            "the kernel's audit knows no units, slices and containers: an eBPF engine is needed",
        )
    } else {
        Exactness::Exact
    }
}

/// Exactness with which the eBPF engines honour `rule`.
pub(crate) fn exactness(rule: &Rule, capabilities: &Capabilities) -> Exactness {
    use Exactness::NotHonoured;
    let reasons = |rule, labels| reasons(rule, labels, capabilities);
    match rule.list {
        List::IoUring if capabilities.io_uring == IoUring::Unseen => {
            NotHonoured("this kernel does not show io_uring operations")
        }
        List::IoUring => reasons(rule, labels(rule)),
        List::Filesystem => Exactness::Approximate(vec![
            "names on file systems that only another mount namespace has are collected",
        ]),
        List::Task => task_exactness(rule),
        List::User | List::Exclude if ending_field(rule).is_some() => NotHonoured(
            "one of its fields is not known on this list: as in the kernel, the list ends here",
        ),
        List::User if rule.action == Action::Always => Exactness::Exact,
        List::User | List::Exclude if rule.conditions.is_empty() => {
            NotHonoured("as in the kernel, a rule without conditions matches nothing here")
        }
        List::User | List::Exclude => reasons(rule, LABELS_OF_RECORDS),
        List::Exit => {
            if needs_missing_entry(rule, capabilities) {
                NotHonoured("this host cannot enter calls of that architecture")
            } else {
                reasons(rule, labels(rule))
            }
        }
    }
}

/// Possible difference where the exclude and user lists compare labels.
const LABELS_OF_RECORDS: &str =
    "a label that is gone does not match; names of the policy are compared as text";

fn labels(rule: &Rule) -> &'static str {
    match rule.action {
        Action::Always => "labels are not read: the rule selects whatever the label is",
        Action::Never => "labels are not read: the rule never matches",
    }
}

fn task_exactness(rule: &Rule) -> Exactness {
    if rule.action == Action::Always {
        return Exactness::NotHonoured("recording every call of a task is not supported");
    }

    if !rule
        .conditions
        .iter()
        .all(|condition| is_task_field(condition.field))
    {
        return Exactness::NotHonoured("one of its fields is not known when a task is made");
    }
    if rule
        .conditions
        .iter()
        .any(|condition| condition.field == Field::Pid)
    {
        return Exactness::Approximate(vec![
            "pid= is compared with the new process, in the kernel with its parent",
        ]);
    }
    Exactness::Exact
}

fn needs_missing_entry(rule: &Rule, capabilities: &Capabilities) -> bool {
    let native = Some(capabilities.arch);
    let compat = if capabilities.compat_entry {
        capabilities.arch.compat()
    } else {
        None
    };
    let is_possible = |condition: &Condition| {
        let rules::Value::Number(value) = condition.value else {
            return false;
        };
        let holds = |arch: Arch| condition.op.holds(arch.audit_arch(), value);
        native.into_iter().chain(compat).any(holds)
    };

    rule.conditions
        .iter()
        .any(|condition| condition.field == Field::Arch && !is_possible(condition))
}

fn reasons(rule: &Rule, labels: &'static str, capabilities: &Capabilities) -> Exactness {
    let mut reasons = Vec::new();
    if asks_own(rule) && !capabilities.cgroup2 {
        reasons.push(
            "no cgroup2 hierarchy is mounted on this host: no task is in a unit, slice or container",
        );
    }

    let trampoline = capabilities.trampoline;
    let all = rule
        .conditions
        .iter()
        .filter_map(|condition| reason(condition, labels, trampoline, rule.action));

    for reason in all {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }

    if reasons.is_empty() {
        Exactness::Exact
    } else {
        Exactness::Approximate(reasons)
    }
}

/// Reason why a condition may be decided differently from the kernel; `None` if it may not. What is not known is
/// recorded, and never left out.
fn reason(
    condition: &Condition,
    labels: &'static str,
    trampoline: bool,
    action: Action,
) -> Option<&'static str> {
    match condition.field {
        field if is_label(field) => Some(labels),
        Field::Exe if action == Action::Never || condition.op == Op::Ne => Some(
            "a program counts as this one only if its file and its name are those of the path",
        ),
        Field::Exe => Some(
            "a program whose directory has been replaced at the path still matches for a second",
        ),
        _ if action == Action::Never && needs_names(condition) => {
            Some("only what the call itself used is left out, not what its names led to later")
        }
        _ if trampoline && needs_names(condition) => Some(
            "calls that fail before they reach an object are decided by name, after the call; if that \
             is not known, they are recorded (match=unsure)",
        ),
        Field::Watch | Field::Dir => Some(
            "paths of calls that return no descriptor are rebuilt from name and directory; if that is \
             not known, they are recorded (match=unsure)",
        ),
        _ if needs_names(condition) => Some(
            "calls whose objects are no longer known, because they removed them, are recorded \
             (match=unsure)",
        ),
        _ => None,
    }
}
