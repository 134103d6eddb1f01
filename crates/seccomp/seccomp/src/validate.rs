//! The kernel's rules for filters: net/core/filter.c (`bpf_check_classic`) and kernel/seccomp.c
//! (`seccomp_check_filter`).

use crate::insn::{code, Insn};

/// Limit of instructions in a filter (BPF_MAXINSNS).
pub const MAX_INSNS: usize = 4096;

/// Size of `struct seccomp_data` in bytes.
const DATA_SIZE: u32 = 64;

/// Number of words of scratch memory (BPF_MEMWORDS).
const SCRATCH_WORDS: u32 = 16;

/// A program that the kernel refuses with EINVAL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {at}: {fault}")]
pub struct Invalid {
    /// Index of the instruction, from 0.
    pub at: usize,
    /// Fault of that instruction.
    pub fault: Fault,
}

/// The rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The size is not a multiple of that of an instruction.
    #[error("the program has {0} bytes; expected a multiple of 8, one struct sock_filter each")]
    Size(usize),
    /// The program has no instructions.
    #[error("the program is empty; a filter needs 1 to 4096 instructions")]
    Empty,
    /// The program has more than [`MAX_INSNS`] instructions.
    #[error("the program has {0} instructions; the kernel takes at most 4096: split or merge it")]
    TooLong(usize),
    /// A code that seccomp does not accept.
    #[error("code {0:#04x} is not one that a seccomp filter may have; loads are of whole words (ld [k]), without MOD, indirect, half-word or byte access")]
    Code(u16),
    /// A load outside of seccomp_data, or not at the start of one of its words.
    #[error("ld [{0}] is outside of struct seccomp_data or between two words; expected a multiple of 4 below 64")]
    Load(u32),
    /// A jump past the end of the program.
    #[error("the jump goes to instruction {target}, but the last one is {last}")]
    Jump {
        /// Target of the jump.
        target: u64,
        /// Index of the last instruction.
        last: usize,
    },
    /// Division by the constant 0.
    #[error("division by the constant 0")]
    DivideByZero,
    /// A shift by 32 or more.
    #[error("shift by {0}; expected less than 32")]
    Shift(u32),
    /// A word of scratch memory that does not exist.
    #[error("M[{0}] does not exist; scratch memory has the words 0 to 15")]
    Scratch(u32),
    /// Scratch memory that is read before it is written.
    #[error("M[{0}] is read, but not every path to here has stored it")]
    Unset(u32),
    /// The program does not end with a return.
    #[error("the last instruction must be a return")]
    NoReturn,
}

impl Invalid {
    pub(crate) fn size(bytes: usize) -> Invalid {
        Invalid {
            at: bytes / 8,
            fault: Fault::Size(bytes),
        }
    }
}

/// Checks a program as the kernel does before it accepts it.
pub(crate) fn validate(insns: &[Insn]) -> Result<(), Invalid> {
    let fail = |at, fault| Err(Invalid { at, fault });
    if insns.is_empty() {
        return fail(0, Fault::Empty);
    }
    if insns.len() > MAX_INSNS {
        return fail(MAX_INSNS, Fault::TooLong(insns.len()));
    }

    for (at, &insn) in insns.iter().enumerate() {
        if let Err(fault) = instruction(insn, at, insns.len()) {
            return fail(at, fault);
        }
    }

    let last = insns.len() - 1;
    if !insns[last].is_return() {
        return fail(last, Fault::NoReturn);
    }

    scratch(insns)
}

fn instruction(insn: Insn, at: usize, len: usize) -> Result<(), Fault> {
    use code::*;

    let k = insn.k;
    match insn.code {
        LD_ABS if k >= DATA_SIZE || !k.is_multiple_of(4) => Err(Fault::Load(k)),
        LD_ABS | LD_IMM | LDX_IMM | LD_LEN | LDX_LEN | TAX | TXA | NEG | RET_K | RET_A => Ok(()),
        LD_MEM | LDX_MEM | ST | STX if k >= SCRATCH_WORDS => Err(Fault::Scratch(k)),
        LD_MEM | LDX_MEM | ST | STX => Ok(()),
        DIV if k == 0 => Err(Fault::DivideByZero),
        LSH | RSH if k >= 32 => Err(Fault::Shift(k)),
        ADD | SUB | MUL | DIV | OR | AND | LSH | RSH | XOR => Ok(()),
        JA => jump(at, u64::from(k), len),
        _ if insn.code & X != 0 => match insn.code & !X {
            ADD | SUB | MUL | DIV | OR | AND | LSH | RSH | XOR => Ok(()),
            JEQ | JGT | JGE | JSET => jumps(insn, at, len),
            _ => Err(Fault::Code(insn.code)),
        },
        JEQ | JGT | JGE | JSET => jumps(insn, at, len),
        _ => Err(Fault::Code(insn.code)),
    }
}

fn jumps(insn: Insn, at: usize, len: usize) -> Result<(), Fault> {
    jump(at, u64::from(insn.jt), len)?;
    jump(at, u64::from(insn.jf), len)
}

fn jump(at: usize, skip: u64, len: usize) -> Result<(), Fault> {
    let target = at as u64 + 1 + skip;
    if target >= len as u64 {
        return Err(Fault::Jump {
            target,
            last: len - 1,
        });
    }
    Ok(())
}

/// Checks that every word of scratch memory is stored before it is read. As in the kernel
/// (`check_load_and_stores`), the instruction after a return counts as reachable from it.
fn scratch(insns: &[Insn]) -> Result<(), Invalid> {
    use code::*;

    let mut known_at = vec![u16::MAX; insns.len()];
    let mut known: u16 = 0;

    for (at, insn) in insns.iter().enumerate() {
        // Stored for certain: on every path that leads here.
        known &= known_at[at];
        match insn.code {
            ST | STX => known |= 1 << insn.k,
            LD_MEM | LDX_MEM if known & (1 << insn.k) == 0 => {
                return Err(Invalid {
                    at,
                    fault: Fault::Unset(insn.k),
                });
            }
            JA => {
                known_at[at + 1 + insn.k as usize] &= known;
                // Nothing falls through to the next instruction: only its own jumps count there.
                known = u16::MAX;
            }
            _ if insn.is_conditional() => {
                known_at[at + 1 + usize::from(insn.jt)] &= known;
                known_at[at + 1 + usize::from(insn.jf)] &= known;
                known = u16::MAX;
            }
            _ => {}
        }
    }

    Ok(())
}
