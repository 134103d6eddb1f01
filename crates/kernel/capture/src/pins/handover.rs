//! A daemon's notes for the next one: how far it got with the events that it has read.
//!
//! The notes are a page of memory that is pinned beside the rings. For each event that the daemon hands to the log, it
//! notes the position in the ring after the event, and the offset in the log's stream of bytes at which the event ends.
//! Around each write(2) it notes what is being written, and where. The ring space of an event is released only after
//! the event was written. So after a kill at any instruction, the next daemon knows from this page and from the size of
//! the file which events are in the log, and reads the others again.
//!
//! A single thread writes the page; it is only necessary that the stores are made in program order.

use super::Pins;
use crate::error::{system, CaptureError};
use bpf::load::refused;
use libbpf_rs::libbpf_sys::BPF_F_MMAPABLE;
use libbpf_rs::{MapCore, MapHandle, MapType};
use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Name of the page's pin.
pub(super) const NAME: &str = "handover";
/// Limit of events that are noted and not yet known to be written.
const ENTRIES: usize = 16384;
/// The first word of this version of the page.
const MAGIC: u64 = 0x7461_7273_6965_7202;
/// Value of `ring` for parts of the log's stream that came from no ring.
const NO_RING: u64 = u64::MAX;
/// Limit of causes of loss whose reported counts are stored.
pub(crate) const TOLD: usize = 8;
/// The causes that the programs count, and missed calls.
const _: () = assert!(TOLD > record::wire::TARSIER_LOSS_CAUSES as usize);

/// The beginning of this structure stays the same in later versions.
#[repr(C)]
struct HandoverPage {
    magic: AtomicU64,
    /// Hash of the programs that fill the rings.
    layout: [AtomicU64; 4],
    /// Version of the events' format.
    events: AtomicU64,
    /// Place in the programs' .bss of the word that makes them record nothing, in bytes.
    muted_at: AtomicU64,
    /// Time at which the daemon was last seen (CLOCK_MONOTONIC).
    alive_ns: AtomicU64,
    /// Offset up to which the log's stream was taken by write(2).
    written: AtomicU64,
    writing: Writing,
    /// Number of events that the daemon holds in memory without an entry: running operations.
    held: AtomicU64,
    /// Offset in the stream up to which there are events whose space was released before they were written.
    unwritten_upto: AtomicU64,
    unwritten: AtomicU64,
    /// Losses that the programs count, as far as the log reports them.
    told: [AtomicU64; TOLD],
    /// Other losses that the log does not report yet.
    untold: AtomicU64,
    /// Number of entries made, and number of entries that are finished.
    made: AtomicU64,
    done: AtomicU64,
    entries: [HandoverEntry; ENTRIES],
}

/// A write(2) that has begun. `stored` is 0 once it has ended.
#[repr(C)]
struct Writing {
    dev: AtomicU64,
    ino: AtomicU64,
    offset: AtomicU64,
    start: AtomicU64,
    len: AtomicU64,
    is_whole: AtomicU64,
    stored: AtomicU64,
}

#[repr(C)]
struct HandoverEntry {
    /// Offset in the log's stream at which the event ends.
    end: AtomicU64,
    ring: AtomicU64,
    /// Position in the ring at which the event's frame ends.
    position: AtomicU64,
}

/// A write(2) to a log that may have been interrupted when the daemon was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfinishedWrite {
    /// Device of the file.
    pub dev: u64,
    /// Inode of the file.
    pub ino: u64,
    /// Size of the file before the write.
    pub offset: u64,
    /// Offset of the first byte in the log's stream.
    pub start: u64,
    /// Number of bytes of the stream.
    pub len: u64,
    /// Number of bytes written to the file, at least 1.
    pub stored: u64,
    /// Whether the bytes in the file differ from those of the stream, and count only as a whole.
    pub is_whole: bool,
}

/// An event that is handed to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Offset in the log's stream at which it ends.
    pub end: u64,
    /// Ring of the event's frame, and the position there at which the frame ends; `None` if it came from no ring.
    pub from: Option<(usize, u64)>,
}

/// The page, mapped.
pub struct Handover {
    page: NonNull<HandoverPage>,
    len: usize,
    _map: Option<MapHandle>,
}

// SAFETY: the pointer is to memory that this value alone maps and unmaps, and it holds atomics.
unsafe impl Send for Handover {}
// SAFETY: as above.
unsafe impl Sync for Handover {}

