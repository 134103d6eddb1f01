//! perf_event_open(2) for a tracepoint.

use rustix::io::Errno;
use std::os::fd::{FromRawFd, OwnedFd};

const PERF_TYPE_TRACEPOINT: u32 = 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// The beginning of `struct perf_event_attr` (linux/perf_event.h), PERF_ATTR_SIZE_VER1.
#[repr(C)]
#[derive(Default)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
}

/// Opens an event of the tracepoint with this id, for every process on every CPU.
pub(crate) fn open_tracepoint(event: u64) -> rustix::io::Result<OwnedFd> {
    let attr = Attr {
        kind: PERF_TYPE_TRACEPOINT,
        size: std::mem::size_of::<Attr>() as u32,
        config: event,
        sample_period: 1,
        wakeup_events: 1,
        ..Attr::default()
    };

    // SAFETY: `attr` is a valid perf_event_attr of the size it states and outlives the call. A
    // program attached to the event runs on every CPU, although the event names one.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attr,
            -1,
            0,
            -1,
            PERF_FLAG_FD_CLOEXEC,
        )
    };

    if fd < 0 {
        let errno = std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EIO);
        return Err(Errno::from_raw_os_error(errno));
    }

    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
