//! Marks: how the programs recognise what a path of a rule names, by what is at hand when a call
//! reaches an object.
//!
//! An object is recognised by its device and inode, or by its name in the directory to which the path
//! led when the rules were loaded: a file that was created or renamed to that name a moment ago is
//! recognised, too. That directory may be another one by now, so a name alone is also a mark, but
//! proves nothing: the second stage then decides. The same holds for an object that the path led to
//! before, whose inode number may belong to another one by now.

use crate::facts::{last_name, Identities, ObjectId, PathIdentity};
use crate::mark_key::{MarkKey, FILTER_FACTOR, SHORT_NAME_BYTES};
use abi::Field;
use rules::{Condition, Op, Rule, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Limit of marks. Further conditions are left to the second stage.
const MARKS_MAX: usize = 8192;
/// Limit of the slots that the programs look at for one mark: TABLE_MARK_PROBES of tables.h.
pub(crate) const PROBES: u64 = 4;
/// Bit of what the tables have for a mark: it proves its path. TABLE_MARK_PROOF_BIT of tables.h.
pub(crate) const PROOF_BIT: u32 = 32;
/// Bit of what the tables have for a mark: the kernel's audit knows the path by it, too. TABLE_MARK_KERNEL_BIT of tables.h.
pub(crate) const KERNEL_BIT: u32 = 33;
/// The most slots.
const SLOTS_MAX: usize = 1 << 15;
/// Limits of the bits of a filter.
const FILTER_BITS: std::ops::RangeInclusive<usize> = 1 << 10..=1 << 18;
/// Bits of a filter for each name and object in it: with that many, one in 64 passes by chance.
const BITS_PER_KEY: usize = 64;

/// The programs' knowledge of a mark that they find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    number: u32,
    /// Whether it proves that the path leads to the object.
    is_proof: bool,
    /// Whether it does so for the kernel's audit, too.
    is_kernels: bool,
}

/// Hash and mark by slot.
type Taken = BTreeMap<usize, (u64, Known)>;

/// Marks by their hashes, with the numbers that stand for them.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    by_hash: BTreeMap<u64, Known>,
    /// What the filter lets through: [`name_key`] and [`object_key`] of what has a mark.
    keys: BTreeSet<u32>,
    /// The factors of the hashes.
    pub(crate) key: MarkKey,
}

/// The hash of a mark, and more.
struct Hash {
    hash: u64,
    /// Whether it proves that the path leads to an object.
    is_proof: bool,
    /// Whether it does so for the kernel's audit, too.
    is_kernels: bool,
    /// Key in the filter; entries have none of their own, since their names pass it.
    key: Option<u32>,
}

impl Hash {
    fn sure(hash: u64) -> Hash {
        Hash {
            is_proof: true,
            ..Hash::unsure(hash)
        }
    }

    fn unsure(hash: u64) -> Hash {
        Hash {
            hash,
            is_proof: false,
            is_kernels: false,
            key: None,
        }
    }
}

/// A mark that a program has found at an object, or at a directory above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The mark, as in a lookup of marks: [`value`].
    pub value: u32,
    /// Whether the mark proves that the path leads there.
    pub is_sure: bool,
    /// Whether it proves that for the kernel's audit, too, which knows objects by device and inode.
    pub is_proven: bool,
}

/// The marks at what a call reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The marks found.
    pub hits: Vec<Hit>,
    /// Whether the call reached several objects: their order then matters for some rules.
    pub is_several: bool,
}

/// A mark in lookups. `is_above`: it is of a directory above the object.
pub fn value(number: u32, is_above: bool) -> u32 {
    number << 1 | u32::from(is_above)
}

impl Marks {
    /// The marks of all `path=` and `dir=` conditions.
    pub(crate) fn of_names(rules: &[Rule], identities: &Identities) -> Marks {
        let mut marks = Marks::with(identities.key);
        for (field, path) in rules
            .iter()
            .flat_map(|rule| &rule.conditions)
            .filter_map(named)
        {
            for hash in hashes(field, path, identities) {
                let number = marks.by_hash.len() as u32 + 1;
                marks.keys.extend(hash.key);
                marks.add(hash, number);
            }
        }

        marks.that_fit()
    }

