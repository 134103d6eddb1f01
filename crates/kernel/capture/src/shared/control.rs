//! `struct control` of bpf/shared.h, mapped: settings that the programs read on every call.

use crate::error::{system, CaptureError};
use crate::kernel::dcache::Dcache;
use crate::kernel::selinux::LabelPlaces;
use crate::shared::atomic::atomic;
use bpf::shared::{control, HELPERS_MAX, RULES_MAX};
use libbpf_rs::{MapCore, MapHandle, Object};
use plan::tables::{Row, CALLS, GROUPS_MAX, ROWS};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::cell::UnsafeCell;
use std::collections::BTreeSet;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use zerocopy::FromZeros;

/// Number of words with one bit for each rule.
pub(crate) const RULE_WORDS: usize = RULES_MAX as usize / 64;

/// Both sides must use the same limit of groups of a task.
const _: () = assert!(GROUPS_MAX == record::wire::TARSIER_GROUPS_MAX as usize);

/// A member of the mapped struct.
macro_rules! member {
    ($control:ident . $member:ident) => {
        // SAFETY: mapped as long as the owner lives, and nobody refers to a member but by this.
        unsafe { atomic(&raw mut (*$control.shared.as_ptr()).$member) }
    };
}

/// A member of the mapped struct, and of the daemon's own copy of it.
macro_rules! members {
    ($control:ident . $member:ident) => {
        [
            member!($control.$member),
            // SAFETY: allocated as long as the mapping lives, and nobody refers to a member but by this.
            unsafe { atomic(&raw mut (*$control.mapping.told.get()).$member) },
        ]
    };
}

/// One part in this many of a ring is kept free for urgent events.
const RESERVE: u32 = 16;

pub(crate) struct Control {
    shared: NonNull<control>,
    mapping: Arc<Mapping>,
}

/// The mapped memory, which stays as long as anything refers to it.
struct Mapping {
    start: NonNull<control>,
    len: usize,
    /// The daemon's own copy: the mapped memory must be equal to it, except for [`OF_READER`]. All accesses are atomic.
    told: Box<UnsafeCell<control>>,
    /// Lock held while storing or comparing.
    change: Mutex<()>,
}

/// Number of words of the struct.
const WORDS: usize = size_of::<control>() / size_of::<u32>();

/// Members that the reader stores all the time.
const OF_READER: [Range<usize>; 2] = [
    offset_of!(control, reader_awake)..offset_of!(control, watermark_bytes),
    offset_of!(control, frames_taken)..offset_of!(control, pad_taken),
];

/// The members, in order.
const MEMBERS: [(&str, usize); 26] = [
    ("watched", offset_of!(control, watched)),
    ("every", offset_of!(control, every)),
    ("daemon_tgid", offset_of!(control, daemon_tgid)),
    ("reader_awake", offset_of!(control, reader_awake)),
    ("watermark_bytes", offset_of!(control, watermark_bytes)),
    ("use_task_list", offset_of!(control, use_task_list)),
    ("exit_at_entry", offset_of!(control, exit_at_entry)),
    ("ring_bytes", offset_of!(control, ring_bytes)),
    ("high_bytes", offset_of!(control, high_bytes)),
    ("throttle", offset_of!(control, throttle)),
    ("urgent_undecided", offset_of!(control, urgent_undecided)),
    ("copies", offset_of!(control, copies)),
    ("x32", offset_of!(control, x32)),
    ("reserve_bytes", offset_of!(control, reserve_bytes)),
    ("has_budgets", offset_of!(control, has_budgets)),
    ("canary_call", offset_of!(control, canary_call)),
    ("muted", offset_of!(control, muted)),
    ("helper_tgid", offset_of!(control, helper_tgid)),
    ("daemon_start", offset_of!(control, daemon_start)),
    ("helper_start", offset_of!(control, helper_start)),
    ("urgent", offset_of!(control, urgent)),
    ("probe_links", offset_of!(control, probe_links)),
    ("workload_epoch", offset_of!(control, workload_epoch)),
    ("dcache_at", offset_of!(control, dcache_at)),
    ("dcache_shift", offset_of!(control, dcache_shift)),
    ("label_places", offset_of!(control, label_places)),
];

// SAFETY: the pointer is to memory that stays mapped as long as `mapping`, and that is used by atomics.
unsafe impl Send for Control {}
// SAFETY: as above: every member is an atomic.
unsafe impl Sync for Control {}
// SAFETY: nobody uses the memory through it; it is only unmapped, by the last owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// Says which processes are the daemon's helpers, whose calls are not recorded. It can be used as long as the process
/// runs, even after the engine has ended.
#[derive(Clone)]
pub struct Helpers {
    shared: NonNull<control>,
    /// Keeps `shared` mapped.
    mapping: Arc<Mapping>,
}

// SAFETY: the pointer is to memory that stays mapped as long as `mapping`, and that is used by atomics.
unsafe impl Send for Helpers {}

impl Helpers {
    /// Number of helpers that run at a time.
    pub const MAX: usize = HELPERS_MAX as usize;

