//! Keeps the kernel's records of the daemon's own BPF programs out of the log: arming one rule may load hundreds. A
//! record of the daemon (`op=arm`) tells what a change of rules has loaded and removed.
//!
//! The daemon recognises its programs by their ids, while it knows these ([`capture::OwnPrograms`]). A record that it
//! cannot attribute is written.

use capture::{own_programs, Loader, OwnPrograms};
use record::{text, RecordType, Stamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Limit of records held until programs that are being loaded have their ids; beyond it they are recorded.
const HELD_MAX: usize = 65536;
/// Limit of own events whose further records are still expected.
const LEFT_OUT_MAX: usize = 4096;

/// The treatment of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LoadVerdict {
    Write,
    /// The record is left out, or held until [`OwnLoads::decided`] returns it.
    Keep,
    /// The record is written after this BPF record of the same event, which had been left out.
    WriteAfter(Vec<u8>),
}

/// The event of a BPF record that was left out.
struct LeftOutLoad {
    stamp: Stamp,
    message: Vec<u8>,
    /// Whether the event is known to be that of a call of this process.
    is_own_call: bool,
}

/// Record type and text of a message of the kernel.
type Message = (u16, Vec<u8>);

/// Undecided records, and later ones about the same programs and events.
#[derive(Default)]
struct HeldRecords {
    messages: VecDeque<Message>,
    /// Serials of their events.
    serials: BTreeSet<u32>,
    /// Ids of the programs.
    programs: BTreeSet<u32>,
}

/// The records of own programs on their way.
pub(crate) struct OwnLoads {
    programs: &'static OwnPrograms,
    pid: u32,
    held: HeldRecords,
    /// Events of records that were left out, by serial. A task that has an audit context adds records of its call to
    /// the event.
    left_out: BTreeMap<u32, LeftOutLoad>,
}

impl Default for OwnLoads {
    fn default() -> OwnLoads {
        OwnLoads {
            programs: own_programs(),
            pid: std::process::id(),
            held: HeldRecords::default(),
            left_out: BTreeMap::new(),
        }
    }
}

impl OwnLoads {
    /// Decides about a record.
    pub(crate) fn take(&mut self, kind: u16, message: &[u8]) -> LoadVerdict {
        let is_bpf = RecordType::from(kind) == RecordType::BPF;
        if !is_bpf && self.held.messages.is_empty() && self.left_out.is_empty() {
            return LoadVerdict::Write;
        }
        let Ok((stamp, body)) = text::parse_message(message) else {
            return LoadVerdict::Write;
        };
        if self.held.serials.contains(&stamp.serial) {
            return self.hold(kind, stamp, body, message);
        }
        if is_bpf {
            return self.program(stamp, body, message);
        }

        self.companion(kind, stamp, body)
    }

    /// Decides about a BPF record.
    fn program(&mut self, stamp: Stamp, body: &[u8], message: &[u8]) -> LoadVerdict {
        let is_own = match subject(body) {
            Some((b"LOAD", id)) => match self.programs.loader(id) {
                Loader::Own => true,
                Loader::Other => false,
                Loader::Undecided => {
                    return self.hold(RecordType::BPF.netlink(), stamp, body, message);
                }
            },
            Some((b"UNLOAD", id)) => {
                if self.held.programs.contains(&id) {
                    return self.hold(RecordType::BPF.netlink(), stamp, body, message);
                }
                self.programs.unloaded(id)
            }
            _ => false,
        };

        if !is_own {
            return LoadVerdict::Write;
        }

        // Kept until the companions of its event have come: they may show that somebody else made the call.
        if self.left_out.len() >= LEFT_OUT_MAX {
            self.left_out.pop_first();
        }
        let left_out = LeftOutLoad {
            stamp,
            message: message.to_vec(),
            is_own_call: false,
        };
        self.left_out.insert(stamp.serial, left_out);
        LoadVerdict::Keep
    }

