//! Values that are made from bytes, kept by these bytes: parts of records occur again and again.

use std::hash::{BuildHasher, Hasher};

/// Values that are kept.
const SLOTS: usize = 2048;
/// Longest key that is kept.
const KEY_BYTES_MAX: usize = 1024;

/// Two texts by which a value is kept.
pub(crate) type MemoKey<'k> = [&'k [u8]; 2];

/// A table in which a new value takes the place of an older one, so that its memory is bounded and stays in a
/// processor's cache. Its hashes have a seed of each run: a log cannot foresee them.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    slots: Vec<Option<MemoEntry<T>>>,
    seed: foldhash::fast::RandomState,
}

#[derive(Debug)]
struct MemoEntry<T> {
    /// Both texts of the key, and the length of the first.
    bytes: Box<[u8]>,
    first_bytes: usize,
    value: T,
}

impl<T> MemoEntry<T> {
    fn has(&self, [first, second]: MemoKey<'_>) -> bool {
        self.first_bytes == first.len()
            && self.bytes.len() == first.len() + second.len()
            && self.bytes[..first.len()] == *first
            && self.bytes[first.len()..] == *second
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Memo<T> {
        Memo {
            slots: Vec::new(),
            seed: foldhash::fast::RandomState::default(),
        }
    }
}

impl<T> Memo<T> {
    /// Where a key stands.
    pub(crate) fn place(&self, [first, second]: MemoKey<'_>) -> usize {
        let mut hasher = self.seed.build_hasher();
        hasher.write(first);
        hasher.write(second);
        hasher.finish() as usize % SLOTS
    }

    /// The value of the key, which stands at `place`.
    pub(crate) fn get(&mut self, place: usize, key: MemoKey<'_>) -> Option<&mut T> {
        let slot = self.slots.get_mut(place)?.as_mut()?;
        slot.has(key).then_some(&mut slot.value)
    }

    /// Keeps a value at `place`. Returns the one that has to go for it, which may be itself.
    pub(crate) fn put(
        &mut self,
        place: usize,
        [first, second]: MemoKey<'_>,
        value: T,
    ) -> Option<T> {
        if first.len() + second.len() > KEY_BYTES_MAX {
            return Some(value);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }

        let slot = MemoEntry {
            bytes: [first, second].concat().into(),
            first_bytes: first.len(),
            value,
        };
        let before = self.slots[place].replace(slot);
        before.map(|slot| slot.value)
    }

    /// Takes all values out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        let slots = std::mem::take(&mut self.slots);
        slots.into_iter().flatten().map(|slot| slot.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_by_both_texts_until_another_takes_its_place() {
        let mut memo = Memo::default();
        let mut given_back = 0;
        let number = 3 * SLOTS as u32;
        for number in 0..number {
            let key = [&number.to_le_bytes()[..], b"x"];
            let place = memo.place(key);
            assert_eq!(memo.get(place, key), None);
            given_back += memo.put(place, key, 1).unwrap_or(0);
            assert_eq!(memo.get(place, key), Some(&mut 1));
            assert_eq!(memo.get(place, [key[0], b"y"]), None);
        }

        let long = [0; KEY_BYTES_MAX + 1];
        let place = memo.place([&long, b""]);
        assert_eq!(memo.put(place, [&long, b""], 7), Some(7));
        assert!(given_back >= number - SLOTS as u32);
        assert_eq!(given_back + memo.take().sum::<u32>(), number);
    }
}
