//! The nodes of decision diagrams, each stored once, and operations on them.

use super::TooLarge;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A function of the bits of `struct seccomp_data`, represented by its node. Two functions are
/// equal if and only if their references are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ref(u32);

/// The function that is 0 everywhere; as a condition, false.
pub(crate) const FALSE: Ref = Ref(0);
/// The function that is 1 everywhere; as a condition, true.
pub(crate) const TRUE: Ref = Ref(1);

/// The variable of terminals, which is larger than that of any bit.
pub(crate) const TERMINAL: u16 = u16::MAX;

/// A test of one bit, or (if the variable is `TERMINAL`) a value, which is in `low`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    variable: u16,
    low: u32,
    high: u32,
}

/// An operation that combines two functions point by point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Join {
    /// The newer filter's verdict, unless the older's is strictly stricter.
    Stricter,
    /// 1 where they differ, 0 elsewhere.
    Differs,
    /// 1 where the second runs the call and the first does not, 0 elsewhere.
    Lacks,
}

/// A multiplicative hash; the keys are small integers that this module assigns.
#[derive(Default)]
pub(crate) struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

/// A hash map with such keys.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Limit of remembered results. When it is reached all are forgotten, to bound memory.
const MEMO_MAX: usize = 4 << 20;

/// All nodes. Functions of different stores cannot be compared.
pub(crate) struct Store {
    nodes: Vec<Node>,
    unique: QuickMap<Node, u32>,
    ite: QuickMap<(Ref, Ref, Ref), Ref>,
    joined: QuickMap<(Join, Ref, Ref), Ref>,
    constrained: QuickMap<(Ref, Ref), Ref>,
    limit: usize,
}

impl Store {
    /// An empty store of at most `limit` nodes, each of about 40 bytes.
    pub(crate) fn new(limit: usize) -> Store {
        let mut store = Store {
            nodes: Vec::new(),
            unique: QuickMap::default(),
            ite: QuickMap::default(),
            joined: QuickMap::default(),
            constrained: QuickMap::default(),
            limit: limit.max(2),
        };

        // The first two nodes are FALSE and TRUE, by their place.
        for value in [0, 1] {
            let node = Node {
                variable: TERMINAL,
                low: value,
                high: value,
            };
            store.nodes.push(node);
            store.unique.insert(node, value);
        }

        store
    }

    fn insert(&mut self, node: Node) -> Result<Ref, TooLarge> {
        if let Some(&index) = self.unique.get(&node) {
            return Ok(Ref(index));
        }
        if self.nodes.len() >= self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(node);
        self.unique.insert(node, index);
        Ok(Ref(index))
    }

    /// The function that is `value` everywhere.
    pub(crate) fn terminal(&mut self, value: u32) -> Result<Ref, TooLarge> {
        self.insert(Node {
            variable: TERMINAL,
            low: value,
            high: value,
        })
    }

    /// The condition that bit `variable` is set.
    pub(crate) fn bit(&mut self, variable: u16) -> Result<Ref, TooLarge> {
        self.node(variable, FALSE, TRUE)
    }

    fn node(&mut self, variable: u16, low: Ref, high: Ref) -> Result<Ref, TooLarge> {
        // A bit that does not matter has no node; so a function has one form only.
        if low == high {
            return Ok(low);
        }
        self.insert(Node {
            variable,
            low: low.0,
            high: high.0,
        })
    }

    /// The value of a terminal.
    pub(crate) fn value(&self, f: Ref) -> Option<u32> {
        let node = self.nodes[f.0 as usize];
        (node.variable == TERMINAL).then_some(node.low)
    }

    /// The first bit that `f` depends on; [`TERMINAL`] if there is none.
    pub(crate) fn variable(&self, f: Ref) -> u16 {
        self.nodes[f.0 as usize].variable
    }

    /// `f` with `variable` clear and with it set. `variable` must not come after the first bit of
    /// `f`.
    pub(crate) fn cofactors(&self, f: Ref, variable: u16) -> (Ref, Ref) {
        let node = self.nodes[f.0 as usize];
        if node.variable == variable {
            (Ref(node.low), Ref(node.high))
        } else {
            (f, f)
        }
    }

    /// `yes` where `condition` holds, and `no` elsewhere.
    pub(crate) fn ite(&mut self, condition: Ref, yes: Ref, no: Ref) -> Result<Ref, TooLarge> {
        match condition {
            TRUE => return Ok(yes),
            FALSE => return Ok(no),
            _ if yes == no => return Ok(yes),
            _ if yes == TRUE && no == FALSE => return Ok(condition),
            _ => {}
        }

        let key = (condition, yes, no);
        if let Some(&known) = self.ite.get(&key) {
            return Ok(known);
        }

        // All functions test their bits in one order.
        let variable = self
            .variable(condition)
            .min(self.variable(yes))
            .min(self.variable(no));
        let (c0, c1) = self.cofactors(condition, variable);
        let (y0, y1) = self.cofactors(yes, variable);
        let (n0, n1) = self.cofactors(no, variable);
        let low = self.ite(c0, y0, n0)?;
        let high = self.ite(c1, y1, n1)?;
        let result = self.node(variable, low, high)?;
        remember(&mut self.ite, key, result);

        Ok(result)
    }

