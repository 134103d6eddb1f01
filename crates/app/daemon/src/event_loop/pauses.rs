//! Times in which the daemon does not look at the rings although it is awake.

/// The longest time between two looks at the rings. Waiting for events does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pauses {
    /// CLOCK_MONOTONIC of the last look, in nanoseconds; `None` before the first.
    last_ns: Option<u64>,
    longest_ns: u64,
}

impl Pauses {
    /// The rings are looked at now. Returns `now_ns`.
    pub(crate) fn look(&mut self, now_ns: u64) -> u64 {
        let pause_ns = self
            .last_ns
            .map_or(0, |last_ns| now_ns.saturating_sub(last_ns));
        self.longest_ns = self.longest_ns.max(pause_ns);
        self.last_ns = Some(now_ns);
        now_ns
    }

    /// The daemon has waited until now for something to do.
    pub(crate) fn rested(&mut self, now_ns: u64) {
        self.last_ns = Some(now_ns);
    }

    /// The longest pause since the start, in nanoseconds.
    pub(crate) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_no_pause() {
        let mut pauses = Pauses::default();
        pauses.look(5_000);
        pauses.look(5_300);
        pauses.rested(900_000);
        pauses.look(900_100);
        assert_eq!(pauses.longest_ns(), 300);
    }
}
