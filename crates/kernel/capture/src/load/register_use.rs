//! What an instruction does to a register.

use crate::load::instruction_codes::*;
use libbpf_rs::libbpf_sys::bpf_insn;

/// Register of the results of functions, and the last one of their arguments.
const RESULT: u8 = 0;
const LAST_ARGUMENT: u8 = 5;

/// Use of a register by an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegisterUse {
    /// The instruction reads it, or may do so.
    Reads,
    /// The value that it had is not there after the instruction, which has not read it.
    Sets,
    None,
}

/// The use of a register. Where the instruction may go on in several places, it counts as one that reads.
pub(super) fn register_use(insn: &bpf_insn, register: u8) -> RegisterUse {
    let (is_to, is_from) = (insn.dst_reg() == register, insn.src_reg() == register);
    let is_by_register = insn.code & BY_REGISTER != 0;

    let (reads, sets) = match insn.code & CLASS {
        ALU | ALU_64 if insn.code & OPERATION == MOVE => (is_by_register && is_from, is_to),
        ALU | ALU_64 => (is_to || is_by_register && is_from, false),
        LOAD => (insn.code != LOAD_ADDRESS, is_to),
        LOAD_MEMORY => (is_from, is_to),
        STORE => (is_to, false),
        // Some set registers, too, which the caller need not know.
        STORE_REGISTER => {
            let is_result = insn.code & MODE == ATOMIC && register == RESULT;
            (is_to || is_from || is_result, false)
        }
        JUMP if insn.code & OPERATION == CALL => {
            let is_argument = (RESULT + 1..=LAST_ARGUMENT).contains(&register);
            (is_argument, register == RESULT)
        }
        JUMP if insn.code & OPERATION == EXIT => (register == RESULT, true),
        _ => (true, false),
    };
    match (reads, sets) {
        (true, _) => RegisterUse::Reads,
        (false, true) => RegisterUse::Sets,
        (false, false) => RegisterUse::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn use_of(code: u8, dst: u8, src: u8, register: u8) -> RegisterUse {
        let mut insn = bpf_insn {
            code,
            ..Default::default()
        };
        insn.set_dst_reg(dst);
        insn.set_src_reg(src);
        register_use(&insn, register)
    }

    #[test]
    fn a_register_is_read_set_or_left_alone() {
        use RegisterUse::{None, Reads, Sets};
        let (moved, added) = (ALU_64 | MOVE | BY_REGISTER, ALU_64 | BY_REGISTER);
        let stored = STORE_REGISTER | ATOMIC;
        let cases = [
            ((moved, 1, 2), [(1, Sets), (2, Reads), (3, None)]),
            ((ALU | MOVE, 1, 2), [(1, Sets), (2, None), (3, None)]),
            ((moved, 1, 1), [(1, Reads), (2, None), (3, None)]),
            ((added, 1, 2), [(1, Reads), (2, Reads), (3, None)]),
            ((ALU_64, 1, 2), [(1, Reads), (2, None), (3, None)]),
            ((LOAD_ADDRESS, 1, 2), [(1, Sets), (2, None), (3, None)]),
            ((LOAD_MEMORY, 1, 2), [(1, Sets), (2, Reads), (3, None)]),
            ((STORE, 1, 2), [(1, Reads), (2, None), (3, None)]),
            ((STORE_REGISTER, 1, 2), [(1, Reads), (2, Reads), (0, None)]),
            ((stored, 1, 2), [(1, Reads), (2, Reads), (0, Reads)]),
            ((JUMP | CALL, 0, 0), [(0, Sets), (5, Reads), (6, None)]),
            ((JUMP | EXIT, 0, 0), [(0, Reads), (5, Sets), (6, Sets)]),
            (
                (JUMP | IF_EQUAL, 1, 2),
                [(1, Reads), (2, Reads), (3, Reads)],
            ),
        ];
        for ((code, dst, src), uses) in cases {
            for (register, expected) in uses {
                let found = use_of(code, dst, src, register);
                assert_eq!(found, expected, "{code:#x} r{dst} r{src}: r{register}");
            }
        }
    }
}
