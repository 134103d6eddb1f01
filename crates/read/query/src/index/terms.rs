//! Terms of a block of a log: a filter of its four-byte pieces of text, one of its numbers, and its record types.
//!
//! Both filters hold at least what [`crate::Facts`] can read, however damaged a record is: pieces of whole lines
//! and of what any hex value encodes, and numbers wherever the name of a field ends as that of a fact does.

use super::block::lines;
use crate::facts::{Facts, Wanted};
use crate::head::head;
use crate::number::{signed, unsigned};
use crate::walk::Walk;
use crate::{calls, Dialect, SEPARATOR};
use abi::record_type as kinds;
use memchr::{memchr, memchr_iter};

/// 64-bit words of the filter of text.
pub(crate) const TEXT_WORDS: usize = 1024;
/// 64-bit words of the filter of numbers.
pub(crate) const NUMBER_WORDS: usize = 256;
/// Most record types of a block; with more, it may hold any.
pub(crate) const KINDS_MAX: usize = 255;

/// Meaning of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Pid = 1,
    Ppid,
    Auid,
    Euid,
    /// Any user.
    Uid,
    Session,
    Exit,
    Syscall,
    Serial,
}

/// Terms that a block may hold.
#[derive(Clone, PartialEq, Eq)]
pub struct Terms {
    pub(crate) text: Box<[u64; TEXT_WORDS]>,
    pub(crate) numbers: Box<[u64; NUMBER_WORDS]>,
    pub(crate) kinds: Vec<i32>,
    /// Whether the name of a file is relative, so that it is joined to the working directory. Nothing asks for it now;
    /// it is part of the file's form.
    pub(crate) has_joined: bool,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            text: Box::new([0; TEXT_WORDS]),
            numbers: Box::new([0; NUMBER_WORDS]),
            kinds: Vec::new(),
            has_joined: false,
        }
    }
}

impl Terms {
    /// The terms of the lines of a block.
    pub fn of(text: &[u8]) -> Terms {
        let mut terms = Terms::default();
        let mut decoded = Vec::new();
        for line in lines(text) {
            let Ok(head) = head(line, 0, Dialect::Own) else {
                continue;
            };
            terms.add_kind(head.kind);
            terms.add_number(Class::Serial, head.serial as i64);
            terms.add_text(line);
            let record = &line[..memchr(SEPARATOR, line).unwrap_or(line.len())];
            terms.add_fields(line, record.len(), &mut decoded);
            if head.kind == kinds::SOCKADDR {
                terms.add_host(record);
            }
        }

        terms
    }

    /// Adds what another block holds.
    pub fn merge(&mut self, other: &Terms) {
        self.text
            .iter_mut()
            .zip(other.text.iter())
            .for_each(|(into, from)| *into |= from);
        self.numbers
            .iter_mut()
            .zip(other.numbers.iter())
            .for_each(|(into, from)| *into |= from);
        other.kinds.iter().for_each(|kind| self.add_kind(*kind));
        self.has_joined |= other.has_joined;
    }

    fn add_kind(&mut self, kind: i32) {
        if self.kinds.last() != Some(&kind)
            && !self.kinds.contains(&kind)
            && self.kinds.len() <= KINDS_MAX
        {
            self.kinds.push(kind);
        }
    }

    fn add_text(&mut self, text: &[u8]) {
        let words = &mut self.text;
        pieces(text, |bit| words[usize::from(bit >> 6)] |= 1 << (bit & 63));
    }

    fn add_number(&mut self, class: Class, value: i64) {
        let bit = number_bit(class, value);
        self.numbers[usize::from(bit >> 6)] |= 1 << (bit & 63);
    }

    /// Adds the values behind every `=` of a line whose record ends at `record_end`.
    fn add_fields(&mut self, line: &[u8], record_end: usize, decoded: &mut Vec<u8>) {
        for equals in memchr_iter(b'=', line) {
            let (name, value) = (&line[..equals], &line[equals + 1..]);
            if equals < record_end {
                self.add_numbers(name, &line[equals + 1..record_end]);
            }
            let is_joined = matches!(
                value,
                [b'"', b'.', b'.' | b'/', ..] | [b'2', b'E' | b'e', b'2', ..]
            );
            self.has_joined |= is_joined;
            if HEX_NAMES.iter().any(|end| name.ends_with(end)) {
                decode(value, decoded);
                self.add_text(decoded);
            }
        }
    }

