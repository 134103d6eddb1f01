//! Escapes of unit names: unit_name_escape() and cg_escape() of systemd.

use std::borrow::Cow;

/// A name without the `_` that systemd puts before names that the kernel or another part of a path could have
/// (cg_unescape(), src/basic/cgroup-util.c).
pub(crate) fn without_mark(name: &[u8]) -> &[u8] {
    name.strip_prefix(b"_").unwrap_or(name)
}

/// Undoes `\xNN`, but leaves `-` for `/` in instances of templates: names of machines contain
/// neither (unit_name_unescape(), src/basic/unit-name.c). An invalid escape stays as it is.
pub(crate) fn unescaped(name: &[u8]) -> Cow<'_, [u8]> {
    if !name.contains(&b'\\') {
        return Cow::Borrowed(name);
    }

    let mut text = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&first, after)) = rest.split_first() {
        match hex_escape(rest) {
            Some(byte) => {
                text.push(byte);
                rest = &rest[4..];
            }
            None => {
                text.push(first);
                rest = after;
            }
        }
    }

    Cow::Owned(text)
}

/// The byte of a `\xNN` at the start of `text`.
fn hex_escape(text: &[u8]) -> Option<u8> {
    let [b'\\', b'x', high, low, ..] = *text else {
        return None;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_escapes_are_undone() {
        let cases: [(&[u8], &[u8]); 5] = [
            (b"debian", b"debian"),
            (b"debian\\x2dtest", b"debian-test"),
            (b"a\\x2", b"a\\x2"),
            (b"a\\xzz\\x41", b"a\\xzzA"),
            (b"\\", b"\\"),
        ];
        for (name, expected) in cases {
            assert_eq!(&*unescaped(name), expected);
        }
    }
}
