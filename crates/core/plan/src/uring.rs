//! Rules and io_uring operations: which rules apply to which operations, and what operations touch.
//!
//! A rule of the io_uring list names operations. A rule of the exit list names system calls; if an
//! operation does the same as one of them, the rule's *twin* selects that operation by the same
//! conditions (`io_uring_twins = yes`).

use crate::entries::{calls_of, Entries};
use crate::facts::{Entry, Facts};
use abi::{syscall_number, uring_op_calls, uring_opcode, Shape, ShapeKind, NONE};
use rules::{List, Rule};

/// Number of operation numbers: `opcode` of a submission queue entry has 8 bits. Commands on sockets have numbers of
/// their own among them: see [`abi::uring_opcode`].
pub const OPERATIONS: usize = 256;
/// Numbers of the operations that this program has no names for, in a kernel with `operations`
/// operations.
pub(crate) fn unnamed(operations: u32) -> std::ops::Range<u32> {
    let named = abi::uring_ops().map(|(op, _)| op + 1).max().unwrap_or(0);
    named..operations.max(named)
}

/// One bit for each opcode with which one of these operations is submitted. A command on a socket is submitted as any
/// command, of either size.
pub(crate) fn opcode_bits(operations: impl Iterator<Item = u32>) -> [u64; OPERATIONS / 64] {
    let large = abi::uring_op_number("uring_cmd128");
    let mut bits = [0; OPERATIONS / 64];
    for op in operations {
        let opcode = uring_opcode(op);
        let other = if opcode == op { None } else { large };
        for opcode in [Some(opcode), other] {
            let Some(opcode) = opcode else { continue };
            bits[opcode as usize / 64] |= 1 << (opcode % 64);
        }
    }
    bits
}

/// Stands for the call of an operation if no call does the same.
pub const NO_CALL: u32 = u32::MAX;

/// The call of this host that an operation is treated like, and whose arguments it has.
pub fn call_of_op(op: u32, entries: Entries) -> Option<u32> {
    let arch = entries.arch(Entry::Native)?;
    uring_op_calls(op)
        .iter()
        .find_map(|name| syscall_number(arch, name))
}

/// The objects that an operation touches: the same as those of the call that it is treated like. The flags of openat2
/// are in its third argument, as in openat.
pub fn shape_of_op(op: u32) -> Shape {
    let shape = uring_op_calls(op)
        .first()
        .map_or(Shape::PLAIN, |name| abi::call(name).shape);
    match shape.kind {
        ShapeKind::Open => Shape {
            how: NONE,
            open_flags: 2,
            ..shape
        },
        _ => shape,
    }
}

/// Whether `rule` applies to operation `op`: as a rule of the io_uring list, or as a twin.
pub fn selects(rule: &Rule, op: u32, entries: Entries, twins: bool) -> bool {
    match rule.list {
        List::IoUring => rule.syscalls.contains(uring_opcode(op)),
        List::Exit if twins => is_twin(rule, op, entries),
        _ => false,
    }
}

/// Whether a rule on system calls also applies to operation `op`.
pub fn is_twin(rule: &Rule, op: u32, entries: Entries) -> bool {
    let Some(arch) = entries.arch(Entry::Native) else {
        return false;
    };
    let calls = calls_of(rule, entries);
    uring_op_calls(op)
        .iter()
        .filter_map(|name| syscall_number(arch, name))
        .any(|nr| calls.contains(nr))
}

/// The facts of an operation as those of the call that it is treated like; facts of a call are
/// returned unchanged.
pub(crate) fn as_call<'a>(facts: &Facts<'a>, entries: Entries) -> Facts<'a> {
    let mut call = facts.clone();
    if facts.entry == Entry::Uring {
        call.entry = Entry::Native;
        call.nr = call_of_op(facts.nr, entries).unwrap_or(NO_CALL);
    }
    call
}
