//! One line per event, for people who watch events as they happen.
//!
//! `14:02:11.123 openat /etc/shadow  exit=-13 EACCES  cat[4242] auid=1000 uid=1000 key=access`

use crate::put;
use abi::audit_result;

/// The facts of an event that people look for first.
#[derive(Debug, Clone, Copy)]
pub struct Summary<'a> {
    /// Time of day, in the time zone of the reader.
    pub hour: u8,
    #[allow(missing_docs)]
    pub minute: u8,
    #[allow(missing_docs)]
    pub second: u8,
    #[allow(missing_docs)]
    pub msec: u16,
    /// Name of the call ("openat", "io_uring:openat").
    pub call: &'a str,
    /// Objects of the call: paths, the arguments of an execve, or an address.
    pub objects: &'a [&'a [u8]],
    /// The result; `None` for calls that do not return.
    pub exit: Option<i64>,
    /// Name of the thread.
    pub comm: &'a [u8],
    #[allow(missing_docs)]
    pub pid: u32,
    /// 4294967295 prints `unset`.
    pub auid: u32,
    #[allow(missing_docs)]
    pub uid: u32,
    /// Keys of the rule, joined by byte 1.
    pub key: Option<&'a [u8]>,
}

/// Limit of the bytes of all objects of a line; longer text is cut and ends in `…`.
const OBJECTS_MAX: usize = 512;

impl Summary<'_> {
    /// Appends the line, without a newline. Control characters and bytes that are not UTF-8 are written as `\xNN`,
    /// characters that change the direction of text as `\u{NNNN}`.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (value, width, mark) in [
            (self.hour.into(), 2, ":"),
            (self.minute.into(), 2, ":"),
            (self.second.into(), 2, "."),
        ] {
            put::padded(out, value, width);
            put::text(out, mark);
        }

        put::padded(out, self.msec.into(), 3);
        out.push(b' ');
        put::text(out, self.call);
        self.write_objects(out);
        if let Some(exit) = self.exit {
            write_exit(out, exit);
        }

        put::text(out, "  ");
        escaped(out, self.comm);
        put::field(out, "[", self.pid);
        put::text(out, "] auid=");
        match self.auid {
            u32::MAX => put::text(out, "unset"),
            auid => put::decimal(out, auid.into()),
        }

        put::field(out, " uid=", self.uid);
        if let Some(key) = self.key {
            let mut mark = " key=";
            for key in key.split(|&byte| byte == 1) {
                put::text(out, mark);
                escaped(out, key);
                mark = ",";
            }
        }
    }

    fn write_objects(&self, out: &mut Vec<u8>) {
        let start = out.len();
        for object in self.objects {
            out.push(b' ');
            let room = OBJECTS_MAX.saturating_sub(out.len() - start);
            let shown = &object[..object.len().min(room)];
            let quotes = shown.is_empty() || shown.contains(&b' ');
            if quotes {
                out.push(b'"');
            }
            escaped(out, shown);
            if quotes {
                out.push(b'"');
            }
            if shown.len() < object.len() {
                return put::text(out, "…");
            }
        }
    }
}

fn write_exit(out: &mut Vec<u8>, exit: i64) {
    let exit = audit_result(exit);
    put::text(out, "  exit=");
    put::signed(out, exit);
    let name = exit
        .checked_neg()
        .and_then(|errno| i32::try_from(errno).ok())
        .filter(|&errno| errno > 0);
    if let Some(name) = name.and_then(abi::errno_name) {
        out.push(b' ');
        put::text(out, name);
    }
}

/// Appends text of unknown origin, escaped so that a terminal only displays it.
pub fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_direction(character) {
                put::text(out, "\\u{");
                put::hex(out, character.into(), 0);
                out.push(b'}');
            } else if character.is_control() {
                // C1 controls are two bytes of UTF-8; U+009B alone starts an escape sequence.
                put::text(out, "\\x");
                put::hex(out, character.into(), 2);
            } else {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        for &byte in chunk.invalid() {
            put::text(out, "\\x");
            put::hex(out, byte.into(), 2);
        }
    }
}

fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: Summary<'static> = Summary {
        hour: 14,
        minute: 2,
        second: 11,
        msec: 123,
        call: "openat",
        objects: &[b"/etc/shadow"],
        exit: Some(-13),
        comm: b"cat",
        pid: 4242,
        auid: 1000,
        uid: 1000,
        key: Some(b"access"),
    };

    fn shown(summary: Summary<'_>) -> String {
        let mut out = Vec::new();
        summary.write(&mut out);
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn an_event_is_one_line_a_person_can_read() {
        let line = "14:02:11.123 openat /etc/shadow  exit=-13 EACCES  cat[4242] auid=1000 uid=1000 key=access";
        assert_eq!(shown(SUMMARY), line);
        let summary = Summary {
            objects: &[b"", b"a b"],
            exit: None,
            auid: u32::MAX,
            key: Some(b"k1\x01k2"),
            ..SUMMARY
        };
        assert_eq!(
            shown(summary),
            "14:02:11.123 openat \"\" \"a b\"  cat[4242] auid=unset uid=1000 key=k1,k2"
        );
    }

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_control() {
        let summary = Summary {
            objects: &[b"\x1b[2J\n\xff\xc2\x9b\xe2\x80\xae"],
            comm: b"\x07",
            exit: Some(-512),
            ..SUMMARY
        };
        let line = shown(summary);
        assert!(
            line.contains("\\x1b[2J\\x0a\\xff\\x9b\\u{202e}  exit=-4 EINTR  \\x07["),
            "{line}"
        );
        assert!(!line.chars().any(char::is_control));
    }

    #[test]
    fn a_line_stays_short_however_long_its_objects_are() {
        let long = [b'x'; 9000];
        let line = shown(Summary {
            objects: &[&long, b"never"],
            ..SUMMARY
        });
        assert!(line.len() < 700 && line.contains('…') && !line.contains("never"));
    }
}
