//! Log lines in the form in which plugins get them.

use std::ops::Range;

use record::RecordType;

use conf::plugins::Format;

/// `MAX_AUDIT_MESSAGE_LENGTH` of libaudit.h: the text of a binary frame is padded to this length.
const MESSAGE_BYTES_MAX: usize = 8970;
/// `AUDISP_PROTOCOL_VER`: the text is the kernel's, starting with `audit(`.
const KERNEL_TEXT: u32 = 0;
/// `AUDISP_PROTOCOL_VER2`: the text is the whole line.
const LINE: u32 = 1;
/// Separates the interpreted fields of ENRICHED.
const ENRICHED: u8 = 0x1d;

/// Whole events, split into lines.
#[derive(Default)]
pub(crate) struct Events {
    /// All lines, each with its newline. EOE lines, which the log does not contain, are added.
    text: Vec<u8>,
    /// End of each line in `text`.
    line_ends: Vec<u32>,
    /// Number of lines up to the end of each event.
    event_ends: Vec<u32>,
}

impl Events {
    /// Splits lines of the log into events, and adds EOE to those that the kernel would end with
    /// it.
    pub(crate) fn of(lines: &[u8]) -> Events {
        let mut events = Events {
            text: Vec::with_capacity(lines.len() + lines.len() / 8),
            ..Events::default()
        };
        let mut current: Option<Head<'_>> = None;
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let head = Head::of(line);
            if let Some(last) = current.as_ref().filter(|last| last.stamp != head.stamp) {
                events.end_event(last);
            }
            let goes_on = current.as_ref().filter(|last| last.stamp == head.stamp);
            let is_call = head.is_call || goes_on.is_some_and(|last| last.is_call);
            events.push(line);
            current = Some(Head { is_call, ..head });
        }

        if let Some(last) = &current {
            events.end_event(last);
        }
        events
    }

    fn push(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        if line.last() != Some(&b'\n') {
            self.text.push(b'\n');
        }
        self.line_ends.push(self.text.len() as u32);
    }

    fn end_event(&mut self, last: &Head<'_>) {
        if last.is_call {
            self.text.extend_from_slice(last.node);
            self.text.extend_from_slice(b"type=EOE msg=");
            self.text.extend_from_slice(last.stamp);
            self.text.push(b':');
            // auditd 3.0.9 has this blank only if the line starts with `node=`.
            if !last.node.is_empty() {
                self.text.push(b' ');
            }
            self.text.push(b'\n');
            self.line_ends.push(self.text.len() as u32);
        }

        self.event_ends.push(self.line_ends.len() as u32);
    }

    pub(crate) fn lines(&self) -> usize {
        self.line_ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    /// Number of lines of the first events that together fit into `room` lines.
    pub(crate) fn lines_within(&self, room: usize) -> usize {
        let events = self.event_ends.partition_point(|&end| end as usize <= room);
        match events {
            0 => 0,
            events => self.event_ends[events - 1] as usize,
        }
    }

    /// The first `count` lines, each with its newline.
    pub(crate) fn first(&self, count: usize) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.line_ends.iter().copied());
        let ranges = starts.zip(self.line_ends.iter().copied());
        ranges
            .take(count)
            .map(|(start, end)| &self.text[start as usize..end as usize])
    }
}

/// The parts of a line's beginning.
struct Head<'l> {
    /// `node=X `, or nothing.
    node: &'l [u8],
    /// `audit(SEC.MSEC:SERIAL)`. A line of another form is its own stamp, and an event of its own.
    stamp: &'l [u8],
    /// Whether the kernel ends such an event with EOE: `audit_log_exit()`, which makes SYSCALL and
    /// URINGOP records, does so.
    is_call: bool,
}

