//! Escapes text from a log for a page, so that nothing in a log becomes markup.

/// Appends `text` to `out`, as at most `bytes_max` bytes of HTML, after which it is cut.
///
/// Control characters, and those that change the direction of text or are not seen, are shown as escapes.
pub(super) fn push(out: &mut String, text: &[u8], bytes_max: usize) {
    let start = out.len();
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            let before = out.len();
            push_char(out, character);
            if out.len() - start > bytes_max {
                out.truncate(before);
                out.push('…');
                return;
            }
        }
        for byte in chunk.invalid() {
            if out.len() - start + 4 > bytes_max {
                out.push('…');
                return;
            }
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
}

/// `text` as HTML of at most `bytes_max` bytes.
pub(super) fn text(text: &[u8], bytes_max: usize) -> String {
    let mut out = String::new();
    push(&mut out, text, bytes_max);
    out
}

fn push_char(out: &mut String, character: char) {
    match character {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        '"' => out.push_str("&quot;"),
        '\'' => out.push_str("&#39;"),
        _ if character.is_control() || is_invisible(character) => {
            out.extend(character.escape_unicode());
        }
        _ => out.push(character),
    }
}

/// Marks of direction, of joining and of width, byte order marks, line and paragraph separators, tags.
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_invisible_characters_become_text() {
        assert_eq!(
            text(b"<script>alert('x\")</script>&", 1000),
            "&lt;script&gt;alert(&#39;x&quot;)&lt;/script&gt;&amp;"
        );
        assert_eq!(
            text("a\u{202e}b\u{1b}[m\n".as_bytes(), 1000),
            "a\\u{202e}b\\u{1b}[m\\u{a}"
        );
        assert_eq!(text(b"\xff<", 1000), "\\xff&lt;");
    }

    #[test]
    fn a_cut_never_divides_an_escape() {
        for bytes_max in 0..60 {
            let cut = text(b"<<<\xff\xff&&\x01\"\"\"\"", bytes_max);
            assert!(
                cut.len() <= bytes_max + '…'.len_utf8(),
                "{bytes_max}: {cut}"
            );
            assert!(!cut.contains(['<', '"']), "{cut}");
            let rest = cut
                .replace("&lt;", "")
                .replace("&amp;", "")
                .replace("&quot;", "");
            assert!(!rest.contains('&'), "{cut}");
        }
    }
}
