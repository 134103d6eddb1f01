//! How texts of a log are printed, so that they cannot act on a terminal or a shell.

/// Form of control characters, as of aureport's `--escape`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// As they are.
    Raw,
    /// As `\ooo`.
    #[default]
    Tty,
    /// As `\ooo`, and a backslash before what a shell takes for more than a letter.
    Shell,
    /// As [`Escape::Shell`], of more characters.
    ShellQuote,
}

/// What a shell takes for more than a letter, as of aureport.
const SHELL: &[u8] = b"\"'`$\\!()| ";
const SHELL_QUOTE: &[u8] = b"\"'`$\\!()| ;#&*?[]<>{}";

/// Appends `text`.
pub fn escape(text: &[u8], form: Escape, out: &mut Vec<u8>) {
    if form == Escape::Raw || (form == Escape::Tty && text.iter().all(|byte| *byte >= 32)) {
        out.extend_from_slice(text);
        return;
    }
    let special = match form {
        Escape::Shell => SHELL,
        Escape::ShellQuote => SHELL_QUOTE,
        _ => b"",
    };
    for byte in text {
        match byte {
            0..=31 => octal(*byte, out),
            _ if special.contains(byte) => out.extend([b'\\', *byte]),
            _ => out.push(*byte),
        }
    }
}

fn octal(byte: u8, out: &mut Vec<u8>) {
    out.extend([
        b'\\',
        b'0' + (byte >> 6),
        b'0' + (byte >> 3 & 7),
        b'0' + (byte & 7),
    ]);
}

/// Names of the single bytes that keys of a terminal send.
const KEYS: [&str; 26] = [
    "^A", "^B", "^C", "^D", "^E", "^F", "^G", "backspace", "tab", "nl", "^K", "^L", "ret", "^N",
    "^O", "^P", "^Q", "^R", "^S", "^T", "^U", "^V", "^W", "^X", "^Y", "^Z",
];

/// Sequences of keys, of which the first that fits counts.
fn key_at(bytes: &[u8]) -> Option<(usize, &str)> {
    match bytes {
        [byte @ 1..=26, ..] => Some((1, KEYS[usize::from(*byte) - 1])),
        [0x7f, ..] => Some((1, "backspace")),
        [b' '..=0x7e | 0xa0.., ..] => None,
        _ => super::keys::SEQUENCES
            .iter()
            .find(|(sequence, _)| bytes.starts_with(sequence))
            .map(|(sequence, name)| (sequence.len(), *name)),
    }
}

/// Appends what was typed on a terminal, whose bytes the log has in hex.
pub(super) fn keystrokes(value: &[u8], out: &mut Vec<u8>) {
    if !value.iter().all(u8::is_ascii_hexdigit) {
        out.extend_from_slice(value);
        return;
    }
    let Some(_) = crate::number::unescape(value) else {
        out.extend_from_slice(b"conversion error(");
        out.extend_from_slice(value);
        out.push(b')');
        return;
    };
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    let bytes: Vec<u8> = value
        .chunks_exact(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect();
    let (mut at, mut is_text) = (0, false);
    while at < bytes.len() {
        let (length, name) = match key_at(&bytes[at..]) {
            Some((length, name)) => (length, Some(name)),
            None => (1, None),
        };
        if is_text && name.is_some() {
            out.push(b'"');
        }
        if at > 0 && (name.is_some() || !is_text) {
            out.push(b',');
        }
        match name {
            Some(name) => out.extend_from_slice(format!("<{name}>").as_bytes()),
            None => {
                if !is_text {
                    out.push(b'"');
                }
                printable(bytes[at], out);
            }
        }
        is_text = name.is_none();
        at += length;
    }
    if is_text {
        out.push(b'"');
    }
}

fn printable(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\\' | b'"' => out.extend([b'\\', byte]),
        0x20..=0x7e => out.push(byte),
        _ => octal(byte, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &[u8]) -> String {
        let mut out = Vec::new();
        keystrokes(value, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn keystrokes_have_names_or_are_quoted() {
        assert_eq!(of(b"6C730D03"), "\"ls\",<ret>,<^C>");
        assert_eq!(of(b"1B5B41"), "<up>");
        assert_eq!(of(b"225C80"), "\"\\\"\\\\\\200\"");
        assert_eq!(of(b"no hex"), "no hex");
        assert_eq!(of(b"4"), "conversion error(4)");
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let mut out = Vec::new();
        escape(b"a\x1b b", Escape::Tty, &mut out);
        escape(b"a b", Escape::Shell, &mut out);
        assert_eq!(out, b"a\\033 ba\\ b");
    }
}
