//! Reader of one BPF ring buffer (kernel/bpf/ringbuf.c; layout in Documentation/bpf/ringbuf.rst). Not libbpf's,
//! because Tarsier reads the rings of all CPUs as one stream in order of time, and maps the data once where libbpf
//! maps it twice.

use rustix::mm::{mmap, munmap, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const HEADER: u64 = 8;
pub(crate) const BUSY: u32 = 1 << 31;
const DISCARD: u32 = 1 << 30;

/// A mapped ring.
pub struct Ring {
    consumer: NonNull<AtomicU64>,
    producer: NonNull<AtomicU64>,
    data: NonNull<u8>,
    size: u64,
    page: usize,
    /// Position up to which records were read; [`Ring::release`] reports it to the kernel.
    position: u64,
    /// The position that was reported last. It is not read back from the kernel's page, to which others can write.
    released: u64,
    wrapped: Vec<u8>,
}

// SAFETY: the pointers are to memory that this value alone maps and unmaps; the kernel's side is
// only read through atomics and finished records.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of `map`, whose data has `size` bytes (a power of two, and a multiple of the page size).
    pub fn map(map: impl AsFd, size: usize) -> rustix::io::Result<Ring> {
        let page = rustix::param::page_size();
        // SAFETY: new mappings of a descriptor, nothing existing is replaced.
        let (consumer, producer) = unsafe {
            let consumer = mmap(
                std::ptr::null_mut(),
                page,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )?;
            let producer = mmap(
                std::ptr::null_mut(),
                page + size,
                ProtFlags::READ,
                MapFlags::SHARED,
                map.as_fd(),
                page as u64,
            );
            match producer {
                Ok(producer) => (consumer, producer),
                Err(error) => {
                    let _ = munmap(consumer, page);
                    return Err(error);
                }
            }
        };
        // SAFETY: mmap succeeded, so none of the addresses is null; the data follows the page of
        // the producer position within the same mapping.
        let (consumer, producer, data) = unsafe {
            (
                NonNull::new_unchecked(consumer.cast::<AtomicU64>()),
                NonNull::new_unchecked(producer.cast::<AtomicU64>()),
                NonNull::new_unchecked(producer.cast::<u8>().add(page)),
            )
        };

        let mut ring = Ring {
            consumer,
            producer,
            data,
            size: size as u64,
            page,
            position: 0,
            released: 0,
            wrapped: Vec::new(),
        };

        // An earlier reader's position: what it has not released is read again.
        // SAFETY: points to the consumer page, mapped above.
        ring.position = unsafe { ring.consumer.as_ref() }.load(Ordering::Acquire);
        ring.released = ring.position;
        Ok(ring)
    }

    /// Position up to which the kernel has written.
    pub fn produced(&self) -> u64 {
        // SAFETY: points to the producer page, mapped as long as `self` lives.
        unsafe { self.producer.as_ref() }.load(Ordering::Acquire)
    }

    /// Number of bytes that were written and not read yet.
    pub fn unread(&self) -> u64 {
        self.produced().saturating_sub(self.position)
    }

    /// Size of the data in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The next finished record before position `limit`, if there is one.
    pub fn peek(&mut self, limit: u64) -> Option<&[u8]> {
        loop {
            if self.position >= limit {
                return None;
            }

            let header = self.header();
            if header & BUSY != 0 {
                return None;
            }

            if header & DISCARD != 0 {
                self.position += advance(header);
                continue;
            }
            return Some(self.record(header));
        }
    }

    /// Whether the next record before position `limit` is still being written.
    pub(crate) fn is_held_up(&self, limit: u64) -> bool {
        self.position < limit && self.header() & BUSY != 0
    }

    /// Skips the record that [`Ring::peek`] returned.
    pub fn pop(&mut self) {
        self.position += advance(self.header());
    }

    /// Passes the finished records that were not read yet to `take`, and leaves them unread.
    pub(crate) fn look_ahead(&mut self, take: &mut dyn FnMut(&[u8])) {
        let (position, limit) = (self.position, self.produced());
        while let Some(record) = self.peek(limit) {
            take(record);
            self.pop();
        }
        self.position = position;
    }

    /// Lets the kernel reuse the space of everything read.
    pub fn release(&mut self) {
        self.report(self.position);
    }

    fn report(&mut self, position: u64) {
        self.released = position;
        // SAFETY: points to the consumer page, mapped as long as `self` lives.
        unsafe { self.consumer.as_ref() }.store(position, Ordering::Release);
    }

    /// Reports the last position again, if somebody else has changed it. Returns whether that was so.
    pub(crate) fn restore(&mut self) -> bool {
        // SAFETY: points to the consumer page, mapped as long as `self` lives.
        let told = unsafe { self.consumer.as_ref() }.load(Ordering::Relaxed);
        let is_changed = told != self.released;
        if is_changed {
            self.report(self.released);
        }
        is_changed
    }

    /// Lets the kernel reuse the space before `position`, which must have been read.
    pub(crate) fn release_to(&mut self, position: u64) {
        if position > self.released && position <= self.position {
            self.report(position);
        }
    }

    /// Skips everything before `position`, the end of a record that an earlier reader has read.
    pub(crate) fn skip_to(&mut self, position: u64) {
        if position > self.position && position <= self.produced() {
            self.position = position;
            self.release();
        }
    }

    /// Number of bytes that were read and not released.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.position - self.released
    }

    /// End position of the record that [`Ring::peek`] would return.
    pub(crate) fn end_of_next(&mut self, limit: u64) -> Option<u64> {
        self.peek(limit)?;
        Some(self.position + advance(self.header()))
    }

    fn header(&self) -> u32 {
        let offset = (self.position & (self.size - 1)) as usize;
        // SAFETY: the offset is a multiple of 8 below the size of the mapped data, and the kernel
        // publishes the header by an atomic exchange.
        unsafe { &*self.data.as_ptr().add(offset).cast::<AtomicU32>() }.load(Ordering::Acquire)
    }

    fn record(&mut self, header: u32) -> &[u8] {
        let len = (header & !(BUSY | DISCARD)) as usize;
        let start = ((self.position + HEADER) & (self.size - 1)) as usize;
        let until_end = self.size as usize - start;
        // SAFETY: both ranges lie inside the mapped data; the kernel does not write to a finished
        // record before it is released.

        unsafe {
            let data = self.data.as_ptr();

            if len <= until_end {
                return std::slice::from_raw_parts(data.add(start), len);
            }

            self.wrapped.clear();
            self.wrapped
                .extend_from_slice(std::slice::from_raw_parts(data.add(start), until_end));
            let rest = (len - until_end).min(self.size as usize);
            self.wrapped
                .extend_from_slice(std::slice::from_raw_parts(data, rest));
        }
        &self.wrapped
    }
}

