//! Times of events on the clock that files are stamped with.

use crate::kernel::{monotonic_ns, realtime_ns};

/// Difference of two readings of the clocks that is no step, in nanoseconds.
const STEP_NS: i64 = 1_000_000;
/// Part of the elapsed time by which the clock may be slewed: twice the 500 ppm of adjtimex(2).
const SLEW_PART: u64 = 1000;

/// Relates CLOCK_MONOTONIC, which times events, to CLOCK_REALTIME, which times files.
///
/// Between an event and the last step of CLOCK_REALTIME, in either direction, an earlier change of
/// a file may have a later time, or the other way around. Then there is no answer.
pub(super) struct EventClock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    offset_ns: i64,
    /// When that was measured, in nanoseconds of CLOCK_MONOTONIC.
    measured_ns: u64,
    /// The clock may have been set before this time.
    stepped_ns: u64,
}

impl EventClock {
    /// Knows the clock from now on.
    pub(super) fn now() -> EventClock {
        EventClock::at(monotonic_ns(), realtime_ns())
    }

    fn at(monotonic_ns: u64, realtime_ns: u64) -> EventClock {
        EventClock {
            offset_ns: offset(monotonic_ns, realtime_ns),
            measured_ns: monotonic_ns,
            stepped_ns: monotonic_ns,
        }
    }

    /// Reads the clocks. Returns whether CLOCK_REALTIME was set since the last call.
    pub(super) fn measure(&mut self) -> bool {
        self.measure_at(monotonic_ns(), realtime_ns())
    }

    fn measure_at(&mut self, monotonic_ns: u64, realtime_ns: u64) -> bool {
        let new = offset(monotonic_ns, realtime_ns);
        let elapsed = monotonic_ns.saturating_sub(self.measured_ns);
        let most = STEP_NS + (elapsed / SLEW_PART) as i64;
        let is_set = new.abs_diff(self.offset_ns) > most.unsigned_abs();
        if is_set {
            self.stepped_ns = monotonic_ns;
        }
        (self.offset_ns, self.measured_ns) = (new, monotonic_ns);
        is_set
    }

    /// CLOCK_REALTIME at a time of CLOCK_MONOTONIC, by the last measurement.
    pub(super) fn realtime(&self, time_ns: u64) -> Option<i64> {
        let is_known = time_ns > self.stepped_ns;
        is_known.then(|| (time_ns as i64).wrapping_add(self.offset_ns))
    }
}

fn offset(monotonic_ns: u64, realtime_ns: u64) -> i64 {
    (realtime_ns as i64).wrapping_sub(monotonic_ns as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn an_event_from_before_a_step_or_the_start_has_no_time() {
        let mut clock = EventClock::at(100 * S, 5000 * S);
        assert_eq!(clock.realtime(100 * S), None);
        assert_eq!(clock.realtime(101 * S), Some(5001 * S as i64));
        for step in [4990 * S, 5100 * S] {
            let mut clock = EventClock::at(100 * S, 5000 * S);
            assert!(clock.measure_at(110 * S, step));
            assert_eq!(clock.realtime(109 * S), None);
            let expected = step as i64 + S as i64;
            assert_eq!(clock.realtime(111 * S), Some(expected));
            assert!(!clock.measure_at(111 * S, step + S));
        }
        assert!(!clock.measure_at(110 * S, 5010 * S + 500));
    }

    #[test]
    fn a_slewed_clock_was_not_set() {
        let mut clock = EventClock::at(0, 5000 * S);
        // An hour, with the clock slower by 500 ppm.
        let slewed = 3600 * S - 3600 * S / 2000;
        assert!(!clock.measure_at(3600 * S, 5000 * S + slewed));
        assert!(clock.measure_at(3601 * S, 5000 * S + slewed));
    }
}
