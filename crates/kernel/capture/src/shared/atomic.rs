//! Memory that the programs read and write concurrently, as atomics.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// A type that can be shared with the programs.
pub(crate) trait Shareable {
    /// This type with an atomic in place of each integer.
    type Atomic;
}

impl Shareable for u32 {
    type Atomic = AtomicU32;
}

impl Shareable for u64 {
    type Atomic = AtomicU64;
}

impl<const N: usize> Shareable for [u32; N] {
    type Atomic = [AtomicU32; N];
}

impl<const N: usize> Shareable for [u64; N] {
    type Atomic = [AtomicU64; N];
}

/// The memory at `place` as atomics.
///
/// # Safety
/// `place` must be aligned, and stay mapped as long as the result is used. Meanwhile all accesses must be atomic.
pub(crate) unsafe fn atomic<'a, T: Shareable>(place: *mut T) -> &'a T::Atomic {
    const {
        assert!(size_of::<T>() == size_of::<T::Atomic>());
        assert!(align_of::<T>() == align_of::<T::Atomic>());
    }
    // SAFETY: as the caller promises; an atomic has the representation of its integer.
    unsafe { &*place.cast() }
}
