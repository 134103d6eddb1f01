//! Decisions as a graph of tests, each stored once, and its layout as a program.

use crate::diagram::QuickMap;
use crate::insn::{code, Insn};

/// A node of a [`Dag`].
pub(crate) type Id = u32;

/// A comparison of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Test {
    /// Offset of the word in `struct seccomp_data`.
    pub(crate) offset: u32,
    /// The bits that are compared; with all bits, no AND is needed.
    pub(crate) mask: u32,
    /// JEQ, JGT, JGE or JSET.
    pub(crate) jump: u16,
    /// The value to compare with.
    pub(crate) k: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum DagNode {
    Return(u32),
    Test(Test, Id, Id),
}

/// Nodes; the successors of a node have smaller numbers.
#[derive(Default)]
pub(crate) struct Dag {
    nodes: Vec<DagNode>,
    known: QuickMap<DagNode, Id>,
}

impl Dag {
    fn insert(&mut self, node: DagNode) -> Id {
        let next = self.nodes.len() as Id;
        let id = *self.known.entry(node).or_insert(next);
        if id == next {
            self.nodes.push(node);
        }
        id
    }

    /// A node that ends the program with `value`.
    pub(crate) fn returns(&mut self, value: u32) -> Id {
        self.insert(DagNode::Return(value))
    }

    /// A node that leads to `yes` if the test holds, and to `no` otherwise.
    pub(crate) fn test(&mut self, test: Test, yes: Id, no: Id) -> Id {
        if yes == no {
            return yes;
        }

        // Two masked comparisons need no AND: "no bit set", and "this single bit set".
        if test.jump == code::JEQ && test.mask != u32::MAX && test.k == 0 {
            let any = Test {
                mask: u32::MAX,
                jump: code::JSET,
                k: test.mask,
                ..test
            };
            return self.insert(DagNode::Test(any, no, yes));
        }

        if test.jump == code::JEQ && test.k == test.mask && test.mask.is_power_of_two() {
            let set = Test {
                mask: u32::MAX,
                jump: code::JSET,
                ..test
            };
            return self.insert(DagNode::Test(set, yes, no));
        }

        self.insert(DagNode::Test(test, yes, no))
    }

    /// Number of nodes created so far.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Number of tests that can be reached from `root`.
    pub(crate) fn size(&self, root: Id) -> usize {
        let reached = self.reached(root);
        let is_test = |id: &Id| matches!(self.nodes[*id as usize], DagNode::Test(..));
        reached.iter().filter(|id| is_test(id)).count()
    }

    /// Every node that can be reached from `root`, parents before children.
    fn reached(&self, root: Id) -> Vec<Id> {
        let mut marked = QuickMap::default();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if marked.insert(id, ()).is_none() {
                if let DagNode::Test(_, yes, no) = self.nodes[id as usize] {
                    open.extend([yes, no]);
                }
            }
        }
        let mut ids: Vec<Id> = marked.into_keys().collect();
        // Successors have smaller numbers.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        ids
    }

    /// The word that A contains after a test; `None` if it was masked.
    fn leaves(test: &Test) -> Option<u32> {
        (test.mask == u32::MAX).then_some(test.offset)
    }

    /// Lays the graph out as a program that starts at `root`.
    pub(crate) fn program(&self, root: Id) -> Vec<Insn> {
        let order = self.reached(root);
        // A test needs a load unless the word is loaded on every path to it.
        let mut needs_load: QuickMap<Id, bool> = QuickMap::default();
        // A is 0 at the start, whatever the first test reads.
        needs_load.insert(root, true);
        for id in &order {
            if let DagNode::Test(test, yes, no) = &self.nodes[*id as usize] {
                for child in [yes, no] {
                    let loaded = self.is_loaded(*child, Self::leaves(test));
                    *needs_load.entry(*child).or_insert(false) |= !loaded;
                }
            }
        }

        let mut layout = Layout::default();
        self.place(root, &needs_load, &mut layout);
        layout.reversed.reverse();

        layout.reversed
    }

    fn is_loaded(&self, id: Id, a: Option<u32>) -> bool {
        match self.nodes[id as usize] {
            DagNode::Return(_) => true,
            DagNode::Test(test, ..) => a == Some(test.offset),
        }
    }

    /// Places `root` and everything reachable from it, last instruction first.
    fn place(&self, root: Id, needs_load: &QuickMap<Id, bool>, layout: &mut Layout) {
        let mut open = vec![(root, false)];
        while let Some((id, children_done)) = open.pop() {
            if layout.places.contains_key(&id) {
                continue;
            }
            let DagNode::Test(test, yes, no) = self.nodes[id as usize] else {
                if let DagNode::Return(value) = self.nodes[id as usize] {
                    let at = layout.push(Insn::new(code::RET_K, value));
                    layout.places.insert(id, (at, at));
                }
                continue;
            };
            if !children_done {
                // The successor that is placed last is the nearest.
                open.extend([(id, true), (yes, false), (no, false)]);
                continue;
            }

            // Its successors are placed now; both have to be within reach of a jump with 8 bits.
            let a = Self::leaves(&test);
            let far_yes = self.target(yes, a, layout);
            let far_no = self.target(no, a, layout);
            // At most three instructions come between: a jump for the other target, an AND and a load.
            let no = layout.near(far_no, 3);
            let yes = layout.near(far_yes, 3);
            let here = layout.reversed.len();
            let skip = |target: usize| (here - target - 1) as u8;
            let mut at = layout.push(Insn::jump(test.jump, test.k, skip(yes), skip(no)));
            if test.mask != u32::MAX {
                at = layout.push(Insn::new(code::AND, test.mask));
            }

            // Who comes with the word in A jumps behind the load.
            let loaded = at;
            if needs_load.get(&id).copied().unwrap_or(true) {
                at = layout.push(Insn::new(code::LD_ABS, test.offset));
            }
            layout.places.insert(id, (at, loaded));
        }
    }

    /// Target of a jump to `id`, if A contains the word `a`.
    fn target(&self, id: Id, a: Option<u32>, layout: &Layout) -> Target {
        let (with_load, loaded) = layout.places[&id];
        Target {
            place: if self.is_loaded(id, a) {
                loaded
            } else {
                with_load
            },
            value: match self.nodes[id as usize] {
                DagNode::Return(value) => Some(value),
                DagNode::Test(..) => None,
            },
        }
    }
}

/// A jump target: its index in the reversed program, and the returned value if it is a return.
#[derive(Clone, Copy)]
struct Target {
    place: usize,
    value: Option<u32>,
}

/// A program, last instruction first.
#[derive(Default)]
struct Layout {
    reversed: Vec<Insn>,
    /// For each node, its first instruction and the one after its load.
    places: QuickMap<Id, (usize, usize)>,
}

impl Layout {
    fn push(&mut self, insn: Insn) -> usize {
        self.reversed.push(insn);
        self.reversed.len() - 1
    }

    /// An index that a conditional jump can reach even with `spare` instructions between: the
    /// target itself, a copy of its return, or a jump to it.
    fn near(&mut self, target: Target, spare: usize) -> usize {
        let distance = self.reversed.len() - target.place;
        if distance + spare <= 255 {
            return target.place;
        }
        self.push(match target.value {
            Some(value) => Insn::new(code::RET_K, value),
            None => Insn::new(code::JA, (distance - 1) as u32),
        })
    }
}
