//! Removes instructions that cannot run on this kernel, since they are for members, functions or types that it lacks
//! or has, and what only they needed. The kernel would do the first, one branch after the other, and move the rest of the
//! program each time.

use crate::error::CaptureError;
use crate::load::instruction_codes::*;
use crate::load::instructions;
use crate::load::register_use::{register_use, RegisterUse};
use libbpf_rs::libbpf_sys::{bpf_insn, BPF_PSEUDO_BTF_ID, BPF_PSEUDO_CALL, BPF_PSEUDO_FUNC};
use libbpf_rs::OpenObject;

/// Limit of passes over a program; each but the first keeps the branches of at least one more function.
const PASSES_MAX: usize = 8;
/// Limit of instructions after one that sets a register, among which one that reads it is looked for.
const LOOK_AHEAD: usize = 256;
/// Number of registers that an instruction can name.
const REGISTERS: usize = 16;

/// Shortens the programs of a relocated object.
pub(crate) fn remove(open: &mut OpenObject) -> Result<(), CaptureError> {
    instructions::change_each(open, |code, functions| {
        let starts: Vec<usize> = functions.iter().map(|f| f.insn_off as usize).collect();
        let (shorter, place) = shortened(code, &starts)?;
        for function in functions {
            function.insn_off = place[function.insn_off as usize] as u32;
        }
        Some(shorter)
    })
}

/// The program without what cannot run, and the new place of each instruction; `None` if there is nothing to remove,
/// or something that is not understood. Functions begin at `starts`, the first at 0; each keeps a caller, since the
/// kernel wants to be told of exactly those that are called.
fn shortened(code: &[bpf_insn], starts: &[usize]) -> Option<(Vec<bpf_insn>, Vec<usize>)> {
    if starts.first() != Some(&0) || !starts.is_sorted() {
        return None;
    }

    let program = ParsedProgram::parse(code, starts)?;
    let mut is_folded = vec![true; starts.len()];
    for _ in 0..PASSES_MAX {
        let kept = program.reached(&is_folded);
        let orphans: Vec<usize> = program.orphans(&kept).collect();
        if orphans.is_empty() {
            return program.without(kept, &is_folded);
        }

        // A function that has lost its calls needs one: the branches in its callers stay, and the next pass
        // looks again.
        for at in (0..code.len()).filter(|at| !kept[*at]) {
            if let Flow::Calls(target) = program.steps[at] {
                if orphans.contains(&target) {
                    is_folded[program.function_of(at)] = false;
                }
            }
        }
    }
    None
}

/// Contents of a register, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegisterValue {
    Number(u64),
    /// The address of something that the kernel has: not 0.
    Address,
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    /// The second half of an instruction.
    Half,
    Exit,
    /// Goes to the next one, and refers to a function.
    Calls(usize),
    Jump(usize),
    Branch {
        target: usize,
        /// Whether it is taken, if that is always the same.
        outcome: Option<bool>,
    },
}

struct ParsedProgram<'a> {
    code: &'a [bpf_insn],
    starts: &'a [usize],
    steps: Vec<Flow>,
}

impl<'a> ParsedProgram<'a> {
    fn parse(code: &'a [bpf_insn], starts: &'a [usize]) -> Option<ParsedProgram<'a>> {
        let mut steps = Vec::with_capacity(code.len());
        while let Some(insn) = code.get(steps.len()) {
            let step = flow_of(insn, steps.len(), code.len())?;
            steps.push(step);
            if insn.code == LOAD_ADDRESS {
                steps.push(Flow::Half);
            }
        }