    /// The marks of executables, by whose numbers the tables know them, and of the entries and paths that rules name. A
    /// name alone has number 0.
    pub(crate) fn of_executables<'p>(
        objects: impl Iterator<Item = (u32, ObjectId)>,
        places: impl Iterator<Item = (u32, &'p PathIdentity)>,
        identities: &Identities,
    ) -> Marks {
        let key = identities.key;
        let mut marks = Marks::with(key);
        for (number, object) in objects {
            marks.add(Hash::sure(key.object(object)), number);
        }

        for (number, place) in places {
            let name = key.name(last_name(&place.canonical));
            let entry = place.directory.map(|directory| key.entry(name, directory));
            let path = identities.root.map(|root| key.path(&place.canonical, root));
            marks.add(Hash::unsure(name), 0);
            for hash in entry.into_iter().chain(path) {
                marks.add(Hash::sure(hash), number);
            }
        }

        marks.that_fit()
    }

    /// The marks, or none if they cannot be placed in the tables.
    fn that_fit(self) -> Marks {
        match self.slots() {
            Some(_) => self,
            None => Marks::with(self.key),
        }
    }

    /// No marks, with this key.
    fn with(key: MarkKey) -> Marks {
        Marks {
            key,
            ..Marks::default()
        }
    }

    /// Adds a mark, unless it is there.
    fn add(&mut self, mark: Hash, number: u32) {
        if self.by_hash.len() < MARKS_MAX {
            let known = self.by_hash.entry(mark.hash).or_insert(Known {
                number,
                is_proof: mark.is_proof,
                is_kernels: mark.is_kernels,
            });
            known.is_proof &= mark.is_proof;
            known.is_kernels &= mark.is_kernels;
        }
    }

    /// The values of the marks of a condition, ascending; `None` if it has none, or too many.
    pub(crate) fn of(&self, condition: &Condition, identities: &Identities) -> Option<Vec<u32>> {
        let (field, path) = named(condition)?;
        let mut values = Vec::new();
        for Hash { hash, .. } in hashes(field, path, identities) {
            let number = self.by_hash.get(&hash)?.number;
            values.push(value(number, false));
            if field == Field::Dir {
                values.push(value(number, true));
            }
        }

        values.sort_unstable();
        values.dedup();
        Some(values)
    }

    /// Marks that a program finds at an entry: `name` in `directory`, which leads to `object`.
    pub fn at(
        &self,
        name: &[u8],
        directory: Option<ObjectId>,
        object: Option<ObjectId>,
        is_above: bool,
    ) -> Vec<Hit> {
        let mut hits = Vec::new();
        // The programs do not ask the filter about names that are not in the entry itself.
        let may_be_marked = name.len() >= SHORT_NAME_BYTES
            || self.passes_filter(name_key(name))
            || object.is_some_and(|object| self.passes_filter(object_key(object)));
        if !may_be_marked {
            return hits;
        }

        let key = self.key;
        let name = key.name(name);
        let mut found = |known: &Known, is_sure, is_proven| {
            hits.push(Hit {
                value: value(known.number, is_above),
                is_sure,
                is_proven,
            });
        };

        if let Some(by_name) = self.by_hash.get(&name) {
            let entry = directory.map(|directory| key.entry(name, directory));
            match entry.and_then(|entry| self.by_hash.get(&entry)) {
                Some(by_entry) => found(by_entry, true, false),
                None => found(by_name, false, false),
            }
        }

        if let Some(known) = object.and_then(|object| self.by_hash.get(&key.object(object))) {
            found(known, known.is_proof, known.is_kernels);
        }

        hits
    }

    /// A number of slots, and for each slot that is taken the hash of its mark and what the tables have for it.
    pub(crate) fn placed(&self) -> (usize, Vec<(usize, [u64; 2])>) {
        let (slots, taken) = self.slots().unwrap_or_default();
        let known = |known: Known| {
            let is_proof = u64::from(known.is_proof) << PROOF_BIT;
            u64::from(known.number) | is_proof | u64::from(known.is_kernels) << KERNEL_BIT
        };
        let taken = taken.into_iter();
        let taken = taken.map(|(slot, (hash, mark))| (slot, [hash, known(mark)]));
        (slots, taken.collect())
    }