impl Handover {
    /// Creates a page for programs with this hash, and this place of the word that mutes them.
    pub(crate) fn create(
        layout: [u64; 4],
        events: u64,
        muted_at: u64,
    ) -> Result<Handover, CaptureError> {
        let map = MapHandle::create(
            MapType::Array,
            Some("tarsier_handed"),
            4,
            std::mem::size_of::<HandoverPage>() as u32,
            1,
            &crate::load::map_options::map_options(BPF_F_MMAPABLE),
        )
        .map_err(refused("map for the next daemon"))?;

        let handover = Handover::map(map)?;

        // The number of this version last: a page without it is not found.
        let page = handover.page();
        for (word, value) in page.layout.iter().zip(layout) {
            word.store(value, Ordering::Release);
        }
        page.events.store(events, Ordering::Release);
        page.muted_at.store(muted_at, Ordering::Release);
        page.magic.store(MAGIC, Ordering::Release);
        Ok(handover)
    }

    /// The page of an earlier daemon; `None` if there is none, or one of another version.
    pub(crate) fn find(pins: &Pins) -> Result<Option<Handover>, CaptureError> {
        let Some(map) = pins.get_map(NAME)? else {
            return Ok(None);
        };
        if map.value_size() as usize != std::mem::size_of::<HandoverPage>() {
            return Ok(None);
        }

        let handover = Handover::map(map)?;
        let is_ours = handover.page().magic.load(Ordering::Acquire) == MAGIC;
        Ok(is_ours.then_some(handover))
    }

    fn map(map: MapHandle) -> Result<Handover, CaptureError> {
        let mut handover = Handover::map_file(&map)?;
        handover._map = Some(map);
        Ok(handover)
    }

    fn map_file(file: impl AsFd) -> Result<Handover, CaptureError> {
        let len = std::mem::size_of::<HandoverPage>().next_multiple_of(rustix::param::page_size());
        let flags = ProtFlags::READ | ProtFlags::WRITE;

        let start = std::ptr::null_mut();
        // SAFETY: a new mapping; nothing existing is replaced.
        let page = unsafe { mmap(start, len, flags, MapFlags::SHARED, file.as_fd(), 0) }
            .map_err(system("mmap of the map for the next daemon"))?;

        let page = NonNull::new(page.cast()).ok_or_else(|| CaptureError::System {
            what: "mmap of the map for the next daemon".to_owned(),
            source: std::io::ErrorKind::InvalidData.into(),
        })?;
        Ok(Handover {
            page,
            len,
            _map: None,
        })
    }

    fn page(&self) -> &HandoverPage {
        // SAFETY: mapped as long as `self` lives, and every member is atomic.
        unsafe { self.page.as_ref() }
    }

    /// Pins the page so that it can be found: from here on the capture is complete.
    pub(crate) fn pin(&self, pins: &Pins) -> Result<(), CaptureError> {
        match &self._map {
            Some(map) => pins.pin(map.as_fd(), NAME),
            None => Ok(()),
        }
    }

    /// Hash of the capture's programs, and version of its events.
    pub(crate) fn layout(&self) -> ([u64; 4], u64) {
        let page = self.page();
        let word = |i: usize| page.layout[i].load(Ordering::Acquire);
        let layout = std::array::from_fn(word);
        (layout, page.events.load(Ordering::Acquire))
    }

    /// Place in the programs' .bss of the word that makes them record nothing, in bytes.
    pub(crate) fn muted_at(&self) -> u64 {
        self.page().muted_at.load(Ordering::Acquire)
    }

    /// Notes that the daemon is alive, and how many events it holds without an entry.
    pub fn live(&self, now_ns: u64, held: u64) {
        self.page().alive_ns.store(now_ns, Ordering::Release);
        self.page().held.store(held, Ordering::Release);
    }

    /// Time at which the daemon was last seen (CLOCK_MONOTONIC, in nanoseconds), and the number of events that it held.
    pub fn last_seen(&self) -> (u64, u64) {
        let page = self.page();
        (
            page.alive_ns.load(Ordering::Acquire),
            page.held.load(Ordering::Acquire),
        )
    }

    /// Notes the losses that the log reports, of those that the programs count, by cause.
    pub fn set_told(&self, told: &[u64]) {
        for (place, count) in self.page().told.iter().zip(told) {
            place.store(*count, Ordering::Release);
        }
    }

    /// Notes the number of other losses that the log does not report yet.
    pub fn set_untold(&self, untold: u64) {
        self.page().untold.store(untold, Ordering::Release);
    }

    /// The values last noted with [`Handover::set_told`] and [`Handover::set_untold`].
    pub fn told(&self) -> ([u64; TOLD], u64) {
        let page = self.page();
        let told = std::array::from_fn(|i: usize| page.told[i].load(Ordering::Acquire));
        (told, page.untold.load(Ordering::Acquire))
    }