fn advance(header: u32) -> u64 {
    (u64::from(header & !(BUSY | DISCARD)) + HEADER + 7) & !7
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what `map` mapped; no reference outlives `self`.
        unsafe {
            let _ = munmap(self.consumer.as_ptr().cast(), self.page);
            let _ = munmap(
                self.producer.as_ptr().cast(),
                self.page + self.size as usize,
            );
        }
    }
}

/// A ring in ordinary memory, with the kernel's layout, for tests.
#[cfg(test)]
pub(crate) mod fake {
    use super::*;
    use rustix::fs::{ftruncate, memfd_create, MemfdFlags};
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// The writing side of a ring.
    pub(crate) struct Producer {
        file: File,
        size: u64,
        position: u64,
    }

    /// A ring of `size` bytes whose positions start at `start`, a multiple of 8.
    pub(crate) fn ring(size: u64, start: u64) -> (Producer, Ring) {
        let page = rustix::param::page_size() as u64;
        let memory = memfd_create("ring", MemfdFlags::CLOEXEC).expect("memfd");
        ftruncate(&memory, 2 * page + size).expect("size of a memfd");
        let file = File::from(memory);
        file.write_all_at(&start.to_ne_bytes(), 0)
            .expect("consumer position");
        file.write_all_at(&start.to_ne_bytes(), page)
            .expect("producer position");
        let ring = Ring::map(&file, size as usize).expect("mmap");
        let producer = Producer {
            file,
            size,
            position: start,
        };
        (producer, ring)
    }

