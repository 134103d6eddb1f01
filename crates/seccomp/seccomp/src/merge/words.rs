//! Converts a diagram to tests of whole words.

use super::dag::{Dag, Id, Test};
use super::tree::{self, Range};
use super::Weights;
use crate::diagram::intervals::{intervals, Interval};
use crate::diagram::{word_of, Diagrams, QuickMap, Ref, FALSE, TRUE};
use crate::insn::code;
use crate::{Chain, TooLarge};
use std::collections::BTreeSet;

/// Limit of ranges of numbers or architectures.
const RANGES_MAX: usize = 8192;

/// Limit of ranges of an argument's word; above it only bit masks are tried.
const ARGUMENT_RANGES_MAX: usize = 1024;

/// Limit of tests that are created while searching for the best.
const TESTS_MAX: usize = 1 << 18;

/// Turns diagrams into tests.
pub(crate) struct Words<'a> {
    diagrams: &'a mut Diagrams,
    pub(crate) dag: Dag,
    weights: &'a Weights,
    /// Comparisons in the original filters, of words that they also test under a mask.
    masks: Vec<Test>,
    done: QuickMap<Ref, Id>,
    /// The architecture whose numbers are being handled, for their weights.
    arch: u32,
}

impl<'a> Words<'a> {
    pub(crate) fn new(diagrams: &'a mut Diagrams, chain: &Chain, weights: &'a Weights) -> Self {
        Words {
            diagrams,
            dag: Dag::default(),
            weights,
            masks: masks(chain),
            done: QuickMap::default(),
            arch: 0,
        }
    }

    /// The tests that compute `f`.
    pub(crate) fn tests(&mut self, f: Ref) -> Result<Id, TooLarge> {
        if let Some(value) = self.diagrams.store.value(f) {
            return Ok(self.dag.returns(value));
        }
        if let Some(&done) = self.done.get(&f) {
            return Ok(done);
        }
        if self.dag.len() > TESTS_MAX {
            return Err(TooLarge { limit: TESTS_MAX });
        }

        let offset = word_of(self.diagrams.store.variable(f)).0;
        let call = matches!(offset, 0 | 4);
        let max = if call {
            RANGES_MAX
        } else {
            ARGUMENT_RANGES_MAX
        };
        // Number and architecture are always compared as a whole; arguments also bit by bit.
        let ranges = intervals(&self.diagrams.store, f, offset, max);
        let mut best = None;
        if let Some(ranges) = &ranges {
            best = Some(self.by_range(offset, ranges)?);
        }
        if ranges.is_none_or(|ranges| !call && ranges.len() > 3) {
            if let Some(masked) = self.by_mask(f, offset)? {
                let size = |id| self.dag.size(id);
                if best.is_none_or(|best| size(masked) < size(best)) {
                    best = Some(masked);
                }
            }
        }

        let id = match best {
            Some(id) => id,
            None => self.by_bit(f, offset)?,
        };
        self.done.insert(f, id);

        Ok(id)
    }

    fn by_range(&mut self, offset: u32, ranges: &[Interval]) -> Result<Id, TooLarge> {
        let mut built = Vec::with_capacity(ranges.len());
        for (index, range) in ranges.iter().enumerate() {
            let last = ranges
                .get(index + 1)
                .map_or(u32::MAX, |next| next.first - 1);
            if offset == 4 {
                self.arch = range.first;
            }
            let allowed = self.diagrams.store.value(range.rest) == Some(crate::Verdict::ALLOW.0);
            let weight = match offset {
                4 => self.weights.of_arch(range.first, last),
                0 => self.weights.of_calls(self.arch, range.first, last, allowed),
                _ => 1.0,
            };
            built.push(Range {
                first: range.first,
                leaf: self.tests(range.rest)?,
                weight,
            });
        }

        Ok(tree::build(&mut self.dag, offset, &built))
    }

    /// Tests the condition of the original filters that leaves the smallest diagrams, then handles
    /// those.
    fn by_mask(&mut self, f: Ref, offset: u32) -> Result<Option<Id>, TooLarge> {
        let size = self.diagrams.store.size(f);
        let mut best: Option<(usize, Test, Ref, Ref)> = None;
        for index in 0..self.masks.len() {
            let test = self.masks[index];
            if test.offset != offset {
                continue;
            }
            let condition = self
                .diagrams
                .test(test.offset, test.mask, test.jump, test.k)?;
            let store = &mut self.diagrams.store;
            // A condition that always holds, or never, divides nothing.
            if matches!(condition, TRUE | FALSE) {
                continue;
            }
            let fails = store.not(condition)?;
            let yes = store.restrict(f, condition)?;
            let no = store.restrict(f, fails)?;
            let (of_yes, of_no) = (store.size(yes), store.size(no));
            let left = of_yes + of_no;
            let smaller = of_yes < size && of_no < size;
            if smaller && best.is_none_or(|best| left < best.0) {
                best = Some((left, test, yes, no));
            }
        }

        let Some((_, test, yes, no)) = best else {
            return Ok(None);
        };

        let yes = self.tests(yes)?;
        let no = self.tests(no)?;

        Ok(Some(self.dag.test(test, yes, no)))
    }

    /// Tests one bit: always possible, but never short.
    fn by_bit(&mut self, f: Ref, offset: u32) -> Result<Id, TooLarge> {
        let variable = self.diagrams.store.variable(f);
        let (low, high) = self.diagrams.store.cofactors(f, variable);
        let (no, yes) = (self.tests(low)?, self.tests(high)?);
        let test = Test {
            offset,
            mask: u32::MAX,
            jump: code::JSET,
            k: 1 << (31 - variable % 32),
        };
        Ok(self.dag.test(test, yes, no))
    }
}

/// The comparisons of argument words in a chain, for words that are compared under a mask at least
/// once. A comparison is assumed to use the last word loaded and the last mask before it; a wrong
/// guess only costs time.
fn masks(chain: &Chain) -> Vec<Test> {
    let mut found = BTreeSet::new();
    let mut masked_words = BTreeSet::new();
    for filter in chain.filters() {
        let (mut offset, mut mask) = (0, u32::MAX);
        for insn in filter.insns() {
            match insn.code {
                code::LD_ABS => (offset, mask) = (insn.k, u32::MAX),
                code::AND => mask &= insn.k,
                code::JEQ | code::JGT | code::JGE | code::JSET if offset >= 8 => {
                    found.insert((offset, mask, insn.code, insn.k));
                    if mask != u32::MAX || insn.code == code::JSET {
                        masked_words.insert(offset);
                    }
                }
                _ => {}
            }
        }
    }

    found
        .into_iter()
        .filter(|row| masked_words.contains(&row.0))
        .map(|(offset, mask, jump, k)| match jump {
            // A & mask & k is a single mask.
            code::JSET => Test {
                offset,
                mask: u32::MAX,
                jump,
                k: k & mask,
            },
            _ => Test {
                offset,
                mask,
                jump,
                k,
            },
        })
        .collect()
}
