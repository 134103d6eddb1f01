//! Gates as the programs read them, in shared memory.

use crate::error::{system, CaptureError};
use libbpf_rs::{Map, MapCore};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// `FUNCTIONS_MAX` of bpf/shared.h.
pub(super) const PLACES: usize = 1024;
/// Bytes of a gate.
pub(super) const GATE_BYTES: usize = std::mem::size_of::<Cell>();

/// `struct gate` of bpf/tables.h.
#[repr(C)]
struct Cell {
    fact: AtomicU32,
    mask: AtomicU32,
    ranges: [[AtomicU32; 2]; 2],
}

/// `gates` of bpf/maps.h, mapped.
pub(super) struct Gates {
    cells: NonNull<[Cell; PLACES]>,
    len: usize,
}

// SAFETY: the pointer is to memory that this value alone maps and unmaps, and it holds atomics.
unsafe impl Send for Gates {}

impl Gates {
    pub(super) fn map(map: &Map<'_>) -> Result<Gates, CaptureError> {
        let size = std::mem::size_of::<[Cell; PLACES]>();
        if map.value_size() as usize != size {
            return Err(super::missing("gates of the expected size"));
        }
        let len = size.next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping; nothing existing is replaced.
        let cells = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )
        }
        .map_err(system("mmap of the gates"))?;
        let cells = NonNull::new(cells.cast()).ok_or_else(|| super::missing("gates"))?;
        Ok(Gates { cells, len })
    }

    fn cell(&self, place: usize) -> &Cell {
        // SAFETY: mapped as long as `self` lives, and every member is atomic.
        let cells = unsafe { self.cells.as_ref() };
        &cells[place]
    }

    /// Words of the gate at a place, as [`Gate::words`](plan::Gate::words) has them.
    pub(super) fn words(&self, place: usize) -> [u32; 6] {
        let cell = self.cell(place);
        let [a, b] = &cell.ranges;
        [&cell.fact, &cell.mask, &a[0], &a[1], &b[0], &b[1]].map(|w| w.load(Ordering::Relaxed))
    }

    /// Lets every call through.
    pub(super) fn open(&self, place: usize) {
        self.cell(place).fact.store(0, Ordering::SeqCst);
    }

    /// Puts words into an open gate: last the fact, which closes it.
    pub(super) fn set(&self, place: usize, words: [u32; 6]) {
        let cell = self.cell(place);
        let [a, b] = &cell.ranges;
        let rest = [&cell.mask, &a[0], &a[1], &b[0], &b[1]];
        for (place, word) in rest.into_iter().zip(&words[1..]) {
            place.store(*word, Ordering::Relaxed);
        }
        cell.fact.store(words[0], Ordering::SeqCst);
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        let _ = unsafe { munmap(self.cells.as_ptr().cast(), self.len) };
    }
}
