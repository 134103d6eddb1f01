//! Tables of how often something occurs.

use std::collections::HashMap;
use std::hash::Hash;

type Map<K> = HashMap<K, Count, foldhash::fast::RandomState>;

/// Bytes that a table takes without `--compat`, before what is new is only counted.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of an entry beside its text.
const ENTRY_BYTES: usize = 64;

/// Number of occurrences, and place of the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    pub(super) hits: u64,
    first: u128,
}

/// Counts by text or number.
#[derive(Debug)]
pub(super) struct Table<K> {
    entries: Map<K>,
    bytes: usize,
    bytes_max: usize,
    /// Hits of values for which there was no room.
    pub(super) others: u64,
}

/// Counts by text.
pub(super) type Texts = Table<Box<[u8]>>;
/// Counts by number.
pub(super) type Numbers = Table<i32>;

impl<K: Hash + Eq + Ord + Clone> Table<K> {
    /// An empty table, without a memory limit if it must be `exact`.
    pub(super) fn new(exact: bool) -> Table<K> {
        Table {
            entries: Map::default(),
            bytes: 0,
            bytes_max: if exact { usize::MAX } else { BYTES_MAX },
            others: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn insert(&mut self, key: K, bytes: usize, count: Count) {
        self.bytes += bytes + ENTRY_BYTES;
        if self.bytes <= self.bytes_max {
            self.entries.insert(key, count);
        } else {
            self.others += count.hits
        }
    }

    fn absorb(&mut self, other: Table<K>, bytes_of: fn(&K) -> usize) {
        self.others += other.others;
        for (key, count) in other.entries {
            match self.entries.get_mut(&key) {
                Some(mine) => {
                    mine.hits += count.hits;
                    mine.first = mine.first.min(count.first);
                }
                None => {
                    let bytes = bytes_of(&key);
                    self.insert(key, bytes, count);
                }
            }
        }
    }

    /// All entries, most hits first. Among equal hits, `by_number` puts the smallest number first, otherwise the value
    /// that occurred first.
    fn sorted(&self, by_number: bool) -> Vec<(&K, Count)> {
        let mut rows: Vec<_> = self
            .entries
            .iter()
            .map(|(key, count)| (key, *count))
            .collect();
        rows.sort_unstable_by(|a, b| {
            let tie = if by_number {
                a.0.cmp(b.0)
            } else {
                a.1.first.cmp(&b.1.first)
            };
            b.1.hits.cmp(&a.1.hits).then(tie)
        });

        rows
    }
}

impl Texts {
    /// Counts `text`, which occurs at `place`: a number that ascends with the log.
    pub(super) fn add(&mut self, text: &[u8], place: u128) {
        self.add_hits(text, 1, place);
    }

    /// Counts `text`, which occurs `hits` times, for the first time at `place`.
    pub(super) fn add_hits(&mut self, text: &[u8], hits: u64, place: u128) {
        match self.entries.get_mut(text) {
            Some(count) => {
                count.hits += hits;
                count.first = count.first.min(place);
            }
            None => self.insert(text.into(), text.len(), Count { hits, first: place }),
        }
    }

    pub(super) fn merge(&mut self, other: Texts) {
        self.absorb(other, |text| text.len());
    }

    /// Most hits first, then what occurred first.
    pub(super) fn rows(&self) -> Vec<(&[u8], u64)> {
        let rows = self.sorted(false).into_iter();
        rows.map(|(text, count)| (&**text, count.hits)).collect()
    }
}

impl Numbers {
    pub(super) fn add(&mut self, number: i32) {
        self.add_hits(number, 1);
    }

    /// Counts a number that occurs `hits` times.
    pub(super) fn add_hits(&mut self, number: i32, hits: u64) {
        match self.entries.get_mut(&number) {
            Some(count) => count.hits += hits,
            None => self.insert(number, 0, Count { hits, first: 0 }),
        }
    }

    pub(super) fn merge(&mut self, other: Numbers) {
        self.absorb(other, |_| 0);
    }

    /// Most hits first, then the least number.
    pub(super) fn rows(&self) -> Vec<(i32, u64)> {
        let rows = self.sorted(true).into_iter();
        rows.map(|(number, count)| (*number, count.hits)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_in_the_order_of_the_log_or_of_the_numbers() {
        let mut one = Texts::new(true);
        let mut two = Texts::new(true);
        for (place, text) in [b"b", b"a", b"b"].iter().enumerate() {
            one.add(*text, place as u128);
        }
        two.add(b"c", 10);
        two.add(b"a", 11);
        two.merge(one);
        assert_eq!(two.rows(), [(&b"b"[..], 2), (b"a", 2), (b"c", 1)]);
        let mut numbers = Numbers::new(true);
        for number in [7, -1, 3, 3] {
            numbers.add(number);
        }
        assert_eq!(numbers.rows(), [(3, 2), (-1, 1), (7, 1)]);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut texts = Texts::new(false);
        for number in 0..400_000_u64 {
            texts.add(format!("{number}").as_bytes(), number.into());
        }
        assert!(texts.others > 0);
        assert_eq!(texts.len() as u64 + texts.others, 400_000);
    }
}
