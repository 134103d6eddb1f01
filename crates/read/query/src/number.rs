//! Numbers as strtoul(3) and strtoll(3) read them: text after the digits is ignored.

/// The number has more bits than C's `unsigned long` or `long long`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfRange;

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// Sign and digits: blanks before the sign are skipped.
fn signed_digits(text: &[u8]) -> (bool, &[u8]) {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    match &text[blanks..] {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

fn magnitude(digits: &[u8], base: u32) -> Result<u64, OutOfRange> {
    let digits = match (base, digits) {
        (16, [b'0', b'x' | b'X', rest @ ..]) if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            rest
        }
        _ => digits,
    };

    let mut value = 0_u64;
    for byte in digits {
        let Some(digit) = char::from(*byte).to_digit(base) else {
            break;
        };
        value = value
            .checked_mul(base.into())
            .and_then(|value| value.checked_add(digit.into()))
            .ok_or(OutOfRange)?;
    }

    Ok(value)
}

/// Reads a number as strtoul(3) does in `base` 10 or 16; 0 without digits.
pub(crate) fn unsigned(text: &[u8], base: u32) -> Result<u64, OutOfRange> {
    let (is_negative, digits) = signed_digits(text);
    let value = magnitude(digits, base)?;
    Ok(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

/// Reads a number as strtoll(3) does in base 0: hexadecimal after `0x`, octal after `0`, else decimal.
pub(crate) fn signed(text: &[u8]) -> Result<i64, OutOfRange> {
    let (is_negative, digits) = signed_digits(text);
    let base = match digits {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', ..] => 8,
        _ => 10,
    };
    let value = i128::from(magnitude(digits, base)?);
    i64::try_from(if is_negative { -value } else { value }).map_err(|_| OutOfRange)
}

/// Reads a number as strtoul(3) does in any base, including 0.
pub(crate) fn unsigned_any(text: &[u8], base: u32) -> Result<u64, OutOfRange> {
    let digits = signed_digits(text).1;
    match (base, digits) {
        (0, [b'0', b'x' | b'X', ..]) => unsigned(text, 16),
        (0, [b'0', ..]) => unsigned(text, 8),
        (0, _) => unsigned(text, 10),
        _ => unsigned(text, base),
    }
}

/// Reads a number as strtoll(3) does in base 10.
pub(crate) fn signed_decimal(text: &[u8]) -> Result<i64, OutOfRange> {
    let (is_negative, digits) = signed_digits(text);
    let value = i128::from(magnitude(digits, 10)?);
    i64::try_from(if is_negative { -value } else { value }).map_err(|_| OutOfRange)
}

/// The bytes that hex digits at the beginning of `text` encode, up to a zero, or the text up to `)` of `(null)`.
///
/// `None` where ausearch finds no value: fewer than two digits, or no `)`.
pub(crate) fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = decode_whole(text)?;
    // C's strings end at a zero.
    if let Some(end) = memchr::memchr(0, &bytes) {
        bytes.truncate(end);
    }
    Some(bytes)
}

/// Like [`unescape`], but keeps zeros and the bytes after them.
pub(crate) fn decode_whole(text: &[u8]) -> Option<Vec<u8>> {
    if text.first() == Some(&b'(') {
        let end = memchr::memchr(b')', text)?;
        return Some(text[..=end].to_vec());
    }

    let digits = text.iter().map(|byte| DIGITS[usize::from(*byte)]);
    let count = digits
        .clone()
        .take_while(|digit| *digit != NO_DIGIT)
        .count();
    if count < 2 {
        return None;
    }

    let (pairs, odd) = text[..count].as_chunks::<2>();
    let digit = |byte: u8| DIGITS[usize::from(byte)];
    let mut bytes = Vec::with_capacity(count.div_ceil(2));
    bytes.extend(
        pairs
            .iter()
            .map(|[high, low]| digit(*high) << 4 | digit(*low)),
    );
    bytes.extend(odd.iter().map(|high| digit(*high) << 4));
    Some(bytes)
}

const NO_DIGIT: u8 = u8::MAX;

/// Values of hex digits by their bytes.
const DIGITS: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        table[b"0123456789abcdef"[digit] as usize] = digit as u8;
        table[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_by_c() {
        assert_eq!(unsigned(b" 12 13", 10), Ok(12));
        assert_eq!(unsigned(b"x", 10), Ok(0));
        assert_eq!(unsigned(b"-1", 10), Ok(u64::MAX));
        assert_eq!(unsigned(b"0x1f", 16), Ok(31));
        assert_eq!(unsigned(b"99999999999999999999", 10), Err(OutOfRange));
        assert_eq!(signed(b"-13"), Ok(-13));
        assert_eq!(signed(b"010"), Ok(8));
        assert_eq!(signed(b"9223372036854775808"), Err(OutOfRange));
    }

    #[test]
    fn hex_values_become_bytes() {
        assert_eq!(unescape(b"6B31016B32 x"), Some(b"k1\x01k2".to_vec()));
        assert_eq!(unescape(b"(null) x"), Some(b"(null)".to_vec()));
        assert_eq!(unescape(b"4"), None);
        assert_eq!(unescape(b"x"), None);
        assert_eq!(unescape(b"2ac;"), Some(b"*\xc0".to_vec()));
    }
}