impl<'l> Head<'l> {
    fn of(line: &'l [u8]) -> Head<'l> {
        let Some(parts) = Parts::of(line) else {
            return Head {
                node: b"",
                stamp: line,
                is_call: false,
            };
        };

        let text = &line[parts.message..];
        let end = memchr::memchr(b')', text).map_or(text.len(), |end| end + 1);
        let kind = &line[parts.kind];
        Head {
            node: &line[..parts.node],
            stamp: &text[..end],
            is_call: kind == b"SYSCALL" || kind == b"URINGOP",
        }
    }
}

/// Offsets of the parts of `[node=X ]type=KIND msg=audit(…`.
struct Parts {
    /// Length of `node=X `.
    node: usize,
    kind: Range<usize>,
    /// Offset of `audit(`.
    message: usize,
}

impl Parts {
    fn of(line: &[u8]) -> Option<Parts> {
        let node = if line.starts_with(b"node=") {
            memchr::memchr(b' ', line)? + 1
        } else {
            0
        };
        let rest = line[node..].strip_prefix(b"type=")?;
        let kind_len = memchr::memchr(b' ', rest)?;
        rest[kind_len..].strip_prefix(b" msg=audit(")?;

        let kind = node + 5..node + 5 + kind_len;
        Some(Parts {
            message: kind.end + 5,
            node,
            kind,
        })
    }
}

/// Appends a line, given with its newline, in `format`.
pub(crate) fn append(out: &mut Vec<u8>, format: Format, line: &[u8]) {
    match format {
        Format::String => out.extend_from_slice(line),
        Format::Binary => append_binary(out, line.strip_suffix(b"\n").unwrap_or(line)),
    }
}

/// Appends `struct audit_dispatcher_header` { ver, hlen, type, size } and the text. RAW lines
/// without a node are sent as the kernel's text, all others as whole lines, as `distribute_event()`
/// of auditd 3.0.9 does.
fn append_binary(out: &mut Vec<u8>, line: &[u8]) {
    let parts = Parts::of(line);
    let kind = parts.as_ref().map(|parts| &line[parts.kind.clone()]);
    let number = kind
        .and_then(RecordType::from_name)
        .map_or(0, |kind| u16::try_from(kind.0).unwrap_or(0));
    let (version, text) = match &parts {
        Some(parts) if parts.node == 0 && memchr::memchr(ENRICHED, line).is_none() => {
            (KERNEL_TEXT, &line[parts.message..])
        }
        _ => (LINE, line),
    };

    // Only enriched text can be longer than the longest record of the kernel.
    let text = &text[..text.len().min(MESSAGE_BYTES_MAX)];
    for field in [version, 16, number.into(), text.len() as u32] {
        out.extend_from_slice(&field.to_ne_bytes());
    }

    out.extend_from_slice(text);
    out.resize(out.len() + MESSAGE_BYTES_MAX - text.len(), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "type=SYSCALL msg=audit(1.002:7): arch=c000003e syscall=1\n\
                         type=PROCTITLE msg=audit(1.002:7): proctitle=61\n\
                         type=USER msg=audit(1.003:8): pid=1 uid=0 msg='text=x type=y'\n\
                         no record\n";

    fn strings(events: &Events, count: usize) -> Vec<&str> {
        let lines = events.first(count);
        lines
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect()
    }

    #[test]
    fn an_event_of_a_call_is_ended_as_the_kernel_ends_it_and_others_are_not() {
        let events = Events::of(LINES.as_bytes());
        let lines = strings(&events, usize::MAX);
        assert_eq!(lines[2], "type=EOE msg=audit(1.002:7):\n");
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[4], "no record\n");
        let noded = LINES
            .replace("type=S", "node=h type=S")
            .replace("type=P", "node=h type=P");
        let events = Events::of(noded.as_bytes());
        assert_eq!(
            strings(&events, 3)[2],
            "node=h type=EOE msg=audit(1.002:7): \n"
        );
    }

    #[test]
    fn only_whole_events_fit() {
        let events = Events::of(LINES.as_bytes());
        let fitting = [0, 1, 2, 3, 4, 5, 9].map(|room| events.lines_within(room));
        assert_eq!(fitting, [0, 0, 0, 3, 4, 5, 5]);
    }

    #[test]
    fn a_binary_frame_is_what_auditd_3_sends() {
        let mut out = Vec::new();
        append(
            &mut out,
            Format::Binary,
            b"type=SYSCALL msg=audit(1.002:7): a=1\n",
        );
        assert_eq!(out.len(), 16 + MESSAGE_BYTES_MAX);
        let field = |i: usize| u32::from_ne_bytes(out[i * 4..i * 4 + 4].try_into().unwrap());
        let text = b"audit(1.002:7): a=1";
        assert_eq!(
            [field(0), field(1), field(2), field(3)],
            [0, 16, 1300, text.len() as u32]
        );
        assert_eq!(&out[16..16 + text.len()], text);
        assert!(out[16 + text.len()..].iter().all(|&byte| byte == 0));
        for line in [
            "node=h type=USER msg=audit(1.002:7): a=1",
            "type=USER msg=audit(1.002:7): uid=0\x1dUID=\"root\"",
        ] {
            out.clear();
            append(&mut out, Format::Binary, format!("{line}\n").as_bytes());
            assert_eq!(out[0], 1);
            assert_eq!(&out[16..16 + line.len()], line.as_bytes());
        }
    }
}
