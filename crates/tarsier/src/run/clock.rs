//! Times of events: probes give CLOCK_MONOTONIC, the log wants CLOCK_REALTIME.

use rustix::time::{clock_gettime, ClockId};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(super) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds of the epoch.
pub(super) fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What turns a monotonic time into a time of the epoch, as of now.
pub(super) struct Clock {
    offset_ns: u64,
}

impl Clock {
    /// Reads both clocks.
    pub(super) fn now() -> Clock {
        Clock {
            offset_ns: realtime_ns().wrapping_sub(monotonic_ns()),
        }
    }

    /// Time of the epoch, nanoseconds.
    pub(super) fn unix_ns(&self, monotonic_ns: u64) -> u64 {
        self.offset_ns.wrapping_add(monotonic_ns)
    }
}

/// Serial numbers of the events made here. They start high, so that they do not meet the kernel's
/// own, which start at 1 with each boot.
pub(super) struct Serials {
    next: u32,
}

const FIRST: u32 = 1_000_000_000;

impl Serials {
    /// A sequence that starts elsewhere each time.
    pub(super) fn new() -> Serials {
        Serials {
            next: FIRST + (realtime_ns() % u64::from(FIRST)) as u32,
        }
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u32 {
        let serial = self.next;
        self.next = serial.checked_add(1).unwrap_or(FIRST);
        serial
    }
}
