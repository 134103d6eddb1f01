//! Signals that end a program, taken from a descriptor: signalfd(2).

use crate::error::{system, SeccompKernelError};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// The signals that are taken: those by which users and services end or instruct a program.
pub const TAKEN: [i32; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// A descriptor for signals, which have no other effect while it exists.
pub struct Signals {
    fd: OwnedFd,
    set: libc::sigset_t,
}

/// A signal that was sent to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Whether the kernel sent it, as for Ctrl-C: then the other processes of the terminal's group
    /// have it, too.
    pub is_from_kernel: bool,
}

impl Signals {
    /// Takes the signals of [`TAKEN`].
    ///
    /// # Errors
    /// As of [`Signals::take_with`].
    pub fn take() -> Result<Signals, SeccompKernelError> {
        Signals::take_with(&[])
    }

    /// Takes others, too. Blocks the signals in this thread, which must be the only one. Programs
    /// that are started later inherit that: start them before.
    ///
    /// # Errors
    /// signalfd(2) fails.
    pub fn take_with(others: &[i32]) -> Result<Signals, SeccompKernelError> {
        let set = set(others);
        // SAFETY: the set is initialised, and lives until the calls are over.
        let fd = unsafe {
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
        };
        if fd < 0 {
            return Err(system("signalfd")(io::Error::last_os_error()));
        }
        // SAFETY: the kernel has just made the descriptor for us.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Signals { fd, set })
    }

    /// Readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A signal that has come; `None` if there is none.
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: integers only, and zeros are valid.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        // SAFETY: the memory is as large as the length says.
        let got = unsafe {
            libc::read(
                self.fd.as_raw_fd(),
                (&raw mut info).cast(),
                size_of::<libc::signalfd_siginfo>(),
            )
        };

        (got > 0).then_some(Signal {
            number: info.ssi_signo as i32,
            is_from_kernel: info.ssi_code > 0,
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        while self.next().is_some() {}
        // SAFETY: the set is initialised, and lives until the call is over.
        unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const self.set, std::ptr::null_mut()) };
    }
}

fn set(others: &[i32]) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set, and the numbers are signals.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in TAKEN.iter().chain(others) {
            libc::sigaddset(&raw mut set, *signal);
        }
        set
    }
}
