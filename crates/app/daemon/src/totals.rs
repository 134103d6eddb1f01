//! Counts of the engine's events by outcome.

use compose::Outcome;

/// Outcomes of the engine's events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) recorded: u64,
    /// Candidates that no rule selects, and events that an exclude rule drops.
    pub(super) dropped: u64,
    pub(super) malformed: u64,
    /// Events for which there was no time at the end.
    pub(super) unread: u64,
    /// Events that were not recorded because of auditctl's -r.
    pub(super) over_rate: u64,
    /// Events, undecided ones included, over the budget of their rule as the daemon counts it.
    pub(super) over_budget: u64,
}

impl Totals {
    /// Number of events that came and were not recorded, for whatever reason.
    pub(super) fn not_recorded(&self) -> u64 {
        self.dropped + self.malformed + self.unread + self.over_rate + self.over_budget
    }

    /// Counts the outcome of a frame. Returns whether an event was recorded.
    pub(super) fn count(&mut self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Recorded | Outcome::Urgent => {
                self.recorded += 1;
                return true;
            }
            Outcome::Dropped | Outcome::Excluded => self.dropped += 1,
            Outcome::OverRate => self.over_rate += 1,
            Outcome::Suppressed => self.over_budget += 1,
            Outcome::Part | Outcome::Canary(_) => {}
        }
        false
    }
}
