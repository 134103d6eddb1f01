//! Counts by path of labels: user → session → process → file. Memory is bounded.

use super::ids::{Fast, LabelIds};
use std::collections::HashMap;

/// Labels that a tree holds before it forgets those with the fewest events.
pub(super) const NODES_MAX: usize = 60_000;

/// Events, how many of them failed, and when.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Events.
    pub events: u64,
    /// Events that failed.
    pub failed: u64,
    /// Time of the first, in milliseconds since 1970.
    pub first_ms: u64,
    /// Time of the last.
    pub last_ms: u64,
}

impl Count {
    pub(super) fn add(&mut self, time_ms: u64, is_failure: bool) {
        if self.events == 0 {
            (self.first_ms, self.last_ms) = (time_ms, time_ms);
        }
        self.first_ms = self.first_ms.min(time_ms);
        self.last_ms = self.last_ms.max(time_ms);
        self.events += 1;
        self.failed += u64::from(is_failure);
    }
}

#[derive(Debug, Default)]
struct Node {
    label: u32,
    /// The node above it. The root, which is the first, stands above itself.
    above: u32,
    count: Count,
}

/// Counts by path of labels. Nodes stand behind those above them.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// The node with a label below another one.
    below: HashMap<(u32, u32), u32, Fast>,
    /// Changes when places do.
    generation: u32,
    is_pruned: bool,
}

/// Where a path of labels ends in a tree, as long as no node was forgotten.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TreePlace {
    node: u32,
    generation: u32,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree {
            nodes: vec![Node::default()],
            below: HashMap::default(),
            // A place that was never looked for has 0.
            generation: 1,
            is_pruned: false,
        }
    }
}

/// A line of a table, with the lines below it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// User, key, program…
    pub label: Box<[u8]>,
    /// Events of the line.
    pub count: Count,
    /// Lines one level down.
    pub below: Lines,
}

/// The lines with the most events, and what was left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// Most events first.
    pub lines: Vec<Line>,
    /// Labels that are not among the lines.
    pub others: u64,
    /// Events of those labels. An event with several labels counts for each.
    pub others_count: Count,
    /// Whether labels with few events were forgotten to bound memory; there are then more others than counted.
    pub is_pruned: bool,
}

impl Tree {
    /// Counts an event along `path`, which ends at `place`, and under each of `leaves` at its end.
    pub(super) fn add(
        &mut self,
        (time_ms, is_failure): (u64, bool),
        place: &mut TreePlace,
        path: &[u32],
        leaves: &[u32],
    ) {
        if place.generation != self.generation {
            let node = path.iter().fold(0, |node, label| self.child(node, *label));
            let generation = self.generation;
            *place = TreePlace { node, generation };
        }

        let mut above = place.node;
        while above != 0 {
            let node = &mut self.nodes[above as usize];
            node.count.add(time_ms, is_failure);
            above = node.above;
        }
        self.nodes[0].count.add(time_ms, is_failure);

        for label in leaves {
            let leaf = self.child(place.node, *label);
            self.nodes[leaf as usize].count.add(time_ms, is_failure);
        }

        if self.nodes.len() - 1 > NODES_MAX {
            self.prune();
        }
    }

    fn child(&mut self, above: u32, label: u32) -> u32 {
        let nodes = &mut self.nodes;
        *self.below.entry((above, label)).or_insert_with(|| {
            nodes.push(Node {
                label,
                above,
                count: Count::default(),
            });
            nodes.len() as u32 - 1
        })
    }

    /// Forgets at least half of the labels: those with the fewest events.
    fn prune(&mut self) {
        let counts = self.nodes[1..].iter().map(|node| node.count.events);
        let mut counts: Vec<u64> = counts.collect();
        let middle = counts.len() / 2;
        let (_, least, _) = counts.select_nth_unstable(middle);
        let least = *least;

        // A node has at most the events of the one above it, so what is above `least` keeps its way to the root.
        let mut numbers = vec![0_u32; self.nodes.len()];
        let mut nodes: Vec<Node> = Vec::new();
        for (old, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if old == 0 || node.count.events > least {
                numbers[old] = nodes.len() as u32;
                node.above = numbers[node.above as usize];
                nodes.push(node);
            }
        }

        self.nodes = nodes;
        self.index();
        self.is_pruned = true;
    }

