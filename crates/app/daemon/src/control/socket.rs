//! The control socket: reads requests and sends answers, without ever blocking.

use crate::control::asker::Asker;
use crate::protocol::{socket_path, REQUEST_BYTES_MAX, SOCKET};
use crate::start::instance::Instance;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{chmodat, unlinkat, AtFlags, Mode};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

/// Time that a client may take to send its request, and again to receive the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval of signs of life. Clients wait a few times as long.
const LIFE_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that are read from one client before the rings are read again.
const PASS_BYTES_MAX: usize = 1 << 20;

/// The listening socket, whose file is removed with it, and its clients.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    /// The run directory.
    directory: OwnedFd,
    /// Finds the programs of clients.
    executable: Box<dyn Fn(u32) -> Option<Vec<u8>>>,
    clients: Vec<ControlClient>,
    next: u64,
    put_back: VecDeque<ControlRequest>,
}

/// A whole request.
pub(crate) struct ControlRequest {
    /// The client's number, for [`ControlSocket::answer`].
    pub(crate) client: u64,
    /// The request line, without its newline.
    pub(crate) line: Vec<u8>,
    /// The client as it was when it was accepted.
    pub(crate) by: Asker,
}

struct ControlClient {
    number: u64,
    stream: UnixStream,
    by: Asker,
    state: ClientState,
    deadline: Instant,
    is_gone: bool,
}

enum ClientState {
    /// Bytes of the request received so far.
    Asking(Vec<u8>),
    /// Time of the last sign of life to the client, whose request is complete.
    Waiting(Instant),
    /// The answer, and the number of its bytes sent so far.
    Answered(Vec<u8>, usize),
}

impl ControlSocket {
    /// Clients that are served at a time; others wait in the socket's queue.
    pub(crate) const CLIENTS_MAX: usize = 16;

    /// Listens in the locked run directory. As this process holds its lock, an existing socket file
    /// is a leftover.
    pub(crate) fn start(
        instance: &Instance,
        executable: impl Fn(u32) -> Option<Vec<u8>> + 'static,
    ) -> Result<ControlSocket> {
        let directory = instance.directory().try_clone_to_owned();
        let directory = directory.context("control socket")?;
        let _ = unlinkat(&directory, SOCKET, AtFlags::empty());
        let listener = UnixListener::bind(instance.held(SOCKET)).with_context(|| {
            let path = socket_path(instance.run_dir());
            format!("cannot listen at {}", path.display())
        })?;
        chmodat(&directory, SOCKET, Mode::from(0o600), AtFlags::empty())
            .context("control socket")?;
        listener.set_nonblocking(true).context("control socket")?;

        Ok(ControlSocket {
            listener,
            directory,
            executable: Box::new(executable),
            clients: Vec::new(),
            next: 0,
            put_back: VecDeque::new(),
        })
    }

    /// Adds the descriptors to poll: ready when a client sends a request or can receive its answer.
    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        if self.clients.len() < ControlSocket::CLIENTS_MAX {
            fds.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }

