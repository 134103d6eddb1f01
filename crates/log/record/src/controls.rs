//! Control characters in text that others sent, which must not reach a terminal.

/// Appends `bytes` with control characters as `\ooo`, one octal number for each of their bytes, as
/// `ausearch -i` shows them: C0 except TAB, DEL, and C1 both as UTF-8 and as single bytes, of which
/// 0x9b begins an escape sequence. Bytes in `kept` stay. All other text stays as it is.
pub fn without_controls(out: &mut Vec<u8>, bytes: &[u8], kept: &[u8]) {
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return out.extend_from_slice(bytes);
    }

    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let text = character.encode_utf8(&mut buffer).as_bytes();
            match character {
                '\t' => out.push(b'\t'),
                _ if character.is_control() && !kept.contains(&text[0]) => octal(out, text),
                _ => out.extend_from_slice(text),
            }
        }
        for &byte in chunk.invalid() {
            match byte {
                0x80..=0x9f => octal(out, &[byte]),
                _ => out.push(byte),
            }
        }
    }
}

fn octal(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        let digit = |shift: u8| b'0' + (byte >> shift & 7);
        out.extend_from_slice(&[b'\\', digit(6), digit(3), digit(0)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        without_controls(&mut out, bytes, b"\n");
        out
    }

    #[test]
    fn no_control_is_left_and_other_text_stays() {
        let all: Vec<u8> = (0..=255).collect();
        let left = shown(&all);
        let is_control =
            |byte: &u8| matches!(byte, 0..=0x1f | 0x7f..=0x9f) && !b"\t\n".contains(byte);
        assert!(!left.iter().any(is_control), "{left:x?}");
        assert_eq!(shown(b"\x1b[2J\x7f\x9b1m"), br"\033[2J\177\2331m");
        assert_eq!(shown("\u{9b}31m".as_bytes()), br"\302\23331m");
        for text in ["a\tb", "naïve — ÀÛ", "日本", "a\nb", r"\033"] {
            assert_eq!(shown(text.as_bytes()), text.as_bytes());
        }
        // Latin-1, and a character that is cut.
        assert_eq!(shown(b"\xe9t\xe9 \xe2\x80"), b"\xe9t\xe9 \xe2\\200");
    }
}
