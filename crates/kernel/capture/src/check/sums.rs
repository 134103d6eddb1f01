//! Checks that the events that the programs have counted were all taken from the rings.

use record::wire;

/// Compares the two counts whenever the rings are empty.
#[derive(Default)]
pub(crate) struct Sums {
    /// Events taken from the rings so far.
    taken: u64,
    /// Number by which the programs' count of events exceeds the number taken here; it includes events that an earlier
    /// daemon took. `None` before the first comparison.
    more: Option<u64>,
    /// A different value of `more`, which only the last comparison has found. A program counts an event after it has
    /// put it into the ring.
    suspect: Option<u64>,
}

impl Sums {
    /// A frame was taken from a ring.
    pub(crate) fn take(&mut self, frame: &[u8]) {
        let kind = frame.get(4..6).and_then(|kind| kind.try_into().ok());
        let is_event = kind.map(u16::from_ne_bytes) == Some(wire::TARSIER_FRAME_EVENT as u16);
        self.taken += u64::from(is_event);
    }

    /// The rings are empty, and the programs have counted `counted` events. Returns the change of the difference
    /// between the two counts, once two comparisons in a row have found it.
    pub(crate) fn compare(&mut self, counted: u64) -> Option<i64> {
        let more = counted.wrapping_sub(self.taken);
        let before = *self.more.get_or_insert(more);

        if more == before {
            self.suspect = None;
            return None;
        }

        // A program counts an event after the ring has it, so a difference counts if it stays.
        if self.suspect.replace(more) != Some(more) {
            return None;
        }

        self.suspect = None;
        self.more = Some(more);
        Some(more.wrapping_sub(before) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Vec<u8> {
        let kind = (wire::TARSIER_FRAME_EVENT as u16).to_ne_bytes();
        [&[0; 4], &kind[..], &[0; 18]].concat()
    }

    #[test]
    fn what_an_earlier_daemon_took_is_no_difference() {
        let mut sums = Sums::default();
        assert_eq!(sums.compare(1000), None);
        sums.take(&event());
        assert_eq!(sums.compare(1001), None);
    }

    #[test]
    fn a_difference_is_reported_once_and_only_if_it_stays() {
        let mut sums = Sums::default();
        sums.take(&event());
        assert_eq!(sums.compare(1), None);
        // The program on another CPU has not counted it yet.
        sums.take(&event());
        assert_eq!(sums.compare(1), None);
        assert_eq!(sums.compare(2), None);
        // Events that nobody took.
        assert_eq!(sums.compare(5), None);
        assert_eq!(sums.compare(5), Some(3));
        assert_eq!(sums.compare(5), None);
        // Events that nobody counted.
        sums.take(&event());
        assert_eq!(sums.compare(5), None);
        assert_eq!(sums.compare(5), Some(-1));
        // Other frames, and what is too short for one, do not count.
        sums.take(&[0; 24]);
        sums.take(&[]);
        assert_eq!(sums.compare(5), None);
    }
}
