//! Filters as numbers: hex digits and C arrays.

use super::TextError;
use crate::{Chain, Filter, Insn};
use std::fmt::Write;

/// Hex digits of the binary form, two per byte, with one line per instruction.
pub fn to_hex(filter: &Filter) -> String {
    let mut text = String::new();
    for insn in filter.to_bytes().chunks(8) {
        for byte in insn {
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

/// The inverse of [`to_hex`]; white space is ignored.
///
/// # Errors
/// A character is not a hex digit, half a byte is left over, or the program is invalid.
pub fn from_hex(text: &str) -> Result<Filter, TextError> {
    const EXPECTED: &str = "expected hex digits, 16 for each instruction";

    let (mut bytes, mut high) = (Vec::new(), None);
    let (mut line, mut column) = (1, 0);

    for c in text.chars() {
        column += 1;
        if c == '\n' {
            (line, column) = (line + 1, 0);
        }
        if c.is_whitespace() {
            continue;
        }
        let digit = c
            .to_digit(16)
            .ok_or_else(|| TextError::at(line, column, format!("'{c}'"), EXPECTED))?;
        high = match high {
            None => Some(digit),
            Some(high) => {
                bytes.push((high << 4 | digit) as u8);
                None
            }
        };
    }

    if high.is_some() {
        return Err(TextError::at(line, column, "half a byte".into(), EXPECTED));
    }

    Ok(Filter::from_bytes(&bytes)?)
}

/// The hex digits of a chain, oldest filter first: each filter as from [`to_hex`], separated by
/// empty lines.
pub fn chain_to_hex(chain: &Chain) -> String {
    let filters: Vec<String> = chain.filters().iter().map(to_hex).collect();
    filters.join("\n")
}

/// The inverse of [`chain_to_hex`]: an empty line ends a filter.
pub(super) fn chain_from_hex(text: &str) -> Result<Chain, TextError> {
    let mut filters = Vec::new();
    let mut part = String::new();

    // Lines of earlier filters are kept as empty lines, so that errors give the right line.
    let mut before = String::new();

    for line in text.lines().chain([""]) {
        if line.trim().is_empty() && !part.trim().is_empty() {
            filters.push(from_hex(&format!("{before}{part}"))?);
            before.extend(part.lines().map(|_| '\n'));
            part.clear();
        }
        part.push_str(line);
        part.push('\n');
    }

    if filters.is_empty() {
        filters.push(from_hex(text)?);
    }

    Ok(Chain::new(filters))
}

/// A C array of `struct sock_filter`, with one line per instruction.
pub fn to_c_array(filter: &Filter) -> String {
    let mut text = String::from("static const struct sock_filter filter[] = {\n");
    for insn in filter.insns() {
        let Insn { code, jt, jf, k } = insn;
        let _ = writeln!(text, "\t{{ {code:#04x}, {jt}, {jf}, {k:#010x} }},");
    }
    text.push_str("};\n");
    text
}

/// Reads what [`to_c_array`] or `bpf_asm -c` writes: four numbers in braces for each instruction.
/// Other text is ignored.
///
/// # Errors
/// The braces contain anything else, or the program is invalid.
pub fn from_c_array(text: &str) -> Result<Filter, TextError> {
    const EXPECTED: &str = "expected { code, jt, jf, k } with decimal, 0x or 0 numbers";

    let mut insns = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut rest = line;
        // The array's own opening brace ends its line.
        while let Some(open) = rest
            .find('{')
            .filter(|&open| !rest[open + 1..].trim().is_empty())
        {
            let start = line.len() - rest.len() + open;
            let wrong = |found: &str| {
                let column = line[..start].chars().count() + 1;
                TextError::at(index + 1, column, format!("'{}'", found.trim()), EXPECTED)
            };
            let inner = &rest[open + 1..];
            let close = inner.find('}').ok_or_else(|| wrong(inner))?;
            let words: Vec<&str> = inner[..close]
                .trim()
                .trim_end_matches(',')
                .split(',')
                .collect();
            let [code, jt, jf, k] = words[..] else {
                return Err(wrong(&inner[..close]));
            };
            let narrow = |word| number(word).ok_or_else(|| wrong(word));
            insns.push(Insn {
                code: u16::try_from(narrow(code)?).map_err(|_| wrong(code))?,
                jt: u8::try_from(narrow(jt)?).map_err(|_| wrong(jt))?,
                jf: u8::try_from(narrow(jf)?).map_err(|_| wrong(jf))?,
                k: narrow(k)?,
            });
            rest = &inner[close + 1..];
        }
    }

    Ok(Filter::new(insns)?)
}

/// Whether a text is a list of decimal numbers: the number of instructions, and a line of four for
/// each of them.
pub(super) fn is_decimal(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let count = lines
        .next()
        .and_then(|line| line.trim().parse::<usize>().ok());
    let rows: Vec<usize> = lines.map(|line| line.split_whitespace().count()).collect();
    count == Some(rows.len()) && count != Some(0) && rows.iter().all(|&words| words == 4)
}

/// Reads what `tcpdump -ddd` and `bpf_asm` write: the number of instructions, and `code jt jf k` in
/// decimal for each.
///
/// # Errors
/// A word is no number that fits, or the program is invalid.
pub fn from_decimal(text: &str) -> Result<Filter, TextError> {
    const EXPECTED: &str = "expected code jt jf k, in decimal";

    let mut insns = Vec::new();
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());

    for (index, line) in lines.skip(1) {
        let wrong = || TextError::at(index + 1, 1, format!("'{}'", line.trim()), EXPECTED);
        let words: Vec<u32> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .collect();
        let [code, jt, jf, k] = words[..] else {
            return Err(wrong());
        };
        insns.push(Insn {
            code: u16::try_from(code).map_err(|_| wrong())?,
            jt: u8::try_from(jt).map_err(|_| wrong())?,
            jf: u8::try_from(jf).map_err(|_| wrong())?,
            k,
        });
    }

    Ok(Filter::new(insns)?)
}

/// Parses a number in C's syntax.
pub(super) fn number(word: &str) -> Option<u32> {
    let word = word.trim().trim_end_matches(['u', 'U', 'l', 'L']);
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        u32::from_str_radix(hex, 16).ok()
    } else if word.len() > 1 && word.starts_with('0') {
        u32::from_str_radix(&word[1..], 8).ok()
    } else if let Some(positive) = word.strip_prefix('-') {
        // bpf_asm accepts -1 for 0xffffffff.
        let value: u32 = positive.parse().ok()?;
        Some(value.wrapping_neg())
    } else {
        word.parse().ok()
    }
}
