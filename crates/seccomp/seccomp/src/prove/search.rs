//! Searches for a call that two chains decide differently, if their diagrams are too large. A call
//! that it finds is certain, but it may miss others.

use crate::insn::code;
use crate::{Chain, SeccompData};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of calls that are tried.
const CALLS_MAX: usize = 200_000;

/// Limit of calls that are tried with one architecture and number.
const DRAWS_MAX: usize = 64;

/// Tries every architecture and number that the filters compare with, and their neighbours, with
/// argument words that are chosen in the same way.
pub(super) fn search(left: &Chain, right: &Chain) -> Option<SeccompData> {
    let edges = edges([left, right]);
    let of = |offset| edges.get(&offset).map(Vec::as_slice).unwrap_or(&[]);
    let (archs, numbers) = (of(4), of(0));
    // The same number of draws for each call, within the limit of all.
    let draws = (CALLS_MAX / (archs.len() * numbers.len()).max(1)).clamp(1, DRAWS_MAX);
    let mut random = Random(0);
    let calls = archs
        .iter()
        .flat_map(|&arch| numbers.iter().map(move |&nr| (arch, nr)))
        .flat_map(|call| std::iter::repeat_n(call, draws));

    for (arch, nr) in calls.take(CALLS_MAX) {
        let mut data = SeccompData {
            nr,
            arch,
            ..SeccompData::default()
        };
        for offset in (8..64).step_by(4) {
            let choices = of(offset);
            let drawn = random.next();
            let value = match drawn % 8 {
                // One in eight is any value: it may find what no comparison shows.
                0 => (drawn >> 32) as u32,
                _ => choices[(drawn >> 8) as usize % choices.len()],
            };
            data.store(offset, value);
        }
        if left.run(&data).verdict != right.run(&data).verdict {
            return Some(data);
        }
    }

    None
}

/// Values, by offset of their word, at which the filters' behaviour can change. A comparison is
/// assumed to be of the last word loaded before it; a wrong guess only costs calls.
fn edges(chains: [&Chain; 2]) -> BTreeMap<u32, Vec<u32>> {
    let usual = BTreeSet::from([0, 1, u32::MAX]);
    let mut edges: BTreeMap<u32, BTreeSet<u32>> =
        (0..64).step_by(4).map(|at| (at, usual.clone())).collect();
    let filters = chains.into_iter().flat_map(Chain::filters);

    for filter in filters {
        let mut offset = 0;
        for insn in filter.insns() {
            let near = match insn.code {
                code::LD_ABS => {
                    offset = insn.k;
                    continue;
                }
                code::AND => [insn.k, !insn.k, 0],
                _ if insn.is_conditional() && offset == 4 => [insn.k; 3],
                _ if insn.is_conditional() => {
                    [insn.k.wrapping_sub(1), insn.k, insn.k.wrapping_add(1)]
                }
                _ => continue,
            };
            edges.entry(offset).or_default().extend(near);
        }
    }

    let lists = edges.into_iter();

    lists
        .map(|(offset, values)| (offset, values.into_iter().collect()))
        .collect()
}

/// SplitMix64: gives the same calls every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