    impl Producer {
        /// Adds a record whose header has these flags.
        pub(crate) fn push(&mut self, data: &[u8], flags: u32) {
            let header = u64::from(data.len() as u32 | flags);
            self.put(self.position, &header.to_ne_bytes());
            self.put(self.position + HEADER, data);
            self.position += advance(data.len() as u32);
            let page = rustix::param::page_size() as u64;
            self.file
                .write_all_at(&self.position.to_ne_bytes(), page)
                .expect("producer position");
        }

        fn put(&self, position: u64, bytes: &[u8]) {
            let data = 2 * rustix::param::page_size() as u64;
            for (i, byte) in bytes.iter().enumerate() {
                let offset = (position + i as u64) & (self.size - 1);
                self.file
                    .write_all_at(&[*byte], data + offset)
                    .expect("data");
            }
        }

        /// Writes the reader's position, as another process might.
        pub(crate) fn consume_to(&self, position: u64) {
            self.file
                .write_all_at(&position.to_ne_bytes(), 0)
                .expect("consumer position");
        }

        /// Position up to which the reader has released the ring.
        pub(crate) fn consumed(&self) -> u64 {
            let mut bytes = [0; 8];
            self.file
                .read_exact_at(&mut bytes, 0)
                .expect("consumer position");
            u64::from_ne_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 4096;

    #[test]
    fn records_come_out_as_they_went_in_across_the_end_of_the_data() {
        let (mut producer, mut ring) = fake::ring(SIZE, SIZE - 24);
        let records: [&[u8]; 3] = [
            b"before the end",
            b"",
            b"after the end, and longer than what was left",
        ];
        for record in records {
            producer.push(record, 0);
        }
        for record in records {
            assert_eq!(ring.peek(ring.produced()), Some(record));
            ring.pop();
        }
        assert_eq!(ring.peek(ring.produced()), None);
        assert_eq!(ring.unread(), 0);
    }

    #[test]
    fn a_record_under_construction_is_waited_for_and_a_discarded_one_passed_over() {
        let (mut producer, mut ring) = fake::ring(SIZE, 0);
        producer.push(b"thrown away", DISCARD);
        producer.push(b"kept", 0);
        producer.push(b"not ready", BUSY);
        producer.push(b"behind it", 0);
        assert_eq!(ring.peek(ring.produced()), Some(&b"kept"[..]));
        ring.pop();
        assert_eq!(ring.peek(ring.produced()), None);
        assert!(ring.unread() > 0);
    }

    #[test]
    fn records_that_were_looked_at_are_still_unread() {
        let (mut producer, mut ring) = fake::ring(SIZE, SIZE - 24);
        producer.push(b"one", 0);
        producer.push(b"gone", DISCARD);
        producer.push(b"two, beyond the end", 0);
        producer.push(b"not ready", BUSY);
        for _ in 0..2 {
            let mut seen = Vec::new();
            ring.look_ahead(&mut |record| seen.push(record.to_vec()));
            assert_eq!(seen, [&b"one"[..], b"two, beyond the end"]);
        }
        assert_eq!(ring.peek(ring.produced()), Some(&b"one"[..]));
        ring.release();
        assert_eq!(producer.consumed(), SIZE - 24);
    }

    #[test]
    fn the_kernel_gets_its_room_back_only_when_told() {
        let (mut producer, mut ring) = fake::ring(SIZE, 0);
        producer.push(b"12345678", 0);
        assert!(ring.peek(ring.produced()).is_some());
        ring.pop();
        assert_eq!(producer.consumed(), 0);
        ring.release();
        assert_eq!(producer.consumed(), 16);
    }
}
