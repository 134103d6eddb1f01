//! Counts by path of labels: user → session → process → file. Memory is bounded.

use std::collections::HashMap;

/// Labels that a tree holds before it forgets those with the fewest events.
pub(super) const NODES_MAX: usize = 60_000;
/// Bytes of a label that are kept.
const LABEL_BYTES_MAX: usize = 300;

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
    count: Count,
    children: HashMap<Box<[u8]>, Node, foldhash::fast::RandomState>,
}

/// Counts by path of labels.
#[derive(Debug, Default)]
pub(super) struct Tree {
    root: Node,
    nodes: usize,
    is_pruned: bool,
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
    /// Counts an event along `path`, and under each of `leaves` at its end.
    pub(super) fn add<'l>(
        &mut self,
        time_ms: u64,
        is_failure: bool,
        path: &[&[u8]],
        leaves: impl Iterator<Item = &'l [u8]>,
    ) {
        self.root.count.add(time_ms, is_failure);
        let mut made = 0;
        let mut node = &mut self.root;
        for label in path {
            node = node.child(label, &mut made);
            node.count.add(time_ms, is_failure);
        }

        for label in leaves {
            let leaf = node.child(label, &mut made);
            leaf.count.add(time_ms, is_failure);
        }

        self.nodes += made;
        if self.nodes > NODES_MAX {
            self.prune();
        }
    }

    /// Forgets at least half of the labels: those with the fewest events.
    fn prune(&mut self) {
        let mut counts = Vec::with_capacity(self.nodes);
        self.root.counts(&mut counts);
        let middle = counts.len() / 2;
        let (_, least, _) = counts.select_nth_unstable(middle);
        let least = *least;
        self.root.keep_above(least);
        self.nodes = self.root.size();
        self.is_pruned = true;
    }

    /// The `most[0]` labels with the most events, the `most[1]` below each of them, and so on.
    pub(super) fn lines(&self, most: &[usize]) -> Lines {
        self.root.lines(most, self.is_pruned)
    }
}

impl Node {
    fn child(&mut self, label: &[u8], made: &mut usize) -> &mut Node {
        let label = &label[..label.len().min(LABEL_BYTES_MAX)];
        if !self.children.contains_key(label) {
            *made += 1;
            self.children.insert(label.into(), Node::default());
        }
        self.children.get_mut(label).expect("it was just inserted")
    }

    fn counts(&self, into: &mut Vec<u64>) {
        for child in self.children.values() {
            into.push(child.count.events);
            child.counts(into);
        }
    }

    /// A child has at most the events of its parent, so what is above `least` keeps its way to the root.
    fn keep_above(&mut self, least: u64) {
        self.children.retain(|_, child| child.count.events > least);
        self.children.shrink_to_fit();
        for child in self.children.values_mut() {
            child.keep_above(least);
        }
    }

    fn size(&self) -> usize {
        self.children.values().map(|child| 1 + child.size()).sum()
    }

    fn lines(&self, most: &[usize], is_pruned: bool) -> Lines {
        let Some((most, deeper)) = most.split_first() else {
            return Lines::default();
        };
        let mut children: Vec<_> = self.children.iter().collect();
        children.sort_unstable_by(|a, b| (b.1.count.events, a.0).cmp(&(a.1.count.events, b.0)));
        let rest = children.split_off(children.len().min(*most));
        let mut others_count = Count::default();

        for (_, node) in &rest {
            let count = node.count;
            if others_count.events == 0 {
                others_count.first_ms = count.first_ms;
            }
            others_count.first_ms = others_count.first_ms.min(count.first_ms);
            others_count.last_ms = others_count.last_ms.max(count.last_ms);
            others_count.events += count.events;
            others_count.failed += count.failed;
        }

        Lines {
            lines: children
                .into_iter()
                .map(|(label, node)| Line {
                    label: label.clone(),
                    count: node.count,
                    below: node.lines(deeper, is_pruned),
                })
                .collect(),
            others: rest.len() as u64,
            others_count,
            is_pruned,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        let mut tree = Tree::default();
        for (user, file, times) in [("a", "x", 5), ("a", "y", 2), ("b", "x", 3), ("c", "z", 1)] {
            for time in 0..times {
                tree.add(
                    time,
                    time == 0,
                    &[user.as_bytes()],
                    [file.as_bytes()].into_iter(),
                );
            }
        }
        let lines = tree.lines(&[2, 1]);
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
        let mut tree = Tree::default();
        for number in 0..3 * NODES_MAX as u64 {
            let rare = number.to_string();
            tree.add(
                number,
                false,
                &[b"user"],
                [rare.as_bytes(), b"frequent"].into_iter(),
            );
        }
        assert!(tree.root.size() <= NODES_MAX);
        let lines = tree.lines(&[1, 1]);
        assert!(lines.is_pruned);
        assert_eq!(lines.lines[0].count.events, 3 * NODES_MAX as u64);
        assert_eq!(&*lines.lines[0].below.lines[0].label, b"frequent");
        let frequent = lines.lines[0].below.lines[0].count.events;
        assert_eq!(frequent, 3 * NODES_MAX as u64);
    }
}
