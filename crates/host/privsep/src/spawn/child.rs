//! A process that was started for this one, whoever's child it is.

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{
    kill_process, pidfd_open, pidfd_send_signal, waitpid, Pid, PidfdFlags, Signal, WaitOptions,
};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A sender of the signals that this process may not send.
pub(crate) trait Signals: std::fmt::Debug + Send + Sync {
    /// Sends a signal to the process of a descriptor.
    fn send(&self, pidfd: &OwnedFd, signal: Signal) -> io::Result<()>;
}

/// A process that was started for this one. As with [`std::process::Child`], dropping it neither ends nor reaps it.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
    /// A descriptor of it, if it is the child of a spawner. Such a child is reaped there, and nobody else gets to know
    /// its exit status: it counts as 0.
    foreign: Option<OwnedFd>,
    /// The spawners, which send the child what this process may not send.
    spawners: Option<Weak<dyn Signals>>,
    /// Exit status, once the process is reaped.
    status: Option<ExitStatus>,
}

impl Child {
    /// A child of this process.
    pub(crate) fn of(pid: Pid) -> Child {
        Child {
            pid,
            foreign: None,
            spawners: None,
            status: None,
        }
    }

    /// A child of another process, which still runs.
    ///
    /// # Errors
    /// There is no such process.
    pub(crate) fn foreign(pid: Pid) -> io::Result<Child> {
        Ok(Child {
            foreign: Some(pidfd_open(pid, PidfdFlags::empty())?),
            ..Child::of(pid)
        })
    }

    /// The same, with spawners that may send it signals.
    pub(crate) fn with(self, spawners: Weak<dyn Signals>) -> Child {
        let spawners = Some(spawners);
        Child { spawners, ..self }
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
        self.wait_with(false)
    }

    /// Waits until the child has ended.
    ///
    /// # Errors
    /// The errors of [`try_wait`](Self::try_wait).
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.wait_with(true)? {
                return Ok(status);
            }
        }
    }

    /// Exit status, if the process ends within this time.
    pub fn wait_at_most(&mut self, longest: Duration) -> Option<ExitStatus> {
        if let Ok(pidfd) = pidfd_open(self.pid, PidfdFlags::empty()) {
            let _ = has_ended(&pidfd, Some(longest));
        }
        self.try_wait().ok().flatten()
    }

    /// Sends a signal, unless it is reaped: another process may have its number then. A child that has become another
    /// user's gets it from a spawner, if it is one of TERM, KILL and HUP.
    pub fn signal(&self, signal: Signal) {
        let sent = match (&self.foreign, self.status) {
            (_, Some(_)) => Ok(()),
            (Some(pidfd), None) => pidfd_send_signal(pidfd, signal),
            (None, None) => kill_process(self.pid, signal),
        };
        if sent == Err(Errno::PERM) {
            // It may have ended, but it is not reaped yet.
            let _ = self.have_sent(signal);
        }
    }

    fn have_sent(&self, signal: Signal) -> io::Result<()> {
        let spawners = self.spawners.as_ref().and_then(Weak::upgrade);
        let spawners: Arc<dyn Signals> = spawners.ok_or(io::ErrorKind::NotConnected)?;
        match &self.foreign {
            Some(pidfd) => spawners.send(pidfd, signal),
            None => spawners.send(&pidfd_open(self.pid, PidfdFlags::empty())?, signal),
        }
    }

    fn wait_with(&mut self, blocks: bool) -> io::Result<Option<ExitStatus>> {
        while self.status.is_none() {
            let status = match &self.foreign {
                Some(pidfd) => has_ended(pidfd, (!blocks).then_some(Duration::ZERO))
                    .map(|ended| ended.then_some(0)),
                None => {
                    let options = if blocks {
                        WaitOptions::empty()
                    } else {
                        WaitOptions::NOHANG
                    };
                    waitpid(Some(self.pid), options)
                        .map(|found| found.map(|(_, status)| status.as_raw()))
                }
            };
            match status {
                Ok(Some(raw)) => self.status = Some(ExitStatus::from_raw(raw)),
                Ok(None) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }

        Ok(self.status)
    }
}

/// Whether the process of a descriptor has ended, or ends within `longest`. Without it, this waits for the end.
fn has_ended(pidfd: &OwnedFd, longest: Option<Duration>) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let timeout = longest.map(|longest| Timespec {
        tv_sec: longest.as_secs() as i64,
        tv_nsec: longest.subsec_nanos().into(),
    });
    Ok(poll(&mut fds, timeout.as_ref())? > 0)
}
