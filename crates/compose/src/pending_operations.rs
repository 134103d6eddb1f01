//! io_uring operations that have not completed: their events wait here for their results.

use crate::system::System;
use event::wire::{self, Event, OperationResult, WireError};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// Largest number of operations that the programs remember. If more events wait here, results were lost because a ring
/// was full.
const IN_FLIGHT_MAX: usize = wire::TARSIER_PENDING_MAX as usize;
/// Largest size of the waiting events of one uid, and of all, in bytes. What does not fit is recorded at once, without a
/// result. A usual event has 500 bytes.
const UID_BYTES_MAX: usize = 32 << 20;
const BYTES_MAX: usize = 256 << 20;
/// Time after which a SILENT operation, which posts no completion when it succeeds, counts as successful.
const SILENT_AFTER_NS: u64 = 2_000_000_000;
/// Largest number and size, in bytes, of the results that wait for their events, and the longest time for which they do.
const EARLY_MAX: usize = 1 << 16;
const EARLY_BYTES_MAX: usize = 4 << 20;
const EARLY_NS_MAX: u64 = 60_000_000_000;
/// Interval at which waiting events are checked.
const LOOK_EVERY_NS: u64 = 1_000_000_000;

/// The events that wait for a result, by id.
pub struct PendingOperations {
    system: Arc<dyn System>,
    pending: HashMap<u64, Pending>,
    /// Size of the waiting events, of each uid and of all.
    bytes_by_uid: HashMap<u32, usize>,
    bytes: usize,
    looked_at_ns: Option<u64>,
    early: EarlyResults,
    /// Further events of results that had come early.
    whole: Vec<Vec<u8>>,
}

/// Results that came before their events: a task that is preempted while it writes to its CPU's ring holds up what is
/// behind it, and meanwhile the operation ends on another CPU.
#[derive(Default)]
struct EarlyResults {
    /// Frames by the id of the event, oldest first.
    frames: HashMap<u64, Vec<Vec<u8>>>,
    bytes: usize,
    /// Id and time of each arrival, oldest first, also of those that have been taken since.
    arrivals: VecDeque<(u64, u64)>,
}

impl EarlyResults {
    /// Keeps a result, and forgets those whose events cannot be expected any more.
    fn keep(&mut self, id: u64, now_ns: u64, frame: &[u8]) {
        self.bytes += frame.len();
        self.frames.entry(id).or_default().push(frame.to_vec());
        self.arrivals.push_back((id, now_ns));
        while let Some(&(first, since_ns)) = self.arrivals.front() {
            let is_old = now_ns.saturating_sub(since_ns) > EARLY_NS_MAX;
            let is_full = self.bytes > EARLY_BYTES_MAX || self.arrivals.len() > EARLY_MAX;
            if !is_old && !is_full {
                break;
            }
            self.arrivals.pop_front();
            self.take(first);
        }
    }

    /// Takes the results of an operation, oldest first.
    fn take(&mut self, id: u64) -> Vec<Vec<u8>> {
        let found = self.frames.remove(&id).unwrap_or_default();
        self.bytes -= found.iter().map(Vec::len).sum::<usize>();
        found
    }
}

struct Pending {
    frame: Vec<u8>,
    uid: u32,
    since_ns: u64,
    is_silent: bool,
}

impl PendingOperations {
    /// No events. Waiting times are measured with the monotonic clock of `system`.
    pub(crate) fn new(system: Arc<dyn System>) -> PendingOperations {
        PendingOperations {
            system,
            pending: HashMap::new(),
            bytes_by_uid: HashMap::new(),
            bytes: 0,
            looked_at_ns: None,
            early: EarlyResults::default(),
            whole: Vec::new(),
        }
    }

