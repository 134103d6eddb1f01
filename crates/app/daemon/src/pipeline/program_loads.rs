//! BPF records of programs whose loading is recorded. Tarsier writes such a record in the event of
//! bpf(2), and drops the kernel's own, which comes over the audit socket with a serial of its own.
//!
//! Either may come first: it depends on how soon the rings and the socket are read. A record of the kernel is thus held
//! until the event has come, or is not going to.

use record::text;
use std::collections::VecDeque;

/// Longest time between the kernel's record and the end of the call.
const HELD_NS: u64 = 1_000_000_000;
/// Longest time between the event and the kernel's record, which may wait in the kernel's queue.
const EXPECTED_NS: u64 = 10_000_000_000;
/// Limit of both lists.
const PROGRAMS_MAX: usize = 4096;

/// The programs of which one of the two records has come.
#[derive(Default)]
pub(crate) struct ProgramLoads {
    /// Ids of recorded programs without a record of the kernel, and when they were recorded.
    expected: VecDeque<(u32, u64)>,
    held: VecDeque<Held>,
}

/// A record of the kernel without an event of the call.
struct Held {
    prog_id: u32,
    since_ns: u64,
    message: Vec<u8>,
}

impl ProgramLoads {
    /// Takes the text of a BPF record that the kernel has made. Returns whether it must not be
    /// written now: it is dropped if the event of the call is written, and held otherwise if
    /// `may_come`.
    pub(crate) fn take(&mut self, message: &[u8], may_come: bool, now_ns: u64) -> bool {
        let Some(prog_id) = loaded(message) else {
            return false;
        };

        let place = self.expected.iter().position(|(id, _)| *id == prog_id);
        if let Some(place) = place {
            self.expected.remove(place);
            return true;
        }

        let is_held = may_come && self.held.len() < PROGRAMS_MAX;
        if is_held {
            self.held.push_back(Held {
                prog_id,
                since_ns: now_ns,
                message: message.to_vec(),
            });
        }
        is_held
    }

    /// Notes that the loading of a program was recorded.
    pub(crate) fn recorded(&mut self, prog_id: u32, now_ns: u64) {
        let place = self.held.iter().position(|held| held.prog_id == prog_id);
        if let Some(place) = place {
            self.held.remove(place);
            return;
        }
        let is_old = |(_, since_ns): &(u32, u64)| now_ns.saturating_sub(*since_ns) > EXPECTED_NS;
        while self.expected.len() >= PROGRAMS_MAX || self.expected.front().is_some_and(is_old) {
            self.expected.pop_front();
        }
        self.expected.push_back((prog_id, now_ns));
    }

    /// Takes out a held record whose event has not come in time.
    pub(crate) fn overdue(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let first = self.held.front()?;
        let is_due = now_ns.saturating_sub(first.since_ns) > HELD_NS;
        is_due
            .then(|| self.held.pop_front())
            .flatten()
            .map(|held| held.message)
    }
}

/// The program that a BPF record says was loaded.
fn loaded(message: &[u8]) -> Option<u32> {
    let (_, body) = text::parse_message(message).ok()?;
    let value = |name: &[u8]| {
        let mut fields = text::fields(body);
        fields
            .find(|field| field.name == name)
            .map(|field| field.value)
    };
    if value(b"op") != Some(b"LOAD") {
        return None;
    }
    u32::try_from(text::number(value(b"prog-id")?, 10)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: &[u8] = b"audit(1.002:3): prog-id=7 op=LOAD";

    #[test]
    fn the_kernel_s_record_of_a_recorded_load_is_dropped_in_either_order() {
        let mut loads = ProgramLoads::default();
        assert!(loads.take(LOAD, true, 0));
        loads.recorded(7, 10);
        assert_eq!(loads.overdue(u64::MAX), None);
        loads.recorded(7, 20);
        assert!(loads.take(LOAD, true, 30));
        assert_eq!(loads.overdue(u64::MAX), None);
    }

    #[test]
    fn a_load_that_no_rule_selects_keeps_its_record() {
        let mut loads = ProgramLoads::default();
        assert!(!loads.take(LOAD, false, 0), "no rule is about bpf(2)");
        assert!(loads.take(LOAD, true, 0));
        loads.recorded(8, 10);
        assert_eq!(loads.overdue(HELD_NS), None);
        assert_eq!(loads.overdue(HELD_NS + 1).as_deref(), Some(LOAD));
        assert_eq!(loads.overdue(HELD_NS + 1), None);
    }

    #[test]
    fn an_event_waits_for_its_record_for_some_seconds() {
        let mut loads = ProgramLoads::default();
        loads.recorded(7, 0);
        loads.recorded(8, EXPECTED_NS + 1);
        assert!(!loads.take(LOAD, false, EXPECTED_NS + 2));
    }

    #[test]
    fn other_records_are_none_of_its_business() {
        let mut loads = ProgramLoads::default();
        loads.recorded(7, 0);
        assert!(!loads.take(b"audit(1.002:3): prog-id=7 op=UNLOAD", true, 0));
        assert!(!loads.take(b"no stamp", true, 0));
    }
}
