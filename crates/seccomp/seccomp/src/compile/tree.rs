//! Search trees: finds the interval of a word with as few tests as possible.

use super::code::{Code, CodeId, Graph};
use crate::code as op;

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

/// The tree with the least weighted number of tests: optimal binary search over the starts. A
/// single value between two neighbours with the same code takes one test for equality.
///
/// `segments` must be ordered and not empty, and start at the least value that the word can have.
pub(super) fn search(graph: &mut Graph, segments: Vec<Segment>) -> CodeId {
    let segments = joined(segments);
    build(graph, &segments)
}

fn build(graph: &mut Graph, segments: &[Segment]) -> CodeId {
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
        let low = build(graph, &segments[..middle]);
        let high = build(graph, &segments[middle..]);
        return at_least(graph, segments[middle].start, high, low);
    }

    let best = Best::of(segments);
    best.emit(graph, segments, 0, segments.len() - 1)
}

/// Dynamic programming over spans of segments.
struct Best {
    len: usize,
    cost: Vec<f64>,
    /// First segment of the upper part; 0 if one test for equality decides, or no test is needed.
    cut: Vec<u32>,
}

impl Best {
    fn of(segments: &[Segment]) -> Best {
        let len = segments.len();
        let mut sums = vec![0.0; len + 1];
        for (i, segment) in segments.iter().enumerate() {
            sums[i + 1] = sums[i] + segment.weight;
        }
        let mut best = Best {
            len,
            cost: vec![0.0; len * len],
            cut: vec![0; len * len],
        };

        // Short spans first: a longer one is made of two that are known.
        for span in 1..len {
            for first in 0..len - span {
                let last = first + span;
                let weight = sums[last + 1] - sums[first];
                // Every value of the span passes this test: it costs the weight of the span.
                let (mut cost, mut cut) = (f64::INFINITY, 0);
                if !is_hole(segments, first, last) {
                    for middle in first + 1..=last {
                        let both =
                            best.cost[first * len + middle - 1] + best.cost[middle * len + last];
                        if both < cost {
                            (cost, cut) = (both, middle);
                        }
                    }
                } else {
                    cost = 0.0;
                }
                best.cost[first * len + last] = cost + weight;
                best.cut[first * len + last] = cut as u32;
            }
        }

        best
    }

    fn emit(&self, graph: &mut Graph, segments: &[Segment], first: usize, last: usize) -> CodeId {
        if first == last {
            return segments[first].to;
        }

        let cut = self.cut[first * self.len + last] as usize;
        if cut == 0 {
            let value = segments[first + 1];
            let test = Code::Test {
                op: op::JEQ,
                k: value.start,
                yes: value.to,
                no: segments[first].to,
            };
            return graph.add(test);
        }

        let low = self.emit(graph, segments, first, cut - 1);
        let high = self.emit(graph, segments, cut, last);

        at_least(graph, segments[cut].start, high, low)
    }
}

/// Whether the span is a single value between two intervals with the same code.
fn is_hole(segments: &[Segment], first: usize, last: usize) -> bool {
    last == first + 2
        && segments[first].to == segments[last].to
        && segments[first + 1].start.checked_add(1) == Some(segments[last].start)
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
