//! The assembler language of `bpf_asm` (Documentation/networking/filter.rst, tools/bpf).

use super::{numbers::number, TextError};
use crate::insn::{code, Insn};
use crate::Filter;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

/// Operations whose operand is `#k` or `x`.
const ALU: [(&str, u16); 9] = [
    ("add", code::ADD),
    ("sub", code::SUB),
    ("mul", code::MUL),
    ("div", code::DIV),
    ("and", code::AND),
    ("or", code::OR),
    ("xor", code::XOR),
    ("lsh", code::LSH),
    ("rsh", code::RSH),
];

/// Conditional jumps: name, code, and whether the label is the target if the condition fails.
const JUMPS: [(&str, u16, bool); 8] = [
    ("jeq", code::JEQ, false),
    ("jgt", code::JGT, false),
    ("jge", code::JGE, false),
    ("jset", code::JSET, false),
    ("jne", code::JEQ, true),
    ("jneq", code::JEQ, true),
    ("jle", code::JGT, true),
    ("jlt", code::JGE, true),
];

/// The name of a code in `bpf_asm`, without its operand.
pub(super) fn mnemonic(code: u16) -> &'static str {
    let base = code & !code::X;
    match code {
        code::LD_ABS | code::LD_IMM | code::LD_MEM | code::LD_LEN => "ld",
        code::LDX_IMM | code::LDX_MEM | code::LDX_LEN => "ldx",
        code::ST => "st",
        code::STX => "stx",
        code::NEG => "neg",
        code::JA => "jmp",
        code::RET_K | code::RET_A => "ret",
        code::TAX => "tax",
        code::TXA => "txa",
        _ => ALU
            .iter()
            .find(|row| row.1 == base)
            .map(|row| row.0)
            .or_else(|| JUMPS.iter().find(|row| row.1 == base).map(|row| row.0))
            .unwrap_or("?"),
    }
}

/// The operand of an instruction; for jumps, without labels.
pub(super) fn operand(insn: Insn) -> String {
    match insn.code {
        code::LD_ABS => format!("[{}]", insn.k),
        code::LD_MEM | code::LDX_MEM | code::ST | code::STX => format!("M[{}]", insn.k),
        code::LD_LEN | code::LDX_LEN => "#len".into(),
        code::RET_A => "a".into(),
        code::NEG | code::TAX | code::TXA => String::new(),
        code if code & code::X != 0 => "x".into(),
        _ if insn.k < 10 => format!("#{}", insn.k),
        _ => format!("#{:#x}", insn.k),
    }
}

/// Writes a filter as text from which `bpf_asm` and [`assemble`] make it again. Fields that the
/// kernel ignores (operands of instructions without one) are not preserved.
pub fn to_asm(filter: &Filter) -> String {
    let insns = filter.insns();
    let mut targets = BTreeSet::new();
    for (at, insn) in insns.iter().enumerate() {
        if insn.code == code::JA {
            targets.insert(at + 1 + insn.k as usize);
        } else if insn.is_conditional() {
            targets.insert(at + 1 + usize::from(insn.jt));
            targets.insert(at + 1 + usize::from(insn.jf));
        }
    }

    let mut text = String::new();
    for (at, &insn) in insns.iter().enumerate() {
        let label = if targets.contains(&at) {
            format!("l{at}:")
        } else {
            String::new()
        };
        let _ = writeln!(text, "{label:<7} {}", line(insn, at).trim_end());
    }

    text
}

/// The line of an instruction, without its own label.
fn line(insn: Insn, at: usize) -> String {
    let target = |skip: u8| at + 1 + usize::from(skip);
    if insn.code == code::JA {
        return format!("jmp l{}", at + 1 + insn.k as usize);
    }

    let (name, operand) = (mnemonic(insn.code), operand(insn));
    if !insn.is_conditional() {
        return format!("{name} {operand}");
    }

    let inverse = JUMPS
        .iter()
        .find(|row| row.1 == insn.code & !code::X && row.2)
        .map(|row| row.0);

    match inverse {
        _ if insn.jf == 0 => format!("{name} {operand}, l{}", target(insn.jt)),
        Some(inverse) if insn.jt == 0 => format!("{inverse} {operand}, l{}", target(insn.jf)),
        _ => format!(
            "{name} {operand}, l{}, l{}",
            target(insn.jt),
            target(insn.jf)
        ),
    }
}