        let is_whole = steps.len() == code.len() && starts.iter().all(|start| *start < code.len());
        let mut program = is_whole.then_some(ParsedProgram {
            code,
            starts,
            steps,
        })?;
        program.find_outcomes();
        Some(program)
    }

    /// Finds branches on registers that were set to a number before, without a place in between that is jumped to.
    fn find_outcomes(&mut self) {
        let mut is_target = vec![false; self.code.len()];
        for step in &self.steps {
            if let Flow::Jump(target) | Flow::Branch { target, .. } = step {
                is_target[*target] = true;
            }
        }

        for start in self.starts {
            is_target[*start] = true;
        }

        // Where a jump may come from elsewhere, nothing is known of the registers.
        let mut known = [None; REGISTERS];
        for (at, is_target) in is_target.into_iter().enumerate() {
            if is_target {
                known = [None; REGISTERS];
            }
            match &mut self.steps[at] {
                Flow::Branch { outcome, .. } => *outcome = outcome_of(&self.code[at], &known),
                Flow::Half => {}
                _ if self.code[at].code == LOAD_ADDRESS => {
                    let [low, high] = [at, at + 1].map(|at| self.code[at]);
                    let number = u64::from(high.imm as u32) << 32 | u64::from(low.imm as u32);
                    known[usize::from(low.dst_reg())] = match u32::from(low.src_reg()) {
                        0 => Some(RegisterValue::Number(number)),
                        BPF_PSEUDO_BTF_ID => Some(RegisterValue::Address),
                        _ => None,
                    };
                }
                _ => learn(&self.code[at], &mut known),
            }
        }
    }

    fn function_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Whether a branch has one outcome, and which, if its function's branches are folded.
    fn outcome(&self, at: usize, is_folded: &[bool]) -> Option<bool> {
        match self.steps[at] {
            Flow::Branch { outcome, .. } if is_folded[self.function_of(at)] => outcome,
            _ => None,
        }
    }

    /// The instructions that can be reached from the beginnings of functions.
    fn reached(&self, is_folded: &[bool]) -> Vec<bool> {
        let mut reached = vec![false; self.code.len()];
        let mut open: Vec<usize> = self.starts.to_vec();
        while let Some(at) = open.pop() {
            if at >= reached.len() || std::mem::replace(&mut reached[at], true) {
                continue;
            }

            match self.steps[at] {
                Flow::Exit => {}
                Flow::Jump(target) => open.push(target),
                Flow::Branch { target, .. } => {
                    let outcome = self.outcome(at, is_folded);
                    open.extend((outcome != Some(false)).then_some(target));
                    open.extend((outcome != Some(true)).then_some(at + 1));
                }
                Flow::Next | Flow::Half | Flow::Calls(_) => open.push(at + 1),
            }
        }
        reached
    }

    /// Functions but the first to which no instruction that is kept refers.
    fn orphans<'k>(&'k self, kept: &'k [bool]) -> impl Iterator<Item = usize> + 'k {
        let is_called = move |start: usize| {
            let mut steps = self.steps.iter().zip(kept);
            steps.any(|(step, kept)| *kept && *step == Flow::Calls(start))
        };
        let others = self.starts.iter().skip(1).copied();
        others.filter(move |start| !is_called(*start))
    }

    /// The program without what is not kept, without branches that are never taken, and without jumps to the next
    /// instruction.
    fn without(
        &self,
        mut kept: Vec<bool>,
        is_folded: &[bool],
    ) -> Option<(Vec<bpf_insn>, Vec<usize>)> {
        let len = self.code.len();
        for at in (0..len)
            .rev()
            .filter(|at| self.outcome(*at, is_folded) == Some(false))
        {
            kept[at] = false;
        }

        for at in (0..len).filter(|at| self.is_unused(*at, is_folded)) {
            kept[at] = false;
            if self.code[at].code == LOAD_ADDRESS {
                kept[at + 1] = false;
            }
        }

        // The next instruction that is kept, from each place on.
        let mut next = len;
        let mut following = vec![len; len + 1];
        for at in (0..len).rev() {
            let target = match self.steps[at] {
                Flow::Jump(target) => Some(target),
                Flow::Branch { target, .. } if self.outcome(at, is_folded) == Some(true) => {
                    Some(target)
                }
                _ => None,
            };

            let is_idle = target.is_some_and(|target| target > at && following[target] == next);
            kept[at] &= !is_idle;
            if kept[at] {
                next = at;
            }
            following[at] = next;
        }

        let mut place = Vec::with_capacity(len);
        let mut count = 0;
        for is_kept in &kept {
            place.push(count);
            count += usize::from(*is_kept);
        }
        if count == len {
            return None;
        }

        let mut shorter = Vec::with_capacity(count);
        for at in (0..len).filter(|at| kept[*at]) {
            shorter.push(self.moved(at, &place, is_folded)?);
        }
        Some((shorter, place))
    }

    /// Whether an instruction sets a register to a number that is certain not to be read: by now that was for a branch.
    fn is_unused(&self, at: usize, is_folded: &[bool]) -> bool {
        let register = self.code[at].dst_reg();
        if !matches!(self.steps[at], Flow::Next) || !sets_number(&self.code[at]) {
            return false;
        }

        let mut next = self.successor(at, is_folded);
        for _ in 0..LOOK_AHEAD {
            let Some(here) = next.filter(|next| *next < self.code.len()) else {
                return false;
            };
            let is_jump = matches!(self.steps[here], Flow::Jump(_) | Flow::Branch { .. });
            match register_use(&self.code[here], register) {
                RegisterUse::Reads if !is_jump => return false,
                RegisterUse::Sets if !is_jump => return true,
                _ => next = self.successor(here, is_folded),
            }
        }
        false
    }

    /// The instruction after this one; `None` if it is a branch whose outcome is open.
    fn successor(&self, at: usize, is_folded: &[bool]) -> Option<usize> {
        match (self.steps[at], self.outcome(at, is_folded)) {
            (Flow::Jump(target), _) | (Flow::Branch { target, .. }, Some(true)) => Some(target),
            (Flow::Branch { .. }, None) => None,
            _ if self.code[at].code == LOAD_ADDRESS => Some(at + 2),
            _ => Some(at + 1),
        }
    }

    /// An instruction that goes to where its target is now.
    fn moved(&self, at: usize, place: &[usize], is_folded: &[bool]) -> Option<bpf_insn> {
        let mut insn = self.code[at];
        let distance = |target: usize| place[target] as i64 - place[at] as i64 - 1;

        match self.steps[at] {
            Flow::Next | Flow::Half | Flow::Exit => {}
            Flow::Calls(target) => insn.imm = distance(target).try_into().ok()?,
            Flow::Jump(target) => insn.off = distance(target).try_into().ok()?,
            Flow::Branch { target, .. } => {
                if self.outcome(at, is_folded) == Some(true) {
                    insn = bpf_insn {
                        code: JUMP | ALWAYS,
                        ..Default::default()
                    };
                }
                insn.off = distance(target).try_into().ok()?;
            }
        }
        Some(insn)
    }
}

