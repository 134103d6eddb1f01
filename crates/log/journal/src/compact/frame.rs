//! The header of a frame.

/// Size of a header in bytes.
pub(super) const HEAD_BYTES: usize = 28;
const CHECKED_BYTES: usize = HEAD_BYTES - 8;
const MARK: [u8; 2] = *b"TC";
const BEGINS_SEGMENT: u8 = 1;
/// Limit for the payload and for the text of a frame: more than a journal ever writes at once.
pub(super) const FRAME_BYTES_MAX: u32 = 256 << 20;

/// The header of a frame, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) begins_segment: bool,
    /// Size of the payload in bytes.
    pub(super) stored: u32,
    /// Size of the text that the payload decompresses to, in bytes.
    pub(super) text: u32,
    /// Earliest and latest event time in the text, in seconds since 1970; 0 and `u32::MAX` if it
    /// has none.
    pub(super) first_s: u32,
    pub(super) last_s: u32,
    check: [u8; 8],
}

impl FrameHeader {
    /// Makes the header of a `payload` that was compressed from `text`; `None` if either is too
    /// large.
    pub(super) fn of(begins_segment: bool, text: &[u8], payload: &[u8]) -> Option<Self> {
        let size = |bytes: &[u8]| {
            let size = u32::try_from(bytes.len()).ok();
            size.filter(|&size| size <= FRAME_BYTES_MAX)
        };
        let (first_s, last_s) = times(text);
        let mut head = FrameHeader {
            begins_segment,
            stored: size(payload)?,
            text: size(text)?,
            first_s,
            last_s,
            check: [0; 8],
        };

        head.check = head.check_of(payload);
        Some(head)
    }

    pub(super) fn to_bytes(self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..2].copy_from_slice(&MARK);
        bytes[2] = if self.begins_segment {
            BEGINS_SEGMENT
        } else {
            0
        };

        let numbers = [self.stored, self.text, self.first_s, self.last_s];
        for (place, number) in bytes[4..CHECKED_BYTES].chunks_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }

        bytes[CHECKED_BYTES..].copy_from_slice(&self.check);
        bytes
    }

    /// Decodes the header at the start of `bytes`; `None` if there is no valid one.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..HEAD_BYTES)?;
        let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| bytes[at + i]));
        let mut check = [0; 8];
        check.copy_from_slice(&bytes[CHECKED_BYTES..]);
        let head = FrameHeader {
            begins_segment: bytes[2] == BEGINS_SEGMENT,
            stored: number(4),
            text: number(8),
            first_s: number(12),
            last_s: number(16),
            check,
        };

        let is_head = bytes[..2] == MARK && bytes[2] <= BEGINS_SEGMENT && bytes[3] == 0;

        // The sizes bound what a reader allocates before it can check the sum.
        let fits = head.stored <= FRAME_BYTES_MAX && head.text <= FRAME_BYTES_MAX;
        (is_head && fits).then_some(head)
    }

    fn check_of(&self, payload: &[u8]) -> [u8; 8] {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.to_bytes()[..CHECKED_BYTES]);
        hasher.update(payload);
        let mut check = [0; 8];
        check.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        check
    }

    /// Whether the checksum matches this header and `payload`.
    pub(super) fn holds(&self, payload: &[u8]) -> bool {
        self.check_of(payload) == self.check
    }
}

/// Earliest and latest time of the `msg=audit(SECONDS.…` stamps in `text`.
fn times(text: &[u8]) -> (u32, u32) {
    let mut range: Option<(u32, u32)> = None;
    for at in memchr::memmem::find_iter(text, b"msg=audit(") {
        let digits = text[at + 10..].iter().take(10);
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        let time = digits.fold(0u64, |time, digit| time * 10 + u64::from(digit - b'0'));
        let time = u32::try_from(time).unwrap_or(u32::MAX);
        range = Some(match range {
            Some((first, last)) => (first.min(time), last.max(time)),
            None => (time, time),
        });
    }

    range.unwrap_or((0, u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_what_was_written_and_any_flipped_bit_shows() {
        let text = b"type=A msg=audit(1700000005.1:1): a\ntype=B msg=audit(1700000002.9:2): b\n";
        let payload = b"payload";
        let head = FrameHeader::of(true, text, payload).unwrap();
        assert_eq!((head.first_s, head.last_s), (1_700_000_002, 1_700_000_005));
        let bytes = head.to_bytes();
        assert_eq!(FrameHeader::parse(&bytes), Some(head));
        assert!(head.holds(payload));
        for bit in 0..HEAD_BYTES * 8 {
            let mut wrong = bytes;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!FrameHeader::parse(&wrong).is_some_and(|head| head.holds(payload)));
        }
        assert!(!head.holds(b"paylaod"));
        assert_eq!(times(b"no stamp"), (0, u32::MAX));
    }
}
