//! Counts by name for a bounded number of names: the Space-Saving algorithm (Metwally, Agrawal and El Abbadi, "Efficient
//! Computation of Frequent and Top-k Elements in Data Streams", 2005), weighted by bytes.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::AddAssign;
use std::sync::Arc;

/// Limit of the names in a table.
pub(super) const NAMES_MAX: usize = 1024;

/// Values by the id of a row.
pub(super) type ById<T> = HashMap<u64, T, BuildHasherDefault<Mixer>>;

/// Costs of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Number of events.
    pub(crate) events: u64,
    /// Bytes of their log lines.
    pub(crate) bytes: u64,
    /// Their share of the daemon's time, in nanoseconds.
    pub(crate) spent_ns: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, more: Sums) {
        self.events += more.events;
        self.bytes += more.bytes;
        self.spent_ns += more.spent_ns;
    }
}

/// A name in a table.
#[derive(Clone, Debug)]
pub(super) struct MakerRow {
    /// Hash of the name, with a random key.
    pub(super) id: u64,
    pub(super) name: Arc<[u8]>,
    /// The counts since the name came into the table.
    pub(super) sums: Sums,
    /// Limit of the bytes that the name had before, in events that nobody's row counts any more.
    pub(super) missing_bytes_max: u64,
}

impl MakerRow {
    /// Upper bound of all bytes of the name.
    fn rank(&self) -> u64 {
        self.sums.bytes + self.missing_bytes_max
    }
}

/// The names with the most bytes. If the table is full, a new name takes the place of the one with the lowest upper bound
/// of bytes, and starts with this bound as what it may be missing. So the bounds of all rows sum up to the bytes of all
/// names: the lowest is at most the [`NAMES_MAX`]th part of them, and a name with more than that is in the table.
#[derive(Debug, Default)]
pub(super) struct MakerTable {
    rows: Vec<MakerRow>,
    places: ById<usize>,
    /// A rank for each row, which may have grown since.
    ranks: BinaryHeap<Reverse<(u64, usize)>>,
    /// Number of names that another one has replaced; a name counts each time.
    pub(super) replaced: u64,
}

impl MakerTable {
    /// Counts events of the name, of which `id` is a hash with a random key.
    pub(super) fn add(&mut self, id: u64, name: &Arc<[u8]>, sums: Sums) {
        if let Some(&place) = self.places.get(&id) {
            self.rows[place].sums += sums;
            return;
        }

        let row = |missing_bytes_max| MakerRow {
            id,
            name: Arc::clone(name),
            sums,
            missing_bytes_max,
        };

        // A full table replaces its lowest row, whose rank the new one inherits as what it may lack (Space-Saving, Metwally 2005).
        let place = match self.lowest() {
            Some(place) if self.rows.len() >= NAMES_MAX => {
                self.places.remove(&self.rows[place].id);
                self.rows[place] = row(self.rows[place].rank());
                self.replaced += 1;
                place
            }
            _ => {
                let row = row(0);
                self.ranks.push(Reverse((row.rank(), self.rows.len())));
                self.rows.push(row);
                self.rows.len() - 1
            }
        };

        self.places.insert(id, place);
    }

    /// The rows, in no order.
    pub(super) fn rows(&self) -> &[MakerRow] {
        &self.rows
    }

    /// Limit of the bytes of a name that is not in the table.
    pub(super) fn unseen_bytes_max(&self) -> u64 {
        let ranks = self.rows.iter().map(MakerRow::rank);
        match self.replaced {
            0 => 0,
            _ => ranks.min().unwrap_or(0),
        }
    }

    /// The row with the lowest rank, if the table is full. Ranks only grow, so that one that is still right and is the lowest
    /// of those that were noted is the lowest.
    fn lowest(&mut self) -> Option<usize> {
        if self.rows.len() < NAMES_MAX {
            return None;
        }

        loop {
            let mut noted = self.ranks.peek_mut()?;
            let Reverse((rank, place)) = *noted;
            let now = self.rows[place].rank();
            if now == rank {
                return Some(place);
            }
            *noted = Reverse((now, place));
        }
    }
}

/// Hashes numbers of which the first is a hash with a random key, so that nobody can choose some that collide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(26) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
