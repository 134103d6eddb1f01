//! The spawners of a daemon: one that is asked, and one that takes its place.

use crate::frame;
use crate::spawn::child::Child;
use crate::spawn::link;
use crate::spawn::member::{Answer, Member, PATIENCE};
use crate::spawn::message::Request;
use rustix::net::{connect, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Number of spawners: one is asked, and takes part in nothing else.
const WANTED: usize = 2;
/// Shortest time between two that are started.
const PACE: Duration = Duration::from_millis(100);
/// The same after one that ended before it said that it was there.
const PACE_AFTER_FAILURE: Duration = Duration::from_secs(10);

/// Source of spawners.
#[derive(Debug)]
pub(crate) enum Source {
    /// Each starts the next.
    Siblings,
    /// Each connection to this socket has one.
    Service(PathBuf),
}

/// The spawners.
#[derive(Debug)]
pub(crate) struct Members {
    source: Source,
    /// The first is asked.
    members: VecDeque<Member>,
    /// Earliest time at which another may be started.
    next_start: Instant,
    /// Spawners that have ended, until somebody asks.
    news: Vec<Ended>,
    /// Processes of former spawners that are not reaped yet.
    parting: Vec<Child>,
}

/// A spawner that has ended, or that did not answer and was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Process id of the spawner, if it was known.
    pub pid: Option<u32>,
    /// Exit status of the spawner, if it is known.
    pub status: Option<ExitStatus>,
}

/// State of the spawners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Whether programs can be started.
    pub running: bool,
    /// Process id of the spawner that is asked, if it is known.
    pub pid: Option<u32>,
    /// Process id of the one that takes its place.
    pub standby: Option<u32>,
}

impl Members {
    /// Begins with `first`, and starts the other.
    pub(crate) fn new(source: Source, first: Member) -> Members {
        let mut members = Members {
            source,
            members: VecDeque::from([first]),
            next_start: Instant::now(),
            news: Vec::new(),
            parting: Vec::new(),
        };
        members.tend();
        members
    }

    /// Connects to a spawner of a service.
    pub(crate) fn connect(path: &Path) -> io::Result<Member> {
        let kind = SocketType::SEQPACKET;
        let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        link::be_patient(&socket, PATIENCE)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Member::of_service(socket))
    }

    /// Reaps spawners that have ended, and replaces them.
    pub(crate) fn tend(&mut self) {
        self.parting
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let members = std::mem::take(&mut self.members);
        for mut member in members {
            if member.look() {
                self.members.push_back(member)
            } else {
                self.bury(member)
            }
        }

        if self.members.len() < WANTED && Instant::now() >= self.next_start {
            // What is wrong shows when nothing can be started any more.
            let _ = self.enlarge();
        }
    }

    fn bury(&mut self, member: Member) {
        let pid = member.pid();
        let (child, status) = member.into_ended();
        self.news.push(Ended { pid, status });
        if status.is_none() {
            self.parting.extend(child);
        }
        if pid.is_none() {
            self.next_start = Instant::now() + PACE_AFTER_FAILURE;
        }
    }

    /// Starts one more.
    fn enlarge(&mut self) -> io::Result<()> {
        self.next_start = Instant::now() + PACE;
        let member = match &self.source {
            Source::Service(path) => Members::connect(path)?,
            Source::Siblings => {
                let Some(first) = self.members.front_mut() else {
                    return Err(io::ErrorKind::NotConnected.into());
                };
                let (socket, theirs) = link::pair(PATIENCE)?;
                let request = frame::to_vec(&Request::Spawner)?;
                match first.ask(&request, Some(theirs.as_fd()))? {
                    Some(Answer::Started(child)) => Member::sibling(socket, child),
                    _ => return Err(io::ErrorKind::NotConnected.into()),
                }
            }
        };

        self.members.push_back(member);
        Ok(())
    }

    /// Has a request carried out, by the next spawner if the first ends over it: a program that it has not told of was
    /// not executed.
    ///
    /// # Errors
    /// The request is refused, it cannot be carried out, or there is no spawner left.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        stdin: Option<BorrowedFd<'_>>,
    ) -> io::Result<Answer> {
        let text = frame::to_vec(request)?;
        self.tend();
        for _ in 0..=WANTED {
            if self.members.is_empty() {
                self.enlarge().map_err(|error| self.none_left(&error))?;
            }
            let Some(first) = self.members.front_mut() else {
                break;
            };
            if let Some(answer) = first.ask(&text, stdin)? {
                return Ok(answer);
            }
            self.tend();
        }

        Err(self.none_left(&io::ErrorKind::NotConnected.into()))
    }

    fn none_left(&self, error: &io::Error) -> io::Error {
        io::Error::other(match &self.source {
            Source::Siblings => {
                "both processes that start programs have ended: restart tarsier".to_owned()
            }
            Source::Service(path) => format!(
                "no process starts programs: {}: {error}: systemctl restart tarsier-spawner.socket",
                path.display()
            ),
        })
    }

    /// State after [`tend`](Self::tend).
    pub(crate) fn state(&mut self) -> State {
        let pid = |index: usize| self.members.get(index).and_then(Member::pid);
        State {
            running: !self.members.is_empty(),
            pid: pid(0),
            standby: pid(1),
        }
    }

    /// Spawners that have ended since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.news)
    }
}
