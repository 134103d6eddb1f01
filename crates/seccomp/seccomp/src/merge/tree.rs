//! Builds the cheapest tree of comparisons that distinguishes ranges of one word.

use super::dag::{Dag, Id, Test};
use crate::insn::code;

/// A range of values: from `first` to before the next range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) first: u32,
    pub(crate) leaf: Id,
    /// Relative frequency.
    pub(crate) weight: f64,
}

/// Number of ranges up to which the best tree is computed; above it, ranges are split in the middle
/// of their weight.
const EXACT_MAX: usize = 400;

/// Cost of one more instruction in the program, in instructions run per call.
const SIZE_COST: f64 = 0.02;

/// Way to split a run of ranges.
#[derive(Clone, Copy)]
enum Choice {
    Leaf,
    /// A single value between two ranges with the same result: one test for equality.
    Equal,
    /// The right part starts with this range.
    Between(usize),
    /// Splits like `Between`, but the right part also contains the range before, which no value can
    /// reach there. So it can test a single value between two equal ranges.
    Inside(usize),
}

/// Builds the tree for the word at `offset`. `ranges` is not empty; the first range starts at 0.
pub(crate) fn build(dag: &mut Dag, offset: u32, ranges: &[Range]) -> Id {
    let total: f64 = ranges.iter().map(|range| range.weight).sum();
    let scale = if total > 0.0 { 1.0 / total } else { 0.0 };

    // Every range has some weight; otherwise unused parts would become linear lists.
    let floor = 0.1 / ranges.len() as f64;
    let ranges: Vec<Range> = ranges
        .iter()
        .map(|range| Range {
            weight: range.weight * scale + floor,
            ..*range
        })
        .collect();

    let mut tree = Tree {
        offset,
        ranges: &ranges,
        choices: Vec::new(),
    };
    if ranges.len() <= EXACT_MAX {
        tree.choose();
    }

    tree.emit(dag, 0, ranges.len() - 1)
}

struct Tree<'a> {
    offset: u32,
    ranges: &'a [Range],
    /// Choices by first and last range; empty if there are too many ranges.
    choices: Vec<Choice>,
}

impl Tree<'_> {
    fn is_single(&self, index: usize) -> bool {
        let next = self.ranges.get(index + 1).map(|range| range.first);
        match next {
            Some(next) => next - self.ranges[index].first == 1,
            None => self.ranges[index].first == u32::MAX,
        }
    }

    fn is_hole(&self, first: usize, last: usize) -> bool {
        last == first + 2
            && self.ranges[first].leaf == self.ranges[last].leaf
            && self.is_single(first + 1)
    }

    /// Finds the best choice for every run, from short runs to long ones.
    fn choose(&mut self) {
        let count = self.ranges.len();
        let mut sums = vec![0.0];
        for range in self.ranges {
            sums.push(sums[sums.len() - 1] + range.weight);
        }
        let mut costs = vec![0.0f64; count * count];
        self.choices = vec![Choice::Leaf; count * count];

        for length in 2..=count {
            for first in 0..=count - length {
                let last = first + length - 1;
                // A test costs each value that passes it, and a little for its place in the program.
                let here = sums[last + 1] - sums[first] + SIZE_COST;
                let mut best = (f64::INFINITY, Choice::Leaf);
                if self.is_hole(first, last) {
                    best = (0.0, Choice::Equal);
                }
                for middle in first + 1..=last {
                    let left = costs[first * count + middle - 1];
                    let between = left + costs[middle * count + last];
                    if between < best.0 {
                        best = (between, Choice::Between(middle));
                    }
                    if middle > first + 1 {
                        let inside = left + costs[(middle - 1) * count + last];
                        if inside < best.0 {
                            best = (inside, Choice::Inside(middle));
                        }
                    }
                }
                costs[first * count + last] = best.0 + here;
                self.choices[first * count + last] = best.1;
            }
        }
    }

    fn choice(&self, first: usize, last: usize) -> Choice {
        if first == last {
            return Choice::Leaf;
        }
        if let Some(choice) = self.choices.get(first * self.ranges.len() + last) {
            return *choice;
        }
        if self.is_hole(first, last) {
            return Choice::Equal;
        }

        let weight: f64 = self.ranges[first..=last].iter().map(|r| r.weight).sum();
        let mut left = 0.0;
        for middle in first + 1..last {
            left += self.ranges[middle - 1].weight;
            if left * 2.0 >= weight {
                return Choice::Between(middle);
            }
        }

        Choice::Between(last)
    }

    fn emit(&self, dag: &mut Dag, first: usize, last: usize) -> Id {
        let test = |jump, k| Test {
            offset: self.offset,
            mask: u32::MAX,
            jump,
            k,
        };
        let (right_first, middle) = match self.choice(first, last) {
            Choice::Leaf => return self.ranges[first].leaf,
            Choice::Equal => {
                let hole = self.ranges[first + 1];
                let around = self.ranges[first].leaf;
                return dag.test(test(code::JEQ, hole.first), hole.leaf, around);
            }
            Choice::Between(middle) => (middle, middle),
            Choice::Inside(middle) => (middle - 1, middle),
        };

        let left = self.emit(dag, first, middle - 1);
        let right = self.emit(dag, right_first, last);

        dag.test(test(code::JGE, self.ranges[middle].first), right, left)
    }
}
