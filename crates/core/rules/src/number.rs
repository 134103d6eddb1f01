//! Numbers as auditctl reads them, with C's strtoul(3) and strtol(3): a sign, `0x` or `0` for
//! hexadecimal or octal, then digits up to the first byte that is none. What follows the digits
//! is ignored; a number that is too large becomes the largest one.

/// `strtoul(text, NULL, base)` with base 0 or 16. A sign negates modulo 2^64.
pub(crate) fn unsigned(text: &[u8], base: u32) -> u64 {
    let (is_negative, magnitude) = parse(text, base);
    match magnitude {
        None => u64::MAX,
        Some(magnitude) if is_negative => magnitude.wrapping_neg(),
        Some(magnitude) => magnitude,
    }
}

/// `strtol(text, NULL, 0)`.
pub(crate) fn signed(text: &[u8]) -> i64 {
    let (is_negative, magnitude) = parse(text, 0);
    let magnitude = magnitude.unwrap_or(u64::MAX);
    if is_negative {
        0i64.checked_sub_unsigned(magnitude).unwrap_or(i64::MIN)
    } else {
        i64::try_from(magnitude).unwrap_or(i64::MAX)
    }
}

/// Sign and magnitude; `None` when it does not fit into 64 bits.
fn parse(text: &[u8], base: u32) -> (bool, Option<u64>) {
    let text = text.trim_ascii_start();
    let (is_negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (base, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', ..] if base == 0 => (8, text),
        _ if base == 0 => (10, text),
        _ => (base, text),
    };

    let mut value = Some(0u64);
    for digit in digits
        .iter()
        .map_while(|&byte| char::from(byte).to_digit(base))
    {
        value = value
            .and_then(|value| value.checked_mul(u64::from(base)))
            .and_then(|value| value.checked_add(u64::from(digit)));
    }
    (is_negative, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_does() {
        assert_eq!(unsigned(b"0100", 0), 64);
        assert_eq!(unsigned(b"0x1ffffffff", 0), 0x1_ffff_ffff);
        assert_eq!(unsigned(b"12abc", 0), 12);
        assert_eq!(unsigned(b"foo", 16), 0xf);
        assert_eq!(unsigned(b"c000003e", 16), 0xc000_003e);
        assert_eq!(unsigned(b"inet", 0), 0);
        assert_eq!(unsigned(b"-1", 0), u64::MAX);
        assert_eq!(unsigned(b"99999999999999999999999", 0), u64::MAX);
        assert_eq!(unsigned(b"0x", 0), 0);
        assert_eq!(signed(b"-13"), -13);
        assert_eq!(signed(b"-0x10"), -16);
        assert_eq!(signed(b"99999999999999999999999"), i64::MAX);
        assert_eq!(signed(b"-99999999999999999999999"), i64::MIN);
        assert_eq!(signed(b""), 0);
    }
}
