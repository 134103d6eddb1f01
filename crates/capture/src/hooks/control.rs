//! `struct control` of bpf/shared.h, mapped: settings that the programs read on every call.

use super::atomic::atomic;
use crate::error::{system, CaptureError};
use bpf::shared::{control, RULES_MAX};
use libbpf_rs::{MapCore, MapHandle, Object};
use plan::tables::{Row, CALLS, GROUPS_MAX, ROWS};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{fence, Ordering};

/// Number of words with one bit for each rule.
pub(super) const RULE_WORDS: usize = RULES_MAX as usize / 64;

/// Both sides must use the same limit of groups of a task.
const _: () = assert!(GROUPS_MAX == event::wire::TARSIER_GROUPS_MAX as usize);

pub(super) struct Control {
    shared: NonNull<control>,
    len: usize,
}

/// A member of the mapped struct.
macro_rules! member {
    ($control:ident . $member:ident) => {
        // SAFETY: mapped as long as the `Control` lives, and nobody refers to a member but by this.
        unsafe { atomic(&raw mut (*$control.shared.as_ptr()).$member) }
    };
}

// SAFETY: the pointer is to memory that this value alone maps and unmaps, and that is used by atomics.
unsafe impl Send for Control {}

impl Control {
    /// Maps the object's zero-initialised data, which consists of `struct control`.
    pub(super) fn map(object: &Object) -> Result<Control, CaptureError> {
        let bss = object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"))
            .filter(|map| map.value_size() as usize == size_of::<control>())
            .ok_or_else(|| super::missing("struct control"))?;
        let len = (bss.value_size() as usize).next_multiple_of(rustix::param::page_size());
        // SAFETY: a new mapping; nothing existing is replaced.
        let shared = unsafe {
            mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                bss.as_fd(),
                0,
            )
        }
        .map_err(system("mmap of the programs' data"))?;
        let shared = NonNull::new(shared.cast()).ok_or_else(|| super::missing("struct control"))?;
        Ok(Control { shared, len })
    }

    pub(super) fn set_daemon(&self, tgid: u32) -> Result<(), CaptureError> {
        let path = format!("/proc/{tgid}/stat");
        let failed = |source| CaptureError::System {
            what: path.clone(),
            source,
        };
        let stat = std::fs::read_to_string(&path).map_err(failed)?;
        let start = start_of(&stat).filter(|_| !has_time_of_its_own());
        let start = start.unwrap_or(0);
        member!(self.daemon_start).store(start, Ordering::Relaxed);
        member!(self.daemon_tgid).store(tgid, Ordering::Release);
        Ok(())
    }

    /// Sets the size of each ring, and the fills at which the doorbell rings and the overload begins.
    pub(super) fn set_ring(&self, ring_bytes: u32, watermark_bytes: u32, high_bytes: u32) {
        member!(self.ring_bytes).store(ring_bytes, Ordering::Relaxed);
        member!(self.high_bytes).store(high_bytes, Ordering::Relaxed);
        member!(self.watermark_bytes).store(watermark_bytes, Ordering::Relaxed);
    }

    pub(super) fn set_throttle(&self, throttle: bool) {
        member!(self.throttle).store(throttle.into(), Ordering::Relaxed);
    }

    /// Sets the rules, by place, whose events wake the daemon at once.
    pub(super) fn set_urgent(&self, rules: &[u64; RULE_WORDS], undecided: bool) {
        for (word, bits) in member!(self.urgent).iter().zip(rules) {
            word.store(*bits, Ordering::Relaxed);
        }
        member!(self.urgent_undecided).store(undecided.into(), Ordering::Relaxed);
    }

    pub(super) fn set_task_list(&self, used: bool) {
        member!(self.use_task_list).store(used.into(), Ordering::Relaxed);
    }

    pub(super) fn set_x32(&self, has_calls: bool) {
        member!(self.x32).store(has_calls.into(), Ordering::Relaxed);
    }

    pub(super) fn set_exit_at_entry(&self, at_entry: bool) {
        member!(self.exit_at_entry).store(at_entry.into(), Ordering::Relaxed);
    }

    pub(super) fn set_copies(&self, copies: bool) {
        member!(self.copies).store(copies.into(), Ordering::SeqCst);
    }

    pub(super) fn set_every(&self, every: bool) {
        member!(self.every).store(every.into(), Ordering::SeqCst);
    }

    /// Sets the numbers of the links whose probes record calls, as bits.
    pub(super) fn set_probe_links(&self, links: u64) {
        member!(self.probe_links).store(links, Ordering::SeqCst);
    }

    pub(super) fn probe_links(&self) -> u64 {
        member!(self.probe_links).load(Ordering::SeqCst)
    }

    /// Stores with a full barrier: see `ring_bell()` in bpf/emit.h.
    pub(super) fn set_awake(&self, awake: bool) {
        member!(self.reader_awake).store(awake.into(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Counts a frame that was taken from a ring. Only the reader calls this.
    pub(super) fn count_taken(&self) {
        let taken = member!(self.frames_taken);
        taken.store(
            taken.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    pub(super) fn add_watched(&self, watched: &[u64; CALLS / 64]) {
        for (word, bits) in member!(self.watched).iter().zip(watched) {
            word.fetch_or(*bits, Ordering::SeqCst);
        }
    }

    pub(super) fn set_watched(&self, watched: &[u64; CALLS / 64]) {
        for (word, bits) in member!(self.watched).iter().zip(watched) {
            word.store(*bits, Ordering::SeqCst);
        }
    }
}

/// Whether this process is in a time namespace, where /proc shows another time since boot than the kernel's.
fn has_time_of_its_own() -> bool {
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let boot = offsets.lines().find(|line| line.starts_with("boottime"));
    boot.is_some_and(|line| line.split_whitespace().skip(1).any(|offset| offset != "0"))
}

/// Start time of a process, in clock ticks: field 22 of proc_pid_stat(5). The name before it may contain anything.
fn start_of(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

impl Drop for Control {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        let _ = unsafe { munmap(self.shared.as_ptr().cast(), self.len) };
    }
}

/// Writes `rows` to the start of a new table that can be mapped.
pub(super) fn write_rows(table: &MapHandle, rows: &[Row]) -> Result<(), CaptureError> {
    let len = ROWS * std::mem::size_of::<Row>();
    // SAFETY: a new mapping of a map of ROWS rows; the copy stays inside it because a plan never
    // has more rows than that; it is unmapped before anyone else can know of it.
    unsafe {
        let start = mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            table.as_fd(),
            0,
        )
        .map_err(system("mmap of the match tables"))?;
        let count = rows.len().min(ROWS);
        std::ptr::copy_nonoverlapping(rows.as_ptr(), start.cast::<Row>(), count);
        munmap(start, len).map_err(system("munmap of the match tables"))
    }
}
