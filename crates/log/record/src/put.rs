//! Writers for the ways in which audit prints values. They append to a `Vec<u8>` and allocate nothing else.

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";
const HEX_LOWER: &[u8; 16] = b"0123456789abcdef";

/// Literal text, such as ` NAME=`.
#[inline]
pub fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// The texts `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + number as u8 / 10, b'0' + number as u8 % 10];
        number += 1;
    }
    pairs
};

/// `%u`
#[inline]
pub fn decimal(out: &mut Vec<u8>, value: u64) {
    // Many ids are 0.
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        long_decimal(out, value);
    }
}

fn long_decimal(out: &mut Vec<u8>, mut value: u64) {
    let len = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let start = out.len();
    // Appending a fixed number of bytes is cheaper than appending `len` bytes.
    out.extend_from_slice(&[b'0'; 20]);
    out.truncate(start + len);
    let mut at = out.len();

    // Most numbers of a record fit into 32 bits, where division is much cheaper.
    while value > u64::from(u32::MAX) {
        at -= 1;
        out[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }

    let mut value = value as u32;
    while value >= 10 {
        at -= 2;
        out[at..at + 2].copy_from_slice(&PAIRS[value as usize % 100]);
        value /= 100;
    }

    if at > start {
        out[start] = b'0' + value as u8;
    }
}

/// `%d`
pub fn signed(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    decimal(out, value.unsigned_abs());
}

/// `%0WIDTHu`
pub fn padded(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut bound = 10_u64;
    // One zero for each power of ten that the number does not reach.
    for _ in 1..width {
        if value < bound {
            out.push(b'0');
        }
        bound = bound.saturating_mul(10);
    }
    decimal(out, value);
}

/// `%x`, at least `width` digits.
#[inline]
pub fn hex(out: &mut Vec<u8>, value: u64, width: u32) {
    if value < 16 && width <= 1 {
        out.push(HEX_LOWER[value as usize]);
    } else {
        long_hex(out, value, width);
    }
}

fn long_hex(out: &mut Vec<u8>, value: u64, width: u32) {
    let digits = (64 - value.leading_zeros())
        .div_ceil(4)
        .max(width)
        .clamp(1, 16);
    let start = out.len();
    // Moves the first digit to the front; the digits after the last one are cut off below.
    let value = value << (64 - 4 * digits);
    out.extend_from_slice(&hex_of_32(value >> 32, b'a'));
    out.extend_from_slice(&hex_of_32(value & 0xffff_ffff, b'a'));
    out.truncate(start + digits as usize);
}

/// The eight hexadecimal digits of a 32-bit number. `ten` is the digit for 10, `a` or `A`. Computes all digits at
/// once, one in each byte of a word.
#[inline]
fn hex_of_32(value: u64, ten: u8) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let value = (value << 16 | value) & 0x0000_ffff_0000_ffff;
    let value = (value << 8 | value) & 0x00ff_00ff_00ff_00ff;
    let value = (value << 4 | value) & (0x0f * ONES);
    // 1 in each byte whose digit is 10 or more.
    let letters = ((value + 0x06 * ONES) >> 4) & ONES;
    let to_letter = u64::from(ten - b'0' - 10);
    (value + u64::from(b'0') * ONES + letters * to_letter).to_be_bytes()
}

/// `%o`, with a leading 0 if `alternate` (`%#o`, which prints zero as `0`).
pub fn octal(out: &mut Vec<u8>, value: u64, alternate: bool) {
    if alternate && value != 0 {
        out.push(b'0');
    }
    let digits = (64 - value.leading_zeros()).div_ceil(3).max(1);
    for place in (0..digits).rev() {
        out.push(b'0' + (value >> (3 * place) & 7) as u8);
    }
}

/// Upper-case hex of bytes: audit_log_n_hex() in kernel/audit.c.
pub fn hex_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2);
    let fours = bytes.chunks_exact(4);
    let rest = fours.remainder();
    for four in fours {
        let value = four
            .iter()
            .fold(0, |value, &byte| value << 8 | u64::from(byte));
        out.extend_from_slice(&hex_of_32(value, b'A'));
    }

    for &byte in rest {
        let high = HEX_UPPER[usize::from(byte >> 4)];
        out.extend_from_slice(&[high, HEX_UPPER[usize::from(byte & 15)]]);
    }
}

/// Whether an untrusted string must be written in hex: audit_string_contains_control() in kernel/audit.c.
pub fn needs_hex(bytes: &[u8]) -> bool {
    // Without an early exit: for strings this short, the loop without branches is faster.
    bytes.iter().fold(false, |odd, &byte| {
        odd | (byte == b'"') | !(0x21..=0x7e).contains(&byte)
    })
}

