//! Logs of the kernel, and ways to damage them: disorder, flipped bits, cut lines.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Directory of logs of real kernels.
pub fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../log/record/tests/corpus")
}

/// The lines, with their newlines, of logs of the [`corpus`].
///
/// # Panics
/// There is no such log.
pub fn corpus_lines(names: &[&str]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for name in names {
        let text = fs::read(corpus().join(name)).expect("a log of the corpus");
        let each = text.split_inclusive(|byte| *byte == b'\n');
        lines.extend(each.map(<[u8]>::to_vec));
    }
    lines
}

/// The first half of the lines as those of a node `one`, interleaved with the second half as those
/// of a node `two`.
pub fn of_two_nodes(lines: &[Vec<u8>]) -> Vec<u8> {
    let (first, second) = lines.split_at(lines.len() / 2);
    let pairs = first.iter().zip(second);
    pairs
        .flat_map(|(one, two)| [&b"node=one "[..], one, b"node=two ", two].concat())
        .collect()
}

/// Seeds of the rounds of a test with damaged logs: `rounds` from `seed` on. TARSIER_DAMAGE_ROUNDS and
/// TARSIER_DAMAGE_SEED set others.
///
/// # Panics
/// A variable is not a number.
pub fn damage_seeds(seed: u64, rounds: u64) -> Range<u64> {
    let number = |variable: &str, default| match std::env::var(variable) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{variable}: a number")),
        Err(_) => default,
    };
    let seed = number("TARSIER_DAMAGE_SEED", seed);
    seed..seed + number("TARSIER_DAMAGE_ROUNDS", rounds)
}

/// A generator of the same numbers in every run (SplitMix64), and the damage that it does to logs.
#[derive(Debug)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number, below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    /// The lines in random order.
    pub fn shuffled(&mut self, lines: &[Vec<u8>]) -> Vec<u8> {
        let mut lines = lines.to_vec();
        for at in (1..lines.len()).rev() {
            lines.swap(at, self.below(at + 1));
        }
        lines.concat()
    }

    /// The text with a changed bit in one of 150 bytes; none becomes 0.
    pub fn flipped(&mut self, lines: &[Vec<u8>]) -> Vec<u8> {
        let mut text = lines.concat();
        for _ in 0..text.len() / 150 {
            let at = self.below(text.len());
            let changed = text[at] ^ 1 << self.below(7);
            if changed != 0 {
                text[at] = changed;
            }
        }
        text
    }

    /// The beginnings of the lines.
    pub fn cut<'l>(&mut self, lines: impl IntoIterator<Item = &'l Vec<u8>>) -> Vec<u8> {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(&line[..self.below(line.len())]);
            text.push(b'\n');
        }
        text
    }
}
