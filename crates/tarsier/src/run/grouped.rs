//! Records that come one by one, put together to the events that they belong to.

use event::{text, Encoder, RecordType, Stamp};
use std::ops::Range;

/// The event whose records are coming in.
#[derive(Default)]
pub(super) struct Grouped {
    stamp: Option<Stamp>,
    records: Vec<(u16, Range<usize>)>,
    bodies: Vec<u8>,
}

impl Grouped {
    /// Takes a record; appends the event before it if that has ended. How many events were
    /// appended.
    pub(super) fn push(
        &mut self,
        kind: u16,
        message: &[u8],
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) -> u32 {
        let Ok((stamp, body)) = text::parse_message(message) else {
            let events = self.end(encoder, out);
            encoder.raw(out, kind, message);
            return events + 1;
        };
        let mut events = 0;
        if self.stamp != Some(stamp) {
            events += self.end(encoder, out);
            self.stamp = Some(stamp);
        }
        if RecordType(kind) == RecordType::EOE {
            return events + self.end(encoder, out);
        }
        let start = self.bodies.len();
        self.bodies.extend_from_slice(body);
        self.records.push((kind, start..self.bodies.len()));
        events
    }

    /// Appends what has come of the event under way. How many events that was: 0 or 1.
    pub(super) fn end(&mut self, encoder: &mut Encoder, out: &mut Vec<u8>) -> u32 {
        let Some(stamp) = self.stamp.take() else {
            return 0;
        };
        if self.records.is_empty() {
            return 0;
        }
        let mut writer = encoder.begin(out, stamp);
        for (kind, range) in self.records.drain(..) {
            writer.raw(kind, &self.bodies[range]);
        }
        writer.end();
        self.bodies.clear();
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::{Format, NoNames};

    const MESSAGES: [(u16, &[u8]); 4] = [
        (1300, b"audit(1.002:7): arch=c000003e syscall=1"),
        (1327, b"audit(1.002:7): proctitle=61"),
        (1320, b"audit(1.002:7): "),
        (1105, b"audit(1.003:8): pid=1 uid=0 msg='op=x'"),
    ];

    fn written(format: Format) -> (String, u32) {
        let mut encoder = Encoder::new(format, Box::new(NoNames));
        let (mut out, mut grouped, mut events) = (Vec::new(), Grouped::default(), 0);
        for (kind, message) in MESSAGES {
            events += grouped.push(kind, message, &mut encoder, &mut out);
        }
        events += grouped.end(&mut encoder, &mut out);
        (String::from_utf8(out).expect("text"), events)
    }

    #[test]
    fn an_event_is_one_json_object() {
        let (text, events) = written(Format::Json);
        assert_eq!((text.lines().count(), events), (2, 2), "{text}");
        assert!(text
            .lines()
            .next()
            .is_some_and(|line| line.contains("PROCTITLE")));
    }

    #[test]
    fn the_lines_are_those_of_the_kernel() {
        let (text, events) = written(Format::Raw);
        assert_eq!(events, 2);
        assert_eq!(
            text,
            "type=SYSCALL msg=audit(1.002:7): arch=c000003e syscall=1\n\
             type=PROCTITLE msg=audit(1.002:7): proctitle=61\n\
             type=USER_START msg=audit(1.003:8): pid=1 uid=0 msg='op=x'\n"
        );
    }
}
