//! Lines → events: a run of lines with the same time and serial is an event.
//!
//! The result depends on the bytes alone, so that a batch that is made again has the same events.

use std::time::Duration;

use memchr::memmem;

use crate::format::Stamp;

/// Bytes of a line in which the stamp is looked for: a node name may stand before it.
const STAMP_BYTES_MAX: usize = 400;

/// Time without growth after which the last event of a log counts as complete.
pub(crate) const SETTLED: Duration = Duration::from_millis(100);
/// Time without growth after which the event of a call at the end of a log counts as complete although it lacks its last
/// record. A daemon that was killed while it wrote the event may have left its first lines; the next daemon cuts them off
/// and writes the event again. If PROCTITLE records are excluded, all events of calls lack their last record.
const SETTLED_CALL: Duration = Duration::from_secs(5);

/// One event of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLines<'a> {
    /// The lines, each with its newline.
    pub lines: &'a [u8],
    /// First byte of the event in the buffer.
    pub start: usize,
    /// Time and serial; zeros if the line has none.
    pub stamp: Stamp,
}

/// The events of a buffer of whole lines.
pub struct Events<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Events<'a> {
    /// Events of `text`. What follows the last newline is left out.
    pub fn new(text: &'a [u8]) -> Events<'a> {
        let end = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        Events {
            text: &text[..end],
            at: 0,
        }
    }
}

impl<'a> Events<'a> {
    /// Events of `text`, the end of a file that is not written any more: its last line may lack the
    /// newline.
    pub fn of_whole(text: &'a [u8]) -> Events<'a> {
        Events { text, at: 0 }
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = EventLines<'a>;

    fn next(&mut self) -> Option<EventLines<'a>> {
        let start = self.at;
        let first = line(&self.text[start..])?;
        let id = stamp_text(first);
        self.at += first.len();

        // A line without a stamp, or of JSON, is an event of its own.
        while let (Some(id), Some(next)) = (id, line(&self.text[self.at..])) {
            if stamp_text(next) != Some(id) {
                break;
            }
            self.at += next.len();
        }

        let stamp = id.and_then(parse_stamp).or_else(|| json_stamp(first));
        Some(EventLines {
            lines: &self.text[start..self.at],
            start,
            stamp: stamp.unwrap_or_default(),
        })
    }
}

/// The first line, with its newline.
fn line(text: &[u8]) -> Option<&[u8]> {
    match memchr::memchr(b'\n', text) {
        Some(end) => Some(&text[..=end]),
        None if text.is_empty() => None,
        None => Some(text),
    }
}

/// The text between the parentheses of `msg=audit(…)`, with what stands before it but the type:
/// lines of other nodes are other events.
fn stamp_text(line: &[u8]) -> Option<&[u8]> {
    let head = &line[..line.len().min(STAMP_BYTES_MAX)];
    if head.first() == Some(&b'{') {
        return None;
    }

    let open = memchr::memchr(b'(', head)?;
    // `type=UNKNOWN[1334]` and names of nodes have no parentheses.
    let start = open + 1;
    if !head[..open].ends_with(b" msg=audit") {
        return None;
    }

    let length = memchr::memchr(b')', &head[start..])?;
    Some(&head[start..start + length])
}

fn parse_stamp(text: &[u8]) -> Option<Stamp> {
    let text = std::str::from_utf8(text).ok()?;
    let (time, serial) = text.split_once(':')?;
    let (sec, msec) = time.split_once('.')?;
    Some(Stamp {
        sec: sec.parse().ok()?,
        msec: msec.parse().ok().filter(|msec| *msec < 1000)?,
        serial: serial.parse().ok()?,
    })
}

/// The stamp of `{"time":1795229646.007,"serial":42,…`.
fn json_stamp(line: &[u8]) -> Option<Stamp> {
    let rest = line.strip_prefix(b"{\"time\":")?;
    let rest = std::str::from_utf8(&rest[..rest.len().min(64)]).ok()?;
    let (time, rest) = rest.split_once(",\"serial\":")?;
    let (sec, msec) = time.split_once('.')?;
    let serial = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    Some(Stamp {
        sec: sec.parse().ok()?,
        msec: msec.parse().ok().filter(|msec| *msec < 1000)?,
        serial: serial.parse().ok()?,
    })
}

impl EventLines<'_> {
    /// Time without growth of the log after which these lines at its end are a complete event. PROCTITLE and EOE are the
    /// last records of an event, JSON has one line, and records of user space stand alone.
    pub(crate) fn settles_after(&self) -> Duration {
        let mut lines = self.lines.split_inclusive(|&byte| byte == b'\n');
        let last = lines.next_back().unwrap_or_default();
        let is_end = |kind: &[u8]| LAST_TYPES.iter().any(|name| kind.starts_with(name));
        let is_complete = last.first() == Some(&b'{') || record_type(last).is_none_or(is_end);
        let is_call = |line| record_type(line).is_some_and(is_call);
        match is_complete {
            true => Duration::ZERO,
            false if is_call(last) || lines.any(is_call) => SETTLED_CALL,
            false => SETTLED,
        }
    }
}

