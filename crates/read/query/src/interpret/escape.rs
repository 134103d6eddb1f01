//! Escapes of control characters and those of the shell.

use std::borrow::Cow;

/// Byte between the keys of a rule.
const KEY_SEPARATOR: u8 = 1;

/// Characters that are escaped in interpreted values: `--escape`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// Nothing.
    Raw,
    /// Control characters.
    #[default]
    Tty,
    /// Also characters that the shell would expand or that end a word.
    Shell,
    /// All characters that are special to the shell.
    ShellQuote,
}

impl Escape {
    /// The mode by its name.
    pub fn from_name(name: &str) -> Option<Escape> {
        match name {
            "raw" => Some(Escape::Raw),
            "tty" => Some(Escape::Tty),
            "shell" => Some(Escape::Shell),
            "shell_quote" => Some(Escape::ShellQuote),
            _ => None,
        }
    }

    /// Appends `text`, escaped.
    pub fn write(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Escape::Raw => out.extend_from_slice(text),
            _ => put(text, self.marks(), out),
        }
    }

    fn marks(self) -> &'static [u8] {
        match self {
            Escape::Raw | Escape::Tty => b"",
            Escape::Shell => b"\"'`$\\!()| ",
            Escape::ShellQuote => b"\"'`$\\!()| ;#&*?[]<>{}",
        }
    }
}

/// Appends `text`, its control characters as `\ooo`, with a backslash before `marks`.
fn put(text: &[u8], marks: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            0..=31 => out.extend([
                b'\\',
                b'0' + (byte >> 6),
                b'0' + (byte >> 3 & 7),
                b'0' + (byte & 7),
            ]),
            _ if marks.contains(byte) => out.extend([b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
}

/// `text` escaped.
pub(super) fn text(text: Vec<u8>, escape: Escape) -> Vec<u8> {
    let marks = escape.marks();
    let is_special = |byte: &u8| *byte < 32 || (!marks.is_empty() && marks.contains(byte));
    // As most text is.
    if escape == Escape::Raw || !text.iter().any(is_special) {
        return text;
    }
    let text = &text[..];
    let mut out = Vec::with_capacity(text.len());
    escape.write(text, &mut out);
    out
}

/// Keys, each escaped, with their separators.
pub(super) fn keys(keys: &[u8], escape: Escape) -> Vec<u8> {
    let each: Vec<_> = keys
        .split(|byte| *byte == KEY_SEPARATOR)
        .map(|key| Cow::Owned::<[u8]>(text(key.to_vec(), escape)))
        .collect();
    each.join(&KEY_SEPARATOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_escapes_what_it_says() {
        let bytes = b"a b;\n\x7f";
        assert_eq!(text(bytes.to_vec(), Escape::Raw), bytes);
        assert_eq!(text(bytes.to_vec(), Escape::Tty), b"a b;\\012\x7f");
        assert_eq!(text(bytes.to_vec(), Escape::Shell), b"a\\ b;\\012\x7f");
        assert_eq!(
            text(bytes.to_vec(), Escape::ShellQuote),
            b"a\\ b\\;\\012\x7f"
        );
        assert_eq!(keys(b"k\x01l\n", Escape::Tty), b"k\x01l\\012");
    }
}
