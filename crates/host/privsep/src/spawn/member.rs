//! One spawner, as the daemon sees it.

use crate::frame;
use crate::spawn::child::Child;
use crate::spawn::link;
use crate::spawn::message::{error_of, Go, Greeting, Reply};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::Duration;

/// Longest time for which a spawner is waited for: it forks, reads small files and executes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time for which the consequences of a process's end are waited for.
const AFTER_END: Duration = Duration::from_secs(1);

/// A spawner.
#[derive(Debug)]
pub(crate) struct Member {
    socket: OwnedFd,
    /// The spawner's process, once its id is known.
    child: Option<Child>,
    /// Whether the spawner is a service's, so that programs that it starts are not the daemon's children.
    is_service: bool,
    is_gone: bool,
}

/// Result of a request.
pub(crate) enum Answer {
    /// A program runs, or has ended by now.
    Started(Child),
    /// A request that starts no program is done. The descriptor is that of an opened file.
    Done(Option<OwnedFd>),
}

impl Member {
    /// A spawner that was started as this process's child.
    pub(crate) fn sibling(socket: OwnedFd, child: Child) -> Member {
        Member {
            socket,
            child: Some(child),
            is_service: false,
            is_gone: false,
        }
    }

    /// A spawner at the other end of a connection. It says who it is.
    pub(crate) fn of_service(socket: OwnedFd) -> Member {
        Member {
            socket,
            child: None,
            is_service: true,
            is_gone: false,
        }
    }

    /// The process id, if it is known.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Hears its process id, and whether it has ended. Returns whether it can be asked.
    pub(crate) fn look(&mut self) -> bool {
        while !self.is_gone {
            match link::receive(self.socket.as_fd(), RecvFlags::DONTWAIT) {
                Ok(Some((text, _))) => self.hear(&text),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => self.is_gone = true,
            }
        }
        if let Some(Ok(Some(_))) = self.child.as_mut().map(Child::try_wait) {
            self.is_gone = true;
        }
        !self.is_gone
    }

    /// Consumes a spawner that has ended: returns the process if it is still to be reaped, and its
    /// exit status if that is known already.
    pub(crate) fn into_ended(mut self) -> (Option<Child>, Option<ExitStatus>) {
        // Without its socket, it ends if it has not yet.
        drop(self.socket);
        let status = match (&mut self.child, self.is_service) {
            (Some(child), false) => child.wait_at_most(AFTER_END),
            _ => None,
        };
        (self.child, status)
    }

    /// Has it carry out a request. `None`: it has ended, and has started nothing.
    pub(crate) fn ask(
        &mut self,
        request: &[u8],
        stdin: Option<BorrowedFd<'_>>,
    ) -> io::Result<Option<Answer>> {
        let (gate, theirs) = link::pair(PATIENCE)?;
        let fds: Vec<BorrowedFd<'_>> = [theirs.as_fd()].into_iter().chain(stdin).collect();
        match link::send(self.socket.as_fd(), request, &fds) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return Err(error),
            Err(_) => {
                self.end();
                return Ok(None);
            }
        }

        drop(theirs);
        let mut reply = reply(&gate);
        if is_late(&reply) {
            // It hangs. Whether it has made a process shows after its end.
            self.end();
            link::be_patient(&gate, AFTER_END)?;
            reply = self::reply(&gate);
            link::be_patient(&gate, PATIENCE)?;
        }

        if is_late(&reply) {
            // A process that waits for this gate ends without it, and executes nothing.
            return Ok(None);
        }

        match reply? {
            Some((Reply::Started(pid), _)) => self.go(pid, &gate).map(Some),
            Some((Reply::Done, file)) => Ok(Some(Answer::Done(file))),
            Some((Reply::Failed(text, errno), _)) => Err(error_of(text, errno)),
            None if self.ends() => Ok(None),
            None => Err(io::Error::other("it was killed before it was executed")),
        }
    }

    /// Lets the process that was made execute its program.
    fn go(&self, pid: i32, gate: &OwnedFd) -> io::Result<Answer> {
        let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
        let mut child = if self.is_service {
            Child::foreign(pid)?
        } else {
            Child::of(pid)
        };

        // If it has ended, the other side of the gate is closed.
        let _ = link::send(gate.as_fd(), &frame::to_vec(&Go)?, &[]);
        let error = loop {
            match reply(gate) {
                // Executing has closed it.
                Ok(None) => return Ok(Answer::Started(child)),
                Ok(Some((Reply::Started(_), _))) => {}
                Ok(Some((Reply::Failed(text, errno), _))) => break error_of(text, errno),
                Ok(Some((Reply::Done, _))) => break io::ErrorKind::InvalidData.into(),
                Err(error) => break error,
            }
        };

        child.signal(Signal::KILL);
        let _ = child.wait();
        Err(error)
    }

    fn hear(&mut self, text: &[u8]) {
        let greeting = frame::parse::<Greeting>(text).ok();
        let pid = greeting.and_then(|greeting| Pid::from_raw(greeting.pid));
        if let (None, Some(pid)) = (&self.child, pid) {
            self.child = Child::foreign(pid).ok();
        }
    }

    /// Ends it: it does not answer.
    fn end(&mut self) {
        self.is_gone = true;
        if let Some(child) = &self.child {
            child.signal(Signal::KILL);
        }
    }

    /// Whether it has ended, or is just about to.
    fn ends(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let longest = Timespec {
            tv_sec: AFTER_END.as_secs() as i64,
            tv_nsec: 0,
        };
        self.is_gone |= poll(&mut fds, Some(&longest)).is_ok_and(|count| count > 0);
        self.is_gone
    }
}

/// The next message through a gate.
fn reply(gate: &OwnedFd) -> io::Result<Option<(Reply, Option<OwnedFd>)>> {
    match link::receive(gate.as_fd(), RecvFlags::empty())? {
        Some((text, fds)) => Ok(Some((frame::parse(&text)?, fds.into_iter().next()))),
        None => Ok(None),
    }
}

fn is_late<T>(reply: &io::Result<T>) -> bool {
    let kind = reply.as_ref().err().map(io::Error::kind);
    kind == Some(io::ErrorKind::WouldBlock)
}
