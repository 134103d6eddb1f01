//! Splits a body into its fields, in order and without loss.

/// One field or bare word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Number of blanks before it.
    pub blanks: usize,
    /// Text before `=`; empty for a bare word, whose text is `value`.
    pub name: &'a [u8],
    /// Whether there is an `=`.
    pub has_value: bool,
    /// Text after `=`, quotes included.
    pub value: &'a [u8],
}

impl<'a> Field<'a> {
    /// The value without its quotes, if it has quotes.
    pub fn quoted(&self) -> Option<&'a [u8]> {
        match self.value {
            [b'"', inner @ .., b'"'] | [b'\'', inner @ .., b'\''] => Some(inner),
            _ => None,
        }
    }

    /// Whether the field's end does not depend on what follows the blank behind it: not so for text between single
    /// quotes, an open quote or brace, and operations of several words.
    pub(crate) fn ends_by_itself(&self) -> bool {
        let is_closed = match self.value {
            [b'"', tail @ ..] => tail.contains(&b'"'),
            [b'{', tail @ ..] => tail.contains(&b'}'),
            [b'\'', ..] => false,
            _ => true,
        };
        self.has_value && is_closed && !is_phrase(self.name)
    }
}

/// Iterator over the fields of a body. Blanks at its end are returned as a last bare word without text.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// Splits `body` into fields, which are separated by blanks. A value in double quotes ends at the next double quote,
/// one in single quotes (`msg='…'`) at the last single quote of the body, one in braces at the next closing brace.
/// `op=` and `text=` without quotes go on up to the next field.
pub fn fields(body: &[u8]) -> Fields<'_> {
    Fields { rest: body }
}

impl<'a> Fields<'a> {
    /// The text behind the fields that were returned.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        if self.rest.is_empty() {
            return None;
        }

        let blanks = self.rest.iter().take_while(|&&byte| byte == b' ').count();
        let text = &self.rest[blanks..];
        let mark = memchr::memchr2(b' ', b'=', text).unwrap_or(text.len());
        let has_value = text.get(mark) == Some(&b'=');
        let (name, value_at) = if has_value {
            (&text[..mark], mark + 1)
        } else {
            (&text[..0], 0)
        };

        let end = match has_value {
            true if is_phrase(name) => value_at + phrase_len(&text[value_at..]),
            true => value_at + value_len(&text[value_at..]),
            false => mark,
        };
        self.rest = &text[end..];

        Some(Field {
            blanks,
            name,
            has_value,
            value: &text[value_at..end],
        })
    }
}

/// Whether programs write more than one word after this name without quotes: `op=adding user to group acct=…` of
/// shadow, `text=…` of auditctl -m.
fn is_phrase(name: &[u8]) -> bool {
    name == b"op" || name == b"text"
}

/// Length of the value at the start of `text` and of the words behind it that are no fields.
fn phrase_len(text: &[u8]) -> usize {
    let mut end = value_len(text);
    if matches!(text, [b'"' | b'\'', ..]) {
        return end;
    }

    loop {
        let blanks = text[end..].iter().take_while(|&&byte| byte == b' ').count();
        let word = &text[end + blanks..];
        let length = word_len(word);
        if length == 0 || word[..length].contains(&b'=') {
            return end;
        }
        end += blanks + length;
    }
}

fn word_len(text: &[u8]) -> usize {
    memchr::memchr(b' ', text).unwrap_or(text.len())
}

/// Length of the value at the start of `text`, including what follows its closing quote up to the next blank.
fn value_len(text: &[u8]) -> usize {
    let close = match text {
        [b'"', tail @ ..] => memchr::memchr(b'"', tail),
        [b'\'', tail @ ..] => memchr::memrchr(b'\'', tail),
        [b'{', tail @ ..] => memchr::memchr(b'}', tail),
        _ => None,
    };
    let quoted = close.map_or(0, |close| close + 2);
    quoted + word_len(&text[quoted..])
}

/// Appends fields exactly as they were in their body.
pub fn write_fields<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = Field<'a>>) {
    for field in fields {
        out.extend(core::iter::repeat_n(b' ', field.blanks));
        out.extend_from_slice(field.name);
        if field.has_value {
            out.push(b'=');
        }
        out.extend_from_slice(field.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(body: &str) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields(body.as_bytes())
            .map(|field| (text(field.name), text(field.value)))
            .collect()
    }

    #[test]
    fn quotes_and_braces_keep_blanks_inside_a_value() {
        let body =
            "pid=1 msg='text=quote \"x\" it's res=ok' SADDR={ saddr_fam=inet } a=\"b c\" avc:";
        let expected = [
            ("pid", "1"),
            ("msg", "'text=quote \"x\" it's res=ok'"),
            ("SADDR", "{ saddr_fam=inet }"),
            ("a", "\"b c\""),
            ("", "avc:"),
        ];
        let expected: Vec<_> = expected
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        assert_eq!(pairs(body), expected);
    }

    #[test]
    fn an_operation_of_several_words_is_one_value() {
        for (body, value) in [
            ("op=adding user to group acct=\"m\"", "adding user to group"),
            ("op=adding user  id=1004", "adding user"),
            ("op=login id=1000", "login"),
            ("op=y", "y"),
            ("op=\"a b\" c", "\"a b\""),
            ("text=hello from auditctl exe=\"/x\"", "hello from auditctl"),
            ("op= x=1", ""),
        ] {
            assert_eq!(pairs(body)[0].1, value, "{body}");
        }
    }

    #[test]
    fn any_bytes_come_back_the_same() {
        for body in [
            "",
            " ",
            "  a=b  c ",
            "='",
            "a=\"",
            "a='b",
            "x={",
            "a=\"b\"c d",
            "===",
            "netlabel: auid=0",
            "op=a  b  c=1",
            "op= ",
            "text=a ",
        ] {
            let mut out = Vec::new();
            write_fields(&mut out, fields(body.as_bytes()));
            assert_eq!(String::from_utf8(out).as_deref(), Ok(body));
        }
    }
}
