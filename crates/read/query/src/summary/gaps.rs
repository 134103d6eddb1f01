//! Gaps of a log: missing serial numbers, and times without events.

use super::ids::Fast;
use std::collections::{BTreeMap, HashMap};

/// Size of a jump from which serial numbers count as started again.
const RESTART: u64 = 1_000_000;
/// The least serial number that Tarsier gives; the kernel's are below.
const OURS: u64 = 1_000_000_000;
/// Ranges of missing numbers that are kept.
const RANGES_MAX: usize = 4096;
/// Nodes whose serial numbers are followed.
const NODES_MAX: usize = 256;
/// Shortest time without events that is reported, in milliseconds.
const SILENCE_MS: u64 = 60_000;

/// Serial numbers that no event has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialGap {
    /// Value of `node=`; empty without one.
    pub node: Box<[u8]>,
    /// First number that is missing.
    pub first: u64,
    /// Last number that is missing.
    pub last: u64,
    /// Time of the event behind the gap, in milliseconds since 1970.
    pub time_ms: u64,
}

/// A time without events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// Time of the event before it, in milliseconds since 1970.
    pub from_ms: u64,
    /// Time of the event behind it.
    pub to_ms: u64,
}

/// Finds gaps of serial numbers. Events may come a little out of order.
#[derive(Debug, Default)]
pub(crate) struct Serials {
    /// Runs by node, of the kernel's numbers and of Tarsier's.
    runs: [HashMap<Box<[u8]>, Run, Fast>; 2],
    has_unfollowed: bool,
}

#[derive(Debug, Default)]
struct Run {
    last: Option<u64>,
    /// First missing number → last missing number and time.
    missing: BTreeMap<u64, (u64, u64)>,
    /// Numbers of ranges that were dropped to bound memory.
    dropped: u64,
}

impl Serials {
    pub(crate) fn add(&mut self, node: &[u8], serial: u64, time_ms: u64) {
        let kind = serial >= OURS;
        let runs = &mut self.runs[usize::from(kind)];
        if let Some(run) = runs.get_mut(node) {
            return run.add(serial, time_ms);
        }
        if runs.len() >= NODES_MAX {
            self.has_unfollowed = true;
            return;
        }

        let mut run = Run::default();
        run.add(serial, time_ms);
        runs.insert(node.into(), run);
    }

    /// The gaps, latest last, and the sum of missing numbers.
    pub(crate) fn gaps(&self) -> (Vec<SerialGap>, u64) {
        let mut gaps = Vec::new();
        let mut sum = 0;
        for (node, run) in self.runs.iter().flatten() {
            sum += run.dropped;
            for (first, (last, time_ms)) in &run.missing {
                sum += last - first + 1;
                gaps.push(SerialGap {
                    node: node.clone(),
                    first: *first,
                    last: *last,
                    time_ms: *time_ms,
                });
            }
        }

        gaps.sort_by_key(|gap| (gap.time_ms, gap.first));
        (gaps, sum)
    }

    /// Missing numbers of a node that are in no gap of [`Serials::gaps`].
    pub(crate) fn dropped(&self, node: &[u8]) -> u64 {
        let its = self.runs.iter().filter_map(|runs| runs.get(node));
        its.map(|run| run.dropped).sum()
    }

    /// Whether there were too many nodes to follow all.
    pub(super) fn has_unfollowed(&self) -> bool {
        self.has_unfollowed
    }
}

impl Run {
    fn add(&mut self, serial: u64, time_ms: u64) {
        let Some(last) = self.last else {
            self.last = Some(serial);
            return;
        };

        // After a jump another boot counts, or a daemon that began anew: nothing is missing between.
        if serial.abs_diff(last) >= RESTART {
            self.last = Some(serial);
        } else if serial > last {
            self.last = Some(serial);
            if serial > last + 1 {
                self.missing.insert(last + 1, (serial - 1, time_ms));
            }
        } else {
            self.found(serial);
        }

        if self.missing.len() > RANGES_MAX {
            if let Some((first, (last, _))) = self.missing.pop_first() {
                self.dropped += last - first + 1;
            }
        }
    }

    /// Takes a number that came late out of the missing ones.
    fn found(&mut self, serial: u64) {
        let Some((&first, &(last, time_ms))) = self.missing.range(..=serial).next_back() else {
            return;
        };
        if serial > last {
            return;
        }

        self.missing.remove(&first);
        if first < serial {
            self.missing.insert(first, (serial - 1, time_ms));
        }

        if serial < last {
            self.missing.insert(serial + 1, (last, time_ms));
        }
    }
}

/// Finds the longest times without events.
#[derive(Debug, Default)]
pub(super) struct Silences {
    last_ms: Option<u64>,
    longest: Vec<Silence>,
}

impl Silences {
    pub(super) fn add(&mut self, time_ms: u64, most: usize) {
        let last_ms = self.last_ms.replace(self.last_ms.unwrap_or(0).max(time_ms));
        let Some(from_ms) = last_ms.filter(|last| time_ms.saturating_sub(*last) >= SILENCE_MS)
        else {
            return;
        };

        self.longest.push(Silence {
            from_ms,
            to_ms: time_ms,
        });
        self.longest
            .sort_by_key(|silence| std::cmp::Reverse(silence.to_ms - silence.from_ms));
        self.longest.truncate(most);
    }

    /// Longest first.
    pub(super) fn longest(&self) -> &[Silence] {
        &self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_serial_numbers_are_found_and_late_ones_are_not_missing() {
        let mut serials = Serials::default();
        for serial in [5, 6, 9, 7, 12, 2_000_000_000, 2_000_000_001, 2_000_000_003] {
            serials.add(b"a", serial, serial);
        }
        // Begun anew.
        serials.add(b"a", 1_200_000_000, 20);
        let (gaps, sum) = serials.gaps();
        let ranges: Vec<_> = gaps.iter().map(|gap| (gap.first, gap.last)).collect();
        assert_eq!(ranges, [(8, 8), (10, 11), (2_000_000_002, 2_000_000_002)]);
        assert_eq!(sum, 4);
    }

    #[test]
    fn the_longest_times_without_events_are_kept() {
        let mut silences = Silences::default();
        for time_ms in [0, 10, 70_000, 200_000, 200_500, 200_100, 260_500] {
            silences.add(time_ms, 2);
        }
        let [first, second] = silences.longest() else {
            panic!("{silences:?}");
        };
        assert_eq!((first.from_ms, first.to_ms), (70_000, 200_000));
        assert_eq!((second.from_ms, second.to_ms), (10, 70_000));
    }
}
