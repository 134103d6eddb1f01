//! The limit of records per second.

/// Limit of appended records per second, as for auditctl's -r. Events are not cut: one that begins below the limit is
/// recorded as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordRate {
    /// Records per second; 0: as many as there are.
    pub limit: u32,
    second: u64,
    records: u32,
}

impl RecordRate {
    /// Whether an event of this second of the monotonic clock may be appended.
    pub(crate) fn admits(&mut self, second: u64) -> bool {
        if second > self.second {
            self.second = second;
            self.records = 0;
        }
        self.limit == 0 || self.records < self.limit
    }

    /// Counts the records of an event that was appended: its `lines`.
    pub(crate) fn count(&mut self, lines: &[u8]) {
        if self.limit != 0 {
            let records = lines.iter().filter(|&&byte| byte == b'\n').count();
            self.records = self.records.saturating_add(records as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_begins_below_the_limit_is_whole_and_the_next_second_begins_anew() {
        let mut rate = RecordRate {
            limit: 3,
            ..RecordRate::default()
        };
        assert!(rate.admits(7));
        rate.count(b"a\nb\n");
        assert!(rate.admits(7));
        rate.count(b"c\nd\n");
        assert!(!rate.admits(7));
        // An event that was read late counts for the second that is being filled.
        assert!(!rate.admits(6));
        assert!(rate.admits(8));
    }

    #[test]
    fn without_a_limit_every_event_is_admitted() {
        let mut rate = RecordRate::default();
        rate.count(b"a\nb\n");
        assert!(rate.admits(0));
    }
}
