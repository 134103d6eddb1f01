//! Decision diagrams: filters and chains as functions from `struct seccomp_data` to a verdict, in
//! a form in which equal functions are the same object.
//!
//! A diagram tests single bits in a fixed order (architecture, number, the 64-bit arguments, the
//! instruction pointer; most significant bit first) and ends in 32-bit values; it is reduced and
//! its nodes are shared (Bryant's ordered diagrams, with many terminals). Comparisons with a
//! constant take at most 32 nodes, bit masks one per bit. Operations on words are followed bit by
//! bit, so that nothing is approximated: a diagram is either exact or [`TooLarge`].

mod bits;
mod execute;
pub(crate) mod intervals;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use execute::Diagrams;
pub(crate) use store::{Join, QuickMap, Ref, Store, FALSE, TERMINAL, TRUE};

use crate::{SeccompData, Word};

/// The function needs more nodes than the limit: nothing is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decision diagram needs more than {limit} nodes or states; nothing can be said of these filters. Arithmetic between words (mul, div, comparisons with X) is what usually makes it so large")]
pub struct TooLarge {
    /// Limit of nodes, or of states of symbolic execution.
    pub limit: usize,
}

/// Words in the order in which diagrams test them, by offset into `struct seccomp_data`. High
/// halves come before low ones, so that 64-bit comparisons stay small.
pub(crate) const ORDER: [u32; 16] = [4, 0, 20, 16, 28, 24, 36, 32, 44, 40, 52, 48, 60, 56, 12, 8];

/// The index of a word in [`ORDER`].
pub(crate) fn rank(offset: u32) -> u16 {
    ORDER
        .iter()
        .position(|&o| o == offset)
        .map_or(0, |place| place as u16)
}

/// The variable for a bit (0 is the least significant) of the word at `offset`.
pub(crate) fn variable(offset: u32, bit: u32) -> u16 {
    rank(offset) * 32 + 31 - bit as u16
}

/// The word that contains the bit of a variable.
pub(crate) fn word_of(variable: u16) -> Word {
    Word(ORDER[usize::from(variable / 32)])
}

/// Sets one bit of `data`.
pub(crate) fn set_bit(data: &mut SeccompData, variable: u16) {
    let offset = word_of(variable).0;
    let value = data.load(offset) | 1 << (31 - variable % 32);
    data.store(offset, value);
}
