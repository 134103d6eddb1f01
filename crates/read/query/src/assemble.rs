//! Assembles the records of a log into events.
//!
//! The rules are those of ausearch: a record joins the open event with its node, time and
//! serial; an event is complete when it is of a type that has one record, or when a new event begins
//! whose time is at least the timeout later; complete events come out in the order of their time, as
//! soon as no earlier one is open. ausearch looks through all open events for each record; here they
//! stand in an ordered map.
//!
//! Without `--compat`, every event comes out when a new one begins that is the timeout later, and an
//! event that is written late takes its turn by the time at which it came ([`since_s`]). So the order
//! in which events come out depends on their own times and on the times at which others begin, not on
//! what others there are: blocks of a log that hold nothing of interest can be left out
//! ([`Assembler::leave_out`]).

use crate::event::{Event, Key};
use crate::head::{head, Head, NoHead};
use crate::{kind, Dialect};
use abi::record_type as kinds;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Limit of the bytes of open events; beyond it, the earliest counts as complete. Only a log with
/// hundreds of thousands of records in two seconds reaches it.
const OPEN_BYTES_MAX: usize = 96 << 20;
/// Limit of open events; beyond it, the earliest counts as complete.
const OPEN_EVENTS_MAX: usize = 1 << 18;

/// Range of seconds since 1970 whose records are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// First second, 0 for any.
    pub start_s: i64,
    /// Last second, 0 for any.
    pub end_s: i64,
}

impl TimeRange {
    /// Whether a second is in the range.
    pub fn contains(self, sec: u64) -> bool {
        let sec = i64::try_from(sec).unwrap_or(i64::MAX);
        (self.start_s == 0 || sec >= self.start_s) && (self.end_s == 0 || sec <= self.end_s)
    }
}

/// Time of an event, its order among those of the same time, and its slot. ausearch gives out events
/// of the same time by their slots; without `--compat`, in the order in which they began.
type OpenKey = (u64, u32, u64, u64, usize);

#[derive(Default)]
struct Slot {
    event: Event,
    /// Takes no more records.
    is_complete: bool,
    /// May come out.
    is_due: bool,
}

impl Slot {
    fn complete(&mut self) {
        (self.is_complete, self.is_due) = (true, true);
    }
}

/// Second from which the timeout of an event counts that begins at `sec`, behind one of second `last_s`. An event that is
/// written late would otherwise be over before its second record. ausearch splits it.
pub(crate) fn since_s(sec: u64, last_s: u64, timeout_s: u64, dialect: Dialect) -> u64 {
    if !dialect.is_compat() && last_s >= sec.saturating_add(timeout_s) {
        last_s
    } else {
        sec
    }
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    NoRecord,
    /// A record outside the range of time, or an end without an event.
    Nothing,
    Record,
}

/// The state machine from lines to events.
pub struct Assembler {
    dialect: Dialect,
    timeout_s: u64,
    range: TimeRange,
    slots: Vec<Slot>,
    free: BinaryHeap<Reverse<usize>>,
    open: BTreeMap<OpenKey, ()>,
    /// Key of the event that got the last record; records of an event mostly stand together.
    last: Option<OpenKey>,
    begun: u64,
    /// Second of the event that began last.
    last_s: u64,
    /// The open events in the order in which they come out: by the second from which their timeout counts.
    waiting: BTreeSet<(u64, OpenKey)>,
    open_bytes: usize,
    first_time: Option<(u64, u32)>,
    has_records: bool,
    bad_times: Vec<Vec<u8>>,
}

impl Assembler {
    /// A machine for records in `range`. `timeout_s` is `end_of_event_timeout` of auditd.conf(5).
    pub fn new(dialect: Dialect, timeout_s: u64, range: TimeRange) -> Assembler {
        Assembler {
            dialect,
            timeout_s,
            range,
            slots: Vec::new(),
            free: BinaryHeap::new(),
            open: BTreeMap::new(),
            last: None,
            begun: 0,
            last_s: 0,
            waiting: BTreeSet::new(),
            open_bytes: 0,
            first_time: None,
            has_records: false,
            bad_times: Vec::new(),
        }
    }

    /// The program whose behaviour is followed.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Takes a line, with or without its newline. Returns whether it is a record of interest.
    pub fn add(&mut self, line: &[u8]) -> bool {
        self.read(line) == Taken::Record
    }

