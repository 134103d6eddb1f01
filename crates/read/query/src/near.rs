//! Places of bytes that are mostly near: a call of memchr takes longer than a few bytes.

/// Words of eight bytes that are compared as numbers before memchr takes over.
const EIGHTS: usize = 2;

/// Position of the first `byte`.
#[inline]
pub(crate) fn near(byte: u8, text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH_BITS: u64 = ONES << 7;
    let (eights, _) = text.as_chunks::<8>();
    for (number, eight) in eights.iter().take(EIGHTS).enumerate() {
        let differences = u64::from_le_bytes(*eight) ^ (ONES * u64::from(byte));
        // The lowest of these bits is that of the first byte without a difference.
        let equal = differences.wrapping_sub(ONES) & !differences & HIGH_BITS;
        if equal != 0 {
            return Some(8 * number + equal.trailing_zeros() as usize / 8);
        }
    }

    let start = 8 * eights.len().min(EIGHTS);
    memchr::memchr(byte, &text[start..]).map(|at| start + at)
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn the_first_of_a_byte_is_found_wherever_it_stands() {
        for length in 0..40 {
            for at in 0..=length {
                let mut text = vec![b'='.wrapping_add(at as u8).max(b'>'); length];
                text[at.min(length)..].fill(b'=');
                assert_eq!(near(b'=', &text), memchr::memchr(b'=', &text));
                text.iter_mut().for_each(|byte| *byte ^= 0xbd);
                assert_eq!(near(0x80, &text), memchr::memchr(0x80, &text));
            }
        }
    }
}
