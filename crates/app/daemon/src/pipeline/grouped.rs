//! Groups single records into the events that they belong to. Records of different events are
//! interleaved if several processors make them at the same time.

use crate::account::kernel_costs::{told, KernelCosts};
use record::{text, Encoder, RecordType, Stamp};
use std::collections::VecDeque;
use std::ops::Range;

/// Number of records after which an event is considered complete. Most events end with EOE, but
/// messages from programs do not.
const PATIENCE_RECORDS: u64 = 512;

/// The incomplete events, the oldest first.
#[derive(Default)]
pub(crate) struct Grouped {
    open: VecDeque<OpenEvent>,
    /// Kept to reuse their capacity.
    spare: Vec<OpenEvent>,
    records: u64,
}

struct OpenEvent {
    stamp: Stamp,
    records: Vec<(u16, Range<usize>)>,
    bodies: Vec<u8>,
    /// Number of the event's latest record.
    latest: u64,
}

impl OpenEvent {
    fn new(stamp: Stamp) -> OpenEvent {
        OpenEvent {
            stamp,
            records: Vec::new(),
            bodies: Vec::new(),
            latest: 0,
        }
    }
}

/// Destination of complete events.
pub(crate) struct GroupedSink<'a> {
    pub(crate) encoder: &'a mut Encoder,
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) costs: &'a mut KernelCosts,
    /// Whether events that the kernel has recorded by a rule are left out: the programs have recorded the call.
    pub(crate) leaves_out_calls: bool,
}

impl Grouped {
    /// Takes a record; appends events that are now complete. Returns how many.
    pub(crate) fn push(&mut self, kind: u16, message: &[u8], sink: &mut GroupedSink<'_>) -> u32 {
        self.records += 1;
        let Ok((stamp, body)) = text::parse_message(message) else {
            sink.encoder.raw(sink.out, kind, message);
            return 1;
        };

        let place = self.open.iter().position(|open| open.stamp == stamp);
        if RecordType::from(kind) == RecordType::EOE {
            return place.map_or(0, |place| self.end_one(place, sink));
        }

        // Records of different events can be interleaved.
        let place = place.unwrap_or_else(|| {
            let mut open = self.spare.pop().unwrap_or_else(|| OpenEvent::new(stamp));
            open.stamp = stamp;
            self.open.push_back(open);
            self.open.len() - 1
        });

        let open = &mut self.open[place];
        let start = open.bodies.len();
        open.bodies.extend_from_slice(body);
        open.records.push((kind, start..open.bodies.len()));
        open.latest = self.records;

        // Records of these types are events by themselves: no end follows.
        if is_alone(kind) {
            return self.end_one(place, sink);
        }

        // An end that was lost must not keep its event out of the log.
        match self.open.front() {
            Some(oldest) if oldest.latest + PATIENCE_RECORDS < self.records => {
                self.end_one(0, sink)
            }
            _ => 0,
        }
    }

    /// Appends the incomplete events as they are. Returns how many.
    pub(crate) fn end(&mut self, sink: &mut GroupedSink<'_>) -> u32 {
        let mut events = 0;
        while !self.open.is_empty() {
            events += self.end_one(0, sink);
        }
        events
    }

    fn end_one(&mut self, place: usize, sink: &mut GroupedSink<'_>) -> u32 {
        let Some(mut open) = self.open.remove(place) else {
            return 0;
        };

        if sink.leaves_out_calls && open.records.iter().all(|(kind, _)| is_of_call(*kind)) {
            open.records.clear();
            open.bodies.clear();
            self.spare.push(open);
            return 0;
        }

        let before = sink.out.len();
        let mut writer = sink.encoder.begin(sink.out, open.stamp);
        let mut about = None;
        for (kind, range) in open.records.drain(..) {
            let body = &open.bodies[range];
            about = about.or_else(|| told(kind, body));
            writer.raw(kind, body);
        }
        writer.end();

        if let Some(about) = about {
            sink.costs.count(&about, sink.out.len() - before);
        }
        open.bodies.clear();
        self.spare.push(open);
        1
    }
}

/// Records that say what a call or an io_uring operation was about (`show_special()` and `audit_log_exit()` in
/// kernel/auditsc.c). An event without any other is there because a rule has selected it.
const OF_CALLS: [RecordType; 22] = [
    RecordType::SYSCALL,
    RecordType::URINGOP,
    RecordType::PATH,
    RecordType::CWD,
    RecordType::EXECVE,
    RecordType::PROCTITLE,
    RecordType::SOCKETCALL,
    RecordType::SOCKADDR,
    RecordType::IPC,
    RecordType::IPC_SET_PERM,
    RecordType::MQ_OPEN,
    RecordType::MQ_SENDRECV,
    RecordType::MQ_NOTIFY,
    RecordType::MQ_GETSETATTR,
    RecordType::FD_PAIR,
    RecordType::OBJ_PID,
    RecordType::BPRM_FCAPS,
    RecordType::CAPSET,
    RecordType::MMAP,
    RecordType::KERN_MODULE,
    RecordType::OPENAT2,
    RecordType::MAC_TASK_CONTEXTS,
];

