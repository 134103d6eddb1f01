//! Encoding an event allocates nothing once the reused buffers have grown.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use record::record::*;
use record::{Encoder, Format, NameTable, RecordType, Stamp};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged; only a thread-local counter is added to.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of alloc.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` came from System.alloc or realloc with this layout.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of realloc.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SYSCALL: Syscall<'static> = Syscall {
    arch: 0xc000_003e,
    nr: 59,
    personality: 0,
    exit: Some(0),
    a: [0x61506d0, 1, 2, u64::MAX],
    items: 2,
    is_cut: false,
    ppid: 1,
    pid: 3983,
    auid: 1000,
    uid: 0,
    gid: 0,
    euid: 0,
    suid: 0,
    fsuid: 0,
    egid: 7,
    sgid: 0,
    fsgid: 0,
    tty: b"pts0",
    ses: 3,
    comm: b"two words",
    exe: Some(b"/usr/bin/cat"),
    subj: Some(b"unconfined"),
    key: Some(b"k1\x01k2"),
};

fn write_event(encoder: &mut Encoder, out: &mut Vec<u8>, args: &[u8], serial: u32) {
    let inode = Inode {
        ino: 5,
        dev: 0x19,
        mode: 0o100644,
        ouid: 1000,
        ogid: 0,
        rdev: 0,
        label: 0,
    };
    let mut event = encoder.begin(
        out,
        Stamp {
            sec: 1795229646,
            msec: 7,
            serial,
        },
    );
    event.syscall(&SYSCALL);
    event.execve(&Execve::whole(args));
    event.put(&Sockaddr {
        saddr: b"\x02\0\x10\x92\x7f\0\0\x01\0\0\0\0\0\0\0\0",
    });
    event.put(&Cwd { cwd: b"/a \xff" });
    event.put(&PathItem {
        name: Some(b"/watch/f1"),
        inode: Some(inode),
        ..PathItem::default()
    });
    event.raw(
        RecordType::AVC.netlink(),
        b"avc:  denied  { read } for pid=1 scontext=a tcontext=b",
    );
    event.put(&Proctitle {
        title: Some(b"cat\0/etc/shadow"),
    });
    event.end();
}

#[test]
fn encoding_an_event_allocates_nothing_in_the_steady_state() {
    let mut args = b"cat\0a b\0".to_vec();
    args.extend([b'x'; 20_000]);
    args.push(0);
    for format in [Format::Raw, Format::Enriched, Format::Json] {
        let names = NameTable::parse("alice:x:1000:1000::/:", "adm:x:7:");
        let mut encoder = Encoder::new(format, Box::new(names));
        let mut out = Vec::new();
        write_event(&mut encoder, &mut out, &args, u32::MAX);
        let before = ALLOCATIONS.get();
        for serial in 0..50 {
            out.clear();
            write_event(&mut encoder, &mut out, &args, serial);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{format:?}");
    }
    let before = ALLOCATIONS.get();
    drop(vec![0_u8; 10]);
    assert_eq!(ALLOCATIONS.get() - before, 1, "the counter counts");
}
