//! A walk through the text of a record, from left to right as ausearch goes.

use crate::number::{unescape, unsigned, OutOfRange};
use memchr::{memchr, memchr_iter, memmem};
use std::borrow::Cow;

/// A record lacks a field that ausearch requires, or a value does not end as it expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl From<OutOfRange> for Malformed {
    fn from(_: OutOfRange) -> Malformed {
        Malformed
    }
}

/// A text value, decoded if it was in hex.
pub(crate) type Text<'e> = Cow<'e, [u8]>;

/// Text of a record, and the place from which fields are looked for.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'e> {
    pub(crate) text: &'e [u8],
    pub(crate) at: usize,
}

impl<'e> Walk<'e> {
    pub(crate) fn new(text: &'e [u8]) -> Walk<'e> {
        Walk { text, at: 0 }
    }

    /// Index behind the next `name`.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        find_from(self.text, self.at, name)
    }

    /// Index behind the next `name`.
    ///
    /// # Errors
    /// There is no such field.
    pub(crate) fn require(&self, name: &[u8]) -> Result<usize, Malformed> {
        self.find(name).ok_or(Malformed)
    }

    /// The word at `from`, which a blank ends. Goes on at the blank.
    pub(crate) fn word(&mut self, from: usize) -> Result<&'e [u8], Malformed> {
        self.until(from, b' ')
    }

    /// The text from `from` to the next `end`, where the walk goes on.
    pub(crate) fn until(&mut self, from: usize, end: u8) -> Result<&'e [u8], Malformed> {
        let length = memchr(end, &self.text[from..]).ok_or(Malformed)?;
        self.at = from + length;
        Ok(&self.text[from..self.at])
    }

    /// The word at `from`, which may end the record. Then the walk goes on at the word.
    pub(crate) fn last_word(&mut self, from: usize) -> &'e [u8] {
        match self.word(from) {
            Ok(word) => word,
            Err(Malformed) => {
                self.at = from;
                &self.text[from..]
            }
        }
    }

    /// The number at `from`, which a blank ends. ausearch keeps 32 bits.
    pub(crate) fn number(&mut self, from: usize) -> Result<u32, Malformed> {
        Ok(unsigned(self.word(from)?, 10)? as u32)
    }

    /// The number at `from`, which may end the record.
    pub(crate) fn last_number(&mut self, from: usize) -> Result<u32, Malformed> {
        Ok(unsigned(self.last_word(from), 10)? as u32)
    }

    /// The number of a field that need not be there.
    pub(crate) fn optional_number(&mut self, name: &[u8]) -> Result<Option<u32>, Malformed> {
        match self.find(name) {
            Some(from) => self.number(from).map(Some),
            None => Ok(None),
        }
    }

    /// The value at `from`: quoted, which moves the walk, or in hex.
    pub(crate) fn value(&mut self, from: usize) -> Result<Option<Text<'e>>, Malformed> {
        if self.text.get(from) == Some(&b'"') {
            return self
                .until(from + 1, b'"')
                .map(|text| Some(Cow::Borrowed(text)));
        }
        Ok(unescape(&self.text[from..]).map(Cow::Owned))
    }

    /// Like [`Walk::value`], but takes a value that is neither quoted nor hex as it is, up to a blank.
    pub(crate) fn value_or_legacy(&mut self, from: usize) -> Result<Option<Text<'e>>, Malformed> {
        if self.text.get(from) == Some(&b'"') {
            return self.value(from);
        }
        let rest = &self.text[from..];
        let length = memchr(b' ', rest).unwrap_or(rest.len());
        self.at = from + length;
        if rest[..length].iter().all(u8::is_ascii_hexdigit) {
            Ok(unescape(rest).map(Cow::Owned))
        } else {
            Ok(Some(Cow::Borrowed(&rest[..length])))
        }
    }
}

/// Index behind the first `name` at or after `from`.
pub(crate) fn find_from(text: &[u8], from: usize, name: &[u8]) -> Option<usize> {
    let rest = text.get(from..)?;
    let at = match name.split_last() {
        // Names of fields. There are few equals signs in a record: this is faster than a search.
        Some((b'=', before @ [.., last])) if *last != b'=' => {
            // Most differ in the last letter.
            let is_name =
                |end: &usize| *end > 0 && rest[*end - 1] == *last && rest[..*end].ends_with(before);
            memchr_iter(b'=', rest).find(is_name)? + 1
        }
        _ => memmem::find(rest, name)? + name.len(),
    };

    Some(from + at)
}
