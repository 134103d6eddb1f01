//! Waiting for something, with a deadline.

use std::time::{Duration, Instant};

/// Time after which something that is waited for has failed.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `is_so`, up to the deadline.
pub fn await_that(what: &str, is_so: impl FnMut() -> bool) {
    await_for(DEADLINE, what, is_so);
}

/// Waits until `is_so`, at most `most`.
pub fn await_for(most: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + most;
    while !is_so() {
        assert!(Instant::now() < end, "not within {most:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
