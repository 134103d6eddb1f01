//! The listener of a filter: seccomp_unotify(2).

use seccomp::SeccompData;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A descriptor from SECCOMP_FILTER_FLAG_NEW_LISTENER.
pub(super) struct Listener(OwnedFd);

/// A call that waits for an answer.
pub(super) struct Notification {
    id: u64,
    /// The thread that makes it, as our pid namespace numbers it.
    pub(super) tid: u32,
    pub(super) data: SeccompData,
}

impl Listener {
    pub(super) fn new(fd: OwnedFd) -> Listener {
        Listener(fd)
    }

    /// Readable when a call waits; hung up when no process has the filter.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// A call that waits; `None` if its thread was killed meanwhile.
    pub(super) fn receive(&self) -> io::Result<Option<Notification>> {
        // SAFETY: integers only; the kernel wants it zeroed.
        let mut raw: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request's argument is this structure.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_RECV,
                &raw mut raw,
            )
        };
        if result != 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                _ => Err(error),
            };
        }
        let data = SeccompData {
            nr: raw.data.nr as u32,
            arch: raw.data.arch,
            instruction_pointer: raw.data.instruction_pointer,
            args: raw.data.args,
        };
        Ok(Some(Notification {
            id: raw.id,
            tid: raw.pid,
            data,
        }))
    }

    /// Whether the thread still waits: then its pid is still its own.
    pub(super) fn is_waiting(&self, notification: &Notification) -> bool {
        let id = notification.id;
        // SAFETY: the request's argument is this number.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
                &raw const id,
            )
        };
        result == 0
    }

    /// Makes the call fail with `errno`; 0: return 0 without having run, which is what
    /// SECCOMP_RET_ERRNO with 0 does. A thread that is gone needs no answer.
    pub(super) fn deny(&self, notification: &Notification, errno: u16) -> io::Result<()> {
        let response = libc::seccomp_notif_resp {
            id: notification.id,
            val: 0,
            error: -i32::from(errno),
            flags: 0,
        };
        // SAFETY: the request's argument is this structure.
        let result = unsafe {
            libc::ioctl(
                self.0.as_raw_fd(),
                libc::SECCOMP_IOCTL_NOTIF_SEND,
                &raw const response,
            )
        };
        let error = io::Error::last_os_error();
        match result {
            0 => Ok(()),
            _ if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
            _ => Err(error),
        }
    }
}