    /// The words of a filter with a bit for each key: a name or an object whose bit is not set has no mark.
    pub(crate) fn filter(&self) -> Vec<u64> {
        let bits = (self.keys.len() * BITS_PER_KEY).next_power_of_two();
        let bits = bits.clamp(*FILTER_BITS.start(), *FILTER_BITS.end());
        let mut words = vec![0; bits / 64];
        for &key in &self.keys {
            let bit = key as usize & (bits - 1);
            words[bit / 64] |= 1 << (bit % 64);
        }
        words
    }

    fn passes_filter(&self, key: u32) -> bool {
        let words = self.filter();
        let bit = key as usize & (words.len() * 64 - 1);
        words[bit / 64] >> (bit % 64) & 1 != 0
    }

    /// A number of slots with which no mark is far from its first slot, and the marks by slot. `None` if that takes
    /// too many.
    fn slots(&self) -> Option<(usize, Taken)> {
        let mut slots = (2 * self.by_hash.len()).next_power_of_two().max(16);
        while slots <= SLOTS_MAX {
            let mut taken = Taken::new();
            let all = self.by_hash.iter().all(|(&hash, &known)| {
                let slot = |i| ((hash >> 32).wrapping_add(i) & (slots as u64 - 1)) as usize;
                let free = (0..PROBES).map(slot).find(|slot| !taken.contains_key(slot));
                free.map(|slot| taken.insert(slot, (hash, known))).is_some()
            });
            if all {
                return Some((slots, taken));
            }
            slots *= 2;
        }

        None
    }
}

/// Path and field of a condition that names a path whose objects are among the names of a call.
fn named(condition: &Condition) -> Option<(Field, &[u8])> {
    match (condition.field, condition.op, &condition.value) {
        (field @ (Field::Watch | Field::Dir), Op::Eq, Value::Text(path)) => Some((field, path)),
        _ => None,
    }
}

/// Hashes of the marks of a path.
fn hashes(field: Field, path: &[u8], identities: &Identities) -> Vec<Hash> {
    let known = identities.of(path).cloned().unwrap_or_default();
    let secret = identities.key;
    let place = if known.canonical.is_empty() {
        path
    } else {
        &known.canonical
    };

    let of_name = |name| Hash {
        key: Some(name_key(name)),
        ..Hash::unsure(secret.name(name))
    };
    let of_object = |object, is_proof, is_kernels| Hash {
        hash: secret.object(object),
        is_proof,
        is_kernels,
        key: Some(object_key(object)),
    };

    let name = of_name(last_name(place));
    let of_entry = |directory| Hash::sure(secret.entry(name.hash, directory));
    let entry = known.directory.map(of_entry);
    let mut all = vec![name];
    all.extend(entry);
    all.extend(known.object.map(|object| of_object(object, true, true)));

    if field == Field::Dir {
        all.extend(known.moved_to.iter().map(|place| of_name(last_name(place))));
        let mounts = known.mounts.iter();
        all.extend(mounts.map(|mount| of_object(mount.root, true, mount.is_of_load)));
        all.extend(
            known
                .former
                .iter()
                .map(|&object| of_object(object, false, false)),
        );
    }

    all
}

/// A key of the filter: `passes_filter()` of crates/kernel/bpf/programs/marks.h.
fn filter_key(word: u64) -> u32 {
    (word.wrapping_mul(FILTER_FACTOR) >> 32) as u32
}

/// Key of a name: of its length and its first eight bytes.
fn name_key(name: &[u8]) -> u32 {
    let mut word = [0; 8];
    let count = name.len().min(8);
    word[..count].copy_from_slice(&name[..count]);
    filter_key(u64::from_le_bytes(word) ^ name.len() as u64)
}

/// Key of an object: of its inode.
fn object_key(object: ObjectId) -> u32 {
    filter_key(object.ino)
}
