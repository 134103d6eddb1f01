//! The forms that conditions of calls can have, and which of them are taken together.

use super::code::{CodeId, Graph};
use super::Order;
use crate::policy::Abi;
use std::collections::HashSet;

/// How the arguments of a call are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) order: Order,
    pub(super) shape: Shape,
}

/// The rules of a call that are tested together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// All rules: each word once.
    Diagram,
    /// Rules of one verdict whose first argument is the same, one such group after the other.
    Groups,
    /// One rule after the other.
    Rules,
}

/// A number from which on the answer of an ABI may be another one, and the code for it.
pub(super) struct Call {
    pub(super) abi: Abi,
    pub(super) nr: u32,
    /// At least one; several if there are conditions.
    pub(super) forms: Vec<(Form, CodeId)>,
}

/// One code for each call, so that they have few codes in all. What a call shares with others depends
/// on their forms: of some of the forms, each call takes what adds least to those before it. Which
/// forms these are is what is tried.
pub(super) fn choose(graph: &Graph, calls: &[Call]) -> Vec<CodeId> {
    let mut every: Vec<Form> = Vec::new();
    for &(form, _) in calls.iter().flat_map(|call| &call.forms) {
        if !every.contains(&form) {
            every.push(form);
        }
    }

    let mut shortest = (usize::MAX, Vec::new());
    // All of them first: what they need ends most of the others early.
    for some in (1..1_u32 << every.len()).rev() {
        let at = |form: Form| every.iter().position(|&other| other == form);
        let is_tried = |form| at(form).is_some_and(|at| some >> at & 1 == 1);
        shortest = with(graph, calls, &is_tried, shortest.0).unwrap_or(shortest);
    }
    shortest.1
}

/// The codes of calls if they take some forms where they have them, and how many codes that are;
/// `None` if these are not fewer than `limit`.
fn with(
    graph: &Graph,
    calls: &[Call],
    is_tried: &dyn Fn(Form) -> bool,
    limit: usize,
) -> Option<(usize, Vec<CodeId>)> {
    let mut used = HashSet::new();
    let mut chosen = Vec::with_capacity(calls.len());
    for call in calls {
        let has_one = call.forms.iter().any(|own| is_tried(own.0));
        let taken = call.forms.iter().filter(|own| !has_one || is_tried(own.0));
        let added = taken.map(|&(_, code)| (code, graph.reached(code, &used)));
        if let Some((code, added)) = added.min_by_key(|(_, added)| added.len()) {
            used.extend(added);
            chosen.push(code);
        }
        if used.len() >= limit {
            return None;
        }
    }
    Some((used.len(), chosen))
}
