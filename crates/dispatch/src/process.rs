//! A plugin's program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{pidfd_open, Pid, PidfdFlags, Signal};
use trust::Program;

/// Time that a program gets to end by itself after its standard input was closed.
const EOF_PATIENCE: Duration = Duration::from_millis(100);
/// Time that it gets after SIGTERM before it is killed.
const TERM_PATIENCE: Duration = Duration::from_secs(2);

/// A running program and this side of its standard input.
pub(crate) struct Process {
    child: Child,
    input: OwnedFd,
}

impl Process {
    /// Starts a program as auditd does: standard input is a stream socket, `argv[0]` is the path,
    /// and the environment is empty. Nobody but root may be able to change the program. It gets
    /// SIGTERM when this process ends, for whatever reason.
    pub(crate) fn start(path: &Path, args: &[String], nice: i32) -> io::Result<Process> {
        let flags = SocketFlags::CLOEXEC;
        let (input, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // Affects this side only: each end of the pair is a file of its own.
        rustix::io::ioctl_fionbio(&input, true)?;
        let parent = std::process::id();
        let program = Program::find(path).map_err(io::Error::other)?;
        let child = program.spawn(args, |command| {
            command.stdin(Stdio::from(theirs));
            // SAFETY: prctl(2) and getppid(2) are async-signal-safe, and nothing is allocated.
            unsafe {
                command.pre_exec(move || die_with(parent));
                // The daemon disables huge pages for itself only; a program can do without them.
                command.pre_exec(|| {
                    let _ = rustix::thread::disable_transparent_huge_pages(false);
                    Ok(())
                });
            }
        })?;
        // The program must not inherit the nice value that the daemon has only during an overload.
        let _ = rustix::process::setpriority_process(Some(Pid::from_child(&child)), nice);
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
        // It may have ended, but it is not reaped yet, so no other process has its pid.
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), signal);
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

/// Runs in the forked child: requests SIGTERM for when `parent` ends.
fn die_with(parent: u32) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    // The parent may have ended before the request.
    match rustix::process::getppid() {
        Some(pid) if pid.as_raw_nonzero().get() as u32 == parent => Ok(()),
        _ => Err(io::ErrorKind::BrokenPipe.into()),
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
            // It cannot ignore this.
            let _ = self.child.kill();
            let _ = self.child.wait();
            return true;
        }
        if waited >= EOF_PATIENCE && !self.is_told {
            self.is_told = true;
            let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
        false
    }

    /// Descriptor that is readable when the program has ended.
    pub(crate) fn pidfd(&self) -> Option<OwnedFd> {
        pidfd_open(Pid::from_child(&self.child), PidfdFlags::empty()).ok()
    }

    pub(crate) fn poll_fd(pidfd: &OwnedFd) -> PollFd<'_> {
        PollFd::new(pidfd, PollFlags::IN)
    }

    /// Time until [`has_ended`](Self::has_ended) has something to do.
    pub(crate) fn due_in(&self) -> Duration {
        let patience = match self.is_told {
            true => EOF_PATIENCE + TERM_PATIENCE,
            false => EOF_PATIENCE,
        };
        patience.saturating_sub(self.since.elapsed())
    }
}
