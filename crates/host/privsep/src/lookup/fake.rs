//! Helpers that do what a test wants, each in a thread.

use crate::lookup::client::{Process, Start};
use crate::lookup::link::Link;
use crate::lookup::message::{Content, Reply, Request, BYTES_MAX};
use crate::lookup::patience::Doing;
use crate::lookup::serve::serve;
use rustix::fd::OwnedFd;
use rustix::net::{recv, send, RecvFlags, SendFlags};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::Arc;
use std::time::Duration;

/// The deadline of these helpers: longer than the real one, so that a busy machine does not make them late.
pub(crate) const PATIENCE: Duration = Duration::from_millis(400);

/// The helper's side of the sockets.
pub(crate) struct Side(OwnedFd);

impl Side {
    /// The next message; `None` if the daemon's side is closed.
    pub(crate) fn next(&self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; BYTES_MAX];
        let (len, _) = recv(&self.0, &mut buffer[..], RecvFlags::empty()).ok()?;
        buffer.truncate(len);
        (len > 0).then_some(buffer)
    }

    /// The number of the next question.
    pub(crate) fn number(&self) -> Option<u32> {
        loop {
            match Request::parse(&self.next()?).ok()? {
                Request::Ask { number, .. } => return Some(number),
                Request::Avoid { .. } => {}
            }
        }
    }

    /// Sends bytes; whether they can be received is not known.
    pub(crate) fn send(&self, bytes: &[u8]) {
        let _ = send(&self.0, bytes, SendFlags::NOSIGNAL);
    }

    pub(crate) fn reply(&self, number: u32, content: Content<'_>) {
        let mut out = Vec::new();
        Reply { number, content }.put(&mut out);
        self.send(&out);
    }

    /// Returns when the daemon has closed its side.
    pub(crate) fn hang(&self) {
        while self.next().is_some() {}
    }

    /// Answers as a real helper.
    pub(crate) fn serve(&self) {
        serve(&self.0);
    }
}

/// Behaviour of a helper.
pub(crate) type Act = Box<dyn FnOnce(&Side) + Send>;

/// Starts the helpers of a list, then such as answer.
pub(crate) struct Fakes {
    acts: std::vec::IntoIter<Act>,
    /// Told of each start.
    started: Sender<u32>,
    /// Told when a helper has closed its side.
    ended: Sender<()>,
    next_pid: u32,
    may_end: Arc<AtomicBool>,
    is_runnable: Arc<AtomicBool>,
    is_stopped: Arc<AtomicBool>,
}

impl Fakes {
    pub(crate) fn new(acts: Vec<Act>, started: Sender<u32>, ended: Sender<()>) -> Fakes {
        Fakes {
            acts: acts.into_iter(),
            started,
            ended,
            next_pid: 1,
            may_end: Arc::new(AtomicBool::new(true)),
            is_runnable: Arc::new(AtomicBool::new(false)),
            is_stopped: Arc::new(AtomicBool::new(false)),
        }
    }

    /// While this is `false`, killed helpers do not end.
    pub(crate) fn may_end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.may_end)
    }

    /// While this is `true`, helpers have no processor.
    pub(crate) fn is_runnable(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_runnable)
    }

    /// While this is `true`, helpers are stopped.
    pub(crate) fn is_stopped(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_stopped)
    }
}

struct Fake {
    pid: u32,
    is_runnable: Arc<AtomicBool>,
    is_stopped: Arc<AtomicBool>,
    may_end: Arc<AtomicBool>,
}

impl Start for Fakes {
    fn start(&mut self) -> io::Result<(Link, Box<dyn Process>)> {
        let (link, theirs) = Link::pair(PATIENCE)?;
        let act = self.acts.next().unwrap_or_else(|| Box::new(Side::serve));
        let ended = self.ended.clone();
        std::thread::spawn(move || {
            act(&Side(theirs));
            // The test may have ended, here and below.
            let _ = ended.send(());
        });

        let pid = self.next_pid;
        self.next_pid += 1;
        let _ = self.started.send(pid);
        let may_end = Arc::clone(&self.may_end);
        let is_runnable = Arc::clone(&self.is_runnable);
        let is_stopped = Arc::clone(&self.is_stopped);
        let fake = Fake {
            pid,
            is_runnable,
            is_stopped,
            may_end,
        };
        Ok((link, Box::new(fake)))
    }
}

impl Process for Fake {
    fn pid(&self) -> u32 {
        self.pid
    }

    fn kill(&mut self) {}

    fn has_ended(&mut self) -> bool {
        self.may_end.load(Ordering::Relaxed)
    }

    fn doing(&self) -> Option<Doing> {
        Some(Doing {
            is_runnable: self.is_runnable.load(Ordering::Relaxed),
            is_stopped: self.is_stopped.load(Ordering::Relaxed),
            ticks: 0,
        })
    }
}