/// An instruction whose labels are not resolved yet.
struct Draft<'a> {
    insn: Insn,
    labels: [Option<Place<'a>>; 2],
}

/// A word and its position.
#[derive(Clone, Copy)]
struct Place<'a> {
    word: &'a str,
    line: usize,
    column: usize,
}

impl Place<'_> {
    fn wrong(&self, expected: &'static str) -> TextError {
        TextError::at(self.line, self.column, format!("'{}'", self.word), expected)
    }
}

/// Assembles `bpf_asm` text: one instruction per line, labels before it, comments after `;` or
/// between `/*` and `*/`.
///
/// # Errors
/// The position and what was expected there, or the kernel's rule that the program breaks.
pub fn assemble(text: &str) -> Result<Filter, TextError> {
    let text = without_comments(text);
    let mut labels: HashMap<&str, usize> = HashMap::new();
    let mut drafts = Vec::new();

    for (index, line) in text.lines().enumerate() {
        let mut words = words(line, index + 1);
        while let Some(name) = words.first().and_then(|first| first.word.strip_suffix(':')) {
            if labels.insert(name, drafts.len()).is_some() {
                return Err(words[0].wrong("expected a label that is not used twice"));
            }
            words.remove(0);
        }
        if !words.is_empty() {
            drafts.push(draft(&words)?);
        }
    }

    let mut insns = Vec::with_capacity(drafts.len());
    for (at, draft) in drafts.iter().enumerate() {
        insns.push(link(draft, at, &labels)?);
    }

    Ok(Filter::new(insns)?)
}

/// The text with comments replaced by spaces, so that columns stay the same.
fn without_comments(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let (mut to_line_end, mut to_star, mut previous) = (false, false, ' ');
    let mut chars = text.chars().peekable();

    while let Some(c) = chars.next() {
        if to_star && previous == '*' && c == '/' {
            to_star = false;
            clean.push(' ');
        } else if c == '\n' {
            to_line_end = false;
            clean.push(c);
        } else {
            to_line_end |= !to_star && c == ';';
            let opens = !to_line_end && !to_star && c == '/' && chars.peek() == Some(&'*');
            clean.push(if to_star || to_line_end || opens {
                ' '
            } else {
                c
            });
            if opens {
                chars.next();
                clean.push(' ');
                to_star = true;
                previous = ' ';
                continue;
            }
        }
        previous = c;
    }

    clean
}

/// Splits a line at white space and commas; a label's colon ends its word.
fn words(line: &str, line_number: usize) -> Vec<Place<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let ends = c.is_whitespace() || c == ',';
        let begin = *start.get_or_insert(at);
        if ends || c == ':' {
            let end = if ends { at } else { at + 1 };
            if end > begin {
                words.push(Place {
                    word: &line[begin..end],
                    line: line_number,
                    column: line[..begin].chars().count() + 1,
                });
            }
            start = None;
        }
    }

    words
}

fn draft<'a>(words: &[Place<'a>]) -> Result<Draft<'a>, TextError> {
    const OPERAND: &str = "expected one operand";

    let (name, operands) = (words[0], &words[1..]);
    let plain = |insn| {
        Ok(Draft {
            insn,
            labels: [None; 2],
        })
    };
    let one = || match operands {
        [only] => Ok(*only),
        [] => Err(name.wrong(OPERAND)),
        [_, extra, ..] => Err(extra.wrong(OPERAND)),
    };
    let none = |code| match operands.first() {
        None => plain(Insn::new(code, 0)),
        Some(extra) => Err(extra.wrong("expected no operand")),
    };
    let lower = name.word.to_ascii_lowercase();

    match lower.as_str() {
        "ld" | "ldi" => plain(load(
            one()?,
            [code::LD_IMM, code::LD_MEM, code::LD_LEN],
            true,
        )?),
        "ldx" | "ldxi" => plain(load(
            one()?,
            [code::LDX_IMM, code::LDX_MEM, code::LDX_LEN],
            false,
        )?),
        "st" => plain(Insn::new(code::ST, scratch(one()?)?)),
        "stx" => plain(Insn::new(code::STX, scratch(one()?)?)),
        "neg" => none(code::NEG),
        "tax" => none(code::TAX),
        "txa" => none(code::TXA),
        "ret" if matches!(one()?.word, "a" | "%a") => plain(Insn::new(code::RET_A, 0)),
        "ret" => plain(Insn::new(code::RET_K, immediate(one()?)?)),
        "jmp" | "ja" => Ok(Draft {
            insn: Insn::new(code::JA, 0),
            labels: [Some(one()?), None],
        }),
        lower => {
            if let Some(row) = ALU.iter().find(|row| row.0 == lower) {
                let (x, k) = value(one()?)?;
                return plain(Insn::new(row.1 | x, k));
            }
            let row = JUMPS.iter().find(|row| row.0 == lower).ok_or_else(|| {
                name.wrong("expected an instruction: ld, ldx, st, stx, add, sub, mul, div, and, or, xor, lsh, rsh, neg, jmp, jeq, jne, jlt, jle, jgt, jge, jset, tax, txa, ret")
            })?;
            conditional(name, operands, row.1, row.2)
        }
    }
}

