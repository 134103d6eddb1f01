//! The daemon's side.

use crate::child::Child;
use crate::message::{Reply, Request, BYTES_MAX};
use crate::serve::COMMAND;
use crate::start::{self, Surroundings};
use rustix::io::{fcntl_setfd, Errno, FdFlags};
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{
    recv, sendmsg, socketpair, AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};
use rustix::process::Pid;
use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest time to wait for the spawner, which forks, reads small files and executes.
const PATIENCE: Duration = Duration::from_secs(10);

/// Starts programs.
#[derive(Clone, Default)]
pub enum Launcher {
    /// In this process, without any check: for tests of parts of the daemon.
    #[default]
    Here,
    /// By the spawner.
    Spawner(Arc<Mutex<Spawner>>),
}

/// The spawner, as the daemon sees it.
pub struct Spawner {
    /// `None` after it has failed.
    socket: Option<OwnedFd>,
    child: Child,
    ended: Option<ExitStatus>,
}

/// State of the spawner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The spawner runs, with this pid.
    Runs(u32),
    /// The spawner has ended or no longer answers.
    Failed(u32, Option<ExitStatus>),
}

impl Launcher {
    /// Starts the spawner: this program again, with a command that its help does not show. It
    /// permits what `config` names, and `command`, which may be empty. Call this in the main
    /// thread: the programs of plugins end with the thread.
    ///
    /// # Errors
    /// The spawner cannot be started.
    pub fn start(config: &Path, command: &[OsString]) -> io::Result<Launcher> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE))?;
        let number = theirs.as_raw_fd();
        let mut program = Command::new("/proc/self/exe");
        program.arg0("tarsier").arg(COMMAND).arg(number.to_string());
        program.arg(config).args(command);
        // SAFETY: fcntl(2) is async-signal-safe, and the descriptor is open as long as `theirs` lives.
        unsafe {
            program.pre_exec(move || {
                let theirs = BorrowedFd::borrow_raw(number);
                fcntl_setfd(theirs, FdFlags::empty()).map_err(io::Error::from)
            });
        }
        let child = program.spawn()?;
        drop(theirs);
        let spawner = Spawner {
            socket: Some(socket),
            child: Child::of(Pid::from_child(&child)),
            ended: None,
        };
        Ok(Launcher::Spawner(Arc::new(Mutex::new(spawner))))
    }

    /// Starts a program, with this standard input if it reads one.
    ///
    /// # Errors
    /// The program cannot be started, or the spawner refuses it or has ended.
    pub fn launch(&self, request: &Request, stdin: Option<OwnedFd>) -> io::Result<Child> {
        match self {
            Launcher::Here => {
                let surroundings = Surroundings {
                    command: &[],
                    parent: std::process::id(),
                };
                let child = start::command(request, stdin, &surroundings)?.spawn()?;
                Ok(Child::of(Pid::from_child(&child)))
            }
            Launcher::Spawner(spawner) => {
                let mut spawner = spawner.lock().unwrap_or_else(PoisonError::into_inner);
                spawner.launch(request, stdin.as_ref().map(AsFd::as_fd))
            }
        }
    }

    /// Makes the spawner clean up what this process no longer can. Call this at the end.
    pub fn tidy(&self) {
        if let Launcher::Spawner(spawner) = self {
            let spawner = spawner.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(socket) = &spawner.socket {
                // It may have ended.
                let _ = exchange(socket.as_fd(), &Request::Tidy, None);
            }
        }
    }

    /// State of the spawner; `None` if there is none. It is reaped if it has ended.
    pub fn state(&self) -> Option<State> {
        match self {
            Launcher::Here => None,
            Launcher::Spawner(spawner) => {
                let mut spawner = spawner.lock().unwrap_or_else(PoisonError::into_inner);
                Some(spawner.state())
            }
        }
    }
}

impl Spawner {
    fn state(&mut self) -> State {
        if let (None, Ok(Some(status))) = (self.ended, self.child.try_wait()) {
            self.ended = Some(status);
            self.socket = None;
        }
        match self.socket {
            Some(_) => State::Runs(self.child.id()),
            None => State::Failed(self.child.id(), self.ended),
        }
    }

    fn launch(&mut self, request: &Request, stdin: Option<BorrowedFd<'_>>) -> io::Result<Child> {
        let reply = match &self.socket {
            Some(socket) => exchange(socket.as_fd(), request, stdin),
            None => Err(io::ErrorKind::NotConnected.into()),
        };
        let reply = reply.map_err(|error| {
            // A late answer would be mistaken for that of the next request. With this end closed,
            // the spawner ends.
            self.socket = None;
            let pid = self.child.id();
            let text = format!(
                "the process that starts programs (pid {pid}) does not answer ({error}): restart \
                 tarsier"
            );
            io::Error::other(text)
        })?;
        let child = reply.pid.and_then(Pid::from_raw).map(Child::of);
        match (reply.error(), child) {
            (None, Some(child)) => Ok(child),
            (error, child) => {
                if let Some(mut child) = child {
                    // It ends by itself, now.
                    let _ = child.wait();
                }
                Err(error.unwrap_or_else(|| io::ErrorKind::InvalidData.into()))
            }
        }
    }
}

/// Sends a request, and receives the outcome.
fn exchange(
    socket: BorrowedFd<'_>,
    request: &Request,
    stdin: Option<BorrowedFd<'_>>,
) -> io::Result<Reply> {
    let text = serde_json::to_vec(request)?;
    if text.len() > BYTES_MAX {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let stdin: Vec<BorrowedFd<'_>> = stdin.into_iter().collect();
    if !stdin.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&stdin));
    }
    let parts = [IoSlice::new(&text)];
    while let Err(errno) = sendmsg(socket, &parts, &mut control, SendFlags::NOSIGNAL) {
        if errno != Errno::INTR {
            return Err(errno.into());
        }
    }
    let mut buffer = vec![0; BYTES_MAX];
    let len = loop {
        match recv(socket, &mut buffer[..], RecvFlags::TRUNC) {
            Ok((len, whole)) if len > 0 && len == whole => break len,
            Err(Errno::INTR) => {}
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(errno) => return Err(errno.into()),
        }
    };
    Ok(serde_json::from_slice(&buffer[..len])?)
}