fn is_of_call(kind: u16) -> bool {
    OF_CALLS.contains(&RecordType::from(kind))
}

/// Whether a record is a whole event: messages from programs are.
fn is_alone(kind: u16) -> bool {
    RecordType::from(kind).is_user_message()
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{Format, NoNames};

    const MESSAGES: [(u16, &[u8]); 4] = [
        (1300, b"audit(1.002:7): arch=c000003e syscall=1"),
        (1327, b"audit(1.002:7): proctitle=61"),
        (1320, b"audit(1.002:7): "),
        (1105, b"audit(1.003:8): pid=1 uid=0 msg='op=x'"),
    ];

    fn written(format: Format, messages: &[(u16, &[u8])]) -> (String, u32) {
        let mut encoder = Encoder::new(format, Box::new(NoNames));
        let (mut out, mut grouped, mut events) = (Vec::new(), Grouped::default(), 0);
        let mut sink = GroupedSink {
            encoder: &mut encoder,
            out: &mut out,
            costs: &mut KernelCosts::default(),
            leaves_out_calls: false,
        };
        for (kind, message) in messages {
            events += grouped.push(*kind, message, &mut sink);
        }
        events += grouped.end(&mut sink);
        (String::from_utf8(out).expect("text"), events)
    }

    #[test]
    fn events_that_a_rule_selected_in_the_kernel_are_left_out_and_others_stay_whole() {
        let mut encoder = Encoder::new(Format::Raw, Box::new(NoNames));
        let (mut out, mut grouped) = (Vec::new(), Grouped::default());
        let mut sink = GroupedSink {
            encoder: &mut encoder,
            out: &mut out,
            costs: &mut KernelCosts::default(),
            leaves_out_calls: true,
        };
        let denied: [(u16, &[u8]); 3] = [
            (1400, b"audit(1.002:9): avc: denied"),
            (1300, b"audit(1.002:9): arch=c000003e syscall=2"),
            (1320, b"audit(1.002:9): "),
        ];
        let mut events = 0;
        for (kind, message) in MESSAGES.iter().chain(&denied) {
            events += grouped.push(*kind, message, &mut sink);
        }
        events += grouped.end(&mut sink);

        let text = String::from_utf8(out).unwrap();
        let types: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(types, ["type=USER_START", "type=AVC", "type=SYSCALL"]);
        assert_eq!(events, 2);
    }

    #[test]
    fn an_event_is_one_json_object() {
        let (text, events) = written(Format::Json, &MESSAGES);
        assert_eq!((text.lines().count(), events), (2, 2), "{text}");
        assert!(text
            .lines()
            .next()
            .is_some_and(|line| line.contains("PROCTITLE")));
    }

    #[test]
    fn the_lines_are_those_of_the_kernel() {
        let (text, events) = written(Format::Raw, &MESSAGES);
        assert_eq!(events, 2);
        assert_eq!(
            text,
            "type=SYSCALL msg=audit(1.002:7): arch=c000003e syscall=1\n\
             type=PROCTITLE msg=audit(1.002:7): proctitle=61\n\
             type=USER_START msg=audit(1.003:8): pid=1 uid=0 msg='op=x'\n"
        );
    }

    #[test]
    fn mixed_records_become_whole_events() {
        let (text, events) = written(
            Format::Raw,
            &[
                (1300, b"audit(1.002:7): arch=c000003e syscall=1"),
                (1300, b"audit(1.002:8): arch=c000003e syscall=2"),
                (1327, b"audit(1.002:7): proctitle=61"),
                (1327, b"audit(1.002:8): proctitle=62"),
                (1320, b"audit(1.002:8): "),
                (1320, b"audit(1.002:7): "),
            ],
        );
        assert_eq!(events, 2);
        let stamps: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split(['(', ')']).nth(1))
            .collect();
        assert_eq!(stamps, ["1.002:8", "1.002:8", "1.002:7", "1.002:7"]);
    }

    #[test]
    fn an_event_whose_end_never_comes_is_written_while_others_come() {
        let mut messages: Vec<(u16, Vec<u8>)> =
            vec![(1006, b"audit(1.002:1): pid=1 uid=0 res=1".to_vec())];
        for serial in 2..PATIENCE_RECORDS + 4 {
            let text = format!("audit(1.002:{serial}): pid=1 uid=0 msg='op=x'");
            messages.push((1105, text.into_bytes()));
        }
        messages.push((1300, b"audit(1.003:9): arch=c000003e syscall=1".to_vec()));
        let messages: Vec<(u16, &[u8])> = messages.iter().map(|(k, m)| (*k, &m[..])).collect();
        let (text, _) = written(Format::Raw, &messages);
        let lines: Vec<&str> = text.lines().collect();
        let place = |kind: &str| lines.iter().position(|line| line.starts_with(kind));
        assert!(place("type=LOGIN") < place("type=SYSCALL"), "{text}");
        assert!(place("type=LOGIN").is_some());
    }
}
