//! Values that are made from bytes, kept by these bytes: parts of records occur again and again.

use std::hash::{BuildHasher, Hasher};

/// Values that are kept.
const SLOTS: usize = 4096;
/// Slots in which a key may stand: with one, two keys that are used in turn would drive each other out.
const WAYS: usize = 8;
/// Longest key that is kept.
const KEY_BYTES_MAX: usize = 1024;

/// Two texts by which a value is kept.
pub(crate) type MemoKey<'k> = [&'k [u8]; 2];

/// Where a key may stand: its hash.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoPlace(u64);

impl MemoPlace {
    fn slots(self) -> std::ops::Range<usize> {
        let first = self.0 as usize % (SLOTS / WAYS) * WAYS;
        first..first + WAYS
    }

    /// The tag, which is compared before the key is; never that of an empty slot.
    fn tag(self) -> u32 {
        (self.0 >> 32) as u32 | 1
    }
}

/// A table in which a new value takes the place of an older one, so that its memory is bounded and stays in a
/// processor's cache. Its hashes have a seed of each run: a log cannot foresee them.
#[derive(Debug)]
pub(crate) struct Memo<T> {
    /// The tags of the keys in the slots, 0 for an empty one.
    tags: Vec<u32>,
    slots: Vec<Option<MemoEntry<T>>>,
    /// Values that had to go: they go in turn.
    replaced: usize,
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
            tags: Vec::new(),
            slots: Vec::new(),
            replaced: 0,
            seed: foldhash::fast::RandomState::default(),
        }
    }
}

impl<T> Memo<T> {
    /// Where a key may stand.
    pub(crate) fn place(&self, [first, second]: MemoKey<'_>) -> MemoPlace {
        let mut hasher = self.seed.build_hasher();
        hasher.write(first);
        hasher.write(second);
        MemoPlace(hasher.finish())
    }

    /// The value of the key, which may stand at `place`.
    pub(crate) fn get(&mut self, place: MemoPlace, key: MemoKey<'_>) -> Option<&mut T> {
        let tags = self.tags.get(place.slots())?;
        let has = |slot: &usize| {
            let entry = &self.slots[*slot];
            entry.as_ref().is_some_and(|entry| entry.has(key))
        };
        let mut same = place
            .slots()
            .zip(tags)
            .filter(|each| *each.1 == place.tag());
        let slot = same.find(|(slot, _)| has(slot))?.0;
        self.slots[slot].as_mut().map(|entry| &mut entry.value)
    }

    /// Keeps a value at `place`. Returns the one that has to go for it, which may be itself.
    pub(crate) fn put(
        &mut self,
        place: MemoPlace,
        [first, second]: MemoKey<'_>,
        value: T,
    ) -> Option<T> {
        if first.len() + second.len() > KEY_BYTES_MAX {
            return Some(value);
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
            self.tags.resize(SLOTS, 0);
        }

        let slots = place.slots();
        let slot = slots.clone().find(|slot| self.tags[*slot] == 0);
        let slot = slot.unwrap_or_else(|| {
            self.replaced += 1;
            slots.start + self.replaced % WAYS
        });

        let entry = MemoEntry {
            bytes: [first, second].concat().into(),
            first_bytes: first.len(),
            value,
        };
        self.tags[slot] = place.tag();
        let before = self.slots[slot].replace(entry);
        before.map(|entry| entry.value)
    }

    /// Takes all values out.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.tags.clear();
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

    #[test]
    fn as_many_keys_as_half_of_the_slots_hardly_drive_each_other_out() {
        let mut memo = Memo::default();
        let mut lost = 0;
        for _ in 0..10 {
            for number in 0..SLOTS as u32 / 2 {
                let bytes = number.to_le_bytes();
                let key = [&bytes[..], b""];
                let place = memo.place(key);
                if memo.get(place, key).is_none() {
                    lost += u32::from(memo.put(place, key, ()).is_some());
                }
            }
        }
        assert!(lost < SLOTS as u32 / 4, "{lost} of {}", 5 * SLOTS);
    }
}