/// The step of the instruction at `at`; `None` if it is not understood.
fn flow_of(insn: &bpf_insn, at: usize, len: usize) -> Option<Flow> {
    let to = |distance: i32| {
        let target = at as i64 + 1 + i64::from(distance);
        usize::try_from(target).ok().filter(|target| *target < len)
    };

    let class = insn.code & CLASS;
    if insn.code == LOAD_ADDRESS && u32::from(insn.src_reg()) == BPF_PSEUDO_FUNC {
        return to(insn.imm).map(Flow::Calls);
    }
    if class != JUMP && class != JUMP_32 {
        return Some(Flow::Next);
    }

    match insn.code & OPERATION {
        CALL if u32::from(insn.src_reg()) == BPF_PSEUDO_CALL => to(insn.imm).map(Flow::Calls),
        CALL => Some(Flow::Next),
        EXIT => Some(Flow::Exit),
        IF_COUNTED => None,
        ALWAYS if class == JUMP_32 => None,
        ALWAYS => to(insn.off.into()).map(Flow::Jump),
        _ => to(insn.off.into()).map(|target| Flow::Branch {
            target,
            outcome: None,
        }),
    }
}

/// Whether a branch is taken, if its registers are known.
fn outcome_of(insn: &bpf_insn, known: &[Option<RegisterValue>; REGISTERS]) -> Option<bool> {
    let is_whole = insn.code & CLASS == JUMP;
    let differ = match (known[usize::from(insn.dst_reg())]?, operand(insn, known)?) {
        (RegisterValue::Number(left), RegisterValue::Number(right)) if is_whole => left != right,
        (RegisterValue::Number(left), RegisterValue::Number(right)) => left as u32 != right as u32,
        (RegisterValue::Address, RegisterValue::Number(0)) if is_whole => true,
        _ => return None,
    };
    match insn.code & OPERATION {
        IF_EQUAL => Some(!differ),
        IF_DIFFERENT => Some(differ),
        _ => None,
    }
}

/// Whether an instruction sets a register to what its own text says.
fn sets_number(insn: &bpf_insn) -> bool {
    let is_address = insn.code == LOAD_ADDRESS;
    let is_plain = [0, BPF_PSEUDO_BTF_ID].contains(&u32::from(insn.src_reg()));
    let is_move = matches!(insn.code & CLASS, ALU | ALU_64) && insn.code & OPERATION == MOVE;
    is_address && is_plain || is_move && insn.code & BY_REGISTER == 0 && insn.off == 0
}

