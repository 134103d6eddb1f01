//! Where the interpretations of ENRICHED begin in a line: behind the byte 0x1d, or behind what is left of it.
//!
//! Forwarders escape or drop control characters: rsyslog writes `#035`, others `\x1d`, `^]`, a blank or nothing. Names in
//! upper case at the end of a line are interpretations all the same.

use crate::{Dialect, SEPARATOR};
use memchr::{memchr, memchr_iter, memmem, memrchr};

/// What stands in place of the byte 0x1d, in the order in which it is looked for.
const REMAINS: [&[u8]; 8] = [
    b"#035",
    b"\\x1d",
    b"\\x1D",
    b"\\035",
    b"\\u001d",
    b"^]",
    b"\xe2\x90\x9d",
    b"\xef\xbf\xbd",
];

/// Index at which the record of `line` ends, and index at which its interpretations begin. `line` has no newline.
pub(crate) fn interpretations(line: &[u8], dialect: Dialect) -> Option<(usize, usize)> {
    match memchr(SEPARATOR, line) {
        Some(at) => Some((at, at + 1)),
        None if dialect.is_compat() => None,
        None => without_separator(line),
    }
}

/// [`interpretations`] of a line that has no byte 0x1d.
pub(crate) fn without_separator(line: &[u8]) -> Option<(usize, usize)> {
    let (mut start, last) = match line.last()? {
        // The text of a message ends so.
        b'\'' => return None,
        // An address has blanks in it.
        b'}' => match memmem::rfind(line, b"SADDR={") {
            Some(at) => (at, at),
            None => return None,
        },
        _ => (line.len(), line.len()),
    };

    if start < line.len() {
        if let Some(found) = boundary(&line[..last], &line[last..]) {
            return Some(found);
        }
    }

    if start == line.len() && ends_with_field(line) {
        return None;
    }

    // Words in upper case, from the last one on.
    while start > 0 {
        let end = if start == line.len() {
            start
        } else {
            start - 1
        };
        let word_start = memrchr(b' ', &line[..end]).map_or(0, |blank| blank + 1);
        match name(&line[word_start..end]) {
            Some(0) => start = word_start,
            Some(at) => return boundary(&line[..word_start + at], &line[word_start + at..]),
            None => break,
        }
    }

    (start > 0 && start < line.len()).then(|| (start - 1, start))
}

/// Whether the last `=` of a line is that of a field, whose name is in lower case and stands behind a blank: the line has no
/// interpretations then. Nearly all lines are told apart so.
fn ends_with_field(line: &[u8]) -> bool {
    let Some(equals) = memrchr(b'=', line) else {
        return true;
    };
    let is_of_name = |byte: &&u8| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'0'..=b'9');
    let letters = line[..equals].iter().rev().take_while(is_of_name).count();
    letters > 0 && line[..equals - letters].last() == Some(&b' ')
}

/// The end of the record in front of interpretations, if something stands between them that is no blank.
fn boundary(record: &[u8], names: &[u8]) -> Option<(usize, usize)> {
    let start = record.len();
    if names.is_empty() || record.ends_with(b" ") {
        return None;
    }
    let remains = REMAINS.iter().find(|remains| record.ends_with(remains));
    Some((start - remains.map_or(0, |remains| remains.len()), start))
}

/// Index in a word at which a field in upper case begins: at its beginning, or behind what ends a record.
fn name(word: &[u8]) -> Option<usize> {
    memchr_iter(b'=', word).find_map(|equals| {
        let letters = word[..equals].iter().rev();
        let letters = letters.take_while(|byte| byte.is_ascii_uppercase() || **byte == b'_');
        let start = equals - letters.count();
        let before = &word[..start];
        let has_quotes = || memchr_iter(b'"', before).count().is_multiple_of(2);
        let is_end = || {
            let ends = [&b"'"[..], b"\"", b")"];
            REMAINS.iter().chain(&ends).any(|end| before.ends_with(end))
        };
        let is_name = equals - start >= 2 && (start == 0 || (has_quotes() && is_end()));
        is_name.then_some(start)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_behind_whatever_is_left_of_their_separator() {
        let record = "type=USER_LOGIN msg=audit(1.2:3): pid=1 uid=0 msg='op=login res=failed'";
        let names = "UID=\"root\" AUID=\"alice\" ID=\"alice\"";
        for between in [
            "\x1d", "#035", "\\x1d", "\\035", "\\u001d", "^]", "\u{241d}", "\u{fffd}", " ", "",
        ] {
            for names in [names, "UID=\"root\""] {
                let line = format!("{record}{between}{names}");
                let found = interpretations(line.as_bytes(), Dialect::Own);
                let wanted = (record.len(), record.len() + between.len());
                assert_eq!(found, Some(wanted), "{line}");
            }
        }
        let record = "type=SOCKADDR msg=audit(1.2:3): saddr=0100";
        for between in ["#035", " ", "\x1d"] {
            let line = format!("{record}{between}SADDR={{ saddr_fam=local path=/a }}");
            let wanted = (record.len(), record.len() + between.len());
            let found = interpretations(line.as_bytes(), Dialect::Own);
            assert_eq!(found, Some(wanted), "{line}");
        }
    }

    #[test]
    fn values_are_no_names() {
        for line in [
            "type=EXECVE msg=audit(1.2:3): argc=2 a0=\"env\" a1=\"FOO=bar\"",
            "type=EXECVE msg=audit(1.2:3): argc=2 a0=\"env\" a1=\")UID=bar\"",
            "type=EXECVE msg=audit(1.2:3): argc=2 a0=\"env\" a1=\"#035UID=bar\"",
            "type=USER_CMD msg=audit(1.2:3): pid=1 msg='cmd=x UID=\"y\"'",
            "type=PATH msg=audit(1.2:3): item=0 name=\"/X=y\" nametype=NORMAL",
            "type=SYSCALL msg=audit(1.2:3): comm=\"x\" key=(null)",
            "",
            "}",
            "A=",
        ] {
            assert_eq!(
                interpretations(line.as_bytes(), Dialect::Own),
                None,
                "{line}"
            );
        }
        let line = b"x=1 UID=\"root\"";
        assert_eq!(interpretations(line, Dialect::Compat), None);
    }
}
