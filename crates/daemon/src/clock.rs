//! The clocks of this machine.

use rustix::time::{clock_gettime, ClockId};

/// Nanoseconds of CLOCK_MONOTONIC.
pub(super) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Nanoseconds since 1970 (CLOCK_REALTIME).
pub(super) fn realtime_ns() -> u64 {
    nanoseconds(ClockId::Realtime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
