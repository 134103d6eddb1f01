//! Search trees: finds the interval of a word with as few tests as possible.

use super::code::{Code, CodeId, Graph};
use crate::code as op;
use std::collections::HashMap;

/// An interval of a word's values, up to the start of the next one, and the code for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: u32,
    pub(super) to: CodeId,
    /// Relative frequency.
    pub(super) weight: f64,
}

/// Number of intervals up to which the best tree is computed; beyond it that takes too long, and
/// the intervals are first halved by weight.
const EXACT_MAX: usize = 320;

/// Joins neighbouring intervals with the same code.
pub(super) fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut joined: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match joined.last_mut() {
            Some(last) if last.to == segment.to => last.weight += segment.weight,
            _ => joined.push(segment),
        }
    }
    joined
}

/// The tree with the least weighted number of tests: optimal binary search over the starts. If it is
/// longer than a test for each value would be, as libseccomp makes them, the tree with fewer
/// instructions, too; if that is still longer, such a list.
///
/// `segments` must be ordered and not empty, and start at the least value that the word can have.
pub(super) fn search(graph: &mut Graph, segments: Vec<Segment>) -> CodeId {
    let segments = joined(segments);
    let fast = build(graph, &segments, FAST);
    let flat = flat_tests(&segments);
    if segments.len() as u64 <= flat + 1 {
        return fast;
    }
    if segments.len() > EXACT_MAX {
        return build(graph, &segments, SHORT);
    }

    let last = segments.len() - 1;
    let short = Best::of(&segments, SHORT);
    if short.tests(0, last) as u64 <= flat {
        return short.emit(graph, 0, last);
    }

    Best::of(&segments, LIST).emit(graph, 0, last)
}

/// Number of tests that tell the values apart from the most frequent kind one after the other: one
/// for a value, two for a range that no rules for single values make.
fn flat_tests(segments: &[Segment]) -> u64 {
    const RANGE: u64 = 1 << 10;

    let mut tests: HashMap<CodeId, u64> = HashMap::new();
    let mut widths: HashMap<CodeId, u64> = HashMap::new();
    let ends = segments.iter().skip(1).map(|segment| segment.start.into());
    for (segment, end) in segments.iter().zip(ends.chain([1 << 32])) {
        let width = end - u64::from(segment.start);
        *widths.entry(segment.to).or_default() += width.min(RANGE);
        *tests.entry(segment.to).or_default() += if width > RANGE { 2 } else { width };
    }

    let most = widths.into_iter().max_by_key(|&(to, width)| (width, to));
    if let Some((to, _)) = most {
        tests.remove(&to);
    }
    tests.into_values().sum()
}

fn build(graph: &mut Graph, segments: &[Segment], aim: Aim) -> CodeId {
    if segments.len() > EXACT_MAX {
        let total: f64 = segments.iter().map(|s| s.weight).sum();
        let mut sum = 0.0;
        let heavy = segments.iter().position(|s| {
            sum += s.weight;
            sum * 2.0 >= total
        });
        // Not near an end, however the weights are: each half must shrink.
        let middle = heavy
            .unwrap_or(0)
            .clamp(segments.len() / 4, segments.len() * 3 / 4)
            .max(1);
        let low = build(graph, &segments[..middle], aim);
        let high = build(graph, &segments[middle..], aim);
        return at_least(graph, segments[middle].start, high, low);
    }

    let best = Best::of(segments, aim);
    best.emit(graph, 0, segments.len() - 1)
}

/// What a tree is optimised for.
#[derive(Clone, Copy)]
struct Aim {
    /// Price of an instruction, in tests that the average value passes.
    space: f64,
    /// Limit of tests that are made one after the other, so that no value needs many more.
    sequence_max: usize,
}

const FAST: Aim = Aim {
    space: 0.0,
    sequence_max: 1,
};

const SHORT: Aim = Aim {
    space: 4.0,
    sequence_max: 12,
};

const LIST: Aim = Aim {
    space: 64.0,
    sequence_max: 32,
};

/// How a span of segments is told apart.
#[derive(Clone, Copy)]
enum Split {
    /// One segment: no test is needed.
    Single,
    /// The first segment of the upper part.
    Cut(usize),
    /// The segments with another target than most are tested one after the other.
    Sequence,
}

/// Dynamic programming over spans of segments.
struct Best<'a> {
    segments: &'a [Segment],
    aim: Aim,
    /// Sum of all weights.
    total: f64,
    cost: Vec<f64>,
    split: Vec<Split>,
}