    /// Decides about another record of an event that may be an own one. Another process can cause the record of an own
    /// program's end: then it is in the event of a call of that process, which is written as a whole.
    fn companion(&mut self, kind: u16, stamp: Stamp, body: &[u8]) -> LoadVerdict {
        let of_event = self.left_out.get_mut(&stamp.serial);
        let Some(event) = of_event.filter(|event| event.stamp == stamp) else {
            return LoadVerdict::Write;
        };

        match RecordType::from(kind) {
            RecordType::SYSCALL if number(body, b"pid") == Some(self.pid) => {
                event.is_own_call = true;
                LoadVerdict::Keep
            }
            RecordType::PROCTITLE if event.is_own_call => LoadVerdict::Keep,
            RecordType::EOE => {
                self.left_out.remove(&stamp.serial);
                LoadVerdict::Keep
            }
            _ => match self.left_out.remove(&stamp.serial) {
                Some(event) => LoadVerdict::WriteAfter(event.message),
                None => LoadVerdict::Write,
            },
        }
    }

    fn hold(&mut self, kind: u16, stamp: Stamp, body: &[u8], message: &[u8]) -> LoadVerdict {
        let held = &mut self.held;
        if held.messages.len() >= HELD_MAX {
            return LoadVerdict::Write;
        }
        held.messages.push_back((kind, message.to_vec()));
        held.serials.insert(stamp.serial);
        held.programs.extend(subject(body).map(|(_, id)| id));
        LoadVerdict::Keep
    }

    /// Takes out the held records that turned out not to be about own programs, in order. With `at_end` none stays.
    pub(crate) fn decided(&mut self, at_end: bool) -> Vec<Message> {
        if self.held.messages.is_empty() || self.programs.is_loading() && !at_end {
            return Vec::new();
        }

        let mut decided = Vec::new();
        for (kind, message) in std::mem::take(&mut self.held).messages {
            match self.take(kind, &message) {
                LoadVerdict::Write => decided.push((kind, message)),
                LoadVerdict::Keep => {}
                LoadVerdict::WriteAfter(program) => {
                    decided.push((RecordType::BPF.netlink(), program));
                    decided.push((kind, message));
                }
            }
        }

        if at_end {
            decided.extend(std::mem::take(&mut self.held).messages);
        }
        decided
    }

    /// Forgets programs whose end the kernel did not report.
    pub(crate) fn forget_gone(&self) {
        self.programs.forget_gone();
    }
}

/// Operation and program id of a BPF record.
fn subject(body: &[u8]) -> Option<(&[u8], u32)> {
    let mut fields = text::fields(body);
    let op = fields.find(|field| field.name == b"op")?.value;
    Some((op, number(body, b"prog-id")?))
}