    fn add_numbers(&mut self, name: &[u8], value: &[u8]) {
        let value = &value[..value.len().min(40)];
        let id = || unsigned(value, 10).ok().map(|id| i64::from(id as u32));
        let [.., a, b, c] = name else {
            return;
        };

        match [*a, *b, *c] {
            [b'p', b'i', b'd'] => {
                let Some(id) = id() else { return };
                self.add_number(Class::Pid, id);
                if name.ends_with(b"ppid") {
                    self.add_number(Class::Ppid, id);
                }
            }
            [b'u', b'i', b'd'] => {
                let Some(id) = id() else { return };
                self.add_number(Class::Uid, id);
                if name.ends_with(b"euid") {
                    self.add_number(Class::Euid, id);
                } else if name.ends_with(b"auid") || name.ends_with(b"loginuid") {
                    self.add_number(Class::Auid, id);
                }
            }
            [b's', b'e', b's'] => {
                id().into_iter()
                    .for_each(|id| self.add_number(Class::Session, id));
            }
            [b'x', b'i', b't'] => {
                let end = memchr(b' ', value).unwrap_or(value.len());
                let exit = signed(&value[..end]).ok();
                exit.into_iter()
                    .for_each(|exit| self.add_number(Class::Exit, exit));
            }
            [b'a', b'l', b'l'] => {
                id().into_iter()
                    .for_each(|id| self.add_number(Class::Syscall, id));
            }
            _ => {}
        }
    }

    /// The host of a SOCKADDR record, which its text has in binary.
    fn add_host(&mut self, record: &[u8]) {
        let wanted = Wanted {
            host: true,
            ..Wanted::default()
        };
        let mut facts = Facts::default();
        let _ = calls::sockaddr(&mut facts, Walk::new(record), &wanted, Dialect::Own);
        if let Some(host) = facts.host {
            self.add_text(&host);
        }
    }
}

/// Terms that can be looked up.
pub(super) trait Filters {
    /// The record types; more than [`KINDS_MAX`] stand for any.
    fn kinds(&self) -> impl ExactSizeIterator<Item = i32>;
    fn has_text(&self, bit: u16) -> bool;
    fn has_number(&self, bit: u16) -> bool;
}

impl Filters for Terms {
    fn kinds(&self) -> impl ExactSizeIterator<Item = i32> {
        self.kinds.iter().copied()
    }

    fn has_text(&self, bit: u16) -> bool {
        self.text[usize::from(bit >> 6)] >> (bit & 63) & 1 == 1
    }

    fn has_number(&self, bit: u16) -> bool {
        self.numbers[usize::from(bit >> 6)] >> (bit & 63) & 1 == 1
    }
}

/// Ends of the names of fields whose values are texts, which may be in hex.
const HEX_NAMES: [&[u8]; 11] = [
    b"comm",
    b"exe",
    b"key",
    b"name",
    b"path",
    b"cwd",
    b"saddr",
    b"vm",
    b"disk",
    b"UNIT",
    b"CONTAINER",
];

/// The bytes of the hex digits at the beginning of `value`. What `number::unescape` makes of an odd digit at the end is
/// one of the two last bytes.
fn decode(value: &[u8], decoded: &mut Vec<u8>) {
    decoded.clear();
    let digit = |at: usize| {
        char::from(*value.get(at)?)
            .to_digit(16)
            .map(|digit| digit as u8)
    };

    let mut at = 0;
    while let Some(high) = digit(at) {
        match digit(at + 1) {
            Some(low) => decoded.push(high << 4 | low),
            None => decoded.push((high << 4).wrapping_sub(b'0')),
        }
        at += 2;
    }
}

/// Calls `each` with the bit of every piece of `text`. Pieces of hex digits only, which addresses and times are made
/// of, and those with a character that ends words do not count.
pub(crate) fn pieces(text: &[u8], mut each: impl FnMut(u16)) {
    let (mut window, mut length, mut since_other) = (0_u32, 0_u32, 4_u32);
    for byte in text {
        match CLASSES[usize::from(*byte)] {
            0 => (length, since_other) = (0, 4),
            class => {
                window = window << 8 | u32::from(*byte);
                length += 1;
                since_other = if class == 2 { 0 } else { since_other + 1 };
                if length >= 4 && since_other < 4 {
                    each((window.wrapping_mul(0x9e37_79b1) >> 16) as u16);
                }
            }
        }
    }
}

/// 0: ends a word; 1: hex digit; 2: another.
const CLASSES: [u8; 256] = {
    let mut classes = [2; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'=' | b'"' | b'\n' | SEPARATOR => 0,
            b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' => 1,
            _ => 2,
        };
        byte += 1;
    }
    classes
};

pub(crate) fn number_bit(class: Class, value: i64) -> u16 {
    let key = (value as u64 ^ (class as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (key >> 50) as u16
}
