//! Selects the blocks of a log that have to be read, so that the same events come out in the same order.
//!
//! Blocks whose times overlap may hold records of the same event: they are read together or not at all.

use super::block::{Block, Stamp};
use crate::TimeRange;

/// Treatment of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockUse {
    /// Read the lines of the block.
    Read,
    /// Leave the block out. With a second: an event begins then ([`crate::Assembler::leave_out`]).
    LeaveOut(Option<u64>),
}

/// Treatment of each block. `blocks` are in the order of reading. `is_wanted` says whether a set of blocks, by their
/// numbers, may hold an event that is looked for.
pub fn steps(
    blocks: &[&Block],
    range: TimeRange,
    is_wanted: impl Fn(&[usize]) -> bool,
) -> Vec<BlockUse> {
    let mut steps: Vec<BlockUse> = vec![BlockUse::LeaveOut(None); blocks.len()];
    let mut latest: Option<Stamp> = None;
    let mut before: Option<(usize, Stamp)> = None;
    for (number, block) in blocks.iter().enumerate() {
        let (Some(first), Some(last)) = (block.earliest(), block.latest()) else {
            continue;
        };
        if is_outside(first, last, range) {
            continue;
        }

        // When a late event comes out depends on the event that began last, and this may not be the
        // latest of its block.
        if let Some((number, _)) = before.filter(|(_, last)| first.0 < last.0) {
            steps[number] = BlockUse::Read;
        }
        before = Some((number, last));

        // The latest event of a block begins in it if nothing before is as late.
        let begins = !block.has_eoe && latest.is_none_or(|latest| last > latest);
        let is_before_end = range.end_s == 0 || seconds(last) <= range.end_s;
        steps[number] = if begins && is_before_end {
            BlockUse::LeaveOut(Some(last.0))
        } else {
            BlockUse::Read
        };
        latest = latest.max(Some(last));
    }

    for set in sets(blocks) {
        // A record in a block that is read must find its event if that began in another one.
        let is_read = set.iter().any(|number| steps[*number] == BlockUse::Read);
        if is_read || is_wanted(&set) {
            for number in set {
                if steps[number] != BlockUse::LeaveOut(None) {
                    steps[number] = BlockUse::Read;
                }
            }
        }
    }

    steps
}

fn seconds(stamp: Stamp) -> i64 {
    i64::try_from(stamp.0).unwrap_or(i64::MAX)
}

fn is_outside(first: Stamp, last: Stamp, range: TimeRange) -> bool {
    (range.start_s != 0 && seconds(last) < range.start_s)
        || (range.end_s != 0 && seconds(first) > range.end_s)
}

/// The blocks, grouped where their times overlap.
fn sets(blocks: &[&Block]) -> Vec<Vec<usize>> {
    let mut ranges: Vec<(Stamp, Stamp, usize)> = blocks
        .iter()
        .enumerate()
        .flat_map(|(number, block)| {
            block
                .ranges
                .iter()
                .map(move |range| (range.0, range.1, number))
        })
        .collect();
    ranges.sort_unstable();

    let mut parent: Vec<usize> = (0..blocks.len()).collect();
    let mut end: Option<(Stamp, usize)> = None;
    for (from, to, number) in ranges {
        end = match end {
            Some((until, other)) if from <= until => {
                let (a, b) = (root(&mut parent, other), root(&mut parent, number));
                parent[a.max(b)] = a.min(b);
                Some((until.max(to), number))
            }
            _ => Some((to, number)),
        };
    }

    let mut members = vec![Vec::new(); blocks.len()];
    for number in 0..blocks.len() {
        members[root(&mut parent, number)].push(number);
    }

    members.retain(|set| !set.is_empty());
    members
}

fn root(parent: &mut [usize], mut number: usize) -> usize {
    while parent[number] != number {
        parent[number] = parent[parent[number]];
        number = parent[number];
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(ranges: &[(u64, u64)]) -> Block {
        Block {
            ranges: ranges
                .iter()
                .map(|(from, to)| ((*from, 0, 0), (*to, 0, 0)))
                .collect(),
            ..Block::default()
        }
    }

    #[test]
    fn blocks_whose_times_overlap_are_read_together() {
        let blocks = [
            block(&[(10, 19)]),
            block(&[(20, 29)]),
            block(&[(30, 39), (12, 12)]),
            block(&[(40, 49)]),
        ];
        let blocks: Vec<&Block> = blocks.iter().collect();
        let only = |wanted: usize| move |set: &[usize]| set.contains(&wanted);
        let (read, left) = (BlockUse::Read, |sec| BlockUse::LeaveOut(Some(sec)));
        let all = TimeRange::default();
        // The third block has an event that is late after the second.
        assert_eq!(steps(&blocks, all, only(0)), [read, read, read, left(49)]);
        let rest = [left(19), read, left(39), left(49)];
        assert_eq!(steps(&blocks, all, only(1)), rest);
        assert_eq!(steps(&blocks, all, only(9)), rest);
        let early = TimeRange {
            start_s: 0,
            end_s: 25,
        };
        assert_eq!(
            steps(&blocks, early, only(9)),
            [read, read, read, BlockUse::LeaveOut(None)]
        );
    }

    #[test]
    fn a_record_that_is_read_finds_its_event() {
        // The third block may continue an event of the first, which no other block is as late as.
        let blocks = [block(&[(90, 90)]), block(&[(10, 10)]), block(&[(90, 90)])];
        let blocks: Vec<&Block> = blocks.iter().collect();
        let nothing = |_: &[usize]| false;
        let read = BlockUse::Read;
        let all = TimeRange::default();
        assert_eq!(steps(&blocks, all, nothing), [read, read, read]);
        let in_order = [block(&[(10, 10)]), block(&[(90, 90)])];
        let in_order: Vec<&Block> = in_order.iter().collect();
        let left = |sec| BlockUse::LeaveOut(Some(sec));
        assert_eq!(steps(&in_order, all, nothing), [left(10), left(90)]);
    }
}
