//! The size of the rings, and what happens when they fill up.

/// Choices when an engine is loaded.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// Size of the data of one CPU's ring, in bytes; rounded up to a power of two, at least [`RING_BYTES_MIN`].
    pub ring_bytes: usize,
    /// Fill of a ring, in bytes, at which the daemon is woken at once.
    pub watermark_bytes: u32,
    /// Fill of a ring, in bytes, above which calls are slowed or uids get shares: see [`Overload`].
    pub high_bytes: u32,
    /// Whether the programs record nothing until [`crate::in_force::engine::EbpfEngine::unmute`]. A capture that is taken over
    /// goes on.
    pub is_muted: bool,
}

/// Treatment of calls whose events come faster than they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// Each call waits at its end: at most 1 ms, or 20 ms once a ring is nearly full, and not for a reader that
    /// has read nothing for 1 s.
    #[default]
    Throttle,
    /// Events are dropped and counted: first those of uids that make many.
    Drop,
}

/// Default limit for the rings of all CPUs together, in bytes.
const RINGS_BYTES_MAX: usize = 256 << 20;
/// Default size of one CPU's ring, in bytes, if there are not too many CPUs.
const RING_BYTES: usize = 4 << 20;
/// Smallest default size of a ring, in bytes.
const DEFAULT_RING_BYTES_MIN: usize = 256 << 10;
/// Smallest size of a ring, in bytes: it has room for the largest event.
pub const RING_BYTES_MIN: usize = record::wire::TARSIER_RING_MIN as usize;

impl CaptureOptions {
    /// Options for rings of this size, at least [`RING_BYTES_MIN`]; the daemon is woken when one is a quarter full.
    pub fn with_ring_bytes(ring_bytes: usize) -> CaptureOptions {
        let ring_bytes = ring_bytes.max(RING_BYTES_MIN);
        CaptureOptions {
            ring_bytes,
            watermark_bytes: u32::try_from(ring_bytes / 4).unwrap_or(u32::MAX),
            high_bytes: u32::try_from(ring_bytes / 2).unwrap_or(u32::MAX),
            is_muted: false,
        }
    }

    /// The size rounded up to a power of two, at least [`RING_BYTES_MIN`], which every page size divides.
    pub(crate) fn true_ring_bytes(&self) -> usize {
        self.ring_bytes.next_power_of_two().max(RING_BYTES_MIN)
    }

    /// Options with rings that suit the number of CPUs.
    pub fn for_this_host() -> CaptureOptions {
        let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1).max(1);
        let share = (RINGS_BYTES_MAX / cpus).max(DEFAULT_RING_BYTES_MIN);
        // Rounded down to a power of two, as rings require.
        let share = 1 << share.ilog2();
        CaptureOptions::with_ring_bytes(RING_BYTES.min(share))
    }
}