    /// Keeps a PENDING event, with its frame, until its result arrives. If that has come before, the frame of the complete
    /// event is returned (of several, the first; [`overdue`](Self::overdue) has the others), and if there is no room for it,
    /// that of an event without a result.
    ///
    /// # Errors
    /// The frame has no event, or a result does not fit it.
    pub(crate) fn submitted(
        &mut self,
        event: &Event<'_>,
        frame: &[u8],
    ) -> Result<Option<Vec<u8>>, WireError> {
        let id = event.header().frame.id;
        let results = self.early.take(id);
        let uid = event.header().uid;
        let of_uid = self.bytes_by_uid.get(&uid).copied().unwrap_or(0);
        if of_uid + frame.len() > UID_BYTES_MAX || self.bytes + frame.len() > BYTES_MAX {
            let mut frame = frame.to_vec();
            wire::end_pending(&mut frame, None)?;
            return Ok(Some(frame));
        }
        self.forget(id);
        self.bytes += frame.len();
        *self.bytes_by_uid.entry(uid).or_default() += frame.len();
        let pending = Pending {
            frame: frame.to_vec(),
            uid,
            since_ns: self.system.monotonic_ns(),
            is_silent: event.has_flag(wire::TARSIER_SILENT),
        };
        self.pending.insert(id, pending);
        let mut first = None;
        for result in &results {
            let whole = self.completed(&OperationResult::parse(result)?, result)?;
            match first {
                None => first = whole,
                Some(_) => self.whole.extend(whole),
            }
        }
        Ok(first)
    }

    /// Takes out what waits with this id.
    fn forget(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.bytes -= pending.frame.len();
        if let Entry::Occupied(mut bytes) = self.bytes_by_uid.entry(pending.uid) {
            *bytes.get_mut() -= pending.frame.len();
            if *bytes.get() == 0 {
                bytes.remove();
            }
        }
        Some(pending)
    }

    /// The frame of the event completed by `result`, which `frame` has; `None` if the event has not come yet, or was lost.
    /// If more results follow (multishot), the event goes on waiting.
    ///
    /// # Errors
    /// The result does not fit the event's frame.
    pub(crate) fn completed(
        &mut self,
        result: &OperationResult<'_>,
        frame: &[u8],
    ) -> Result<Option<Vec<u8>>, WireError> {
        let id = result.header.frame.id;
        let waiting = if result.has_flag(wire::TARSIER_RESULT_MORE) {
            self.pending.get(&id).map(|pending| pending.frame.clone())
        } else {
            self.forget(id).map(|pending| pending.frame)
        };
        let Some(mut waiting) = waiting else {
            self.early.keep(id, self.system.monotonic_ns(), frame);
            return Ok(None);
        };
        result.complete(&mut waiting)?;
        Ok(Some(waiting))
    }

    /// Whether events wait and were last checked, by [`Composer::overdue`](crate::Composer::overdue), a second or more
    /// ago.
    pub fn is_due(&self) -> bool {
        let is_time = |last_ns: u64| self.since_ns(last_ns) >= LOOK_EVERY_NS;
        !self.is_empty() && self.looked_at_ns.is_none_or(is_time)
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.whole.is_empty()
    }

    /// Number of events that are lost if the daemon is killed now: those that wait here, and those whose results do.
    pub fn len(&self) -> usize {
        self.pending.len() + self.whole.len() + self.early.frames.len()
    }

    /// Whether more events wait than the programs can remember, so that some results can never arrive.
    pub fn has_orphans(&self) -> bool {
        self.pending.len() > IN_FLIGHT_MAX
    }

    /// Takes the complete events that are left, and the SILENT ones that have waited for two seconds, as frames with exit
    /// 0, in the order of their ids.
    pub(crate) fn overdue(&mut self) -> Vec<Vec<u8>> {
        let now_ns = self.system.monotonic_ns();
        self.looked_at_ns = Some(now_ns);
        let is_over = |pending: &Pending| {
            pending.is_silent && now_ns.saturating_sub(pending.since_ns) >= SILENT_AFTER_NS
        };
        let mut frames = std::mem::take(&mut self.whole);
        frames.extend(self.take(is_over, Some(0)));
        frames
    }

