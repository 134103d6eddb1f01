//! A record as names and values, one after the other, without memory of its own.

use crate::near::near;
use crate::number::unescape;
use crate::walk::Text;
use memchr::memchr_iter;
use std::borrow::Cow;

/// A field of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'e> {
    /// Name of the field.
    pub(crate) name: &'e [u8],
    /// Value without its quotes, and without the punctuation of messages behind it.
    pub(crate) value: &'e [u8],
    pub(crate) is_quoted: bool,
    /// Index in the record at which the value begins, with its quote.
    pub(crate) at: usize,
    before: &'e [u8],
}

/// The fields of a record behind its head. Those of `msg='…'` come like the others.
pub(crate) struct Fields<'e> {
    text: &'e [u8],
    at: usize,
}

impl<'e> Fields<'e> {
    /// The fields of a line without its interpretations.
    pub(crate) fn of(text: &'e [u8]) -> Fields<'e> {
        // The first parenthesis is mostly that of the time.
        let start = &text[..text.len().min(400)];
        let mut ends = memchr_iter(b')', start);
        let head = ends.find(|end| start[*end..].starts_with(b"): "));
        Fields {
            text,
            at: head.map_or(0, |end| end + 2),
        }
    }
}

impl<'e> Iterator for Fields<'e> {
    type Item = Field<'e>;

    fn next(&mut self) -> Option<Field<'e>> {
        loop {
            let text = self.text;
            let equals = self.at + near(b'=', &text[self.at..])?;
            let before = text[self.at..equals].iter();
            let blank = before
                .rev()
                .position(|byte| BEFORE_NAMES[usize::from(*byte)]);
            let name_start = blank.map_or(self.at, |length| equals - length);
            let at = equals + 1;
            // The text of a message has fields of its own.
            if text.get(at) == Some(&b'\'') {
                self.at = at + 1;
                continue;
            }
            let (value, is_quoted, next) = value_at(text, at);
            self.at = next;
            if name_start < equals {
                return Some(Field {
                    name: &text[name_start..equals],
                    value,
                    is_quoted,
                    at,
                    before: &text[..name_start],
                });
            }
        }
    }
}

/// The value that begins at `at`: without its quotes or the punctuation of messages, whether it has quotes, and the index
/// behind it.
#[inline]
fn value_at(text: &[u8], at: usize) -> (&[u8], bool, usize) {
    let rest = &text[at..];
    match rest.strip_prefix(b"\"") {
        Some(quoted) => {
            let end = near(b'"', quoted).unwrap_or(quoted.trim_ascii_end().len());
            (&quoted[..end], true, (at + end + 2).min(text.len()))
        }
        None => {
            let end = near(b' ', rest).unwrap_or(rest.len());
            (trimmed(&rest[..end]), false, at + end)
        }
    }
}

/// Bytes that stand before a name, and are not part of it.
const BEFORE_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < b" '(,\t\n".len() {
        table[b" '(,\t\n"[at] as usize] = true;
        at += 1;
    }
    table
};

/// A word without what ends messages.
fn trimmed(word: &[u8]) -> &[u8] {
    let mut word = word;
    while let [rest @ .., b'\'' | b',' | b'\n' | b')'] = word {
        if matches!(word, b"(null)" | b"(none)") {
            break;
        }
        word = rest;
    }
    word
}

impl<'e> Field<'e> {
    /// The field `name` whose value begins at `at`, and the index behind it.
    pub(crate) fn at(text: &'e [u8], name: &'static [u8], at: usize) -> (Field<'e>, usize) {
        let (value, is_quoted, next) = value_at(text, at);
        let field = Field {
            name,
            value,
            is_quoted,
            at,
            before: b"",
        };
        (field, next)
    }

    /// Whether `word` stands before the name.
    pub(crate) fn follows(&self, word: &[u8]) -> bool {
        self.before.ends_with(word)
    }

    /// A decimal number of 32 bits, in which -1 may be written with its sign.
    pub(crate) fn number(&self) -> Option<u32> {
        let digits = match self.value {
            b"-1" => return Some(u32::MAX),
            [b'+', digits @ ..] => digits,
            digits => digits,
        };
        let add = |number: u32, digit: &u8| {
            let digit = digit.is_ascii_digit().then(|| u32::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        };
        if digits.is_empty() {
            return None;
        }
        digits.iter().try_fold(0, add)
    }

    /// A number of 32 bits in hex.
    pub(crate) fn hex(&self) -> Option<u32> {
        u32::from_str_radix(std::str::from_utf8(self.value).ok()?, 16).ok()
    }

    /// The value as it is; `None` if it says that there is none.
    pub(crate) fn word(&self) -> Option<&'e [u8]> {
        (!matches!(self.value, b"" | b"?" | b"(null)")).then_some(self.value)
    }

    /// The text that the value is, or encodes; `None` if it says that there is none.
    pub(crate) fn text(&self) -> Option<Text<'e>> {
        text(self.value, self.is_quoted)
    }

    /// The name of a file. An abstract socket begins with a zero, which does not count.
    pub(crate) fn file(&self) -> Option<Text<'e>> {
        match self.value {
            [b'0', b'0', rest @ ..] if !self.is_quoted => text(rest, false),
            _ => self.text(),
        }
    }

    /// Whether the value is an absolute path.
    pub(crate) fn is_absolute(&self) -> bool {
        self.text().is_some_and(|text| text.starts_with(b"/"))
    }
}

/// The text of a value: in quotes, in hex, or a word. `None` for a value that says that there is none.
fn text<'e>(value: &'e [u8], is_quoted: bool) -> Option<Text<'e>> {
    if is_quoted {
        return Some(Cow::Borrowed(value));
    }
    match value {
        b"" | b"(null)" | b"?" => None,
        _ if value.len() >= 2 && value.iter().all(u8::is_ascii_hexdigit) => {
            unescape(value).map(Cow::Owned)
        }
        _ => Some(Cow::Borrowed(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_from_records_and_messages() {
        let text =
            b"type=USER_LOGIN msg=audit(1.2:3): pid=1 old auid=5 msg='op=login acct=\"a b\" \
                     (hostname=?, addr=::1, res=failed)' key=(null)";
        let fields: Vec<_> = Fields::of(text)
            .map(|field| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (text(field.name), text(field.value))
            })
            .collect();
        let wanted = [
            ("pid", "1"),
            ("auid", "5"),
            ("op", "login"),
            ("acct", "a b"),
            ("hostname", "?"),
            ("addr", "::1"),
            ("res", "failed"),
            ("key", "(null)"),
        ];
        let wanted = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(fields, wanted);
    }
}
