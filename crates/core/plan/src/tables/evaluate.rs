//! Finds the first match in the tables, as the programs do.

use super::{
    Row, Values, GROUPS_MAX, LOOKUP_ANY_OF, LOOKUP_BITS, LOOKUP_MARKS, LOOKUP_RANGES, PAGE_HEAD,
};
use crate::conditions::Fact;
use crate::marks::Seen;

/// The outcome of the first stage for a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No rule matches the call.
    NoMatch,
    /// The rule at position `rule` is the first match.
    Decided {
        /// Position of the rule.
        rule: u32,
        /// Whether the action of the rule is `never`.
        never: bool,
    },
    /// Some candidates need the names of the event: pages of the list, and masks of candidates.
    Undecided(Vec<(u32, u64)>),
}

/// Evaluates the tables, step by step as the programs do.
pub fn evaluate(rows: &[Row], pages: u32, npages: u32, values: &Values) -> Verdict {
    let row = |i: usize| rows.get(i).copied().unwrap_or_default();
    let mut undecided = Vec::new();
    let all = u64::MAX.checked_shr(64 - npages).unwrap_or(0);
    let worth = match row(pages as usize).b as usize {
        0 => all,
        summary => page_mask(rows, summary, all, values).0,
    };

    for i in (0..npages).filter(|i| worth & 1 << i != 0) {
        let page = row((pages + i) as usize).a as u32 as usize;
        let (head, more) = (row(page), row(page + 1));
        let (mask, sure, unsure) = page_mask(rows, page, worth, values);
        let decided = mask & !(more.a & !sure) & !unsure;
        let bit = decided.trailing_zeros();
        let earlier = if bit == 64 {
            mask
        } else {
            mask & ((1 << bit) - 1)
        };
        if earlier != 0 {
            undecided.push((i, if bit == 64 { mask } else { earlier | 1 << bit }));
        } else if bit < 64 && !undecided.is_empty() {
            undecided.push((i, 1 << bit));
        }
        if bit == 64 {
            continue;
        }
        if !undecided.is_empty() {
            break;
        }
        let four = row((more.b >> 32) as usize + bit as usize / 4);
        let pair = if bit & 2 != 0 { four.b } else { four.a };
        let rule = if bit & 1 != 0 {
            (pair >> 32) as u32
        } else {
            pair as u32
        };
        return Verdict::Decided {
            rule,
            never: head.b & 1 << bit != 0,
        };
    }

    if undecided.is_empty() {
        Verdict::NoMatch
    } else {
        Verdict::Undecided(undecided)
    }
}

/// Mask of the rules of a page whose conditions the values meet, mask of those that marks decide, and mask of those
/// whose workload is not known. `worth`: the pages that can have a match.
fn page_mask(rows: &[Row], page: usize, worth: u64, values: &Values) -> (u64, u64, u64) {
    let lookups = rows[page + 1].b as u32 as usize;
    (0..lookups).fold((rows[page].a, 0, 0), |(mask, sure, unsure), l| {
        let at = page + PAGE_HEAD + 2 * l;
        match (&values.marks, (rows[at].a >> 32) as u32) {
            (Some(seen), LOOKUP_MARKS) => {
                let never = rows[page].b;
                let (mask, sure) = marks_mask(rows, at, (mask, never), worth, seen);
                (mask, sure, unsure)
            }
            (None, LOOKUP_MARKS) => (mask, sure, unsure),
            _ if is_unknown_workload(rows[at], values) => (mask, sure, unsure | !rows[at].b),
            _ if rows[at].a as u32 == Fact::Exe as u32 => {
                let never = rows[page].b;
                (
                    mask & executable_mask(rows, at, never, values),
                    sure,
                    unsure,
                )
            }
            _ => (mask & lookup_mask(rows, at, values), sure, unsure),
        }
    })
}

/// Whether a lookup, given its first row, is of a workload that is not known.
fn is_unknown_workload(head: Row, values: &Values) -> bool {
    let fact = head.a as u32 as usize;
    Fact::EVERY[fact].is_of_workload() && values.fact[fact].is_none()
}

/// Masks of those rules of `mask` that one of the marks seen admits, and of those that it decides. `never` rules need a
/// mark that the kernel would find.
fn marks_mask(
    rows: &[Row],
    at: usize,
    (mask, never): (u64, u64),
    worth: u64,
    seen: &Seen,
) -> (u64, u64) {
    let (in_order, place) = (rows[at].b, rows[at + 1]);
    let entries = entries_of(rows, place);
    let (mut any, mut sure, mut proven) = (entries[0].b, 0, 0);
    for hit in &seen.hits {
        if let Ok(i) = entries.binary_search_by_key(&u64::from(hit.value), |e| e.a) {
            any |= entries[i].b;
            if hit.is_sure {
                sure |= entries[i].b;
            }
            if hit.is_proven {
                proven |= entries[i].b;
            }
        }
    }

    let mask = mask & any & (!never | entries[0].b | proven);
    let mut sure = (sure & !never | proven & never) & place.b;
    let several = |mask: u64| mask.count_ones() > 1;
    if seen.is_several && (several(mask & in_order) || several(worth)) {
        sure &= !in_order;
    }

    (mask, sure)
}

/// Mask of the rules that the executable admits, of which `never` do not record: `look_up_executable()` of match.h.
fn executable_mask(rows: &[Row], at: usize, never: u64, values: &Values) -> u64 {
    let (head, entries) = (rows[at], entries_of(rows, rows[at + 1]));
    let Some(number) = values.fact[Fact::Exe as usize] else {
        return head.b | !never;
    };

    let mask_of = |number: u32| range_mask(entries, number);
    let mut possible = vec![number];
    if values.exe_by_name != number {
        possible.extend([values.exe_by_name, 0]);
    }

    let masks = possible.into_iter().map(mask_of);
    let (any, all) = masks.fold((0, u64::MAX), |(any, all), mask| (any | mask, all & mask));
    any & !never | all & never
}

/// Mask of the last range that begins at or below `value`.
fn range_mask(entries: &[Row], value: u32) -> u64 {
    entries[entries.partition_point(|entry| entry.a <= u64::from(value)) - 1].b
}

fn entries_of(rows: &[Row], place: Row) -> &[Row] {
    let first = place.a as u32 as usize;
    &rows[first..first + (place.a >> 32) as usize]
}

fn lookup_mask(rows: &[Row], at: usize, values: &Values) -> u64 {
    let (head, place) = (rows[at], rows[at + 1]);
    let Some(value) = values.fact[head.a as u32 as usize] else {
        return head.b;
    };

    let entries = entries_of(rows, place);
    let named = |id: u32| {
        entries
            .binary_search_by_key(&u64::from(id), |e| e.a)
            .map_or(0, |i| entries[i].b)
    };
    let any = || {
        values
            .groups
            .iter()
            .take(GROUPS_MAX)
            .fold(named(value), |mask, &group| mask | named(group))
    };

    match (head.a >> 32) as u32 {
        LOOKUP_RANGES => range_mask(entries, value),
        LOOKUP_BITS => entries.iter().fold(u64::MAX, |mask, entry| {
            let operand = entry.a as u32;
            let holds = match (entry.a >> 32) as u32 {
                0 => value & operand != 0,
                1 => value & operand == operand,
                _ => value & operand == 0,
            };
            if holds {
                mask
            } else {
                mask & !entry.b
            }
        }),
        LOOKUP_ANY_OF => head.b | any(),
        _ => !any(),
    }
}
