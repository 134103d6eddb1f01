//! Memory for keys: a page that is not swapped, dumped or inherited, and is wiped at its end.
//!
//! mlock(2) rather than memfd_secret(2): the latter keeps the host from hibernating while it is in
//! use, and is off by default before Linux 6.5.

use std::alloc::Layout;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};
use zeroize::Zeroize;

/// Bytes of the mapping: a page wherever Tarsier runs, or a part of one.
pub(super) const PAGE_BYTES: usize = 4096;

/// A page of zeros to keep secrets in.
pub(super) struct LockedPage {
    start: NonNull<[u8; PAGE_BYTES]>,
    /// The part of its protection that the kernel refused.
    pub(super) failure: Option<(&'static str, io::Error)>,
}

// SAFETY: the page belongs to this value alone.
unsafe impl Send for LockedPage {}
// SAFETY: as above; a shared reference only reads.
unsafe impl Sync for LockedPage {}

impl LockedPage {
    /// Maps a page. If the kernel refuses to protect it, that is not an error but is kept in
    /// [`failure`](Self::failure).
    pub(super) fn new() -> LockedPage {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new private mapping, of which nobody else knows.
        let mapped = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                PAGE_BYTES,
                protection,
                MapFlags::PRIVATE,
            )
        };

        let start = mapped.ok().and_then(|start| NonNull::new(start.cast()));
        let Some(start) = start else {
            // Like any allocation that fails.
            std::alloc::handle_alloc_error(Layout::new::<[u8; PAGE_BYTES]>());
        };

        LockedPage {
            start,
            failure: protect(start).err(),
        }
    }
}

fn protect(start: NonNull<[u8; PAGE_BYTES]>) -> Result<(), (&'static str, io::Error)> {
    let start = start.as_ptr().cast();
    let advise = |advice, name| {
        // SAFETY: the mapping was just made; the advice changes what forks and dumps hold of it.
        let outcome = unsafe { rustix::mm::madvise(start, PAGE_BYTES, advice) };
        outcome.map_err(|errno| (name, errno.into()))
    };

    // Each protection is tried even if another is refused; the first refusal is reported.
    let dumps = advise(Advice::LinuxDontDump, "madvise(MADV_DONTDUMP)");
    let forks = advise(Advice::LinuxWipeOnFork, "madvise(MADV_WIPEONFORK)");

    // SAFETY: as above.
    let swap = unsafe { rustix::mm::mlock(start, PAGE_BYTES) };
    swap.map_err(|errno| ("mlock", errno.into()))
        .and(dumps)
        .and(forks)
}

impl std::ops::Deref for LockedPage {
    type Target = [u8; PAGE_BYTES];

    fn deref(&self) -> &Self::Target {
        // SAFETY: mapped, readable and initialised (zeros) as long as this value lives.
        unsafe { self.start.as_ref() }
    }
}

impl std::ops::DerefMut for LockedPage {
    fn deref_mut(&mut self) -> &mut Self::Target {
        // SAFETY: as above, writable, and borrowed by nobody else.
        unsafe { self.start.as_mut() }
    }
}

impl Drop for LockedPage {
    fn drop(&mut self) {
        self.zeroize();
        // SAFETY: nobody refers to the mapping any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), PAGE_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line VmFlags of /proc/self/smaps about the mapping that holds `address`.
    fn flags_at(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
        let mut is_there = false;
        for line in maps.lines() {
            let first = line.split(' ').next().unwrap_or_default();
            if let Some((start, end)) = first.split_once('-') {
                let number = |text| usize::from_str_radix(text, 16).expect("an address");
                is_there = (number(start)..number(end)).contains(&address);
            } else if is_there && line.starts_with("VmFlags") {
                return line.to_owned();
            }
        }
        panic!("no mapping holds {address:x}");
    }

    #[test]
    fn the_page_is_locked_and_neither_dumped_nor_inherited() {
        let mut page = LockedPage::new();
        page.fill(7);
        assert!(page.failure.is_none(), "{:?}", page.failure);
        let flags = flags_at(page.start.as_ptr() as usize);
        for flag in [" lo", " dd", " wf"] {
            assert!(flags.contains(flag), "{flag}: {flags}");
        }
    }
}
