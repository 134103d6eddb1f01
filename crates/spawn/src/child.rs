//! A child process, whoever started it.

use rustix::io::Errno;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A child of this process. As with [`std::process::Child`], dropping it neither ends nor reaps it.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// The exit status, once the child is reaped.
    status: Option<ExitStatus>,
}

impl Child {
    pub(crate) fn of(pid: Pid) -> Child {
        Child { pid, status: None }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get() as u32
    }

    /// The process id, for rustix.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// The exit status if the child has ended; it is then reaped.
    ///
    /// # Errors
    /// The process is not a child of this one, or was reaped elsewhere.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// The errors of [`try_wait`](Self::try_wait).
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait_with(WaitOptions::empty())? {
                return Ok(status);
            }
        }
    }

    /// Sends a signal, unless the child is reaped: another process may then have its pid.
    pub fn signal(&self, signal: Signal) {
        if self.status.is_none() {
            // The child may have ended, but is not reaped yet.
            let _ = kill_process(self.pid, signal);
        }
    }

    fn wait_with(&mut self, options: WaitOptions) -> io::Result<Option<ExitStatus>> {
        while self.status.is_none() {
            match waitpid(Some(self.pid), options) {
                Ok(Some((_, status))) => {
                    self.status = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(None) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.status)
    }
}
