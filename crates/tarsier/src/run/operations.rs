//! io_uring operations under way: their events wait here for their results.

use event::wire::{self, Event, OperationResult, WireError};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// How many the programs remember: `URING_PENDING_MAX` of bpf/uring.h. Events beyond are those
/// whose result did not fit its ring.
const IN_FLIGHT_MAX: usize = 65536;
/// An operation that posts no completion when it succeeds has succeeded when it has not failed
/// for so long.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// How often they are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Events without a result yet, by id.
#[derive(Default)]
pub(super) struct Operations {
    pending: HashMap<u64, Pending>,
    looked_at: Option<Instant>,
}

struct Pending {
    frame: Vec<u8>,
    since: Instant,
    is_silent: bool,
}

impl Operations {
    /// Keeps a PENDING event until its result comes.
    pub(super) fn submitted(&mut self, event: &Event<'_>, frame: &[u8]) {
        let pending = Pending {
            frame: frame.to_vec(),
            since: Instant::now(),
            is_silent: event.has_flag(wire::TARSIER_SILENT),
        };
        self.pending.insert(event.header().frame.id, pending);
    }

    /// The whole event, once its result is there; `None` if the event was lost.
    pub(super) fn completed(
        &mut self,
        result: &OperationResult<'_>,
    ) -> Result<Option<Vec<u8>>, WireError> {
        let id = result.header.frame.id;
        let frame = if result.has_flag(wire::TARSIER_RESULT_MORE) {
            self.pending.get(&id).map(|pending| pending.frame.clone())
        } else {
            self.pending.remove(&id).map(|pending| pending.frame)
        };
        let Some(mut frame) = frame else {
            return Ok(None);
        };
        result.complete(&mut frame)?;
        Ok(Some(frame))
    }

    /// Whether [`Operations::overdue`] is worth a call.
    pub(super) fn is_due(&self) -> bool {
        let is_time = |last: Instant| last.elapsed() >= LOOK_EVERY;
        !self.pending.is_empty() && self.looked_at.is_none_or(is_time)
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether there are events whose result can never come.
    pub(super) fn has_orphans(&self) -> bool {
        self.pending.len() > IN_FLIGHT_MAX
    }

    /// Events that have succeeded in silence.
    pub(super) fn overdue(&mut self) -> Vec<Vec<u8>> {
        self.looked_at = Some(Instant::now());
        let is_over = |p: &Pending| p.is_silent && p.since.elapsed() >= SILENT_AFTER;
        self.take(is_over, Some(0))
    }

    /// Forgets the events that are not `in_flight`: their results were lost, and counted.
    pub(super) fn keep(&mut self, in_flight: &HashSet<u64>) {
        self.pending
            .retain(|id, pending| pending.is_silent || in_flight.contains(id));
    }

    /// All events, without result: the recording ends.
    pub(super) fn take_all(&mut self) -> Vec<Vec<u8>> {
        let mut frames = self.take(|pending| pending.is_silent, Some(0));
        frames.extend(self.take(|_| true, None));
        frames
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
            .filter_map(|id| self.pending.remove(id))
            .filter_map(|mut pending| {
                wire::end_pending(&mut pending.frame, exit).ok()?;
                Some(pending.frame)
            })
            .collect()
    }
}