/// An untrusted string: in quotes, or in hex if any byte is a double quote, a blank, or not printable ASCII.
pub fn untrusted(out: &mut Vec<u8>, bytes: &[u8]) {
    if needs_hex(bytes) {
        hex_bytes(out, bytes);
    } else {
        quoted(out, bytes);
    }
}

/// An untrusted string, `(null)` if there is none.
pub fn untrusted_or_null(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => untrusted(out, bytes),
        None => text(out, "(null)"),
    }
}

/// Bytes in double quotes, as they are.
pub fn quoted(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
}

/// A device number (`major << 20 | minor`) as `%02x:%02x`.
pub fn device(out: &mut Vec<u8>, dev: u32) {
    hex(out, (dev >> 20).into(), 2);
    out.push(b':');
    hex(out, (dev & 0xf_ffff).into(), 2);
}

/// A capability set: `0` or 16 hex digits, as audit_log_cap() in kernel/auditsc.c.
pub fn capabilities(out: &mut Vec<u8>, name: &str, set: u64) {
    text(out, name);
    if set == 0 {
        out.push(b'0');
    } else {
        hex(out, set, 16);
    }
}

/// ` NAME=VALUE`, unsigned decimal; `name` is the literal text before the number.
pub fn field(out: &mut Vec<u8>, name: &str, value: u32) {
    text(out, name);
    decimal(out, value.into());
}

/// ` subj=VALUE` or ` obj=VALUE`; nothing if there is no label. `name` is the literal text before the label.
pub fn label(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    if let Some(value) = value {
        text(out, name);
        out.extend_from_slice(value);
    }
}

/// Appends the name of a record type as auditd writes it.
pub(crate) fn record_type(out: &mut Vec<u8>, kind: abi::RecordType) {
    if let Some(name) = kind.name() {
        return text(out, name);
    }
    text(out, "UNKNOWN[");
    decimal(out, kind.0 as u64);
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn numbers_print_as_the_kernels_formats_do() {
        assert_eq!(with(|o| decimal(o, u64::MAX)), u64::MAX.to_string());
        assert_eq!(with(|o| signed(o, i64::MIN)), i64::MIN.to_string());
        assert_eq!(with(|o| padded(o, 7, 3)), "007");
        assert_eq!(with(|o| padded(o, 1234, 3)), "1234");
        assert_eq!(with(|o| hex(o, 0, 0)), "0");
        assert_eq!(with(|o| hex(o, u64::MAX, 2)), "ffffffffffffffff");
        for shift in 0..64 {
            let value = 0xfedc_ba98_7654_3210_u64.rotate_right(4 * (shift / 4)) >> shift;
            assert_eq!(with(|o| hex(o, value, 0)), format!("{value:x}"));
            assert_eq!(with(|o| hex(o, value, 6)), format!("{value:06x}"));
            assert_eq!(with(|o| decimal(o, value)), value.to_string());
        }
        let bytes: Vec<u8> = (0..=255).collect();
        for len in [0, 1, 3, 4, 5, 256] {
            let expected: String = bytes[..len].iter().map(|b| format!("{b:02X}")).collect();
            assert_eq!(with(|o| hex_bytes(o, &bytes[..len])), expected);
        }
        assert_eq!(with(|o| octal(o, 0, true)), "0");
        assert_eq!(with(|o| octal(o, 0o100644, true)), "0100644");
        assert_eq!(
            with(|o| octal(o, u64::MAX, false)),
            format!("{:o}", u64::MAX)
        );
        assert_eq!(with(|o| device(o, 0x19)), "00:19");
        assert_eq!(with(|o| device(o, 0x103 << 20 | 0x1234)), "103:1234");
        assert_eq!(
            with(|o| capabilities(o, " pp=", 0x3000)),
            " pp=0000000000003000"
        );
        assert_eq!(with(|o| capabilities(o, " pp=", 0)), " pp=0");
    }

    #[test]
    fn untrusted_strings_are_hex_if_any_byte_is_odd() {
        assert_eq!(with(|o| untrusted(o, b"/etc/passwd")), "\"/etc/passwd\"");
        assert_eq!(with(|o| untrusted(o, b"a b")), "612062");
        assert_eq!(with(|o| untrusted(o, b"a\"")), "6122");
        assert_eq!(with(|o| untrusted(o, b"\x7f")), "7F");
        assert_eq!(with(|o| untrusted(o, b"")), "\"\"");
        assert_eq!(with(|o| untrusted_or_null(o, None)), "(null)");
    }
}
