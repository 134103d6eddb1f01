//! A plugin's program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use privsep::spawn::{Child, Launcher, Request};
use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{pidfd_open, PidfdFlags, Signal};

/// Time that a program gets to end by itself after its standard input was closed.
const EOF_PATIENCE: Duration = Duration::from_millis(100);
/// Time that a program gets after SIGTERM before it is killed.
const TERM_PATIENCE: Duration = Duration::from_secs(2);
/// Time for which a program is waited for after SIGKILL.
const KILL_PATIENCE: Duration = Duration::from_millis(200);

/// A running program and this side of its standard input.
pub(crate) struct Process {
    child: Child,
    input: OwnedFd,
}

impl Process {
    /// Starts a program as auditd does: standard input is a stream socket, `argv[0]` is the path,
    /// and the environment is empty. The program must be writable by root only. It gets
    /// SIGTERM when this process ends, for whatever reason.
    pub(crate) fn start(
        launcher: &Launcher,
        path: &Path,
        args: &[String],
        nice: i32,
    ) -> io::Result<Process> {
        let flags = SocketFlags::CLOEXEC;
        let (input, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Affects this side only: each end of the pair is a file of its own.
        rustix::io::ioctl_fionbio(&input, true)?;
        let request = Request::Plugin {
            path: path.to_owned(),
            args: args.to_vec(),
            nice,
        };
        let child = launcher.launch(&request, Some(theirs))?;
        Ok(Process { child, input })
    }

    pub(crate) fn input(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// Whether it has ended; if so, it is reaped.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Closes its standard input. `name` is the plugin's, for messages.
    pub(crate) fn end(self, name: &str) -> Ending {
        Ending {
            name: name.to_owned(),
            child: self.child,
            since: Instant::now(),
            is_told: false,
        }
    }
}

/// A program that is to end. The plugin's next program is started only after that.
pub(crate) struct Ending {
    pub(crate) name: String,
    child: Child,
    since: Instant,
    is_told: bool,
}

impl Ending {
    /// Sends SIGTERM and SIGKILL when they are due. Returns whether the program has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return true;
        }

        let waited = self.since.elapsed();
        if waited >= EOF_PATIENCE + TERM_PATIENCE {
            // A program cannot ignore this; one that waits for a device is left to end after that.
            self.child.signal(Signal::KILL);
            self.child.wait_at_most(KILL_PATIENCE);
            return true;
        }

        if waited >= EOF_PATIENCE && !self.is_told {
            self.is_told = true;
            self.child.signal(Signal::TERM);
        }
        false
    }

    /// Descriptor that is readable when the program has ended.
    pub(crate) fn pidfd(&self) -> Option<OwnedFd> {
        pidfd_open(self.child.pid(), PidfdFlags::empty()).ok()
    }

    pub(crate) fn poll_fd(pidfd: &OwnedFd) -> PollFd<'_> {
        PollFd::new(pidfd, PollFlags::IN)
    }

    /// Time until [`has_ended`](Self::has_ended) has something to do.
    pub(crate) fn due_in(&self) -> Duration {
        let patience = if self.is_told {
            EOF_PATIENCE + TERM_PATIENCE
        } else {
            EOF_PATIENCE
        };
        patience.saturating_sub(self.since.elapsed())
    }
}
