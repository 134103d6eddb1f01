//! One side of the pair of sockets between the daemon and a helper.

use crate::datagram;
use crate::lookup::budget::EVENT_NS;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_timeout, Timeout};
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::time::{Duration, Instant};

/// Longest time to wait for an answer.
pub const DEADLINE: Duration = Duration::from_millis(100);
/// Longest time that a receive waits by itself: that of an event.
const RECEIVE: Duration = Duration::from_nanos(EVENT_NS);

/// The daemon's side.
pub(crate) struct Link {
    socket: OwnedFd,
    patience: Duration,
}

/// The other side is gone, or does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Link {
    /// A pair: this side, and the helper's, which has this long to answer.
    pub(crate) fn pair(patience: Duration) -> io::Result<(Link, OwnedFd)> {
        let (socket, theirs) = datagram::pair()?;
        set_socket_timeout(&socket, Timeout::Recv, Some(patience.min(RECEIVE)))?;
        Ok((Link { socket, patience }, theirs))
    }

    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether a receive that waits by itself takes hardly longer than `limit`.
    pub(crate) fn waits_at_most(&self, limit: Duration) -> bool {
        self.patience.min(RECEIVE) <= limit + RECEIVE / 4
    }

    /// Sends a datagram without waiting.
    pub(crate) fn send(&self, message: &[u8]) -> Result<(), Broken> {
        datagram::send(&self.socket, message, SendFlags::DONTWAIT).map_err(|_| Broken)
    }

    /// Receives a datagram and returns its length; `None` if none has come at `end`. With
    /// `is_first`, the first wait may be too short or a little too long, which saves a system call.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        end: Instant,
        is_first: bool,
    ) -> Result<Option<usize>, Broken> {
        let mut flags = if is_first {
            RecvFlags::empty()
        } else {
            RecvFlags::DONTWAIT
        };

        loop {
            match datagram::receive(&self.socket, buffer, flags) {
                Ok(len) if len > 0 => return Ok(Some(len)),
                // Nothing came in time, or not yet.
                Err(Errno::AGAIN) if is_first && flags.is_empty() => return Ok(None),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The end of the connection, or a datagram that is too long.
                _ => return Err(Broken),
            }
            flags = RecvFlags::DONTWAIT;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.wait(left)? {
                return Ok(None);
            }
        }
    }

    /// Waits until there is something to receive; `false` if nothing came within `left`.
    fn wait(&self, left: Duration) -> Result<bool, Broken> {
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(_) => Err(Broken),
        }
    }
}