fn conditional<'a>(
    name: Place<'a>,
    operands: &[Place<'a>],
    code: u16,
    negated: bool,
) -> Result<Draft<'a>, TextError> {
    let (operand, labels) = match *operands {
        [operand, label] if negated => (operand, [None, Some(label)]),
        [operand, label] => (operand, [Some(label), None]),
        [operand, yes, no] if !negated => (operand, [Some(yes), Some(no)]),
        _ => {
            return Err(
                name.wrong("expected a value and one label (two where jt and jf are both given)")
            )
        }
    };

    let (x, k) = value(operand)?;
    Ok(Draft {
        insn: Insn::new(code | x, k),
        labels,
    })
}

fn link(draft: &Draft<'_>, at: usize, labels: &HashMap<&str, usize>) -> Result<Insn, TextError> {
    let mut insn = draft.insn;
    let mut skips = [0usize; 2];
    for (skip, label) in skips.iter_mut().zip(&draft.labels) {
        let Some(label) = label else { continue };
        let target = labels
            .get(label.word)
            .ok_or_else(|| label.wrong("expected a label that stands before an instruction"))?;
        *skip = target.checked_sub(at + 1).ok_or_else(|| {
            label.wrong("expected a label further down: filters jump forward only")
        })?;
        if insn.code != code::JA && *skip > 255 {
            return Err(
                label.wrong("expected a label at most 255 instructions away; jump there by jmp")
            );
        }
    }

    if insn.code == code::JA {
        insn.k = skips[0] as u32;
    } else {
        (insn.jt, insn.jf) = (skips[0] as u8, skips[1] as u8);
    }

    Ok(insn)
}

fn load(operand: Place<'_>, codes: [u16; 3], absolute: bool) -> Result<Insn, TextError> {
    let word = operand.word;
    if matches!(word, "#len" | "len") {
        return Ok(Insn::new(codes[2], 0));
    }

    let inner = word.strip_prefix('[').and_then(|w| w.strip_suffix(']'));
    if let (Some(inner), true) = (inner, absolute) {
        let offset = number(inner).ok_or_else(|| {
            operand.wrong("expected [k], k a byte offset into struct seccomp_data")
        })?;
        return Ok(Insn::new(code::LD_ABS, offset));
    }

    if word.starts_with('M') {
        return Ok(Insn::new(codes[1], scratch(operand)?));
    }

    Ok(Insn::new(codes[0], immediate(operand)?))
}

fn scratch(operand: Place<'_>) -> Result<u32, TextError> {
    operand
        .word
        .strip_prefix("M[")
        .and_then(|w| w.strip_suffix(']'))
        .and_then(number)
        .ok_or_else(|| operand.wrong("expected M[k], k from 0 to 15"))
}

fn immediate(operand: Place<'_>) -> Result<u32, TextError> {
    operand
        .word
        .strip_prefix('#')
        .and_then(number)
        .ok_or_else(|| operand.wrong("expected #k, k a number of 32 bits"))
}

/// Parses the operand `x` or `#k`.
fn value(operand: Place<'_>) -> Result<(u16, u32), TextError> {
    match operand.word {
        "x" | "%x" => Ok((code::X, 0)),
        _ => immediate(operand).map(|k| (0, k)),
    }
}
