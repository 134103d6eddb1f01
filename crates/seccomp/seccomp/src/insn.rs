//! One instruction of classic BPF (`struct sock_filter`, linux/filter.h).

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Insn {
    /// The operation: one of [`code`].
    pub code: u16,
    /// Instructions to skip when a conditional jump's condition holds.
    pub jt: u8,
    /// Instructions to skip when the condition does not hold.
    pub jf: u8,
    /// The constant operand.
    pub k: u32,
}

impl Insn {
    /// An instruction that is not a conditional jump.
    pub const fn new(code: u16, k: u32) -> Insn {
        Insn {
            code,
            jt: 0,
            jf: 0,
            k,
        }
    }

    /// A conditional jump.
    pub const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> Insn {
        Insn { code, jt, jf, k }
    }

    /// Whether this is one of the eight conditional jumps.
    pub const fn is_conditional(self) -> bool {
        self.code & 0x07 == code::CLASS_JMP && self.code != code::JA
    }

    /// Whether the instruction is a return.
    pub const fn is_return(self) -> bool {
        matches!(self.code, code::RET_K | code::RET_A)
    }
}

/// Instruction codes that a seccomp filter may use (kernel/seccomp.c, `seccomp_check_filter`). `A`
/// is the accumulator, `X` the index register, `M` the 16 words of scratch memory.
pub mod code {
    pub(crate) const CLASS_JMP: u16 = 0x05;
    /// The bit that makes X the operand instead of `k`.
    pub const X: u16 = 0x08;
    /// A = the word of `struct seccomp_data` at byte offset `k`.
    pub const LD_ABS: u16 = 0x20;
    /// A = k.
    pub const LD_IMM: u16 = 0x00;
    /// A = M[k].
    pub const LD_MEM: u16 = 0x60;
    /// A = 64, the size of `struct seccomp_data`.
    pub const LD_LEN: u16 = 0x80;
    /// X = k.
    pub const LDX_IMM: u16 = 0x01;
    /// X = M[k].
    pub const LDX_MEM: u16 = 0x61;
    /// X = 64.
    pub const LDX_LEN: u16 = 0x81;
    /// M[k] = A.
    pub const ST: u16 = 0x02;
    /// M[k] = X.
    pub const STX: u16 = 0x03;
    /// A += k; with [`X`], A += X. The other operations except [`NEG`] work in the same way.
    pub const ADD: u16 = 0x04;
    /// A -= k.
    pub const SUB: u16 = 0x14;
    /// A *= k.
    pub const MUL: u16 = 0x24;
    /// A /= k; with an X of 0, the filter ends and returns 0.
    pub const DIV: u16 = 0x34;
    /// A |= k.
    pub const OR: u16 = 0x44;
    /// A &= k.
    pub const AND: u16 = 0x54;
    /// A <<= k; with X, modulo 32.
    pub const LSH: u16 = 0x64;
    /// A >>= k; with X, modulo 32.
    pub const RSH: u16 = 0x74;
    /// A = -A.
    pub const NEG: u16 = 0x84;
    /// A ^= k.
    pub const XOR: u16 = 0xa4;
    /// Skip k instructions.
    pub const JA: u16 = 0x05;
    /// Jump if A = k.
    pub const JEQ: u16 = 0x15;
    /// Jump if A > k.
    pub const JGT: u16 = 0x25;
    /// Jump if A >= k.
    pub const JGE: u16 = 0x35;
    /// Jump if A & k is not 0.
    pub const JSET: u16 = 0x45;
    /// Return k.
    pub const RET_K: u16 = 0x06;
    /// Return A.
    pub const RET_A: u16 = 0x16;
    /// X = A.
    pub const TAX: u16 = 0x07;
    /// A = X.
    pub const TXA: u16 = 0x87;
}