impl Best<'_> {
    fn of(segments: &[Segment], aim: Aim) -> Best<'_> {
        let len = segments.len();
        let mut sums = vec![0.0; len + 1];
        for (i, segment) in segments.iter().enumerate() {
            sums[i + 1] = sums[i] + segment.weight;
        }
        let total = if sums[len] > 0.0 { sums[len] } else { 1.0 };
        let mut best = Best {
            segments,
            aim,
            total,
            cost: vec![0.0; len * len],
            split: vec![Split::Single; len * len],
        };

        // Short spans first: a longer one is made of two that are known.
        for span in 1..len {
            for first in 0..len - span {
                let last = first + span;
                // Every value of the span passes the first test: it costs the weight of the span.
                let test = (sums[last + 1] - sums[first]) / total + aim.space;
                let (mut cost, mut split) = (f64::INFINITY, Split::Single);
                for middle in first + 1..=last {
                    let both = best.cost[first * len + middle - 1] + best.cost[middle * len + last];
                    if both + test < cost {
                        (cost, split) = (both + test, Split::Cut(middle));
                    }
                }
                if let Some(sequence) = best
                    .sequence(first, last)
                    .map(|sequence| best.cost_of(&sequence))
                {
                    if sequence < cost {
                        (cost, split) = (sequence, Split::Sequence);
                    }
                }
                best.cost[first * len + last] = cost;
                best.split[first * len + last] = split;
            }
        }

        best
    }

    fn emit(&self, graph: &mut Graph, first: usize, last: usize) -> CodeId {
        let segments = self.segments;
        match self.split[first * segments.len() + last] {
            Split::Single => segments[first].to,
            Split::Cut(cut) => {
                let low = self.emit(graph, first, cut - 1);
                let high = self.emit(graph, cut, last);
                at_least(graph, segments[cut].start, high, low)
            }
            Split::Sequence => match self.sequence(first, last) {
                Some(sequence) => self.emit_sequence(graph, &sequence, (first, last)),
                None => segments[first].to,
            },
        }
    }

    /// Number of tests for a span.
    fn tests(&self, first: usize, last: usize) -> usize {
        match self.split[first * self.segments.len() + last] {
            Split::Single => 0,
            Split::Cut(cut) => 1 + self.tests(first, cut - 1) + self.tests(cut, last),
            Split::Sequence => {
                let sequence = self.sequence(first, last);
                sequence.map_or(0, |it| it.tests.iter().map(|&(_, tests)| tests).sum())
            }
        }
    }

    /// Tests that tell the segments of a span apart one after the other; `None` if a tree is
    /// better for so many.
    fn sequence(&self, first: usize, last: usize) -> Option<Sequence> {
        if last - first < 2 || last - first > 2 * self.aim.sequence_max {
            return None;
        }
        let span = &self.segments[first..=last];
        let count = |to: CodeId| span.iter().filter(|other| other.to == to).count();
        let others = span
            .iter()
            .map(|segment| segment.to)
            .max_by_key(|&to| (count(to), to))?;

        let mut tested: Vec<usize> = (first..=last)
            .filter(|&at| self.segments[at].to != others)
            .collect();
        if tested.len() > self.aim.sequence_max {
            return None;
        }
        tested.sort_by(|&a, &b| {
            let (a, b) = (&self.segments[a], &self.segments[b]);
            b.weight.total_cmp(&a.weight).then(a.start.cmp(&b.start))
        });
        let tests = tested.iter().map(|&at| {
            let is_inside = at > first && at < last && !self.is_one_value(at);
            (at, 1 + usize::from(is_inside))
        });
        let weight = span.iter().filter(|segment| segment.to == others);
        Some(Sequence {
            tests: tests.collect(),
            others,
            weight: weight.map(|segment| segment.weight).sum(),
        })
    }

    fn cost_of(&self, sequence: &Sequence) -> f64 {
        let (mut insns, mut cost) = (0, 0.0);
        for &(at, tests) in &sequence.tests {
            insns += tests;
            cost += self.segments[at].weight * insns as f64;
        }
        (cost + sequence.weight * insns as f64) / self.total + self.aim.space * insns as f64
    }

    /// Whether a segment has a single value.
    fn is_one_value(&self, at: usize) -> bool {
        let next = self.segments.get(at + 1).map(|next| next.start);
        next == self.segments[at].start.checked_add(1)
    }

    fn emit_sequence(
        &self,
        graph: &mut Graph,
        sequence: &Sequence,
        (first, last): (usize, usize),
    ) -> CodeId {
        let mut no = sequence.others;
        for &(at, _) in sequence.tests.iter().rev() {
            let Segment { start, to, .. } = self.segments[at];
            no = if self.is_one_value(at) {
                graph.add(Code::Test {
                    op: op::JEQ,
                    k: start,
                    yes: to,
                    no,
                })
            } else {
                // At the ends of the span there is nothing to tell it from.
                let from = match at {
                    _ if at == first => to,
                    _ => at_least(graph, start, to, no),
                };
                match self.segments.get(at + 1) {
                    Some(next) if at < last => at_least(graph, next.start, no, from),
                    _ => from,
                }
            };
        }
        no
    }
}

/// Tests one after the other.
struct Sequence {
    /// Segments with another target than the most, and how many tests each needs.
    tests: Vec<(usize, usize)>,
    /// Target of the most segments.
    others: CodeId,
    /// Weight of those.
    weight: f64,
}

fn at_least(graph: &mut Graph, start: u32, yes: CodeId, no: CodeId) -> CodeId {
    // Test for 0 instead: `== 0` is easier to read in a disassembly.
    let test = match start {
        1 => Code::Test {
            op: op::JEQ,
            k: 0,
            yes: no,
            no: yes,
        },
        _ => Code::Test {
            op: op::JGE,
            k: start,
            yes,
            no,
        },
    };

    graph.add(test)
}