    pub(crate) fn not(&mut self, f: Ref) -> Result<Ref, TooLarge> {
        self.ite(f, FALSE, TRUE)
    }

    pub(crate) fn and(&mut self, f: Ref, g: Ref) -> Result<Ref, TooLarge> {
        self.ite(f, g, FALSE)
    }

    pub(crate) fn or(&mut self, f: Ref, g: Ref) -> Result<Ref, TooLarge> {
        self.ite(f, TRUE, g)
    }

    pub(crate) fn xor(&mut self, f: Ref, g: Ref) -> Result<Ref, TooLarge> {
        let not_g = self.not(g)?;
        self.ite(f, not_g, g)
    }

    /// Combines two functions point by point.
    pub(crate) fn join(&mut self, join: Join, f: Ref, g: Ref) -> Result<Ref, TooLarge> {
        if f == g {
            return Ok(match join {
                Join::Stricter => f,
                Join::Differs | Join::Lacks => FALSE,
            });
        }

        if let (Some(a), Some(b)) = (self.value(f), self.value(g)) {
            return match join {
                Join::Stricter => self.terminal(crate::Verdict(a).or_stricter(crate::Verdict(b)).0),
                Join::Differs => Ok(TRUE),
                Join::Lacks => {
                    let runs = |value| crate::Verdict(value).action() >= crate::Action::Log;
                    Ok(if runs(b) && !runs(a) { TRUE } else { FALSE })
                }
            };
        }

        let key = (join, f, g);
        if let Some(&known) = self.joined.get(&key) {
            return Ok(known);
        }

        let variable = self.variable(f).min(self.variable(g));
        let (f0, f1) = self.cofactors(f, variable);
        let (g0, g1) = self.cofactors(g, variable);
        let low = self.join(join, f0, g0)?;
        let high = self.join(join, f1, g1)?;
        let result = self.node(variable, low, high)?;
        remember(&mut self.joined, key, result);

        Ok(result)
    }

    /// A function that equals `f` wherever `care` holds, and is simple elsewhere (Coudert and
    /// Madre's restriction). `care` must not be [`FALSE`]. The result is constant if `f` is
    /// constant there.
    pub(crate) fn restrict(&mut self, f: Ref, care: Ref) -> Result<Ref, TooLarge> {
        if care == TRUE || self.variable(f) == TERMINAL {
            return Ok(f);
        }
        if let Some(&known) = self.constrained.get(&(f, care)) {
            return Ok(known);
        }

        let (variable, of_care) = (self.variable(f), self.variable(care));
        let result = if of_care < variable {
            // f does not depend on this bit: care about what either side cares about.
            let (c0, c1) = self.cofactors(care, of_care);
            let either = self.or(c0, c1)?;
            self.restrict(f, either)?
        } else {
            let (f0, f1) = self.cofactors(f, variable);
            let (c0, c1) = self.cofactors(care, variable);
            match (c0, c1) {
                (FALSE, _) => self.restrict(f1, c1)?,
                (_, FALSE) => self.restrict(f0, c0)?,
                _ => {
                    let low = self.restrict(f0, c0)?;
                    let high = self.restrict(f1, c1)?;
                    self.node(variable, low, high)?
                }
            }
        };

        remember(&mut self.constrained, (f, care), result);
        Ok(result)
    }

    /// The bits that `f` depends on, without a fixed order.
    pub(crate) fn support(&self, f: Ref) -> Vec<u16> {
        let mut seen = std::collections::HashSet::new();
        let mut bits = std::collections::HashSet::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            let node = self.nodes[f.0 as usize];
            if node.variable != TERMINAL && seen.insert(f) {
                bits.insert(node.variable);
                open.extend([Ref(node.low), Ref(node.high)]);
            }
        }
        bits.into_iter().collect()
    }

    /// Number of nodes of `f`, not counting terminals.
    pub(crate) fn size(&self, f: Ref) -> usize {
        let mut seen = std::collections::HashSet::new();
        let mut open = vec![f];
        while let Some(f) = open.pop() {
            let node = self.nodes[f.0 as usize];
            if node.variable != TERMINAL && seen.insert(f) {
                open.extend([Ref(node.low), Ref(node.high)]);
            }
        }
        seen.len()
    }
}

fn remember<K: std::hash::Hash + Eq>(memo: &mut QuickMap<K, Ref>, key: K, result: Ref) {
    if memo.len() >= MEMO_MAX {
        // A result that is forgotten is only computed again.
        memo.clear();
    }
    memo.insert(key, result);
}
