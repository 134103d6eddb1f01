//! A cursor in a text. It knows its position, so that errors can name it.

use super::{hex_byte, is_hex, TextError};

/// Space for the bytes that the text has in hex. Half the length of the text is always enough.
///
/// Typed records borrow from the line what they can, and decoded bytes from here.
#[derive(Debug)]
pub struct Scratch<'a>(&'a mut [u8]);

impl<'a> Scratch<'a> {
    /// Uses `room` as space; half the length of the line is always enough.
    pub fn new(room: &'a mut [u8]) -> Scratch<'a> {
        Scratch(room)
    }

    /// Decodes hex digits, which the caller has checked; `None` if the space is too small.
    fn decode(&mut self, digits: &[u8]) -> Option<&'a [u8]> {
        let room = core::mem::take(&mut self.0);
        let (bytes, rest) = room.split_at_mut_checked(digits.len() / 2)?;
        self.0 = rest;
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_byte(pair)?;
        }
        Some(bytes)
    }
}

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
    /// Position of `text` in the whole line.
    base: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8], base: usize) -> Cursor<'a> {
        Cursor { text, at: 0, base }
    }

    pub(super) fn at(&self) -> usize {
        self.base + self.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn error(&self, expected: &'static str) -> TextError {
        TextError {
            at: self.at(),
            expected,
        }
    }

    fn left(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    pub(super) fn rest(&self) -> (&'a [u8], usize) {
        (self.left(), self.at())
    }

    pub(super) fn skip(&mut self, literal: &str) -> bool {
        let found = self.left().starts_with(literal.as_bytes());
        if found {
            self.at += literal.len();
        }
        found
    }

    pub(super) fn literal(&mut self, literal: &'static str) -> Result<(), TextError> {
        if self.skip(literal) {
            Ok(())
        } else {
            Err(self.error(literal))
        }
    }

    pub(super) fn end(&self) -> Result<(), TextError> {
        if self.is_empty() {
            Ok(())
        } else {
            Err(self.error("the end of the record"))
        }
    }

    /// Bytes up to a blank or the end, at least one.
    pub(super) fn token(&mut self, expected: &'static str) -> Result<&'a [u8], TextError> {
        let left = self.left();
        let len = left
            .iter()
            .position(|&byte| byte == b' ')
            .unwrap_or(left.len());
        if len == 0 {
            return Err(self.error(expected));
        }
        self.at += len;
        Ok(&left[..len])
    }

    /// The bytes up to the last occurrence of `end`.
    pub(super) fn until_last(&mut self, end: &'static str) -> Result<&'a [u8], TextError> {
        let left = self.left();
        let place = left
            .windows(end.len())
            .rposition(|window| window == end.as_bytes());
        let place = place.ok_or(self.error(end))?;
        self.at += place;
        Ok(&left[..place])
    }

    /// A token that is UTF-8.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<&'a str, TextError> {
        let at = self.at();
        core::str::from_utf8(self.token(expected)?).map_err(|_| TextError { at, expected })
    }

    /// An unsigned number: as many digits of the base as there are.
    pub(super) fn number<T: TryFrom<u64>>(
        &mut self,
        base: u32,
        expected: &'static str,
    ) -> Result<T, TextError> {
        let error = self.error(expected);
        let mut digits = self.left().iter();
        let mut value = 0_u64;
        let mut len = 0;
        while let Some(digit) = digits
            .next()
            .and_then(|&byte| char::from(byte).to_digit(base))
        {
            let longer = value.checked_mul(base.into());
            value = longer
                .and_then(|value| value.checked_add(digit.into()))
                .ok_or(error)?;
            len += 1;
        }
        if len == 0 {
            return Err(error);
        }

        self.at += len;
        T::try_from(value).map_err(|_| error)
    }

    /// A decimal number, perhaps with a minus sign.
    pub(super) fn signed<T: TryFrom<i64>>(
        &mut self,
        expected: &'static str,
    ) -> Result<T, TextError> {
        let error = self.error(expected);
        let negative = self.skip("-");
        let size: u64 = self.number(10, expected)?;
        let value = i128::from(size) * if negative { -1 } else { 1 };
        let value = i64::try_from(value).map_err(|_| error)?;
        T::try_from(value).map_err(|_| error)
    }

    /// An untrusted string: `(null)`, in quotes, or in hex.
    pub(super) fn untrusted_or_null(
        &mut self,
        scratch: &mut Scratch<'a>,
    ) -> Result<Option<&'a [u8]>, TextError> {
        if self.skip("(null)") {
            return Ok(None);
        }
        self.untrusted(scratch).map(Some)
    }

    /// An untrusted string: in quotes, or in hex.
    pub(super) fn untrusted(&mut self, scratch: &mut Scratch<'a>) -> Result<&'a [u8], TextError> {
        let error = self.error("text in double quotes or upper-case hex");
        if self.skip("\"") {
            let left = self.left();
            let len = left.iter().position(|&byte| byte == b'"').ok_or(error)?;
            self.at += len + 1;
            return Ok(&left[..len]);
        }

        let digits = self.token(error.expected)?;
        if !is_hex(digits) {
            return Err(error);
        }
        scratch.decode(digits).ok_or(error)
    }

    /// Bytes in hex, at least one.
    pub(super) fn bytes(&mut self, scratch: &mut Scratch<'a>) -> Result<&'a [u8], TextError> {
        let error = self.error("upper-case hex");
        let digits = self.token(error.expected)?;
        if !is_hex(digits) {
            return Err(error);
        }
        scratch.decode(digits).ok_or(error)
    }
}
