//! Interval decision diagrams over the words of a call's arguments.
//!
//! A node tests one word (a half of an argument, under a mask) and has one edge per interval of its
//! values. Words are tested in a fixed order, and equal nodes are shared. So every word is tested
//! at most once, and calls share common tests.

use super::{CompileError, Order};
use crate::policy::{Compare, Condition, Rule};
use crate::Verdict;
use std::collections::HashMap;

/// A node of a [`Diagrams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Node(u32);

/// A 32-bit word that is tested. Upper halves come first: in most values they are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Tested {
    /// Place of the argument in the order of tests.
    rank: u8,
    arg: u8,
    low: bool,
    /// The bits that are not compared. A whole word comes before its parts: to know it decides all of
    /// them.
    left_out: u32,
}

impl Tested {
    /// The bits that are compared.
    pub(super) fn mask(self) -> u32 {
        !self.left_out
    }

    /// Byte offset in `struct seccomp_data` on a little-endian machine.
    pub(super) fn offset(self) -> u32 {
        16 + 8 * u32::from(self.arg) + if self.low { 0 } else { 4 }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum NodeKind {
    Leaf(Verdict),
    /// Edges, by the first value of their interval; that of the first edge is 0.
    Branch(Tested, Vec<(u32, Node)>),
}

/// Limit of nodes: more than this cannot be compiled to 4096 instructions.
const NODES_MAX: usize = 200_000;

/// The two leaves of conditions, which are never mixed with verdicts.
const FALSE: Verdict = Verdict(0);
pub(super) const TRUE: Verdict = Verdict(1);

/// All nodes made so far.
#[derive(Default)]
pub(super) struct Diagrams {
    nodes: Vec<NodeKind>,
    known: HashMap<NodeKind, Node>,
    chosen: HashMap<(Node, Node, Node), Node>,
    strictest: HashMap<(Node, Node), Node>,
    /// Number of nodes after which no more are made.
    limit: usize,
    order: Order,
}

type Made = Result<Node, CompileError>;

impl Diagrams {
    pub(super) fn new(order: Order) -> Diagrams {
        Diagrams {
            order,
            ..Diagrams::default()
        }
    }

    fn word(&self, arg: u8, low: bool, mask: u32) -> Tested {
        let rank = match self.order {
            Order::Ascending => arg,
            Order::Descending => u8::MAX - arg,
        };
        Tested {
            rank,
            arg,
            low,
            left_out: !mask,
        }
    }

    pub(super) fn kind(&self, node: Node) -> &NodeKind {
        &self.nodes[node.0 as usize]
    }

    pub(super) fn leaf(&mut self, verdict: Verdict) -> Made {
        self.make(NodeKind::Leaf(verdict))
    }

    fn make(&mut self, kind: NodeKind) -> Made {
        if let Some(&node) = self.known.get(&kind) {
            return Ok(node);
        }
        // An equal node exists once: two functions are equal if their nodes are.
        if self.nodes.len() >= self.limit {
            return Err(CompileError::TooManyConditions { nodes: self.limit });
        }
        let node = Node(self.nodes.len() as u32);
        self.nodes.push(kind.clone());
        self.known.insert(kind, node);
        Ok(node)
    }

    fn branch(&mut self, word: Tested, mut edges: Vec<(u32, Node)>) -> Made {
        // Neighbours with one target are one interval, so that a function has one form only.
        edges.dedup_by_key(|edge| edge.1);
        match edges.as_slice() {
            [only] => Ok(only.1),
            _ => self.make(NodeKind::Branch(word, edges)),
        }
    }

    /// Allows this many more nodes, within the limit of all.
    pub(super) fn limit_growth(&mut self, nodes: usize) {
        self.limit = (self.nodes.len() + nodes).min(NODES_MAX);
    }

    /// A diagram that is `then` if one of the rules matches and `other` if none does. Without `wide`,
    /// upper halves are known to be 0.
    pub(super) fn when_any(
        &mut self,
        rules: &[&Rule],
        wide: bool,
        then: Node,
        other: Node,
    ) -> Made {
        let any = self.any(rules, wide)?;
        self.choose(any, then, other)
    }

    /// Condition that one of the rules matches: its leaves are [`TRUE`] and `FALSE`. Halves are joined,
    /// so that few large nodes are made.
    pub(super) fn any(&mut self, rules: &[&Rule], wide: bool) -> Made {
        let yes = self.leaf(TRUE)?;
        match rules {
            [] => self.leaf(FALSE),
            [rule] => {
                let no = self.leaf(FALSE)?;
                let mut all = yes;
                for condition in &rule.conditions {
                    let holds = self.condition(condition, wide)?;
                    all = self.choose(holds, all, no)?;
                }
                Ok(all)
            }
            _ => {
                let (left, right) = rules.split_at(rules.len() / 2);
                let left = self.any(left, wide)?;
                let right = self.any(right, wide)?;
                self.choose(left, yes, right)
            }
        }
    }

    fn condition(&mut self, condition: &Condition, wide: bool) -> Made {
        let no = self.leaf(FALSE)?;
        let yes = self.leaf(TRUE)?;
        let value = condition.value;

        match condition.compare {
            Compare::Eq => self.bounded(condition.arg, wide, value, Some(value)),
            Compare::Ne => {
                let equal = self.bounded(condition.arg, wide, value, Some(value))?;
                self.choose(equal, no, yes)
            }
            Compare::Ge => self.bounded(condition.arg, wide, value, None),
            Compare::Le => self.bounded(condition.arg, wide, 0, Some(value)),
            Compare::Gt => match value.checked_add(1) {
                Some(first) => self.bounded(condition.arg, wide, first, None),
                None => Ok(no),
            },
            Compare::Lt => match value.checked_sub(1) {
                Some(last) => self.bounded(condition.arg, wide, 0, Some(last)),
                None => Ok(no),
            },
            Compare::MaskedEq { mask } => self.masked(condition.arg, wide, mask, value),
        }
    }

    /// Condition that an argument is between `first` and `last` (no upper bound if `None`).
    fn bounded(&mut self, arg: u8, wide: bool, first: u64, last: Option<u64>) -> Made {
        let no = self.leaf(FALSE)?;
        let at_least = self.at_least(arg, wide, first)?;
        // Without a value above the last, there is no upper bound.
        match last.and_then(|last| last.checked_add(1)) {
            None => Ok(at_least),
            Some(end) => {
                let beyond = self.at_least(arg, wide, end)?;
                self.choose(beyond, no, at_least)
            }
        }
    }

    fn at_least(&mut self, arg: u8, wide: bool, bound: u64) -> Made {
        let (high, low) = ((bound >> 32) as u32, bound as u32);
        let yes = self.leaf(TRUE)?;
        let no = self.leaf(FALSE)?;
        let word = |low| self.word(arg, low, u32::MAX);
        let (lower, upper) = (word(true), word(false));
        // The lower half decides only where the upper halves are equal.
        let low_part = match low {
            0 => yes,
            low => self.branch(lower, vec![(0, no), (low, yes)])?,
        };
        if !wide {
            // An upper half of 0 is below every other one.
            return Ok(if high == 0 { low_part } else { no });
        }

        let mut edges = Vec::with_capacity(3);
        if high > 0 {
            edges.push((0, no));
        }
        edges.push((high, low_part));
        if let Some(above) = high.checked_add(1) {
            edges.push((above, yes));
        }

        self.branch(upper, edges)
    }

    fn masked(&mut self, arg: u8, wide: bool, mask: u64, value: u64) -> Made {
        // A bit outside the mask can never be set after it.
        if value & !mask != 0 {
            return self.leaf(FALSE);
        }
        let low = self.masked_word(arg, true, mask as u32, value as u32)?;
        let (mask, value) = ((mask >> 32) as u32, (value >> 32) as u32);
        let no = self.leaf(FALSE)?;
        if wide {
            let high = self.masked_word(arg, false, mask, value)?;
            self.choose(high, low, no)
        } else {
            Ok(if value == 0 { low } else { no })
        }
    }

    fn masked_word(&mut self, arg: u8, low: bool, mask: u32, value: u32) -> Made {
        let yes = self.leaf(TRUE)?;
        let no = self.leaf(FALSE)?;
        if mask == 0 {
            return Ok(yes);
        }

        let mut edges = Vec::with_capacity(3);
        if value > 0 {
            edges.push((0, no));
        }
        edges.push((value, yes));

        // A masked value cannot be larger than the mask.
        if value < mask {
            edges.push((value + 1, no));
        }

        self.branch(self.word(arg, low, mask), edges)
    }

    /// A diagram that is `then` where `condition` holds and `other` elsewhere.
    fn choose(&mut self, condition: Node, then: Node, other: Node) -> Made {
        if then == other {
            return Ok(then);
        }
        if let NodeKind::Leaf(value) = self.kind(condition) {
            return Ok(if *value == TRUE { then } else { other });
        }
        if let Some(&node) = self.chosen.get(&(condition, then, other)) {
            return Ok(node);
        }

        let roots = [condition, then, other];
        let node = self.split(&roots, |all, parts| {
            all.choose(parts[0], parts[1], parts[2])
        })?;
        self.chosen.insert((condition, then, other), node);

        Ok(node)
    }

    /// The verdict of `newer`, unless that of `older` is strictly stricter.
    pub(super) fn strictest(&mut self, newer: Node, older: Node) -> Made {
        if newer == older {
            return Ok(newer);
        }

        if let (NodeKind::Leaf(newer), NodeKind::Leaf(older)) = (self.kind(newer), self.kind(older))
        {
            let verdict = newer.or_stricter(*older);
            return self.leaf(verdict);
        }
        if let Some(&node) = self.strictest.get(&(newer, older)) {
            return Ok(node);
        }

        let node = self.split(&[newer, older], |all, parts| {
            all.strictest(parts[0], parts[1])
        })?;
        self.strictest.insert((newer, older), node);

        Ok(node)
    }

    /// Combines nodes, at least one of which is a branch, for each interval of the first word they
    /// test.
    fn split(&mut self, roots: &[Node], combine: impl Fn(&mut Self, &[Node]) -> Made) -> Made {
        // All operands have the words in one order, so that the least word is tested first in all.
        let words = roots.iter().filter_map(|&root| match self.kind(root) {
            NodeKind::Branch(word, _) => Some(*word),
            NodeKind::Leaf(_) => None,
        });
        let Some(first) = words.min() else {
            return Ok(roots[0]);
        };

        let parts: Vec<Vec<(u32, Node)>> =
            roots.iter().map(|&root| self.edges(root, first)).collect();
        // Between two neighbouring starts no operand changes.
        let mut starts: Vec<u32> = parts.iter().flatten().map(|edge| edge.0).collect();
        starts.sort_unstable();
        starts.dedup();
        let mut edges = Vec::with_capacity(starts.len());
        for start in starts {
            let at: Vec<Node> = parts.iter().map(|edges| edge_at(edges, start)).collect();
            edges.push((start, combine(self, &at)?));
        }

        self.branch(first, edges)
    }

    /// A node's edges for `word`; a single edge to the node itself if it does not test that word
    /// first.
    fn edges(&self, node: Node, word: Tested) -> Vec<(u32, Node)> {
        match self.kind(node) {
            NodeKind::Branch(own, edges) if *own == word => edges.clone(),
            _ => vec![(0, node)],
        }
    }
}

/// Target of the edge whose interval contains `value`. The first interval starts at 0.
fn edge_at(edges: &[(u32, Node)], value: u32) -> Node {
    edges[edges.partition_point(|edge| edge.0 <= value) - 1].1
}
