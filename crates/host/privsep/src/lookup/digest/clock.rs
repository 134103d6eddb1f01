//! Times of events on the clock that files are stamped with.

use crate::lookup::kernel::{monotonic_ns, realtime_ns};

/// Difference of two readings of the clocks that is no step, in nanoseconds.
const STEP_NS: u64 = 1_000_000;
/// Largest number of readings of the clocks for one measurement.
const READINGS: usize = 100;
/// Part of the elapsed time by which the clock may be slewed: twice the 500 ppm of adjtimex(2).
const SLEW_PART: u64 = 1000;

/// Relates CLOCK_MONOTONIC, which times events, to CLOCK_REALTIME, which times files.
///
/// Between an event and the last step of CLOCK_REALTIME, in either direction, an earlier change of
/// a file may have a later time, or the other way around. Then there is no answer.
pub(super) struct EventClock {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    offset_ns: i64,
    /// Time of that measurement, in nanoseconds of CLOCK_MONOTONIC.
    measured_ns: u64,
    /// The clock may have been set before this time.
    stepped_ns: u64,
}

impl EventClock {
    /// Knows the clock from now on.
    pub(super) fn now() -> EventClock {
        let reading = Reading::now();
        EventClock {
            offset_ns: reading.offset_ns,
            measured_ns: reading.at_ns,
            stepped_ns: reading.at_ns,
        }
    }

    /// Knows all times since the boot.
    #[cfg(test)]
    pub(super) fn since_boot() -> EventClock {
        EventClock {
            stepped_ns: 0,
            ..EventClock::now()
        }
    }

    /// Reads the clocks. Returns whether CLOCK_REALTIME was set since the last call.
    pub(super) fn measure(&mut self) -> bool {
        self.take(Reading::now())
    }

    fn take(&mut self, reading: Reading) -> bool {
        let elapsed = reading.at_ns.saturating_sub(self.measured_ns);
        let most = STEP_NS + elapsed / SLEW_PART;
        let is_set = reading.offset_ns.abs_diff(self.offset_ns) > most;
        if is_set {
            self.stepped_ns = reading.at_ns;
        }
        (self.offset_ns, self.measured_ns) = (reading.offset_ns, reading.at_ns);
        is_set
    }

    /// CLOCK_REALTIME at a time of CLOCK_MONOTONIC, by the last measurement.
    pub(super) fn realtime(&self, time_ns: u64) -> Option<i64> {
        let is_known = time_ns > self.stepped_ns;
        is_known.then(|| (time_ns as i64).wrapping_add(self.offset_ns))
    }
}

/// Both clocks at one time.
#[derive(Clone, Copy)]
struct Reading {
    at_ns: u64,
    offset_ns: i64,
}

impl Reading {
    /// Reads the clocks again if the process did not run for a while between two of them.
    fn now() -> Reading {
        let readings = (0..READINGS).map(|_| {
            let (before, real, after) = (monotonic_ns(), realtime_ns(), monotonic_ns());
            (after.saturating_sub(before), Reading::of(before, real))
        });
        let mut best = (u64::MAX, Reading::of(0, 0));
        for reading in readings {
            if reading.0 < best.0 {
                best = reading;
            }
            if best.0 < STEP_NS / 20 {
                break;
            }
        }

        best.1
    }

    fn of(monotonic_ns: u64, realtime_ns: u64) -> Reading {
        Reading {
            at_ns: monotonic_ns,
            offset_ns: (realtime_ns as i64).wrapping_sub(monotonic_ns as i64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn at(monotonic_ns: u64, realtime_ns: u64) -> EventClock {
        let reading = Reading::of(monotonic_ns, realtime_ns);
        EventClock {
            offset_ns: reading.offset_ns,
            measured_ns: monotonic_ns,
            stepped_ns: monotonic_ns,
        }
    }

    #[test]
    fn an_event_from_before_a_step_or_the_start_has_no_time() {
        let mut clock = at(100 * S, 5000 * S);
        assert_eq!(clock.realtime(100 * S), None);
        assert_eq!(clock.realtime(101 * S), Some(5001 * S as i64));
        for step in [4990 * S, 5100 * S] {
            let mut clock = at(100 * S, 5000 * S);
            assert!(clock.take(Reading::of(110 * S, step)));
            assert_eq!(clock.realtime(109 * S), None);
            let expected = step as i64 + S as i64;
            assert_eq!(clock.realtime(111 * S), Some(expected));
            assert!(!clock.take(Reading::of(111 * S, step + S)));
        }
        assert!(!clock.take(Reading::of(110 * S, 5010 * S + 500)));
    }

    #[test]
    fn a_slewed_clock_was_not_set() {
        let mut clock = at(0, 5000 * S);
        // An hour, with the clock slower by 500 ppm.
        let slewed = 3600 * S - 3600 * S / 2000;
        assert!(!clock.take(Reading::of(3600 * S, 5000 * S + slewed)));
        assert!(clock.take(Reading::of(3601 * S, 5000 * S + slewed)));
    }
}
