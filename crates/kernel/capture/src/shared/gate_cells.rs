//! GateCells, in memory shared with the programs.

use crate::attach::gate_programs;
use crate::error::{system, CaptureError};
use crate::shared::atomic::atomic;
use bpf::shared::{gate, gate_range, FUNCTIONS_MAX};
use libbpf_rs::{Map, MapCore};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::cell::RefCell;
use std::mem::offset_of;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use zerocopy::transmute;

/// Number of gates.
pub(crate) const PLACES: usize = FUNCTIONS_MAX as usize;
/// Number of words of a gate.
const WORDS: usize = size_of::<gate>() / size_of::<u32>();
/// Index of the word that tells which fact a gate tests.
const FACT: usize = offset_of!(gate, fact) / size_of::<u32>();
/// Index of the span of the first range: programs for one fact do not read which it is.
const SPAN: usize = (offset_of!(gate, range) + offset_of!(gate_range, span)) / size_of::<u32>();

/// `gates` of bpf/maps.h, mapped.
pub(crate) struct GateCells {
    cells: NonNull<[[u32; WORDS]; PLACES]>,
    len: usize,
    /// The gates as they were opened and set here.
    told: RefCell<Vec<gate>>,
}

// SAFETY: the pointer is to memory that this value alone maps and unmaps, and that is used by atomics.
unsafe impl Send for GateCells {}

impl GateCells {
    pub(crate) fn map(map: &Map<'_>) -> Result<GateCells, CaptureError> {
        let size = size_of::<[gate; PLACES]>();
        if map.value_size() as usize != size {
            return Err(crate::error::missing("gates of the expected size"));
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

        let cells = NonNull::new(cells.cast()).ok_or_else(|| crate::error::missing("gates"))?;
        let mut gates = GateCells {
            cells,
            len,
            told: RefCell::default(),
        };
        gates.told = RefCell::new((0..PLACES).map(|place| gates.get(place)).collect());
        Ok(gates)
    }

    /// The words of the gate with this index.
    fn cell(&self, place: usize) -> &[AtomicU32; WORDS] {
        // SAFETY: mapped as long as `self` lives, and nobody refers to it but by this.
        unsafe { atomic(&raw mut (*self.cells.as_ptr())[place]) }
    }

    /// The gate with this index.
    pub(crate) fn get(&self, place: usize) -> gate {
        let words = self.cell(place).each_ref();
        transmute!(words.map(|word| word.load(Ordering::Relaxed)))
    }

    /// Opens a gate: every call passes.
    pub(crate) fn open(&self, place: usize) {
        let open = gate_programs::open();

        // Programs read the gate meanwhile. The span opens it for those of one fact, which do not read the
        // fact, and the fact for the one that interprets gates.
        let cell = self.cell(place);
        cell[SPAN].store(open.range[0].span, Ordering::SeqCst);
        cell[FACT].store(open.fact, Ordering::SeqCst);

        let told = &mut self.told.borrow_mut()[place];
        told.range[0].span = open.range[0].span;
        told.fact = open.fact;
    }

    /// Sets a gate that is open. What closes it is stored last.
    pub(crate) fn set(&self, place: usize, gate: gate) {
        let cell = self.cell(place);
        let words: [u32; WORDS] = transmute!(gate);

        let closing = [SPAN, FACT];
        for (i, word) in words
            .iter()
            .enumerate()
            .filter(|(i, _)| !closing.contains(i))
        {
            cell[i].store(*word, Ordering::Relaxed);
        }

        for i in closing {
            cell[i].store(words[i], Ordering::SeqCst);
        }
        self.told.borrow_mut()[place] = gate;
    }

    /// Undoes changes by others. Returns whether there were any.
    pub(crate) fn restore(&self) -> bool {
        let told = self.told.borrow().clone();
        let changed = told.into_iter().enumerate().filter(|(place, gate)| {
            let is_changed = self.get(*place) != *gate;
            if is_changed {
                self.open(*place);
                self.set(*place, *gate);
            }
            is_changed
        });
        changed.count() > 0
    }
}

impl Drop for GateCells {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        let _ = unsafe { munmap(self.cells.as_ptr().cast(), self.len) };
    }
}