/// Beginnings of the types after which an event has no more records.
const LAST_TYPES: [&[u8]; 6] = [
    b"PROCTITLE",
    b"EOE",
    b"USER_",
    b"DAEMON_",
    b"CRED_",
    b"SERVICE_",
];

/// Whether records of this type have the arguments and the result of a call.
pub(crate) fn is_call(kind: &[u8]) -> bool {
    matches!(kind, b"SYSCALL" | b"URINGOP")
}

/// The type of a line's record; `None` if it has none.
fn record_type(line: &[u8]) -> Option<&[u8]> {
    let head = &line[..line.len().min(STAMP_BYTES_MAX)];
    let kind = match head.strip_prefix(b"type=") {
        Some(kind) => kind,
        None => &head[memmem::find(head, b" type=")? + 6..],
    };
    kind.split(|&byte| byte == b' ').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_stamp_are_one_event() {
        let text = b"type=SYSCALL msg=audit(1.002:3): a\ntype=CWD msg=audit(1.002:3): b\n\
                     type=SYSCALL msg=audit(1.002:4): c\nno record\ntype=CUT msg=audit(";
        let events: Vec<_> = Events::new(text).collect();
        assert_eq!(events.len(), 3);
        assert_eq!(events[0].lines.iter().filter(|b| **b == b'\n').count(), 2);
        let stamp = Stamp {
            sec: 1,
            msec: 2,
            serial: 4,
        };
        assert_eq!(events[1].stamp, stamp);
        assert_eq!(events[2].lines, b"no record\n");
        assert_eq!(events[2].stamp, Stamp::default());
    }

    #[test]
    fn a_line_of_json_is_an_event() {
        let text =
            b"{\"time\":7.001,\"serial\":42,\"records\":[]}\n{\"time\":7.001,\"serial\":42}\n";
        let events: Vec<_> = Events::new(text).collect();
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].stamp.sec, events[0].stamp.serial), (7, 42));
    }

    #[test]
    fn the_end_of_an_event_is_seen() {
        let settles_after = |text: &str| {
            let mut events = Events::new(text.as_bytes());
            events.next().expect("an event").settles_after()
        };
        let call = "type=SYSCALL msg=audit(1.0:1): x\n";
        let whole = format!("{call}type=PROCTITLE msg=audit(1.0:1): y\n");
        assert_eq!(settles_after(&whole), Duration::ZERO);
        assert_eq!(
            settles_after("{\"time\":1.0,\"serial\":1}\n"),
            Duration::ZERO
        );
        let login = "node=h type=USER_LOGIN msg=audit(1.0:1): y\n";
        assert_eq!(settles_after(login), Duration::ZERO);
        // The rest may have been lost with the daemon that wrote it.
        assert_eq!(settles_after(call), SETTLED_CALL);
        let named = format!("type=AVC msg=audit(1.0:1): z\n{call}type=CWD msg=audit(1.0:1): y\n");
        assert_eq!(settles_after(&named), SETTLED_CALL);
        assert_eq!(settles_after("type=LOGIN msg=audit(1.0:1): y\n"), SETTLED);
    }
}