        fds.extend(self.clients.iter().map(|client| {
            let wanted = match client.state {
                ClientState::Asking(_) => PollFlags::IN,
                ClientState::Waiting(_) => PollFlags::empty(),
                ClientState::Answered(..) => PollFlags::OUT,
            };
            PollFd::from_borrowed_fd(client.stream.as_fd(), wanted)
        }));
    }

    /// Reads what clients have sent. Returns a request that is complete now, or was put back.
    pub(crate) fn request(&mut self) -> Option<ControlRequest> {
        self.put_back.pop_front().or_else(|| self.new_request())
    }

    /// Reads what clients have sent. Returns a request that has become complete.
    pub(crate) fn new_request(&mut self) -> Option<ControlRequest> {
        self.accept();
        let asked = self.clients.iter_mut().find_map(ControlClient::read);
        self.clients.retain(|client| !client.is_gone);
        asked
    }

    /// Whether a request was put back.
    pub(crate) fn has_requests(&self) -> bool {
        !self.put_back.is_empty()
    }

    /// Keeps a request until [`ControlSocket::request`] is called again.
    pub(crate) fn put_back(&mut self, asked: ControlRequest) {
        self.put_back.push_back(asked);
    }

    /// Sends clients whose request is being worked on a sign of life once a second: a space, which means nothing
    /// before JSON.
    pub(crate) fn show_life(&mut self) {
        let now = Instant::now();
        for client in &mut self.clients {
            client.show_life(now);
        }
    }

    /// Queues an answer for a client.
    pub(crate) fn answer(&mut self, client: u64, mut text: Vec<u8>) {
        text.push(b'\n');
        if let Some(client) = self.clients.iter_mut().find(|c| c.number == client) {
            client.state = ClientState::Answered(text, 0);
            client.deadline = Instant::now() + PATIENCE;
        }
    }

    /// Sends what can be sent, and drops clients that have their answer or took too long.
    pub(crate) fn flush(&mut self) {
        let now = Instant::now();
        self.clients.iter_mut().for_each(ControlClient::write);
        self.clients
            .retain(|client| !client.is_gone && client.deadline > now);
    }

    fn accept(&mut self) {
        while self.clients.len() < ControlSocket::CLIENTS_MAX {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            // Read at once: the client may end before its request is carried out.
            let Some(by) = Asker::peer(&stream, &self.executable) else {
                continue;
            };
            // The file's mode already keeps others out, but it may have been changed.
            if by.who.uid != 0 || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.next += 1;
            self.clients.push(ControlClient {
                number: self.next,
                stream,
                by,
                state: ClientState::Asking(Vec::new()),
                deadline: Instant::now() + PATIENCE,
                is_gone: false,
            });
        }
    }
}

impl ControlClient {
    /// Reads what the client has sent. Returns the request if it is complete.
    fn read(&mut self) -> Option<ControlRequest> {
        let ClientState::Asking(input) = &mut self.state else {
            return None;
        };

        let mut taken = 0;
        let mut buffer = [0; 16384];
        while taken < PASS_BYTES_MAX && input.len() <= REQUEST_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => {
                    let bytes = &buffer[..len];
                    if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
                        input.extend_from_slice(&bytes[..end]);
                        let line = std::mem::take(input);
                        return Some(self.asked(line));
                    }
                    input.extend_from_slice(bytes);
                    taken += len;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => break,
            }
        }

        // The client has ended, or its request is too long; otherwise the rest is read later.
        self.is_gone = taken < PASS_BYTES_MAX || input.len() > REQUEST_BYTES_MAX;
        None
    }

    fn asked(&mut self, line: Vec<u8>) -> ControlRequest {
        self.state = ClientState::Waiting(Instant::now());
        ControlRequest {
            client: self.number,
            line,
            by: self.by.clone(),
        }
    }

    fn show_life(&mut self, now: Instant) {
        let ClientState::Waiting(last) = &mut self.state else {
            return;
        };
        self.deadline = now + PATIENCE;
        if now.duration_since(*last) >= LIFE_INTERVAL {
            *last = now;
            // If it cannot be sent, neither can the answer.
            let _ = self.stream.write(b" ");
        }
    }

    fn write(&mut self) {
        let ClientState::Answered(output, sent) = &mut self.state else {
            return;
        };

        while let Some(rest) = output.get(*sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(len) => *sent += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }

        self.is_gone = true;
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = unlinkat(&self.directory, SOCKET, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_socket_is_in_the_directory_that_was_locked() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = dir.path().join("run");
        let instance = Instance::lock(&run_dir).unwrap();
        let moved = dir.path().join("moved");
        std::fs::rename(&run_dir, &moved).unwrap();
        std::fs::create_dir(&run_dir).unwrap();
        let socket = ControlSocket::start(&instance, |_| None).unwrap();
        assert!(UnixStream::connect(moved.join("tarsier.sock")).is_ok());
        drop((socket, instance));
        assert!(!moved.join("tarsier.sock").exists());
        assert_eq!(std::fs::read_dir(&run_dir).unwrap().count(), 0);
    }
}
