//! Runs a filter as the kernel does, instruction by instruction.

use crate::insn::{code, Insn};
use crate::{Filter, SeccompData, Verdict};

/// An instruction that is about to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Index of the instruction, from 0.
    pub at: usize,
    /// The accumulator before the instruction.
    pub a: u32,
    /// The index register before the instruction.
    pub x: u32,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The value that the filter returned.
    pub verdict: Verdict,
    /// Number of instructions run, including the return.
    pub insns: usize,
}

impl Filter {
    /// Runs the filter on `data`.
    pub fn run(&self, data: &SeccompData) -> Run {
        self.trace(data, |_| {})
    }

    /// Runs the filter on `data`, and calls `step` before every instruction.
    pub fn trace(&self, data: &SeccompData, mut step: impl FnMut(Step)) -> Run {
        let insns = self.insns();
        let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; 16]);
        let (mut at, mut count) = (0, 0);

        loop {
            let insn = insns[at];
            count += 1;
            step(Step { at, a, x });
            at += 1;
            let done = |value| Run {
                verdict: Verdict(value),
                insns: count,
            };
            match insn.code {
                code::LD_ABS => a = data.load(insn.k),
                code::LD_IMM => a = insn.k,
                code::LD_MEM => a = memory[insn.k as usize],
                code::LD_LEN => a = 64,
                code::LDX_IMM => x = insn.k,
                code::LDX_MEM => x = memory[insn.k as usize],
                code::LDX_LEN => x = 64,
                code::ST => memory[insn.k as usize] = a,
                code::STX => memory[insn.k as usize] = x,
                code::TAX => x = a,
                code::TXA => a = x,
                code::JA => at += insn.k as usize,
                code::RET_K => return done(insn.k),
                code::RET_A => return done(a),
                _ if insn.is_conditional() => {
                    let taken = condition(insn, a, x);
                    at += usize::from(if taken { insn.jt } else { insn.jf });
                }
                _ => match arithmetic(insn, a, x) {
                    Some(value) => a = value,
                    // The kernel ends the filter with 0.
                    None => return done(0),
                },
            }
        }
    }
}

/// Whether a conditional jump skips its `jt` instructions, not its `jf`.
fn condition(insn: Insn, a: u32, x: u32) -> bool {
    let operand = if insn.code & code::X != 0 { x } else { insn.k };
    match insn.code & !code::X {
        code::JEQ => a == operand,
        code::JGT => a > operand,
        code::JGE => a >= operand,
        _ => a & operand != 0,
    }
}

/// A after an ALU operation; `None` if the kernel ends the filter with 0 (division by an X of 0).
fn arithmetic(insn: Insn, a: u32, x: u32) -> Option<u32> {
    let operand = if insn.code & code::X != 0 { x } else { insn.k };
    Some(match insn.code & !code::X {
        code::ADD => a.wrapping_add(operand),
        code::SUB => a.wrapping_sub(operand),
        code::MUL => a.wrapping_mul(operand),
        code::DIV => return a.checked_div(operand),
        code::OR => a | operand,
        code::AND => a & operand,
        code::XOR => a ^ operand,
        code::LSH => a << (operand & 31),
        code::RSH => a >> (operand & 31),
        _ => a.wrapping_neg(),
    })
}