    /// Notes an event that was just handed to the log, before the log is told to write. If there is no free entry,
    /// gives up the oldest one ([`Handover::give_up`]) and returns its ring and position, whose space the caller
    /// must release.
    pub fn note(&self, handed: Handed) -> Option<(usize, u64)> {
        let page = self.page();

        let made = page.made.load(Ordering::Acquire);
        let is_full = made - page.done.load(Ordering::Acquire) >= ENTRIES as u64;
        let given_up = is_full.then(|| self.give_up()).flatten();

        let entry = &page.entries[(made % ENTRIES as u64) as usize];
        let (ring, position) = match handed.from {
            Some((ring, position)) => (ring as u64, position),
            None => (NO_RING, 0),
        };

        entry.end.store(handed.end, Ordering::Release);
        entry.ring.store(ring, Ordering::Release);
        entry.position.store(position, Ordering::Release);

        // The entry counts only when all of it is there.
        page.made.store(made + 1, Ordering::Release);
        given_up.and_then(|handed| handed.from)
    }

    /// Removes the entry of the oldest event, which is not written yet: if this process is killed before it is,
    /// the event counts as lost.
    pub fn give_up(&self) -> Option<Handed> {
        let page = self.page();
        let done = page.done.load(Ordering::Acquire);
        if done == page.made.load(Ordering::Acquire) {
            return None;
        }

        let oldest = self.entry(done);

        // Counted before the entry goes: after a kill in between, an event counts as lost that is not, never
        // the reverse.
        page.unwritten_upto.store(oldest.end, Ordering::Release);
        if oldest.from.is_some() {
            page.unwritten.fetch_add(1, Ordering::AcqRel);
        }
        page.done.store(done + 1, Ordering::Release);
        Some(oldest)
    }

    fn entry(&self, number: u64) -> Handed {
        let entry = &self.page().entries[(number % ENTRIES as u64) as usize];
        let ring = entry.ring.load(Ordering::Acquire);

        Handed {
            end: entry.end.load(Ordering::Acquire),
            from: (ring != NO_RING)
                .then(|| (ring as usize, entry.position.load(Ordering::Acquire))),
        }
    }

    /// Calls `release` with the ring and position of each event that was written, and removes their entries.
    pub fn settle(&self, mut release: impl FnMut(usize, u64)) {
        let page = self.page();
        let written = page.written.load(Ordering::Acquire);
        if written >= page.unwritten_upto.load(Ordering::Acquire) {
            page.unwritten.store(0, Ordering::Release);
        }

        let made = page.made.load(Ordering::Acquire);
        let mut done = page.done.load(Ordering::Acquire);
        while done < made {
            let handed = self.entry(done);
            if handed.end > written {
                break;
            }
            if let Some((ring, position)) = handed.from {
                release(ring, position);
            }
            done += 1;
        }
        page.done.store(done, Ordering::Release);
    }

    /// Notes that a write(2) begins.
    pub fn begin_write(&self, write: &UnfinishedWrite) {
        let writing = &self.page().writing;
        writing.dev.store(write.dev, Ordering::Release);
        writing.ino.store(write.ino, Ordering::Release);
        writing.offset.store(write.offset, Ordering::Release);
        writing.start.store(write.start, Ordering::Release);
        writing.len.store(write.len, Ordering::Release);
        writing
            .is_whole
            .store(write.is_whole.into(), Ordering::Release);
        writing.stored.store(write.stored, Ordering::Release);
    }

    /// Notes that the write(2) has ended: the stream up to `written` is in the file.
    pub fn end_write(&self, written: u64) {
        self.page().written.store(written, Ordering::Release);
        self.page().writing.stored.store(0, Ordering::Release);
    }

    /// The write(2) during which the daemon was killed, if there was one.
    pub fn unfinished_write(&self) -> Option<UnfinishedWrite> {
        let writing = &self.page().writing;
        let stored = writing.stored.load(Ordering::Acquire);
        let start = writing.start.load(Ordering::Acquire);
        let len = writing.len.load(Ordering::Acquire);
        let has_ended = self.page().written.load(Ordering::Acquire) >= start + len;

        (stored != 0 && !has_ended).then(|| UnfinishedWrite {
            dev: writing.dev.load(Ordering::Acquire),
            ino: writing.ino.load(Ordering::Acquire),
            offset: writing.offset.load(Ordering::Acquire),
            start,
            len,
            stored,
            is_whole: writing.is_whole.load(Ordering::Acquire) != 0,
        })
    }

    /// Number of bytes of the stream that are in the file if a dead daemon's write stored `got` bytes. The
    /// beginning of an incomplete event does not count.
    pub fn whole_of(&self, write: &UnfinishedWrite, got: u64) -> u64 {
        match write.is_whole {
            true if got >= write.stored => write.len,
            true => 0,
            false => self.whole_until(write.start, write.start + got.min(write.len)),
        }
    }

    /// Number of bytes from `start` on that consist of whole events ending at or before `end`.
    fn whole_until(&self, start: u64, end: u64) -> u64 {
        let page = self.page();
        let (done, made) = (
            page.done.load(Ordering::Acquire),
            page.made.load(Ordering::Acquire),
        );
        let ends = (done..made).map(|number| self.entry(number).end);
        ends.filter(|&at| at <= end && at > start)
            .max()
            .map_or(0, |at| at - start)
    }

