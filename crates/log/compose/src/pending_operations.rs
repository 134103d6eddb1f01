//! io_uring operations that have not completed. Their events wait here for their results, but not for long: then they
//! are recorded as pending, and each result becomes an event of its own.

use crate::generation::Generation;
use crate::system::System;
use record::wire::{self, Event, OperationResult, WireError};
use record::Stamp;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Largest number of operations that the programs remember. If more wait here, results were lost because a ring was full.
const IN_FLIGHT_MAX: usize = wire::TARSIER_PENDING_MAX as usize;
/// Largest size of the events of one uid, and of all, that are kept for a result, in bytes. What does not fit is
/// recorded at once, without a result. A usual event has 500 bytes.
const UID_BYTES_MAX: usize = 32 << 20;
const BYTES_MAX: usize = 256 << 20;
/// Time from its submission after which an operation is recorded without its result. With what the daemon takes to wake
/// and to write, an event is in the log within a second.
const WAIT_NS: u64 = 500_000_000;
/// Largest number and size, in bytes, of the results that wait for their events, and the longest time for which they do.
const EARLY_MAX: usize = 1 << 16;
const EARLY_BYTES_MAX: usize = 4 << 20;
const EARLY_NS_MAX: u64 = 60_000_000_000;

/// The events that wait for a result, by id.
pub struct PendingOperations {
    system: Arc<dyn System>,
    pending: HashMap<u64, Pending>,
    /// Ids of the events that wait, with the times of their submission, in the order in which they came.
    queue: VecDeque<(u64, u64)>,
    /// Number of events that wait, by the number of their rule set.
    waiting: HashMap<u64, usize>,
    /// Size of the events, of each uid and of all.
    bytes_by_uid: HashMap<u32, usize>,
    bytes: usize,
    early: EarlyResults,
    /// Further events of results that had come early.
    whole: Vec<Completed>,
}

/// An event with its result.
#[derive(Clone)]
pub(crate) struct Completed {
    /// The frame of the event.
    pub(crate) frame: Vec<u8>,
    /// The pending event that was recorded before.
    pub(crate) of: Option<PendingEvent>,
    /// Whether the result came with objects that the operation used.
    pub(crate) has_objects: bool,
}

/// An event that was recorded as pending.
#[derive(Clone)]
pub(crate) struct PendingEvent {
    pub(crate) stamp: Stamp,
    /// The rule set that selected it, and the rule.
    pub(crate) generation: Arc<Generation>,
    pub(crate) rule: u32,
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
    generation: u64,
    state: State,
}

/// What the log has of an operation.
enum State {
    /// Nothing.
    Waiting,
    /// An event with the first of several results.
    HasResult,
    /// An event without a result.
    Recorded(PendingEvent),
    /// Nothing, since no rule selects it.
    Dropped,
}

impl PendingOperations {
    /// No events. Times are those of the monotonic clock of `system`.
    pub(crate) fn new(system: Arc<dyn System>) -> PendingOperations {
        PendingOperations {
            system,
            pending: HashMap::new(),
            queue: VecDeque::new(),
            waiting: HashMap::new(),
            bytes_by_uid: HashMap::new(),
            bytes: 0,
            early: EarlyResults::default(),
            whole: Vec::new(),
        }
    }