    /// Takes the lines of an event that are made from a line of JSON.
    pub(crate) fn add_object<'l>(&mut self, object: &[u8], lines: impl Iterator<Item = &'l [u8]>) {
        let taken = lines
            .map(|line| self.add(line))
            .filter(|is_taken| *is_taken);
        let records = taken.count();
        // All lines are of the event that got the last of them.
        let place = if records > 0 { self.last } else { None };
        if let Some(place) = place {
            self.open_bytes += object.len();
            self.slots[place.4].event.push_object(object, records);
        }
    }

    /// Takes a line without `--compat`. Returns whether it is a record at all.
    pub(crate) fn take(&mut self, line: &[u8]) -> bool {
        self.read(line) != Taken::NoRecord
    }

    fn read(&mut self, line: &[u8]) -> Taken {
        let line = match self.dialect {
            // C's strings end at a zero.
            Dialect::Compat => &line[..memchr::memchr(0, line).unwrap_or(line.len())],
            Dialect::Own => line,
        };
        let head = match head(line, self.timeout_s, self.dialect) {
            Ok(head) => head,
            Err(NoHead::NoRecord) => return Taken::NoRecord,
            Err(NoHead::BadTime(text)) => {
                if self.dialect.is_compat() {
                    self.bad_times.push(text.to_vec());
                }
                return Taken::NoRecord;
            }
        };

        // aureport's range of time begins with the first record, even if that is outside the range asked for.
        self.has_records = true;
        let is_inside = self.range.contains(head.sec);
        if self.first_time.is_none_or(|first| first.0 == 0)
            && (!is_inside || self.range.start_s == 0)
        {
            self.first_time = Some((head.sec, head.msec));
        }

        if !is_inside {
            return Taken::Nothing;
        }

        if let Some(place) = self.find(&head) {
            self.last = Some(place);
            self.open_bytes += line.len();
            self.slots[place.4]
                .event
                .push(head.kind, line, self.dialect);
            return Taken::Record;
        }

        // An end whose event is not open begins none.
        if head.kind == kinds::EOE {
            return Taken::Nothing;
        }

        self.begin(&head, line);
        Taken::Record
    }

    /// The place of the open event of this head.
    fn find(&self, head: &Head<'_>) -> Option<OpenKey> {
        let is_its = |place: &OpenKey| {
            let slot = &self.slots[place.4];
            !slot.is_complete && slot.event.key.node.as_deref() == head.node
        };
        let time = (head.sec, head.msec, head.serial);

        // Records of an event mostly follow each other, which saves the look-up in the tree.
        if let Some(last) = self.last {
            if (last.0, last.1, last.2) == time && self.open.contains_key(&last) && is_its(&last) {
                return Some(last);
            }
        }

        let (from, to) = (
            (time.0, time.1, time.2, 0, 0),
            (time.0, time.1, time.2, u64::MAX, usize::MAX),
        );
        self.open.range(from..=to).map(|each| *each.0).find(is_its)
    }

    fn begin(&mut self, head: &Head<'_>, line: &[u8]) {
        let number = match self.free.pop() {
            Some(Reverse(number)) => number,
            None => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
        };

        let slot = &mut self.slots[number];
        slot.event.key = Key {
            sec: head.sec,
            msec: head.msec,
            serial: head.serial,
            node: head.node.map(Box::from),
        };

        slot.event.push(head.kind, line, self.dialect);
        // Without `--compat`, the other records of an event may come in any order.
        slot.is_complete = self.dialect.is_compat() && kind::is_single(head.kind, self.dialect);
        slot.is_due = slot.is_complete;
        let since_s = since_s(head.sec, self.last_s, self.timeout_s, self.dialect);
        self.last_s = head.sec;
        self.open_bytes += line.len();
        self.begun += 1;

        // Events of one time and serial number come out in the order in which they began.
        let order = if self.dialect.is_compat() {
            0
        } else {
            self.begun
        };

        let place = (head.sec, head.msec, head.serial, order, number);
        self.open.insert(place, ());
        self.waiting.insert((since_s, place));
        self.last = Some(place);

        // Only the beginning of an event moves the clock, as in ausearch: late records of others do not.
        self.complete_until(head.sec);

        // Memory is bounded: the event that would come out first counts as whole.
        if self.open_bytes > OPEN_BYTES_MAX || self.open.len() > OPEN_EVENTS_MAX {
            if let Some((_, first)) = self.waiting.first() {
                self.slots[first.4].complete();
            }
        }
    }

    /// Completes the events that are older than the timeout at `sec`. All of them come out before the next line.
    fn complete_until(&mut self, sec: u64) {
        let Some(limit) = sec.checked_sub(self.timeout_s) else {
            return;
        };
        for (_, place) in self.waiting.iter().take_while(|each| each.0 <= limit) {
            self.slots[place.4].complete();
        }
    }

    /// Completes the events that are due when an event begins at `sec`. That event is left out, because
    /// its block of the log holds nothing of interest.
    pub fn leave_out(&mut self, sec: u64) {
        self.last_s = sec;
        self.complete_until(sec);
    }

    /// The next complete event, if no earlier one is open. Give it back by [`Assembler::recycle`].
    pub fn pop(&mut self) -> Option<Event> {
        let (_, place) = *self.waiting.first()?;
        let number = place.4;
        if !self.slots[number].is_due {
            return None;
        }
        self.waiting.pop_first();
        self.open.remove(&place);
        self.free.push(Reverse(number));
        let event = std::mem::take(&mut self.slots[number].event);
        self.open_bytes = self.open_bytes.saturating_sub(event.bytes());
        Some(event)
    }

    /// Takes an event back, so that its memory is used again.
    pub fn recycle(&mut self, mut event: Event) {
        event.clear();
        if let Some(Reverse(number)) = self.free.peek() {
            self.slots[*number].event = event;
        }
    }

    /// Completes all events, at the end of the last file.
    pub fn finish(&mut self) {
        for (place, ()) in &self.open {
            self.slots[place.4].complete();
        }
    }

    /// Completes the events that have a record of a type that comes last.
    pub fn finish_ended(&mut self) {
        for (place, ()) in &self.open {
            let slot = &mut self.slots[place.4];
            let is_last = |kind| kind::is_single(kind, self.dialect);
            if slot.event.records().any(|record| is_last(record.kind)) {
                slot.complete();
            }
        }
    }

    /// Second and millisecond of the first record of the log, as aureport's range of time begins.
    pub fn first_time(&self) -> Option<(u64, u32)> {
        self.first_time
    }

    /// Whether a line was a record, in the range of time or not.
    pub fn has_records(&self) -> bool {
        self.has_records
    }

    /// The times that could not be read since the last call, for the message of `--compat`.
    pub fn take_bad_times(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.bad_times)
    }
}