    /// Prepares the page for a successor, which begins its own stream. Returns the number of events whose space
    /// the dead daemon had released without writing them.
    pub fn begin_anew(&self) -> u64 {
        let page = self.page();

        // The entries go first: their offsets of the old stream must not be compared with those of the new.
        let made = page.made.load(Ordering::Acquire);
        page.done.store(made, Ordering::Release);
        page.writing.stored.store(0, Ordering::Release);
        let lost = page.unwritten.swap(0, Ordering::AcqRel);

        page.unwritten_upto.store(0, Ordering::Release);
        page.held.store(0, Ordering::Release);
        page.written.store(0, Ordering::Release);
        lost
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map_file` mapped; no reference outlives `self`.
        let _ = unsafe { munmap(self.page.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};

    fn handover() -> Handover {
        let memory = memfd_create("handover", MemfdFlags::CLOEXEC).expect("memfd");
        let size = std::mem::size_of::<HandoverPage>().next_multiple_of(rustix::param::page_size());
        ftruncate(&memory, size as u64).expect("size of a memfd");
        Handover::map_file(&memory).expect("mmap")
    }

    fn note(handover: &Handover, end: u64, position: u64) {
        let from = Some((0, position));
        assert_eq!(handover.note(Handed { end, from }), None);
    }

    fn settled(handover: &Handover) -> Vec<(usize, u64)> {
        let mut places = Vec::new();
        handover.settle(|ring, position| places.push((ring, position)));
        places
    }

    fn write_of(start: u64, len: u64, stored: u64) -> UnfinishedWrite {
        let is_whole = stored != len;
        UnfinishedWrite {
            dev: 1,
            ino: 2,
            offset: 1000,
            start,
            len,
            stored,
            is_whole,
        }
    }

    #[test]
    fn room_is_given_back_for_what_was_written_and_for_nothing_else() {
        let handover = handover();
        note(&handover, 10, 100);
        note(&handover, 10, 150);
        note(&handover, 20, 200);
        assert_eq!(settled(&handover), []);
        handover.begin_write(&write_of(0, 20, 20));
        assert_eq!(settled(&handover), []);
        handover.end_write(10);
        assert_eq!(settled(&handover), [(0, 100), (0, 150)]);
        handover.end_write(20);
        assert_eq!(settled(&handover), [(0, 200)]);
        assert_eq!(settled(&handover), []);
    }

    #[test]
    fn of_a_torn_write_the_whole_events_count_wherever_it_was_torn() {
        for got in 0..=30 {
            let handover = handover();
            for (end, position) in [(10, 100), (20, 200), (30, 300)] {
                note(&handover, end, position);
            }
            handover.begin_write(&write_of(0, 30, 30));
            let write = handover.unfinished_write().expect("it is unfinished");
            let whole = handover.whole_of(&write, got);
            assert_eq!(whole, got / 10 * 10);
            handover.end_write(write.start + whole);
            assert_eq!(settled(&handover).len() as u64, got / 10);
            assert_eq!(handover.unfinished_write(), None);
        }
    }

    #[test]
    fn a_write_in_another_form_counts_as_a_whole_or_not_at_all() {
        for (got, whole) in [(0, 0), (11, 0), (12, 30)] {
            let handover = handover();
            note(&handover, 30, 300);
            handover.begin_write(&write_of(0, 30, 12));
            let write = handover.unfinished_write().expect("it is unfinished");
            assert_eq!(handover.whole_of(&write, got), whole);
        }
    }

    #[test]
    fn a_write_that_was_noted_as_done_is_not_unfinished() {
        let handover = handover();
        note(&handover, 10, 100);
        handover.begin_write(&write_of(0, 10, 10));
        // Killed between the two stores of end_write().
        handover.page().written.store(10, Ordering::Release);
        assert_eq!(handover.unfinished_write(), None);
    }

    #[test]
    fn events_that_cannot_be_remembered_are_counted_until_they_are_written() {
        let handover = handover();
        for i in 1..=ENTRIES as u64 {
            note(&handover, i * 10, i);
        }
        let from = Some((3, 7));
        let given_up = handover.note(Handed { end: 1 << 30, from });
        assert_eq!(given_up, Some((0, 1)));
        assert_eq!(handover.page().unwritten.load(Ordering::Relaxed), 1);
        handover.end_write(10);
        settled(&handover);
        assert_eq!(handover.begin_anew(), 0);
        for i in 1..=ENTRIES as u64 {
            note(&handover, i * 10, i);
        }
        handover.note(Handed { end: 1 << 30, from });
        assert_eq!(handover.begin_anew(), 1);
        assert_eq!(settled(&handover), []);
    }
}