    /// Sets the process id of the helper at `place`, which is below [`Helpers::MAX`]; `None` if there is none. The calls
    /// of a helper that has ended already are recorded, like those of any process.
    pub fn set(&self, place: usize, pid: Option<u32>) {
        let started = pid.map(|pid| (pid, start_if_known(pid)));

        let _change = self.mapping.change.lock();
        let starts = members!(self.helper_start);
        for (tgids, starts) in members!(self.helper_tgid).into_iter().zip(starts) {
            let (Some(tgid), Some(start)) = (tgids.get(place), starts.get(place)) else {
                return;
            };

            // The process id goes first and comes last, so that the programs do not find it with another
            // process's start time.
            tgid.store(0, Ordering::Release);
            if let Some((pid, Ok(started))) = started {
                start.store(started, Ordering::Relaxed);
                tgid.store(pid, Ordering::Release);
            }
        }
    }
}

impl Control {
    /// Maps the object's zero-initialised data, which consists of `struct control`.
    pub(crate) fn map(object: &Object) -> Result<Control, CaptureError> {
        let bss = object
            .maps()
            .find(|map| map.name().to_string_lossy().ends_with(".bss"))
            .filter(|map| map.value_size() as usize == size_of::<control>())
            .ok_or_else(|| crate::error::missing("struct control"))?;

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
        let shared =
            NonNull::new(shared.cast()).ok_or_else(|| crate::error::missing("struct control"))?;

        let mapping = Arc::new(Mapping {
            start: shared,
            len,
            told: Box::new(UnsafeCell::new(control::new_zeroed())),
            change: Mutex::new(()),
        });
        let control = Control { shared, mapping };

        // An earlier daemon's values count as told until they are set anew.
        let [shared, told] = control.words();
        for (told, shared) in told.iter().zip(shared) {
            told.store(shared.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        Ok(control)
    }

    /// See [`Helpers`]. There are none until the first is set.
    pub(crate) fn helpers(&self) -> Helpers {
        Helpers {
            shared: self.shared,
            mapping: Arc::clone(&self.mapping),
        }
    }

    pub(crate) fn set_daemon(&self, tgid: u32) -> Result<(), CaptureError> {
        let start = start_if_known(tgid)?;
        let _change = self.mapping.change.lock();

        // Those of an earlier daemon, if the programs are its.
        for helper in members!(self.helper_tgid).into_iter().flatten() {
            helper.store(0, Ordering::Relaxed);
        }
        for helper in members!(self.helper_start).into_iter().flatten() {
            helper.store(0, Ordering::Relaxed);
        }

        // The id last: with it, the programs begin to compare the start time.
        for started in members!(self.daemon_start) {
            started.store(start, Ordering::Relaxed);
        }
        for daemon in members!(self.daemon_tgid) {
            daemon.store(tgid, Ordering::Release);
        }
        Ok(())
    }

    /// Sets the size of each ring, and the fills at which the doorbell rings and the overload begins.
    pub(crate) fn set_ring(&self, ring_bytes: u32, watermark_bytes: u32, high_bytes: u32) {
        self.store(members!(self.ring_bytes), ring_bytes);
        self.store(members!(self.high_bytes), high_bytes);
        self.store(members!(self.watermark_bytes), watermark_bytes);
    }

    fn store(&self, places: [&AtomicU32; 2], value: u32) {
        let _change = self.mapping.change.lock();
        for place in places {
            place.store(value, Ordering::SeqCst);
        }
    }

    fn store_long(&self, places: [&AtomicU64; 2], value: u64) {
        let _change = self.mapping.change.lock();
        for place in places {
            place.store(value, Ordering::SeqCst);
        }
    }

    fn store_words<const N: usize>(&self, places: [&[AtomicU64; N]; 2], words: &[u64; N]) {
        let _change = self.mapping.change.lock();
        for place in places {
            for (word, bits) in place.iter().zip(words) {
                word.store(*bits, Ordering::SeqCst);
            }
        }
    }

    pub(crate) fn set_throttle(&self, throttle: bool) {
        self.store(members!(self.throttle), throttle.into());
    }

    /// Sets the rules, by place, whose events wake the daemon at once. If there are any, the end of each ring is kept
    /// free for them.
    pub(crate) fn set_urgent(&self, rules: &[u64; RULE_WORDS]) {
        let has_any = rules.iter().any(|word| *word != 0);
        self.store_words(members!(self.urgent), rules);
        self.store(members!(self.urgent_undecided), has_any.into());

        let reserve = if has_any {
            member!(self.ring_bytes).load(Ordering::Relaxed) / RESERVE
        } else {
            0
        };
        self.store(members!(self.reserve_bytes), reserve);
    }

    /// Sets whether some rule has a budget.
    pub(crate) fn set_has_budgets(&self, has_any: bool) {
        self.store(members!(self.has_budgets), has_any.into());
    }

    /// Sets the number of the call by which the daemon tests the hooks.
    pub(crate) fn set_canary(&self, call: Option<u32>) {
        let call = call.unwrap_or(CALLS as u32);
        self.store(members!(self.canary_call), call);
    }

    /// Sets whether the programs record nothing yet.
    pub(crate) fn set_muted(&self, muted: bool) {
        self.store(members!(self.muted), muted.into());
    }

    pub(crate) fn set_task_list(&self, used: bool) {
        self.store(members!(self.use_task_list), used.into());
    }

    pub(crate) fn set_x32(&self, has_calls: bool) {
        self.store(members!(self.x32), has_calls.into());
    }

    /// Sets where the kernel's table of directory entries is, if that is known.
    pub(crate) fn set_dcache(&self, table: Option<Dcache>) {
        // 0 while the shift changes: the programs do not look for names then.
        self.store_long(members!(self.dcache_at), 0);
        if let Some(Dcache { at, shift }) = table {
            self.store(members!(self.dcache_shift), shift);
            self.store_long(members!(self.dcache_at), at);
        }
    }

    /// Sets where the numbers of SELinux labels are, if that is known.
    pub(crate) fn set_labels(&self, places: Option<LabelPlaces>) {
        let places = places.map_or(0, |LabelPlaces { subject, object }| {
            u32::from(subject) | u32::from(object) << 16
        });
        self.store(members!(self.label_places), places);
    }

    pub(crate) fn set_exit_at_entry(&self, at_entry: bool) {
        self.store(members!(self.exit_at_entry), at_entry.into());
    }

    pub(crate) fn set_copies(&self, copies: bool) {
        self.store(members!(self.copies), copies.into());
    }

    pub(crate) fn set_every(&self, every: bool) {
        self.store(members!(self.every), every.into());
    }

    /// Sets the numbers of the links whose probes record calls, as bits.
    pub(crate) fn set_probe_links(&self, links: u64) {
        self.store_long(members!(self.probe_links), links);
    }

    /// Sets the epoch of the names that new cgroups are classified by.
    pub(crate) fn set_workload_epoch(&self, epoch: u64) {
        self.store_long(members!(self.workload_epoch), epoch);
    }

    pub(crate) fn workload_epoch(&self) -> u64 {
        member!(self.workload_epoch).load(Ordering::SeqCst)
    }

    pub(crate) fn probe_links(&self) -> u64 {
        member!(self.probe_links).load(Ordering::SeqCst)
    }

    /// Stores with a full barrier: see `ring_bell()` in bpf/emit.h.
    pub(crate) fn set_awake(&self, awake: bool) {
        member!(self.reader_awake).store(awake.into(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Counts a frame that was taken from a ring. Only the reader calls this.
    pub(crate) fn count_taken(&self) {
        let taken = member!(self.frames_taken);
        taken.store(
            taken.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }

    pub(crate) fn add_watched(&self, watched: &[u64; CALLS / 64]) {
        let _change = self.mapping.change.lock();
        for words in members!(self.watched) {
            for (word, bits) in words.iter().zip(watched) {
                word.fetch_or(*bits, Ordering::SeqCst);
            }
        }
    }

    pub(crate) fn set_watched(&self, watched: &[u64; CALLS / 64]) {
        self.store_words(members!(self.watched), watched);
    }

    /// The words of the mapped struct, and of the daemon's own copy.
    fn words(&self) -> [&[AtomicU32; WORDS]; 2] {
        let places = [self.shared.as_ptr(), self.mapping.told.get()];
        // SAFETY: both are structs of integers, aligned and as large as this array; see the macros above.
        unsafe { places.map(|place| atomic(place.cast::<[u32; WORDS]>())) }
    }

    /// Restores the members that somebody else has changed, and returns their names.
    pub(crate) fn restore(&self) -> BTreeSet<&'static str> {
        let _change = self.mapping.change.lock();
        let [shared, told] = self.words();
        let mut changed = BTreeSet::new();
        for (at, (shared, told)) in shared.iter().zip(told).enumerate() {
            let offset = at * size_of::<u32>();
            if OF_READER.iter().any(|range| range.contains(&offset)) {
                continue;
            }

            let told = told.load(Ordering::Relaxed);
            if shared.load(Ordering::Relaxed) != told {
                shared.store(told, Ordering::SeqCst);
                let member = MEMBERS.iter().rev().find(|(_, start)| *start <= offset);
                changed.extend(member.map(|(name, _)| name));
            }
        }
        changed
    }
}

/// Start time of process `pid` as the programs compare it; 0 if they cannot.
fn start_if_known(pid: u32) -> Result<u64, CaptureError> {
    let path = format!("/proc/{pid}/stat");
    let failed = |source| CaptureError::System {
        what: path.clone(),
        source,
    };
    let stat = std::fs::read_to_string(&path).map_err(failed)?;
    if has_time_of_its_own() {
        return Ok(0);
    }
    Ok(start_of(&stat).unwrap_or(0))
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

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; nothing refers to it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Writes `rows` to the start of a new table that can be mapped.
pub(crate) fn write_rows(table: &MapHandle, rows: &[Row]) -> Result<(), CaptureError> {
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
