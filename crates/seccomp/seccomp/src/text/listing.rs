//! Filters in readable form: one instruction per line, with the meaning of what it compares.

use super::asm::{mnemonic, operand};
use crate::insn::code;
use crate::{Filter, Verdict, Word};
use abi::Arch;
use std::fmt::Write;

/// The known values of A and of the architecture before an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    word: Option<Word>,
    arch: Option<Arch>,
}

/// Lists every instruction with its number, targets and meaning.
pub fn listing(filter: &Filter) -> String {
    let known = analyse(filter);
    let mut text = String::new();
    for (at, known) in known.iter().enumerate() {
        let _ = writeln!(text, "{}", describe(filter, at, *known));
    }
    text
}

/// One line of [`listing`].
pub fn listing_line(filter: &Filter, at: usize) -> String {
    describe(filter, at, analyse(filter)[at])
}

fn analyse(filter: &Filter) -> Vec<Option<Known>> {
    let insns = filter.insns();
    let mut known: Vec<Option<Known>> = vec![None; insns.len()];
    known[0] = Some(Known {
        word: None,
        arch: None,
    });

    for (at, insn) in insns.iter().enumerate() {
        let Some(mut here) = known[at] else { continue };
        let skip = |skip: u8| at + 1 + usize::from(skip);
        match insn.code {
            _ if insn.is_return() => {}
            code::JA => reach(&mut known[at + 1 + insn.k as usize], here),
            _ if insn.is_conditional() => {
                reach(&mut known[skip(insn.jf)], here);
                if insn.code == code::JEQ && here.word == Some(Word(4)) {
                    here.arch = Arch::from_audit_arch(insn.k);
                }
                reach(&mut known[skip(insn.jt)], here);
            }
            other => {
                here.word = match other {
                    code::LD_ABS => Some(Word(insn.k)),
                    code::AND | code::ST | code::STX | code::TAX => here.word,
                    code::LDX_IMM | code::LDX_LEN | code::LDX_MEM => here.word,
                    _ => None,
                };
                reach(&mut known[at + 1], here);
            }
        }
    }

    known
}

/// Keeps what holds on every path to an instruction.
fn reach(slot: &mut Option<Known>, new: Known) {
    *slot = Some(match *slot {
        None => new,
        Some(old) => Known {
            word: if old.word == new.word { old.word } else { None },
            arch: if old.arch == new.arch { old.arch } else { None },
        },
    });
}

fn describe(filter: &Filter, at: usize, known: Option<Known>) -> String {
    let insn = filter.insns()[at];
    let mut line = format!("{at:5}  {:<5}{:<12}", mnemonic(insn.code), operand(insn));
    if insn.code == code::JA {
        return format!("{at:5}  jmp  to {}", at + 1 + insn.k as usize);
    }

    if insn.is_conditional() {
        let target = |skip: u8| at + 1 + usize::from(skip);
        let _ = write!(line, " to {} else {}", target(insn.jt), target(insn.jf));
    }

    let note = match (insn.code, known) {
        (_, None) => "never reached".into(),
        (code::LD_ABS, _) => Word(insn.k).to_string(),
        (code::RET_K, _) => Verdict(insn.k).to_string(),
        (_, Some(known)) if insn.is_conditional() && insn.code & code::X == 0 => {
            compared(known, insn.k)
        }
        _ => String::new(),
    };

    if !note.is_empty() {
        let _ = write!(line, "  ; {note}");
    }

    line.trim_end().to_owned()
}

/// The meaning of a constant in a comparison.
fn compared(known: Known, k: u32) -> String {
    const X32: u32 = 0x4000_0000;

    match known.word {
        Some(Word(4)) => Arch::from_audit_arch(k).map_or(String::new(), |arch| arch.name().into()),
        Some(Word(0)) if k == X32 => "x32".into(),
        Some(Word(0)) => {
            let (arch, nr) = match known.arch {
                Some(Arch::X86_64) => (Arch::X86_64, k & !X32),
                Some(arch) => (arch, k),
                None => return String::new(),
            };
            abi::syscall_name(arch, nr).unwrap_or_default().into()
        }
        _ => String::new(),
    }
}
