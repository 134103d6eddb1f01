//! Times and serial numbers of events. The programs send CLOCK_MONOTONIC; the log has CLOCK_REALTIME.

use crate::system::System;

/// Converts monotonic times to Unix times, by the difference of the two clocks when it was made.
pub(crate) struct Clock {
    offset_ns: u64,
}

impl Clock {
    /// Reads both clocks of `system`.
    pub(crate) fn now(system: &dyn System) -> Clock {
        Clock {
            offset_ns: system.realtime_ns().wrapping_sub(system.monotonic_ns()),
        }
    }

    /// Nanoseconds since the Unix epoch.
    pub(crate) fn unix_ns(&self, monotonic_ns: u64) -> u64 {
        self.offset_ns.wrapping_add(monotonic_ns)
    }
}

/// Serial numbers of the events composed here. They start high so that they do not collide with the kernel's own, which
/// start at 1 at each boot.
pub struct Serials {
    next: u32,
}

/// Smallest serial number given here.
const FIRST: u32 = 1_000_000_000;

impl Serials {
    /// A sequence whose first number is taken from the current time, so that it differs after each start.
    pub(crate) fn new(system: &dyn System) -> Serials {
        Serials {
            next: FIRST + (system.realtime_ns() % u64::from(FIRST)) as u32,
        }
    }

    /// The next number; after `u32::MAX`, the sequence starts again at one billion.
    #[allow(clippy::should_implement_trait)] // it never ends
    pub fn next(&mut self) -> u32 {
        let serial = self.next;
        self.next = serial.checked_add(1).unwrap_or(FIRST);
        serial
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::StaticSystem;

    #[test]
    fn a_monotonic_time_becomes_one_of_the_epoch() {
        let clock = Clock::now(&StaticSystem::default());
        assert_eq!(clock.unix_ns(7), StaticSystem::BOOTED_NS + 7);
    }

    #[test]
    fn numbers_begin_high_and_again_after_the_last() {
        let mut serials = Serials::new(&StaticSystem::default());
        let first = serials.next();
        assert!(first >= FIRST);
        assert_eq!(serials.next(), first + 1);
        serials.next = u32::MAX;
        assert_eq!([serials.next(), serials.next()], [u32::MAX, FIRST]);
    }
}
