//! The listener of a filter: seccomp_unotify(2).

use crate::error::{system, SeccompKernelError};
use seccomp::SeccompData;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A descriptor from SECCOMP_FILTER_FLAG_NEW_LISTENER.
pub struct Listener(OwnedFd);

/// A call that waits for an answer.
pub struct Notification {
    id: u64,
    /// The thread that makes it, as our pid namespace numbers it.
    pub tid: u32,
    /// The call, as filters see it.
    pub data: SeccompData,
}

impl Listener {
    /// Takes the descriptor, as [`crate::launch::Launch::listener`] gives it.
    pub fn new(fd: OwnedFd) -> Listener {
        Listener(fd)
    }

    /// Readable when a call waits; hung up when no process has the filter.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// A call that waits; `None` if its thread was killed meanwhile.
    ///
    /// # Errors
    /// ioctl(SECCOMP_IOCTL_NOTIF_RECV) fails.
    pub fn receive(&self) -> Result<Option<Notification>, SeccompKernelError> {
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
                _ => Err(system("SECCOMP_IOCTL_NOTIF_RECV")(error)),
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
    pub fn is_waiting(&self, notification: &Notification) -> bool {
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

    /// Lets the kernel run the call. A thread that is gone needs no answer.
    ///
    /// # Errors
    /// ioctl(SECCOMP_IOCTL_NOTIF_SEND) fails.
    pub fn allow(&self, notification: &Notification) -> Result<(), SeccompKernelError> {
        self.answer(
            notification,
            0,
            libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        )
    }

    /// Makes the call fail with `errno`; 0: return 0 without having run, which is what
    /// SECCOMP_RET_ERRNO with 0 does. A thread that is gone needs no answer.
    ///
    /// # Errors
    /// ioctl(SECCOMP_IOCTL_NOTIF_SEND) fails.
    pub fn deny(&self, notification: &Notification, errno: u16) -> Result<(), SeccompKernelError> {
        self.answer(notification, -i32::from(errno), 0)
    }

    fn answer(
        &self,
        notification: &Notification,
        error: i32,
        flags: u32,
    ) -> Result<(), SeccompKernelError> {
        let response = libc::seccomp_notif_resp {
            id: notification.id,
            val: 0,
            error,
            flags,
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
            _ => Err(system("SECCOMP_IOCTL_NOTIF_SEND")(error)),
        }
    }
}
