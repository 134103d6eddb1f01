//! How large the rings are, and what happens where they are full.

/// What may be chosen when an engine is loaded.
#[derive(Clone, Debug)]
pub struct Options {
    /// Data of the ring of one CPU, bytes; rounded up to a power of two.
    pub ring_bytes: usize,
    /// Fill of a ring at which the daemon is woken at once, bytes.
    pub watermark_bytes: u32,
    /// Fill of a ring above which calls are slowed, or uids have shares: see [`Overload`]. Bytes.
    pub high_bytes: u32,
}

/// What happens to calls whose events come faster than they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// Each waits at its end, at most 1 ms until a ring is nearly full and then at most 20 ms, and not for a reader
    /// that has read nothing for 1 s.
    #[default]
    Throttle,
    /// Their events are dropped and counted: first those of uids that make many.
    Drop,
}

/// Rings of all CPUs together, bytes, unless a size is asked for.
const RINGS_BYTES_MAX: usize = 256 << 20;
/// The ring of one CPU, bytes, where there are not too many of them.
const RING_BYTES: usize = 4 << 20;
/// No ring is smaller than this by itself.
const RING_BYTES_MIN: usize = 256 << 10;

impl Options {
    /// Rings of this size; the daemon is woken when one is a quarter full.
    pub fn with_ring_bytes(ring_bytes: usize) -> Options {
        Options {
            ring_bytes,
            watermark_bytes: u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX),
            high_bytes: u32::try_from(ring_bytes / 2).unwrap_or(u32::MAX),
        }
    }

    /// A power of two of at least a page.
    pub(super) fn true_ring_bytes(&self) -> usize {
        self.ring_bytes
            .next_power_of_two()
            .max(rustix::param::page_size())
    }

    /// Rings that suit the number of CPUs.
    pub fn for_this_host() -> Options {
        let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1).max(1);
        let share = (RINGS_BYTES_MAX / cpus).max(RING_BYTES_MIN);
        // Down to a power of two, which rings have to be.
        let share = 1 << share.ilog2();
        Options::with_ring_bytes(RING_BYTES.min(share))
    }
}
