//! The deciding side of a rule: the kernel, or the daemon.

use crate::conditions::Candidate;
use crate::facts::Entry;
use crate::objects::reached_objects;
use crate::plan::Plan;
use abi::ShapeKind;
use abi::NONE;
use serde::Serialize;
use std::fmt;

/// The side that decides a rule for the calls that it names. If this is the kernel, the daemon still decides the few
/// calls for which the programs are not sure what a name led to (crates/core/plan/src/marks.rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedIn {
    /// The kernel: a call that it does not select costs no event.
    Kernel,
    /// The kernel for some calls, the daemon for others.
    KernelOrDaemon,
    /// The daemon, which gets an event of each call that the conditions on task and call admit.
    Daemon,
}

impl DecidedIn {
    /// Cost of a call that the rule names but does not select.
    pub(crate) fn cost(self) -> &'static str {
        match self {
            DecidedIn::Kernel => "lookup per field",
            _ => "lookup per field, and an event per candidate call",
        }
    }
}

impl fmt::Display for DecidedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecidedIn::Kernel => "decided in the kernel",
            DecidedIn::KernelOrDaemon => "decided in the kernel, for some calls in the daemon",
            DecidedIn::Daemon => "decided in the daemon",
        })
    }
}

/// The side that decides a candidate for a call.
pub(crate) fn decided_in(plan: &Plan, entry: Entry, nr: u32, candidate: &Candidate) -> DecidedIn {
    let is_in_kernel =
        !candidate.stage2 || (candidate.is_decided_by_marks && sees_marks(plan, entry, nr));
    if is_in_kernel {
        DecidedIn::Kernel
    } else {
        DecidedIn::Daemon
    }
}

/// The side that decides each rule for the calls and operations that it names; `None` if it names none.
pub(crate) fn decided_in_each(plan: &Plan) -> Vec<Option<DecidedIn>> {
    let mut places = vec![None; plan.rules.len()];
    for (&(entry, nr), call) in &plan.calls {
        for candidate in plan.lists.get(call.list).into_iter().flatten() {
            let place = decided_in(plan, entry, nr, candidate);
            if let Some(known) = places.get_mut(candidate.rule as usize) {
                *known = match *known {
                    Some(other) if other != place => Some(DecidedIn::KernelOrDaemon),
                    _ => Some(place),
                };
            }
        }
    }

    places
}

/// Whether the programs find the marks of what the call reaches.
fn sees_marks(plan: &Plan, entry: Entry, nr: u32) -> bool {
    if entry == Entry::Uring {
        return false;
    }
    let Some(call) = plan.calls.get(&(entry, nr)) else {
        return false;
    };

    let has_path = call.shape.paths[0].is_some();
    let is_on_open_file =
        call.shape.kind == ShapeKind::Open || (call.shape.fd != NONE && !has_path);
    let row = || Some(abi::call_of(plan.entries.arch(entry)?, nr));
    is_on_open_file || (plan.form().trampoline && row().is_some_and(reached_objects))
}
