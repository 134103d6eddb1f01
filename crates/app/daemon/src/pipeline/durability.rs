//! Measures the time from a call until its record is durable, for `tarsier status`.

use journal::Position;
use std::collections::VecDeque;

/// Batches whose sync is awaited. If there are more, as in a mode without syncs, the oldest is
/// forgotten.
const BATCHES_MAX: usize = 4096;
/// Buckets of the histogram: four for each power of two nanoseconds.
const BUCKETS: usize = 64 * 4;

/// A histogram of times, and the batches that are not durable yet.
pub(crate) struct Durability {
    waiting: VecDeque<Batch>,
    buckets: [u64; BUCKETS],
    max_ns: u64,
}

/// Events that were written together.
struct Batch {
    /// The batch is durable once the journal is durable up to here.
    end: Position,
    events: u64,
    /// Time of the oldest event of the batch (CLOCK_MONOTONIC).
    oldest_ns: u64,
}

impl Default for Durability {
    fn default() -> Durability {
        Durability {
            waiting: VecDeque::new(),
            buckets: [0; BUCKETS],
            max_ns: 0,
        }
    }
}

impl Durability {
    /// Records that `events` events were written, the oldest of which happened at `oldest_ns`; the
    /// log now ends at `end`.
    pub(crate) fn written(&mut self, end: Position, events: u64, oldest_ns: u64) {
        if self.waiting.len() == BATCHES_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(Batch {
            end,
            events,
            oldest_ns,
        });
    }

    /// Records that everything up to `durable` was durable at `now_ns`.
    pub(crate) fn durable(&mut self, durable: Position, now_ns: u64) {
        while let Some(batch) = self.waiting.front().filter(|batch| batch.end <= durable) {
            let took_ns = now_ns.saturating_sub(batch.oldest_ns);
            self.buckets[bucket(took_ns)] += batch.events;
            self.max_ns = self.max_ns.max(took_ns);
            self.waiting.pop_front();
        }
    }

    /// The time, in microseconds, within which `share` of the events became durable, rounded up to
    /// a bucket of the histogram. Each event counts as being as old as the oldest of its batch.
    /// `None` before the first sync.
    pub(crate) fn quantile_us(&self, share: f64) -> Option<u64> {
        let all: u64 = self.buckets.iter().sum();
        if all == 0 {
            return None;
        }

        let wanted = (all as f64 * share).ceil() as u64;
        let mut seen = 0;
        let place = self.buckets.iter().position(|events| {
            seen += events;
            seen >= wanted
        });
        Some(upper_ns(place?).min(self.max_ns) / 1000)
    }
}

/// Bucket of a time: its octave and the quarter within it.
fn bucket(ns: u64) -> usize {
    let octave = ns.max(4).ilog2();
    let quarter = (ns.max(4) >> (octave - 2)) & 3;
    octave as usize * 4 + quarter as usize
}

/// Start of the next bucket, in nanoseconds.
fn upper_ns(bucket: usize) -> u64 {
    let (octave, quarter) = (bucket / 4, bucket as u64 % 4);
    (5 + quarter) << octave.saturating_sub(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(events: u64) -> Position {
        Position {
            bytes: events * 100,
            events,
        }
    }

    #[test]
    fn batches_count_when_a_sync_covers_them() {
        let mut durability = Durability::default();
        durability.written(at(99), 99, 1_000_000);
        durability.written(at(100), 1, 2_000_000);
        assert_eq!(durability.quantile_us(0.5), None);
        durability.durable(at(98), 3_000_000);
        assert_eq!(durability.quantile_us(0.5), None);
        durability.durable(at(99), 3_000_000);
        durability.durable(at(100), 102_000_000);
        let median = durability.quantile_us(0.5).unwrap();
        assert!((2_000..=2_500).contains(&median), "{median}");
        assert_eq!(durability.quantile_us(1.0), Some(100_000));
    }

    #[test]
    fn every_time_is_below_the_next_buckets() {
        for ns in (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) + 1, u64::MAX >> bit]) {
            let place = bucket(ns);
            assert!(place < BUCKETS);
            assert!(place == BUCKETS - 1 || upper_ns(place) > ns.max(3), "{ns}");
        }
    }
}