    /// Keeps a PENDING event, with its frame, until its result arrives. If that has come before, the complete event is
    /// returned (of several, the first; [`overdue`](Self::overdue) has the others), and if there is no room for it, one
    /// without a result.
    ///
    /// # Errors
    /// The frame has no event, or a result does not fit it.
    pub(crate) fn submitted(
        &mut self,
        event: &Event<'_>,
        frame: &[u8],
    ) -> Result<Option<Completed>, WireError> {
        let header = event.header();
        let (id, uid, generation) = (header.frame.id, header.uid, header.generation);
        let results = self.early.take(id);
        let of_uid = self.bytes_by_uid.get(&uid).copied().unwrap_or(0);
        if of_uid + frame.len() > UID_BYTES_MAX || self.bytes + frame.len() > BYTES_MAX {
            let mut frame = frame.to_vec();
            wire::end_pending(&mut frame, None)?;
            return Ok(Some(Completed::first(frame)));
        }

        self.forget(id);
        self.bytes += frame.len();
        *self.bytes_by_uid.entry(uid).or_default() += frame.len();
        *self.waiting.entry(generation).or_default() += 1;
        self.queue.push_back((id, header.frame.time_ns));
        let pending = Pending {
            frame: frame.to_vec(),
            uid,
            generation,
            state: State::Waiting,
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

    /// Sets what the log has of an operation that has waited until now.
    fn set(&mut self, id: u64, state: State) {
        let Some(pending) = self.pending.get_mut(&id) else {
            return;
        };
        if matches!(pending.state, State::Waiting) {
            let generation = pending.generation;
            pending.state = state;
            self.release(generation);
        }
    }

    /// An event of this rule set no longer waits.
    fn release(&mut self, generation: u64) {
        if let Entry::Occupied(mut count) = self.waiting.entry(generation) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Takes out what is kept with this id.
    fn forget(&mut self, id: u64) -> Option<Pending> {
        let pending = self.pending.remove(&id)?;
        self.bytes -= pending.frame.len();
        if let Entry::Occupied(mut bytes) = self.bytes_by_uid.entry(pending.uid) {
            *bytes.get_mut() -= pending.frame.len();
            if *bytes.get() == 0 {
                bytes.remove();
            }
        }

        if matches!(pending.state, State::Waiting) {
            self.release(pending.generation);
        }
        Some(pending)
    }

    /// The event completed by `result`, which `frame` has; `None` if the event has not come yet, or was lost, or if no
    /// rule selects it. If more results follow (multishot), the event goes on waiting.
    ///
    /// # Errors
    /// The result does not fit the event's frame.
    pub(crate) fn completed(
        &mut self,
        result: &OperationResult<'_>,
        frame: &[u8],
    ) -> Result<Option<Completed>, WireError> {
        let id = result.header.frame.id;
        let Some(pending) = self.pending.get(&id) else {
            self.early.keep(id, self.system.monotonic_ns(), frame);
            return Ok(None);
        };

        let of = match &pending.state {
            State::Recorded(event) => Some(event.clone()),
            _ => None,
        };
        let is_dropped = matches!(pending.state, State::Dropped);
        let mut event = if result.has_flag(wire::TARSIER_RESULT_MORE) {
            let event = pending.frame.clone();
            self.set(id, State::HasResult);
            event
        } else {
            self.forget(id).map_or_else(Vec::new, |event| event.frame)
        };
        if is_dropped {
            return Ok(None);
        }

        // An event of its own is at the time of the result.
        let time_ns = of.is_some().then_some(result.header.frame.time_ns);
        result.complete(&mut event, time_ns)?;
        Ok(Some(Completed {
            frame: event,
            of,
            has_objects: result.has_objects(),
        }))
    }

    /// Time until [`Composer::overdue`](crate::Composer::overdue) has something to record; `None`: nothing waits.
    pub fn due_in(&mut self) -> Option<Duration> {
        if !self.whole.is_empty() {
            return Some(Duration::ZERO);
        }
        let since_ns = self.oldest()?.1;
        let waited_ns = self.system.monotonic_ns().saturating_sub(since_ns);
        Some(Duration::from_nanos(WAIT_NS.saturating_sub(waited_ns)))
    }

    /// The id of the first event that waits, and the time of its submission.
    fn oldest(&mut self) -> Option<(u64, u64)> {
        while let Some(&(id, since_ns)) = self.queue.front() {
            let pending = self.pending.get(&id);
            if pending.is_some_and(|pending| matches!(pending.state, State::Waiting)) {
                return Some((id, since_ns));
            }
            self.queue.pop_front();
        }
        None
    }

    /// Whether the rule set with this number is needed for an event that waits.
    pub(crate) fn need(&self, generation: u64) -> bool {
        self.waiting.contains_key(&generation)
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.whole.is_empty()
    }

    /// Number of events that are lost if the daemon is killed now: those that wait here, and those whose results do.
    pub fn len(&self) -> usize {
        self.waiting.values().sum::<usize>() + self.whole.len() + self.early.frames.len()
    }

    /// Whether more operations are kept than the programs can remember, so that some results can never arrive.
    pub fn has_orphans(&self) -> bool {
        self.pending.len() > IN_FLIGHT_MAX
    }

    /// Takes the complete events that are left.
    pub(crate) fn left(&mut self) -> Vec<Completed> {
        std::mem::take(&mut self.whole)
    }

    /// The next event that has waited long enough, as a frame that is PENDING and has no result.
    /// [`recorded`](Self::recorded) has to be called with its id.
    pub(crate) fn overdue(&mut self) -> Option<Vec<u8>> {
        let (id, since_ns) = self.oldest()?;
        if self.system.monotonic_ns().saturating_sub(since_ns) < WAIT_NS {
            return None;
        }

        self.queue.pop_front();
        let mut frame = self.pending.get(&id)?.frame.clone();
        match wire::without_result(&mut frame) {
            Ok(()) => Some(frame),
            Err(_) => {
                self.forget(id);
                None
            }
        }
    }

    /// Notes how an overdue event was recorded; `None`: not at all, and then its result is not, either.
    pub(crate) fn recorded(&mut self, id: u64, event: Option<PendingEvent>) {
        self.set(id, event.map_or(State::Dropped, State::Recorded));
    }

    /// Forgets the operations that are not `in_flight` and whose events do not wait: their results were lost, and
    /// counted as lost.
    pub fn keep(&mut self, in_flight: &HashSet<u64>) {
        let is_gone = |(id, pending): &(&u64, &Pending)| {
            !matches!(pending.state, State::Waiting) && !in_flight.contains(id)
        };
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

    /// Takes all events that wait at the end of the recording, as frames without a result, in the order of their ids, and
    /// forgets the others.
    pub(crate) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut ids: Vec<u64> = self.pending.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter()
            .filter_map(|id| self.forget(id))
            .filter(|pending| matches!(pending.state, State::Waiting))
            .filter_map(|mut pending| {
                wire::end_pending(&mut pending.frame, None).ok()?;
                Some(pending.frame)
            })
            .collect()
    }
}

impl Completed {
    /// An event that is the first one of its operation.
    pub(crate) fn first(frame: Vec<u8>) -> Completed {
        Completed {
            frame,
            of: None,
            has_objects: true,
        }
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
        frame.header.frame.time_ns = 7;
        frame.header.frame.id = id;
        frame.header.flags = wire::TARSIER_URING | wire::TARSIER_PENDING | flags;
        frame.bytes()
    }

    fn submit(operations: &mut PendingOperations, id: u64, flags: u32) {
        let frame = pending(id, flags);
        let event = Event::parse(&frame).expect("a frame");
        assert!(operations
            .submitted(&event, &frame)
            .expect("a frame")
            .is_none());
    }

    fn complete(operations: &mut PendingOperations, frame: &[u8]) -> Option<Vec<u8>> {
        let result = OperationResult::parse(frame).expect("a frame");
        let completed = operations.completed(&result, frame).expect("it fits");
        completed.map(|completed| completed.frame)
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
        assert_eq!(whole.and_then(|whole| result_of(&whole.frame)), Some(3));
        assert_eq!(operations.due_in(), Some(Duration::ZERO));
        let further: Vec<_> = operations
            .left()
            .iter()
            .map(|c| result_of(&c.frame))
            .collect();
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
    fn what_has_no_result_in_time_is_recorded_without_one_whoever_waits_for_it() {
        let system = Arc::new(StaticSystem::default());
        let mut operations = PendingOperations::new(system.clone());
        submit(&mut operations, 1, wire::TARSIER_SILENT);
        submit(&mut operations, 2, 0);
        assert_eq!(operations.due_in(), Some(Duration::from_nanos(WAIT_NS)));
        assert_eq!(operations.overdue(), None);
        assert!(complete(&mut operations, &result_frame(2, 0)).is_some());
        submit(&mut operations, 3, 0);
        let later_ns = 7 + WAIT_NS;
        system.monotonic_ns.store(later_ns, Ordering::Relaxed);
        assert_eq!(operations.due_in(), Some(Duration::ZERO));
        for id in [1, 3] {
            let frame = operations.overdue().expect("it is time");
            let event = Event::parse(&frame).expect("a frame");
            assert_eq!((event.header().frame.id, event.exit()), (id, None));
            assert!(event.has_flag(wire::TARSIER_PENDING));
            operations.recorded(id, None);
        }
        assert_eq!((operations.overdue(), operations.due_in()), (None, None));
        assert_eq!(operations.len(), 0, "nothing that a kill would lose");
    }

    #[test]
    fn the_result_of_what_no_rule_selects_is_not_kept() {
        let system = Arc::new(StaticSystem::default());
        let mut operations = PendingOperations::new(system.clone());
        submit(&mut operations, 1, 0);
        assert!(operations.need(1) && !operations.need(2));
        system.monotonic_ns.store(7 + WAIT_NS, Ordering::Relaxed);
        assert!(operations.overdue().is_some());
        operations.recorded(1, None);
        assert!(!operations.need(1) && !operations.is_empty());
        assert_eq!(complete(&mut operations, &result_frame(1, 0)), None);
        assert!(operations.is_empty() && operations.early.frames.is_empty());
    }

    #[test]
    fn at_the_end_what_has_no_result_is_recorded_without_one() {
        let mut operations = PendingOperations::new(Arc::new(StaticSystem::default()));
        submit(&mut operations, 2, 0);
        submit(&mut operations, 1, wire::TARSIER_SILENT);
        let frames = operations.take_all();
        for (frame, id) in frames.iter().zip([1, 2]) {
            let event = Event::parse(frame).expect("a frame");
            assert_eq!((event.header().frame.id, event.exit()), (id, None));
            assert!(!event.has_flag(wire::TARSIER_PENDING));
        }
        assert_eq!(frames.len(), 2);
    }

    #[test]
    fn operations_whose_result_was_lost_are_forgotten_when_they_are_in_the_log() {
        let system = Arc::new(StaticSystem::default());
        let mut operations = PendingOperations::new(system.clone());
        for id in 1..=3 {
            submit(&mut operations, id, 0);
        }
        operations.keep(&HashSet::from([2]));
        assert_eq!(operations.pending.len(), 3);
        for id in 1..=2 {
            operations.recorded(id, None);
        }
        operations.keep(&HashSet::from([2]));
        assert_eq!(operations.pending.len(), 2);
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
            assert!(submitted(id, 1).is_none());
        }
        let whole = submitted(1 << 32, 1).expect("there is no room");
        let event = Event::parse(&whole.frame).expect("a frame");
        assert!(event.has_flag(wire::TARSIER_NO_RETURN) && !event.has_flag(wire::TARSIER_PENDING));
        assert!(submitted(2 << 32, 2).is_none());
        let result = result_frame(0, 0);
        assert!(complete(&mut operations, &result).is_some());
        let frame = frame_of(1 << 32, 1);
        let event = Event::parse(&frame).expect("a frame");
        assert!(operations
            .submitted(&event, &frame)
            .expect("a frame")
            .is_none());
        assert_eq!(operations.take_all().len(), room + 1);
        assert_eq!((operations.bytes, operations.bytes_by_uid.len()), (0, 0));
    }
}