    /// Drops the events that are not `in_flight`, except SILENT ones: their results were lost, and counted as lost.
    pub fn keep(&mut self, in_flight: &HashSet<u64>) {
        let is_gone =
            |(id, pending): &(&u64, &Pending)| !pending.is_silent && !in_flight.contains(id);
        let gone: Vec<u64> = self
            .pending
            .iter()
            .filter(is_gone)
            .map(|(&id, _)| id)
            .collect();
        for id in gone {
            self.forget(id);
        }
    }

    /// Takes all events at the end of the recording: SILENT ones with exit 0, the others without a result.
    pub(crate) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut frames = std::mem::take(&mut self.whole);
        frames.extend(self.take(|pending| pending.is_silent, Some(0)));
        frames.extend(self.take(|_| true, None));
        frames
    }

    fn since_ns(&self, then_ns: u64) -> u64 {
        self.system.monotonic_ns().saturating_sub(then_ns)
    }

    fn take(&mut self, wanted: impl Fn(&Pending) -> bool, exit: Option<i64>) -> Vec<Vec<u8>> {
        let mut ids: Vec<u64> = self
            .pending
            .iter()
            .filter(|(_, pending)| wanted(pending))
            .map(|(&id, _)| id)
            .collect();
        ids.sort_unstable();
        ids.iter()
            .filter_map(|&id| self.forget(id))
            .filter_map(|mut pending| {
                wire::end_pending(&mut pending.frame, exit).ok()?;
                Some(pending.frame)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::StaticSystem;
    use crate::test_frame::{result_frame, TestFrame};
    use std::sync::atomic::Ordering;

    fn pending(id: u64, flags: u32) -> Vec<u8> {
        let mut frame = TestFrame::of_call(0);
        frame.header.frame.id = id;
        frame.header.flags = wire::TARSIER_URING | wire::TARSIER_PENDING | flags;
        frame.bytes()
    }

    fn submit(operations: &mut PendingOperations, id: u64, flags: u32) {
        let frame = pending(id, flags);
        let event = Event::parse(&frame).expect("a frame");
        assert_eq!(operations.submitted(&event, &frame), Ok(None));
    }

    fn complete(operations: &mut PendingOperations, frame: &[u8]) -> Option<Vec<u8>> {
        let result = OperationResult::parse(frame).expect("a frame");
        operations.completed(&result, frame).expect("it fits")
    }

    fn result_of(frame: &[u8]) -> Option<i64> {
        Event::parse(frame).expect("a frame").exit()
    }

    #[test]
    fn an_event_is_complete_when_its_result_comes_and_comes_once() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        submit(&mut operations, 5, 0);
        let result = result_frame(5, -2);
        let whole = complete(&mut operations, &result);
        assert_eq!(whole.as_deref().and_then(result_of), Some(-2));
        assert_eq!(complete(&mut operations, &result), None);
        assert!(operations.is_empty());
    }

    #[test]
    fn results_that_come_before_their_event_complete_it() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        let mut first = result_frame(5, 3);
        let at = std::mem::offset_of!(wire::tarsier_result, flags);
        first[at..at + 4].copy_from_slice(&wire::TARSIER_RESULT_MORE.to_ne_bytes());
        for result in [&first, &result_frame(6, 0), &result_frame(5, 4)] {
            assert_eq!(complete(&mut operations, result), None);
        }
        let frame = pending(5, 0);
        let event = Event::parse(&frame).expect("a frame");
        let whole = operations.submitted(&event, &frame).expect("they fit");
        assert_eq!(whole.as_deref().and_then(result_of), Some(3));
        assert!(operations.is_due());
        let further: Vec<_> = operations.overdue().iter().map(|f| result_of(f)).collect();
        assert_eq!(further, [Some(4)]);
        assert!(operations.is_empty());
        assert_eq!(operations.len(), 1, "the other result's");
    }

    #[test]
    fn results_whose_events_do_not_come_are_forgotten() {
        let system = Arc::new(StaticSystem::default());
        let mut operations = PendingOperations::new(system.clone());
        let most = EARLY_MAX.min(EARLY_BYTES_MAX / result_frame(0, 0).len());
        for id in 0..most as u64 + 10 {
            complete(&mut operations, &result_frame(id, 0));
        }
        assert_eq!(operations.early.frames.len(), most);
        assert!(operations.early.bytes <= EARLY_BYTES_MAX);
        system
            .monotonic_ns
            .store(EARLY_NS_MAX + 1, Ordering::Relaxed);
        complete(&mut operations, &result_frame(1, 0));
        assert_eq!(operations.early.frames.len(), 1);
        assert_eq!(operations.early.bytes, result_frame(1, 0).len());
    }

    #[test]
    fn what_does_not_fail_for_two_seconds_has_succeeded_in_silence() {
        let system = Arc::new(StaticSystem::default());
        let mut operations = PendingOperations::new(system.clone());
        submit(&mut operations, 1, wire::TARSIER_SILENT);
        submit(&mut operations, 2, 0);
        assert!(operations.is_due());
        assert!(operations.overdue().is_empty());
        assert!(!operations.is_due());
        system
            .monotonic_ns
            .store(SILENT_AFTER_NS, Ordering::Relaxed);
        assert!(operations.is_due());
        let over = operations.overdue();
        assert_eq!(over.len(), 1);
        assert_eq!(result_of(&over[0]), Some(0));
        assert_eq!(operations.len(), 1);
    }

    #[test]
    fn at_the_end_what_has_no_result_is_recorded_without_one() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        submit(&mut operations, 2, 0);
        submit(&mut operations, 1, wire::TARSIER_SILENT);
        let results: Vec<_> = operations.take_all().iter().map(|f| result_of(f)).collect();
        assert_eq!(results, [Some(0), None]);
    }

    #[test]
    fn operations_whose_result_was_lost_are_forgotten() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        for id in 1..=3 {
            submit(&mut operations, id, 0);
        }
        submit(&mut operations, 4, wire::TARSIER_SILENT);
        operations.keep(&HashSet::from([2]));
        assert_eq!(operations.len(), 2);
    }

    #[test]
    fn what_one_uid_has_no_room_for_is_recorded_at_once_and_others_have_theirs() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        let frame_of = |id: u64, uid: u32| {
            let mut frame = TestFrame::of_call(0);
            frame.header.frame.id = id;
            frame.header.uid = uid;
            frame.header.flags = wire::TARSIER_URING | wire::TARSIER_PENDING;
            frame.bytes()
        };
        let mut submitted = |id, uid| {
            let frame = frame_of(id, uid);
            let event = Event::parse(&frame).expect("a frame");
            operations.submitted(&event, &frame).expect("a frame")
        };
        let room = UID_BYTES_MAX / frame_of(0, 1).len();
        for id in 0..room as u64 {
            assert_eq!(submitted(id, 1), None);
        }
        let frame = submitted(1 << 32, 1).expect("there is no room");
        let event = Event::parse(&frame).expect("a frame");
        assert!(event.has_flag(wire::TARSIER_NO_RETURN) && !event.has_flag(wire::TARSIER_PENDING));
        assert_eq!(submitted(2 << 32, 2), None);
        let result = result_frame(0, 0);
        assert!(complete(&mut operations, &result).is_some());
        let frame = frame_of(1 << 32, 1);
        let event = Event::parse(&frame).expect("a frame");
        assert_eq!(operations.submitted(&event, &frame), Ok(None));
        assert_eq!(operations.take_all().len(), room + 1);
        assert_eq!((operations.bytes, operations.bytes_by_uid.len()), (0, 0));
    }
}
