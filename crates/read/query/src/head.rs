//! The head of a line: `node=N type=T msg=audit(S.mmm:N):`.

use crate::number::unsigned;
use crate::Dialect;
use memchr::{memchr, memmem};

/// The head of a line, borrowed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head<'l> {
    pub(crate) node: Option<&'l [u8]>,
    pub(crate) kind: i32,
    pub(crate) sec: u64,
    pub(crate) msec: u32,
    pub(crate) serial: u64,
}

/// Reason why a line has no head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoHead<'l> {
    /// The line is not a record.
    NoRecord,
    /// The text between the parentheses is not a time.
    BadTime(&'l [u8]),
}

/// Bytes of a line that the head may have, without and with a node.
const HEAD_BYTES_MAX: [usize; 2] = [80, 340];

/// Reads the head as ausearch does, whose checks are few: words count by their place.
pub(crate) fn head(line: &[u8], timeout_s: u64, dialect: Dialect) -> Result<Head<'_>, NoHead<'_>> {
    let has_node = line.first() == Some(&b'n');
    let line = &line[..line.len().min(HEAD_BYTES_MAX[usize::from(has_node)])];
    if !dialect.is_compat() {
        return strict_head(line, timeout_s);
    }

    let (first, rest) = word(line).ok_or(NoHead::NoRecord)?;
    // As in ausearch, the first word may follow blanks.
    let (node, kind, rest) = match first.first() {
        Some(b'n') => {
            let (kind, rest) = word(rest).ok_or(NoHead::NoRecord)?;
            (Some(first.get(5..).ok_or(NoHead::NoRecord)?), kind, rest)
        }
        _ => (None, first, rest),
    };
    let kind = kind.get(5..).ok_or(NoHead::NoRecord)?;
    let (stamp, _) = word(rest).ok_or(NoHead::NoRecord)?;
    if stamp.len() <= 18 {
        return Err(NoHead::NoRecord);
    }

    let open = match stamp[9] {
        b'(' => 9,
        _ => memchr(b'(', stamp).ok_or(NoHead::NoRecord)?,
    };
    let inner = &stamp[open + 1..];
    let inner = &inner[..memchr(b')', inner).unwrap_or(inner.len())];
    let (sec, msec, serial) = time(inner, timeout_s).ok_or(NoHead::BadTime(inner))?;

    Ok(Head {
        node,
        kind: crate::kind::number(kind, dialect),
        sec,
        msec,
        serial,
    })
}

/// Reads a head that says what it is, so that no line of another file is taken for a record. A node may have blanks.
fn strict_head(line: &[u8], timeout_s: u64) -> Result<Head<'_>, NoHead<'_>> {
    let (node, rest) = match line.strip_prefix(b"node=") {
        Some(rest) => {
            let end = memmem::find(rest, b" type=").ok_or(NoHead::NoRecord)?;
            (Some(&rest[..end]), &rest[end + 1..])
        }
        None => (None, line),
    };

    let rest = rest.strip_prefix(b"type=").ok_or(NoHead::NoRecord)?;
    let end = memchr(b' ', rest).ok_or(NoHead::NoRecord)?;
    let (kind, rest) = (&rest[..end], rest[end..].trim_ascii_start());
    let rest = rest.strip_prefix(b"msg=").unwrap_or(rest);
    let inner = rest.strip_prefix(b"audit(").ok_or(NoHead::NoRecord)?;
    let inner = &inner[..memchr(b')', inner).ok_or(NoHead::NoRecord)?];
    if !inner.first().is_some_and(u8::is_ascii_digit) {
        return Err(NoHead::BadTime(inner));
    }

    let (sec, msec, serial) = time(inner, timeout_s).ok_or(NoHead::BadTime(inner))?;
    Ok(Head {
        node,
        kind: crate::kind::number(kind, Dialect::Own),
        sec,
        msec,
        serial,
    })
}

/// The first word of `text`, after blanks, and what follows the blank behind it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = text.iter().position(|byte| *byte != b' ')?;
    let text = &text[start..];
    match memchr(b' ', text) {
        Some(end) => Some((&text[..end], &text[end + 1..])),
        None => Some((text, &[])),
    }
}

fn time(text: &[u8], timeout_s: u64) -> Option<(u64, u32, u64)> {
    if let Some(usual) = usual_time(text) {
        return Some(usual);
    }

    let sec = unsigned(text, 10).ok()?;
    if sec
        > (i64::MAX as u64)
            .saturating_sub(timeout_s)
            .saturating_sub(1)
    {
        return None;
    }

    let (msec, rest) = match memchr(b'.', text) {
        // ausearch keeps 32 bits.
        Some(at) => (unsigned(&text[at + 1..], 10).ok()? as u32, &text[at + 1..]),
        None => (0, text),
    };
    if msec > 999 {
        return None;
    }

    let serial = match memchr(b':', rest) {
        Some(at) => unsigned(&rest[at + 1..], 10).ok()?,
        None => 0,
    };
    Some((sec, msec, serial))
}

/// A time as the kernel writes it: `SEC.mmm:SERIAL` in decimal digits, none of them beyond what a head can have.
fn usual_time(text: &[u8]) -> Option<(u64, u32, u64)> {
    let mut rest = text;
    let mut digits = |most: usize, end: Option<u8>| {
        let (mut number, mut count) = (0_u64, 0);
        while let Some(digit @ b'0'..=b'9') = rest.get(count) {
            number = number
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit - b'0'));
            count += 1;
        }
        let is_ended = rest.get(count).copied() == end;
        rest = rest.get(count + 1..).unwrap_or_default();
        (is_ended && (1..=most).contains(&count)).then_some(number)
    };

    let sec = digits(12, Some(b'.'))?;
    let msec = digits(3, Some(b':'))?;
    Some((sec, msec as u32, digits(18, None)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_by_their_place() {
        let line = b"node=h type=SYSCALL msg=audit(1795229629.588:9): arch=1\n";
        let head = head(line, 2, Dialect::Own).expect("a head");
        assert_eq!(head.node, Some(&b"h"[..]));
        assert_eq!(
            (head.kind, head.sec),
            (abi::record_type::SYSCALL, 1_795_229_629)
        );
        assert_eq!((head.msec, head.serial), (588, 9));
    }

    #[test]
    fn a_usual_time_is_what_it_would_be_without_haste() {
        for (text, is_usual) in [
            ("1795229629.588:9", true),
            ("0.0:0", true),
            ("999999999999.999:999999999999999999", true),
            ("1795229629.0588:9", false),
            ("1795229629.588:9x", false),
            ("1795229629:9", false),
            ("1795229629.588", false),
            ("1.588:", false),
            (" 1.588:9", false),
            ("1.-1:9", false),
            ("1.588:99999999999999999999", false),
            ("", false),
        ] {
            let usual = usual_time(text.as_bytes());
            assert_eq!(usual.is_some(), is_usual, "{text}");
            // Blanks behind it keep the same text from the short way.
            let long = time(format!("{text} ").as_bytes(), 2);
            assert!(usual.is_none() || usual == long, "{text}: {long:?}");
        }
    }

    #[test]
    fn what_is_no_head_is_told_from_a_bad_time() {
        assert_eq!(head(b"", 2, Dialect::Own), Err(NoHead::NoRecord));
        assert_eq!(
            head(b"type=USER msg=short", 2, Dialect::Own),
            Err(NoHead::NoRecord)
        );
        let bad = b"type=USER msg=audit(1795229629.1588:9): x";
        assert_eq!(
            head(bad, 2, Dialect::Own),
            Err(NoHead::BadTime(b"1795229629.1588:9"))
        );
    }
}
