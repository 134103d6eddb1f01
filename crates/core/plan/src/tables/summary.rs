//! Summaries of candidate lists with several pages: which pages can have a match.

use super::{Lookup, PageRanges, Row, LOOKUP_RANGES, SUMMARY_ENTRIES_MAX};
use crate::conditions::Fact;
use std::collections::BTreeSet;

/// Lookups whose masks stand for pages. The bit of a page is cleared only for values with which one
/// of its lookups admits none of its rules, so that none can match.
pub(super) fn lookups(pages: &[PageRanges]) -> Vec<Lookup> {
    let facts: BTreeSet<Fact> = pages
        .iter()
        .flat_map(|page| &page.lookups)
        .map(|lookup| lookup.fact)
        .collect();
    facts
        .into_iter()
        .filter_map(|fact| of_fact(fact, pages))
        .collect()
}

/// The lookup of one fact; `None` if it would clear no bit, or would be too large.
fn of_fact(fact: Fact, pages: &[PageRanges]) -> Option<Lookup> {
    let all = u64::MAX >> (64 - pages.len());
    let mut changes: Vec<(u64, usize, bool)> = Vec::new();
    let mut absent = all;
    for (number, page) in pages.iter().enumerate() {
        let asked: Vec<&Lookup> = page.lookups.iter().filter(|l| l.fact == fact).collect();
        if asked.iter().any(|lookup| lookup.absent & page.valid == 0) {
            absent &= !(1 << number);
        }
        let starts: BTreeSet<u64> = asked
            .iter()
            .flat_map(|lookup| lookup.entries.iter().map(|entry| entry.a))
            .collect();
        for start in starts {
            let met = asked
                .iter()
                .all(|lookup| mask_at(lookup, start) & page.valid != 0);
            changes.push((start, number, met));
        }
    }

    changes.sort_unstable();
    let entries = sweep(all, &changes);
    let clears = absent != all || entries.iter().any(|entry| entry.b != all);
    (clears && entries.len() <= SUMMARY_ENTRIES_MAX).then_some(Lookup {
        fact,
        kind: LOOKUP_RANGES,
        absent,
        entries,
        decides: 0,
    })
}

/// The mask that a lookup by ranges has for a value.
fn mask_at(lookup: &Lookup, value: u64) -> u64 {
    let at = lookup.entries.partition_point(|entry| entry.a <= value);
    at.checked_sub(1)
        .map_or(u64::MAX, |at| lookup.entries[at].b)
}

/// Makes entries of changes of single bits, which are sorted by the value at which they happen.
fn sweep(all: u64, changes: &[(u64, usize, bool)]) -> Vec<Row> {
    let mut entries: Vec<Row> = Vec::new();
    let mut mask = all;
    for same_start in changes.chunk_by(|one, other| one.0 == other.0) {
        for &(_, page, met) in same_start {
            mask = if met {
                mask | 1 << page
            } else {
                mask & !(1 << page)
            };
        }
        if entries.last().is_none_or(|last| last.b != mask) {
            entries.push(Row {
                a: same_start[0].0,
                b: mask,
            });
        }
    }

    entries
}
