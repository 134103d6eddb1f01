//! Describes how a function depends on one word, as ranges of its values.

use super::rank;
use super::store::{Ref, Store};

/// The values from `first` to before the next range. For them the function of the other words is
/// `rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Interval {
    pub(crate) first: u32,
    pub(crate) rest: Ref,
}

/// Splits the values of the word at `offset`, which `f` must test before all others, into ranges
/// for which `f` is the same; `None` if there are more than `max`.
pub(crate) fn intervals(store: &Store, f: Ref, offset: u32, max: usize) -> Option<Vec<Interval>> {
    let mut found = Vec::new();
    let start = rank(offset) * 32;
    split(store, f, start, start + 32, 0, max, &mut found).then_some(found)
}

fn split(
    store: &Store,
    f: Ref,
    variable: u16,
    end: u16,
    first: u32,
    max: usize,
    found: &mut Vec<Interval>,
) -> bool {
    if store.variable(f) >= end {
        if found.last().is_none_or(|last| last.rest != f) {
            found.push(Interval { first, rest: f });
        }
        return found.len() <= max;
    }
    let (low, high) = store.cofactors(f, variable);
    let upper = first | 1 << (end - 1 - variable);
    split(store, low, variable + 1, end, first, max, found)
        && split(store, high, variable + 1, end, upper, max, found)
}