    /// Makes the table of nodes anew, by which all places change.
    fn index(&mut self) {
        let nodes = self.nodes.iter().zip(0..).skip(1);
        self.below = nodes
            .map(|(node, number)| ((node.above, node.label), number))
            .collect();
        self.generation += 1;
    }

    /// The labels of all nodes.
    pub(super) fn labels(&self) -> impl Iterator<Item = u32> + use<'_> {
        self.nodes[1..].iter().map(|node| node.label)
    }

    /// Takes the new numbers of labels.
    pub(super) fn renumber(&mut self, numbers: &[u32]) {
        for node in &mut self.nodes[1..] {
            node.label = numbers[node.label as usize];
        }
        self.index();
    }

    /// The `most[0]` labels with the most events, the `most[1]` below each of them, and so on.
    pub(super) fn lines(&self, most: &[usize], labels: &LabelIds) -> Lines {
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (node, number) in self.nodes.iter().zip(0..).skip(1) {
            below[node.above as usize].push(number);
        }
        self.lines_below(0, &below, most, labels)
    }

    fn lines_below(
        &self,
        above: u32,
        below: &[Vec<u32>],
        most: &[usize],
        labels: &LabelIds,
    ) -> Lines {
        let Some((most, deeper)) = most.split_first() else {
            return Lines::default();
        };
        let count = |number: u32| self.nodes[number as usize].count;
        let label = |number: u32| labels.text(self.nodes[number as usize].label);
        let mut children = below[above as usize].clone();
        children.sort_unstable_by(|a, b| {
            (count(*b).events, label(*a)).cmp(&(count(*a).events, label(*b)))
        });
        let rest = children.split_off(children.len().min(*most));

        let mut others_count = Count::default();
        for number in &rest {
            let count = count(*number);
            if others_count.events == 0 {
                others_count.first_ms = count.first_ms;
            }
            others_count.first_ms = others_count.first_ms.min(count.first_ms);
            others_count.last_ms = others_count.last_ms.max(count.last_ms);
            others_count.events += count.events;
            others_count.failed += count.failed;
        }

        let lines = children.into_iter().map(|number| Line {
            label: label(number).into(),
            count: count(number),
            below: self.lines_below(number, below, deeper, labels),
        });
        Lines {
            lines: lines.collect(),
            others: rest.len() as u64,
            others_count,
            is_pruned: self.is_pruned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        let (mut tree, mut labels) = (Tree::default(), LabelIds::default());
        for (user, file, times) in [("a", "x", 5), ("a", "y", 2), ("b", "x", 3), ("c", "z", 1)] {
            let (user, file) = (labels.of(user.as_bytes()), labels.of(file.as_bytes()));
            let mut place = TreePlace::default();
            for time in 0..times {
                tree.add((time, time == 0), &mut place, &[user], &[file]);
            }
        }
        let lines = tree.lines(&[2, 1], &labels);
        assert_eq!(lines.lines.len(), 2);
        assert_eq!(&*lines.lines[0].label, b"a");
        assert_eq!(lines.lines[0].count.events, 7);
        assert_eq!(lines.lines[0].count.failed, 2);
        assert_eq!(lines.lines[0].below.others, 1);
        assert_eq!(lines.lines[0].below.others_count.events, 2);
        assert_eq!((lines.others, lines.others_count.events), (1, 1));
        assert!(!lines.is_pruned);
    }

    #[test]
    fn memory_is_bounded_and_the_frequent_are_kept() {
        let (mut tree, mut labels) = (Tree::default(), LabelIds::default());
        let (user, frequent) = (labels.of(b"user"), labels.of(b"frequent"));
        let mut place = TreePlace::default();
        for number in 0..3 * NODES_MAX as u64 {
            let rare = labels.of(number.to_string().as_bytes());
            tree.add((number, false), &mut place, &[user], &[rare, frequent]);
        }
        assert!(tree.nodes.len() <= NODES_MAX + 1);
        let numbers = labels.keep(tree.labels());
        tree.renumber(&numbers);
        let lines = tree.lines(&[1, 1], &labels);
        assert!(lines.is_pruned);
        assert_eq!(lines.lines[0].count.events, 3 * NODES_MAX as u64);
        assert_eq!(&*lines.lines[0].below.lines[0].label, b"frequent");
        let frequent = lines.lines[0].below.lines[0].count.events;
        assert_eq!(frequent, 3 * NODES_MAX as u64);
    }
}
