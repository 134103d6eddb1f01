//! Estimates the cost of a chain per system call.

mod measure;

use crate::insn::{code, Insn};
use crate::{Chain, ConstantAllow, Filter};
use std::collections::BTreeMap;

/// Costs that filters add to a system call, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// A call that the bitmap allows.
    pub bitmap_ns: f64,
    /// A call that runs one filter, without the filter's instructions.
    pub first_filter_ns: f64,
    /// Each further filter, without its instructions.
    pub further_filter_ns: f64,
    /// One instruction, compiled to machine code.
    pub insn_ns: f64,
}

impl Default for CostModel {
    /// Fitted to `bench/run seccomp` on a two-core x86-64 virtual machine with Linux 6.18. For
    /// other machines, use [`CostModel::measure`].
    fn default() -> CostModel {
        CostModel {
            bitmap_ns: 18.0,
            first_filter_ns: 34.0,
            further_filter_ns: 15.0,
            insn_ns: 0.13,
        }
    }
}

impl CostModel {
    /// Cost of a call that runs `filters` filters with `insns` instructions in total.
    pub fn filtered_ns(&self, filters: usize, insns: usize) -> f64 {
        if filters == 0 {
            return 0.0;
        }
        self.first_filter_ns
            + self.further_filter_ns * (filters - 1) as f64
            + self.insn_ns * insns as f64
    }

    /// Highest cost of call `nr` under a chain whose bitmap is `allow`.
    pub fn worst_ns(&self, chain: &Chain, allow: &ConstantAllow, nr: u32) -> f64 {
        if chain.filters().is_empty() {
            0.0
        } else if allow.allows(nr) {
            self.bitmap_ns
        } else {
            let insns = worst_path(chain, allow.table().arch.audit_arch(), nr);
            self.filtered_ns(chain.filters().len(), insns)
        }
    }
}

/// Number of instructions on the longest path of a call through all filters of a chain:
/// [`filter_worst_path`].
pub fn worst_path(chain: &Chain, arch: u32, nr: u32) -> usize {
    let filters = chain.filters().iter();
    filters
        .map(|filter| filter_worst_path(filter, arch, nr))
        .sum()
}

/// Number of instructions on the longest path of a call through the filter, including the return.
/// Number and architecture are known; arguments are assumed to have any value at every test: no
/// call runs more instructions, but perhaps none runs as many.
pub fn filter_worst_path(filter: &Filter, arch: u32, nr: u32) -> usize {
    let insns = filter.insns();
    // For each instruction and known value of A, the longest path to there.
    let mut longest: Vec<BTreeMap<Option<u32>, usize>> = vec![BTreeMap::new(); insns.len()];
    longest[0].insert(Some(0), 0);
    let mut worst = 0;

    // Jumps only go forward, so that one pass is enough.
    for (at, &insn) in insns.iter().enumerate() {
        for (a, before) in std::mem::take(&mut longest[at]) {
            let count = before + 1;
            if insn.is_return() {
                worst = worst.max(count);
                continue;
            }
            let after = known_a(insn, a, arch, nr);
            for target in targets(insn, at, a) {
                let slot = longest[target].entry(after).or_insert(0);
                *slot = count.max(*slot);
            }
        }
    }

    worst
}

/// Value of A after an instruction, if it does not depend on arguments, X or memory.
fn known_a(insn: Insn, a: Option<u32>, arch: u32, nr: u32) -> Option<u32> {
    match insn.code {
        code::LD_ABS if insn.k == 0 => Some(nr),
        code::LD_ABS if insn.k == 4 => Some(arch),
        code::LD_IMM => Some(insn.k),
        code::LD_LEN => Some(64),
        code::AND => a.map(|a| a & insn.k),
        code::ST | code::STX | code::TAX => a,
        code::LDX_IMM | code::LDX_LEN | code::LDX_MEM | code::JA => a,
        _ if insn.is_conditional() => a,
        _ => None,
    }
}

/// Possible successors of an instruction.
fn targets(insn: Insn, at: usize, a: Option<u32>) -> Vec<usize> {
    let skip = |skip: u8| at + 1 + usize::from(skip);
    if insn.code == code::JA {
        return vec![at + 1 + insn.k as usize];
    }
    if !insn.is_conditional() {
        return vec![at + 1];
    }

    let taken = a.and_then(|a| match insn.code {
        code::JEQ => Some(a == insn.k),
        code::JGT => Some(a > insn.k),
        code::JGE => Some(a >= insn.k),
        code::JSET => Some(a & insn.k != 0),
        _ => None,
    });

    match taken {
        Some(true) => vec![skip(insn.jt)],
        Some(false) => vec![skip(insn.jf)],
        None => vec![skip(insn.jt), skip(insn.jf)],
    }
}
