//! Counts of the engine's events by outcome.

use compose::Outcome;

/// Outcomes of the engine's events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) recorded: u64,
    /// Candidates that no rule selects, and events that an exclude rule drops.
    pub(crate) dropped: u64,
    pub(crate) malformed: u64,
    /// Events for which there was no time at the end.
    pub(crate) unread: u64,
    /// Events that were not recorded because of auditctl's -r.
    pub(crate) over_rate: u64,
    /// Events, undecided ones included, over the budget of their rule as the daemon counts it.
    pub(crate) over_budget: u64,
}

impl Totals {
    /// Number of events that came and were not recorded, for whatever reason.
    pub(crate) fn not_recorded(&self) -> u64 {
        self.dropped + self.malformed + self.unread + self.over_rate + self.over_budget
    }

    /// Counts the outcome of a frame. Returns whether an event was recorded.
    pub(crate) fn count(&mut self, outcome: &Outcome) -> bool {
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
