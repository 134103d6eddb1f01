//! Parses lines of a log, and messages that the kernel sends over netlink.
//!
//! [`parse_line`] splits a line into its head, its body and its interpretations. [`fields`] returns the fields of a
//! body in order. [`Typed::decode`] reads a body into one of the structs of [`crate::record`], and [`ArgvBuilder`] puts
//! the lines of EXECVE together. Writing what was read gives the same bytes again.

mod argv;
mod cursor;
mod fields;
mod typed;

pub use argv::{ArgvBuilder, ArgvError};
pub use cursor::Scratch;
pub use fields::{fields, write_fields, Field, Fields};
pub use typed::Typed;

use crate::{put, RecordType, Stamp};
use cursor::Cursor;

/// Byte between a record and its interpretations: AUDIT_INTERP_SEPARATOR.
pub const SEPARATOR: u8 = 0x1d;

/// Text that does not have the expected form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("byte {at}: expected {expected}")]
pub struct TextError {
    /// Offset in the line or message, in bytes.
    pub at: usize,
    /// The text expected there.
    pub expected: &'static str,
}

/// The parts of one line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Value of `node=`, if the line has one.
    pub node: Option<&'a [u8]>,
    /// Name of the type as the line spells it.
    pub type_name: &'a [u8],
    /// The type, if its name is known.
    pub kind: Option<RecordType>,
    /// Time and serial.
    pub stamp: Stamp,
    /// Whether there is a blank before the body; it may be missing if the body is empty (EOE).
    pub has_blank: bool,
    /// Text after `audit(…): `.
    pub body: &'a [u8],
    /// Offset of the body in the line, in bytes, for errors.
    pub body_at: usize,
    /// ENRICHED: text after byte 0x1d.
    pub interpretations: Option<&'a [u8]>,
}

/// Parses a log line: `[node=X ]type=NAME msg=audit(S.mmm:N): body[\x1dINTERPRETATIONS]`. It may end in one newline.
pub fn parse_line(line: &[u8]) -> Result<Record<'_>, TextError> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (text, interpretations) = match memchr::memchr(SEPARATOR, line) {
        Some(at) => (&line[..at], Some(&line[at + 1..])),
        None => (line, None),
    };
    let mut cursor = Cursor::new(text, 0);
    let node = if cursor.skip("node=") {
        let node = cursor.token("the name of a node")?;
        cursor.literal(" ")?;
        Some(node)
    } else {
        None
    };

    cursor.literal("type=")?;
    let type_name = cursor.token("the name of a record type")?;
    cursor.literal(" msg=")?;
    let stamp = stamp(&mut cursor)?;
    let (body, body_at) = cursor.rest();
    let has_blank = text[..body_at].ends_with(b" ");
    let kind = RecordType::from_name(type_name);

    Ok(Record {
        node,
        type_name,
        kind,
        stamp,
        has_blank,
        body,
        body_at,
        interpretations,
    })
}

/// Parses a message of the kernel: `audit(S.mmm:N): body`. Returns its stamp and body.
pub fn parse_message(message: &[u8]) -> Result<(Stamp, &[u8]), TextError> {
    let mut cursor = Cursor::new(message, 0);
    let stamp = stamp(&mut cursor)?;
    Ok((stamp, cursor.rest().0))
}

/// Parses `audit(S.mmm:N):` and one blank, which may be missing if the body is empty.
fn stamp(cursor: &mut Cursor<'_>) -> Result<Stamp, TextError> {
    cursor.literal("audit(")?;
    let id = stamp_id(cursor)?;
    cursor.literal("):")?;
    if !cursor.skip(" ") && !cursor.is_empty() {
        return Err(TextError {
            at: cursor.at(),
            expected: "a blank before the first field",
        });
    }
    Ok(id)
}

/// `SEC.MSEC:SERIAL`.
fn stamp_id(cursor: &mut Cursor<'_>) -> Result<Stamp, TextError> {
    let sec = cursor.number(10, "seconds since 1970")?;
    cursor.literal(".")?;
    let (digits_at, msec) = (
        cursor.at(),
        cursor.number(10, "three digits of milliseconds")?,
    );

    if cursor.at() - digits_at != 3 {
        return Err(TextError {
            at: digits_at,
            expected: "three digits of milliseconds",
        });
    }

    cursor.literal(":")?;
    let serial = cursor.number(10, "the serial of the event")?;
    Ok(Stamp { sec, msec, serial })
}

impl<'a> Record<'a> {
    /// The fields of the body, in order.
    pub fn fields(&self) -> Fields<'a> {
        fields(self.body)
    }

    /// The value of the first field with this name, as it is in the line.
    pub fn value(&self, name: &[u8]) -> Option<&'a [u8]> {
        self.fields()
            .find(|field| field.name == name)
            .map(|field| field.value)
    }

    /// Appends the line, composed of its parts and fields, without a newline.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(node) = self.node {
            put::text(out, "node=");
            out.extend_from_slice(node);
            out.push(b' ');
        }

        put::text(out, "type=");
        out.extend_from_slice(self.type_name);
        put::text(out, " msg=");
        self.stamp.write(out);
        if !self.has_blank {
            out.pop();
        }

        write_fields(out, self.fields());
        if let Some(interpretations) = self.interpretations {
            out.push(SEPARATOR);
            write_fields(out, fields(interpretations));
        }
    }
}

/// The whole text as an unsigned number in base 10 or 16.
pub fn number(text: &[u8], base: u32) -> Option<u64> {
    let add = |value: u64, &byte: &u8| {
        let digit = char::from(byte).to_digit(base)?;
        value.checked_mul(base.into())?.checked_add(digit.into())
    };
    text.first()?;
    text.iter().try_fold(0, add)
}

/// An id as strtoul(3) reads it, truncated to 32 bits: an optional minus sign, digits, then anything.
pub(crate) fn leading_number(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if !digits.first()?.is_ascii_digit() {
        return None;
    }

    let mut value = 0_u32;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        value = value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
    }

    Some(if digits.len() < text.len() {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Values of hex digits; [`NO_DIGIT`] of other bytes.
const HEX_DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        let spelling = b"0123456789abcdef"[digit];
        digits[spelling as usize] = digit as u8;
        digits[spelling.to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    digits
};
const NO_DIGIT: u8 = 0xff;

/// The byte that two hex digits encode.
pub fn hex_byte(pair: &[u8]) -> Option<u8> {
    let &[high, low] = pair else { return None };
    let (high, low) = (HEX_DIGITS[usize::from(high)], HEX_DIGITS[usize::from(low)]);
    (high != NO_DIGIT && low != NO_DIGIT).then_some(high << 4 | low)
}

/// Whether the text encodes bytes in hex: pairs of upper-case digits, at least one pair.
pub fn is_hex(text: &[u8]) -> bool {
    !text.is_empty()
        && text.len().is_multiple_of(2)
        && text
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// Appends the bytes that pairs of hex digits encode, up to the first pair that is not valid.
pub fn unhex(out: &mut Vec<u8>, text: &[u8]) {
    out.extend(text.chunks_exact(2).map_while(hex_byte));
}