fn number(body: &[u8], name: &[u8]) -> Option<u32> {
    let field = text::fields(body).find(|field| field.name == name)?;
    u32::try_from(text::number(field.value, 10)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSCALL: u16 = RecordType::SYSCALL.netlink();
    const PROCTITLE: u16 = RecordType::PROCTITLE.netlink();
    const EOE: u16 = RecordType::EOE.netlink();
    const BPF: u16 = RecordType::BPF.netlink();
    const OWN_PID: u32 = 70;

    /// An [`OwnLoads`] with these own programs.
    fn loads(ids: &[u32]) -> OwnLoads {
        let programs: &'static OwnPrograms = Box::leak(Box::default());
        ids.iter().for_each(|id| programs.assume(*id));
        OwnLoads {
            programs,
            pid: OWN_PID,
            ..OwnLoads::default()
        }
    }

    fn bpf(serial: u32, id: u32, op: &str) -> Vec<u8> {
        format!("audit(1.002:{serial}): prog-id={id} op={op}").into_bytes()
    }

    fn other(serial: u32, body: &str) -> Vec<u8> {
        format!("audit(1.002:{serial}): {body}").into_bytes()
    }

    #[test]
    fn records_of_own_programs_are_left_out_and_those_of_others_are_not() {
        let mut loads = loads(&[7, 9]);
        assert_eq!(loads.take(BPF, &bpf(1, 7, "LOAD")), LoadVerdict::Keep);
        assert_eq!(loads.take(BPF, &bpf(2, 8, "LOAD")), LoadVerdict::Write);
        assert_eq!(loads.take(BPF, &bpf(3, 9, "LOAD")), LoadVerdict::Keep);
        assert_eq!(loads.take(BPF, &bpf(4, 8, "UNLOAD")), LoadVerdict::Write);
        assert_eq!(loads.take(BPF, &bpf(5, 7, "UNLOAD")), LoadVerdict::Keep);
        assert_eq!(
            loads.take(BPF, &bpf(6, 7, "LOAD")),
            LoadVerdict::Write,
            "reuse"
        );
        assert_eq!(loads.take(BPF, &bpf(7, 7, "UNLOAD")), LoadVerdict::Write);
        assert_eq!(loads.decided(true), []);
    }

    #[test]
    fn a_record_that_comes_while_programs_are_loaded_is_held_and_not_lost() {
        let mut loads = loads(&[]);
        let loading = loads.programs.load();
        assert_eq!(loads.take(BPF, &bpf(1, 7, "LOAD")), LoadVerdict::Keep);
        assert_eq!(loads.take(BPF, &bpf(2, 8, "LOAD")), LoadVerdict::Keep);
        assert_eq!(loads.take(SYSCALL, &other(2, "pid=1")), LoadVerdict::Keep);
        assert_eq!(loads.take(BPF, &bpf(3, 8, "UNLOAD")), LoadVerdict::Keep);
        assert_eq!(loads.take(SYSCALL, &other(4, "pid=1")), LoadVerdict::Write);
        assert_eq!(loads.decided(false), [], "still loading");
        loads.programs.assume(7);
        drop(loading);
        let decided = [
            (BPF, bpf(2, 8, "LOAD")),
            (SYSCALL, other(2, "pid=1")),
            (BPF, bpf(3, 8, "UNLOAD")),
        ];
        assert_eq!(loads.decided(false), decided);
        assert_eq!(loads.take(BPF, &bpf(5, 7, "UNLOAD")), LoadVerdict::Keep);
    }

    /// A kernel whose programs are loaded by this process and others, and its queue of records.
    struct Kernel {
        loads: OwnLoads,
        queue: VecDeque<Vec<u8>>,
        serial: u32,
        /// Programs that are there: id, and whether it is an own one.
        there: Vec<(u32, bool)>,
        /// Records of others that were made, and records that were written.
        made: Vec<Vec<u8>>,
        written: Vec<Vec<u8>>,
    }

    impl Kernel {
        fn record(&mut self, id: u32, op: &str, is_own: bool) {
            self.serial += 1;
            let record = bpf(self.serial, id, op);
            if !is_own {
                self.made.push(record.clone());
            }
            self.queue.push_back(record);
        }

        /// Loads a program under an id that no record on its way is about, with others at the same time.
        fn load(&mut self, id: u32, is_own: bool, other: u32) {
            let loading = is_own.then(|| self.loads.programs.load());
            self.record(id, "LOAD", is_own);
            self.there.push((id, is_own));
            if loading.is_some() {
                self.record(other, "LOAD", false);
                self.read(usize::MAX);
                self.record(other, "UNLOAD", false);
                self.loads.programs.assume(id);
            }
        }

        fn unload(&mut self, place: usize) {
            let (id, is_own) = self.there.swap_remove(place);
            self.record(id, "UNLOAD", is_own);
        }

        fn read(&mut self, records: usize) {
            for (_, message) in self.loads.decided(false) {
                self.written.push(message);
            }
            for _ in 0..records.min(self.queue.len()) {
                let message = self.queue.pop_front().unwrap();
                match self.loads.take(BPF, &message) {
                    LoadVerdict::Write => self.written.push(message),
                    LoadVerdict::Keep => {}
                    LoadVerdict::WriteAfter(_) => panic!("there is no call"),
                }
            }
        }
    }

    #[test]
    fn whatever_the_order_the_log_has_exactly_the_records_of_others() {
        let mut kernel = Kernel {
            loads: loads(&[]),
            queue: VecDeque::new(),
            serial: 0,
            there: Vec::new(),
            made: Vec::new(),
            written: Vec::new(),
        };
        let mut random: u64 = 1;
        let mut next = move |below: usize| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            (random >> 33) as usize % below
        };
        for round in 0..5000 {
            let id = 2 * (round % 40);
            let is_free = !kernel.there.iter().any(|(there, _)| *there == id);
            match next(3) {
                0 if is_free => {
                    // Ids are used again once all records about them are read.
                    kernel.read(usize::MAX);
                    kernel.load(id, next(2) == 0, id + 1);
                }
                1 if !kernel.there.is_empty() => kernel.unload(next(kernel.there.len())),
                _ => kernel.read(next(4)),
            }
        }
        kernel.read(usize::MAX);
        kernel.read(0);
        let (mut written, mut made) = (kernel.written, kernel.made);
        assert!(made.len() > 1000, "{}", made.len());
        written.sort();
        made.sort();
        assert_eq!(written, made);
    }

    #[test]
    fn what_is_held_at_the_end_is_written() {
        let mut loads = loads(&[]);
        let _loading = loads.programs.load();
        assert_eq!(loads.take(BPF, &bpf(1, 7, "LOAD")), LoadVerdict::Keep);
        assert_eq!(loads.decided(true), [(BPF, bpf(1, 7, "LOAD"))]);
    }

    #[test]
    fn no_more_than_a_number_of_records_is_held() {
        let mut loads = loads(&[]);
        let _loading = loads.programs.load();
        for id in 0..HELD_MAX as u32 {
            assert_eq!(loads.take(BPF, &bpf(id, id, "LOAD")), LoadVerdict::Keep);
        }
        let more = bpf(HELD_MAX as u32, HELD_MAX as u32, "LOAD");
        assert_eq!(loads.take(BPF, &more), LoadVerdict::Write);
    }

    #[test]
    fn the_call_of_the_daemon_that_loaded_a_program_is_left_out_too() {
        let mut loads = loads(&[7]);
        assert_eq!(loads.take(BPF, &bpf(1, 7, "LOAD")), LoadVerdict::Keep);
        let call = other(1, &format!("ppid=1 pid={OWN_PID} auid=0"));
        assert_eq!(loads.take(SYSCALL, &call), LoadVerdict::Keep);
        assert_eq!(
            loads.take(PROCTITLE, &other(1, "proctitle=41")),
            LoadVerdict::Keep
        );
        assert_eq!(loads.take(EOE, &other(1, "")), LoadVerdict::Keep);
        assert_eq!(loads.take(SYSCALL, &call), LoadVerdict::Write, "it is over");
    }

    #[test]
    fn a_call_of_another_process_that_ends_an_own_program_is_written_as_a_whole() {
        let mut loads = loads(&[7]);
        assert_eq!(loads.take(BPF, &bpf(1, 7, "LOAD")), LoadVerdict::Keep);
        let end = bpf(2, 7, "UNLOAD");
        assert_eq!(loads.take(BPF, &end), LoadVerdict::Keep);
        let call = other(2, &format!("ppid={OWN_PID} pid=71"));
        assert_eq!(loads.take(SYSCALL, &call), LoadVerdict::WriteAfter(end));
        assert_eq!(loads.take(PROCTITLE, &other(2, "")), LoadVerdict::Write);
    }

    #[test]
    fn text_that_is_no_record_of_a_program_is_written() {
        let mut loads = loads(&[7]);
        for text in [
            "",
            "prog-id=7 op=LOAD",
            "audit(1.002:1): op=LOAD",
            "audit(1.002:1): prog-id=x op=LOAD",
        ] {
            assert_eq!(
                loads.take(BPF, text.as_bytes()),
                LoadVerdict::Write,
                "{text}"
            );
        }
    }
}
