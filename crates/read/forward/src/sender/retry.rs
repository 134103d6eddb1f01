//! Times the outages and the next attempts, by the clock that never jumps.

use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_millis(100);
const MOST: Duration = Duration::from_secs(30);

/// The attempts since the last one that succeeded.
#[derive(Debug)]
pub(super) struct Retry {
    failing_since: Option<Instant>,
    next_wait: Duration,
    has_acted: bool,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            failing_since: None,
            next_wait: FIRST,
            has_acted: false,
        }
    }
}

impl Retry {
    /// Something arrived.
    pub(super) fn succeeded(&mut self) {
        *self = Retry::default();
    }

    /// Notes that nothing arrived at `now`. Returns the time to wait.
    pub(super) fn failed(&mut self, now: Instant) -> Duration {
        self.failing_since.get_or_insert(now);
        let wait = jittered(self.next_wait);
        self.next_wait = (self.next_wait * 2).min(MOST);
        wait
    }

    /// The next attempt comes soon: something has changed.
    pub(super) fn hurry(&mut self) {
        self.next_wait = FIRST;
    }

    /// Whether the last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Duration of the outage, once it is at least `after`; returned once for each outage.
    pub(super) fn outage(&mut self, after: Duration, now: Instant) -> Option<Duration> {
        let lasted = now.saturating_duration_since(self.failing_since?);
        let is_due = lasted >= after && !self.has_acted;
        self.has_acted |= is_due;
        is_due.then_some(lasted)
    }
}

/// Between half and the whole of `wait`: senders do not come back all at once.
fn jittered(wait: Duration) -> Duration {
    let mut byte = [0; 1];
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut byte);
    wait / 2 + wait * u32::from(byte[0]) / 512
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_limit_and_begin_again_after_a_success() {
        let (mut retry, now) = (Retry::default(), Instant::now());
        for number in 0..40 {
            let most = (FIRST * 2_u32.pow(number.min(20))).min(MOST);
            let wait = retry.failed(now);
            assert!(wait >= most / 2 && wait <= most, "{number}: {wait:?}");
        }
        retry.hurry();
        assert!(retry.failed(now) <= FIRST && retry.is_failing());
        retry.succeeded();
        assert!(!retry.is_failing() && retry.failed(now) <= FIRST);
    }

    #[test]
    fn an_outage_is_told_once() {
        let (mut retry, now) = (Retry::default(), Instant::now());
        let minute = Duration::from_secs(60);
        assert_eq!(retry.outage(minute, now), None);
        retry.failed(now);
        retry.failed(now + minute / 2);
        assert_eq!(retry.outage(minute, now + minute / 2), None);
        assert_eq!(retry.outage(minute, now + minute), Some(minute));
        assert_eq!(retry.outage(minute, now + minute * 2), None);
        retry.succeeded();
        retry.failed(now + minute * 3);
        assert!(retry.outage(minute, now + minute * 5).is_some());
    }
}