fn operand(insn: &bpf_insn, known: &[Option<RegisterValue>; REGISTERS]) -> Option<RegisterValue> {
    match insn.code & BY_REGISTER {
        0 => Some(RegisterValue::Number(i64::from(insn.imm) as u64)),
        _ => known[usize::from(insn.src_reg())],
    }
}

/// The number that an operation on 32 or 64 bits makes of two.
fn combined(
    before: Option<RegisterValue>,
    by: Option<RegisterValue>,
    combine: fn(u64, u64) -> u64,
) -> Option<RegisterValue> {
    match (before?, by?) {
        (RegisterValue::Number(before), RegisterValue::Number(by)) => {
            Some(RegisterValue::Number(combine(before, by)))
        }
        _ => None,
    }
}

/// Follows what an instruction does to the registers whose values are known.
fn learn(insn: &bpf_insn, known: &mut [Option<RegisterValue>; REGISTERS]) {
    let to = usize::from(insn.dst_reg());
    match insn.code & CLASS {
        ALU | ALU_64 => {
            let (before, by) = (known[to], operand(insn, known));
            let value = match insn.code & OPERATION {
                MOVE if insn.off == 0 => by,
                AND => combined(before, by, |before, by| before & by),
                OR => combined(before, by, |before, by| before | by),
                _ => None,
            };

            known[to] = match (insn.code & CLASS, value) {
                (ALU, Some(RegisterValue::Number(value))) => {
                    Some(RegisterValue::Number(u64::from(value as u32)))
                }
                (ALU, _) => None,
                _ => value,
            };
        }
        LOAD | LOAD_MEMORY => known[to] = None,
        // These set the register that they store, or the first one.
        STORE_REGISTER if insn.code & MODE == ATOMIC => {
            known[usize::from(insn.src_reg())] = None;
            known[0] = None;
        }
        JUMP if insn.code & OPERATION == CALL => known[..6].fill(None),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insn(code: u8, dst: u8, src: u8, off: i16, imm: i32) -> bpf_insn {
        let mut insn = bpf_insn {
            code,
            off,
            imm,
            ..Default::default()
        };
        insn.set_dst_reg(dst);
        insn.set_src_reg(src);
        insn
    }

    fn set(register: u8, imm: i32) -> bpf_insn {
        insn(ALU_64 | MOVE, register, 0, 0, imm)
    }

    fn unless_zero(register: u8, off: i16) -> bpf_insn {
        insn(JUMP | IF_DIFFERENT, register, 0, off, 0)
    }

    fn call(distance: i32) -> bpf_insn {
        insn(JUMP | CALL, 0, BPF_PSEUDO_CALL as u8, 0, distance)
    }

    fn exit() -> bpf_insn {
        insn(JUMP | EXIT, 0, 0, 0, 0)
    }

    /// Codes and distances: what tells two of these instructions apart.
    fn told(code: &[bpf_insn]) -> Vec<(u8, i16, i32)> {
        let told = |insn: &bpf_insn| (insn.code, insn.off, insn.imm);
        code.iter().map(told).collect()
    }

    #[test]
    fn code_behind_a_branch_that_is_never_taken_goes_and_targets_move() {
        let code = [
            unless_zero(1, 4),
            set(2, 0),
            unless_zero(2, 3),
            set(0, 1),
            exit(),
            set(0, 2),
            set(0, 3),
            exit(),
        ];
        let (shorter, place) = shortened(&code, &[0]).unwrap();
        let expected = [unless_zero(1, 2), set(0, 1), exit(), set(0, 3), exit()];
        assert_eq!(told(&shorter), told(&expected));
        assert_eq!(place, [0, 1, 1, 1, 2, 3, 3, 4]);
    }

    #[test]
    fn a_branch_that_is_always_taken_goes_with_what_it_skips() {
        let code = [set(2, 1), unless_zero(2, 1), set(0, 7), set(0, 0), exit()];
        let (shorter, _) = shortened(&code, &[0]).unwrap();
        assert_eq!(told(&shorter), told(&[set(0, 0), exit()]));
    }

    #[test]
    fn what_the_kernel_has_is_not_at_address_0() {
        let load = |source| {
            let low = insn(LOAD_ADDRESS, 2, source, 0, 4711);
            [low, insn(0, 0, 0, 0, 0)]
        };
        let with = |source, branch| {
            let [low, high] = load(source);
            [
                set(0, 0),
                low,
                high,
                branch,
                insn(ALU_64, 0, 0, 0, 7),
                exit(),
            ]
        };
        let is_there = BPF_PSEUDO_BTF_ID as u8;
        let (shorter, _) = shortened(&with(is_there, unless_zero(2, 1)), &[0]).unwrap();
        assert_eq!(told(&shorter), told(&[set(0, 0), exit()]));
        let half = insn(JUMP_32 | IF_DIFFERENT, 2, 0, 1, 0);
        assert!(shortened(&with(is_there, half), &[0]).is_none());
        let other = insn(JUMP | IF_DIFFERENT, 2, 0, 1, 4711);
        assert!(shortened(&with(is_there, other), &[0]).is_none());
        // The address of a map.
        assert!(shortened(&with(1, unless_zero(2, 1)), &[0]).is_none());
    }

    #[test]
    fn a_number_stays_if_something_else_may_read_it() {
        let number = set(2, 1);
        let taken =
            |rest: &[bpf_insn]| [&[number, unless_zero(2, 1), set(0, 7)][..], rest].concat();
        let sum = insn(ALU_64 | BY_REGISTER, 0, 2, 0, 0);
        let moved = insn(ALU_64 | MOVE | BY_REGISTER, 2, 1, 0, 0);
        let back = insn(JUMP | ALWAYS, 0, 0, -3, 0);
        let stays = [
            &[set(0, 0), sum, exit()][..],
            &[set(0, 0), call(2), exit(), set(0, 9), exit()],
            &[unless_zero(1, 1), set(2, 5), set(0, 0), exit()],
            &[set(0, 0), set(1, 0), back],
        ];
        for rest in stays {
            let (shorter, _) = shortened(&taken(rest), &[0]).expect("a shorter program");
            assert_eq!(told(&shorter)[0], told(&[number])[0], "{rest:?}");
        }
        let goes = [
            &[set(0, 0), moved, sum, exit()][..],
            &[set(0, 0), insn(JUMP | ALWAYS, 0, 0, 1, 0), sum, exit()],
        ];
        for rest in goes {
            let (shorter, _) = shortened(&taken(rest), &[0]).expect("a shorter program");
            assert_ne!(told(&shorter)[0], told(&[number])[0], "{rest:?}");
        }
    }

    #[test]
    fn a_register_is_unknown_where_others_arrive_and_after_calls() {
        // The second instruction is reached again with another value.
        let loops = [
            set(0, 1),
            unless_zero(0, 2),
            set(0, 0),
            exit(),
            set(0, 0),
            { insn(JUMP | ALWAYS, 0, 0, -5, 0) },
        ];
        assert!(shortened(&loops, &[0]).is_none());
        let helper = insn(JUMP | CALL, 0, 0, 0, 5);
        let after_call = [set(2, 1), helper, unless_zero(2, 1), set(0, 0), exit()];
        assert!(shortened(&after_call, &[0]).is_none());
        let loaded = [
            set(2, 1),
            unless_zero(1, 2),
            insn(0x61, 2, 1, 0, 0),
            unless_zero(2, 1),
            exit(),
            exit(),
        ];
        assert!(shortened(&loaded, &[0]).is_none());
    }

    #[test]
    fn a_function_keeps_its_only_caller_and_moves() {
        // The branch that skips the call stays.
        let code = [
            set(2, 1),
            unless_zero(2, 1),
            call(2),
            set(0, 0),
            exit(),
            set(0, 9),
            exit(),
        ];
        assert!(shortened(&code, &[0, 5]).is_none());
        // A function with another caller loses one, and is where the other expects it.
        let code = [
            set(2, 1),
            unless_zero(2, 1),
            call(3),
            call(2),
            set(0, 0),
            exit(),
            set(0, 9),
            exit(),
        ];
        let (shorter, place) = shortened(&code, &[0, 6]).unwrap();
        let expected = [set(2, 1), call(2), set(0, 0), exit(), set(0, 9), exit()];
        assert_eq!(told(&shorter), told(&expected));
        assert_eq!(place[6], 4);
    }
}
