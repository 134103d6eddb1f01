//! The control socket: reads requests and sends answers, without ever blocking.

use crate::asker::Asker;
use crate::protocol::socket_path;
use crate::protocol::REQUEST_BYTES_MAX;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Clients that are served at a time; others wait in the socket's queue.
const CLIENTS_MAX: usize = 16;
/// Time that a client may take to send its request, and again to receive the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes that are read from one client before the rings are read again.
const PASS_BYTES_MAX: usize = 1 << 20;

/// The listening socket, whose file is removed with it, and its clients.
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
    next: u64,
}

/// A whole request.
pub(crate) struct Asked {
    /// The client's number, for [`ControlSocket::answer`].
    pub(crate) client: u64,
    /// The request line, without its newline.
    pub(crate) line: Vec<u8>,
    /// The client as it was when it was accepted.
    pub(crate) by: Asker,
}

struct Client {
    number: u64,
    stream: UnixStream,
    by: Asker,
    input: Vec<u8>,
    /// The answer; `None` until the request is complete.
    output: Option<Vec<u8>>,
    sent: usize,
    deadline: Instant,
    is_gone: bool,
}

impl ControlSocket {
    /// Listens in `run_dir`. This process holds its lock, so an existing socket file is a leftover.
    pub(crate) fn start(run_dir: &Path) -> Result<ControlSocket> {
        let path = socket_path(run_dir);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mode).context("control socket")?;
        listener.set_nonblocking(true).context("control socket")?;
        Ok(ControlSocket {
            listener,
            path,
            clients: Vec::new(),
            next: 0,
        })
    }

    /// Adds the descriptors to poll: ready when a client sends a request or can receive its answer.
    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        if self.clients.len() < CLIENTS_MAX {
            fds.push(PollFd::from_borrowed_fd(
                self.listener.as_fd(),
                PollFlags::IN,
            ));
        }
        fds.extend(self.clients.iter().map(|client| {
            let wanted = match client.output {
                Some(_) => PollFlags::OUT,
                None => PollFlags::IN,
            };
            PollFd::from_borrowed_fd(client.stream.as_fd(), wanted)
        }));
    }

    /// Reads what clients have sent. Returns the requests that are complete now.
    pub(crate) fn requests(&mut self) -> Vec<Asked> {
        self.accept();
        let asked = self.clients.iter_mut().filter_map(Client::read).collect();
        self.clients.retain(|client| !client.is_gone);
        asked
    }

    /// Queues an answer for a client.
    pub(crate) fn answer(&mut self, client: u64, mut text: Vec<u8>) {
        text.push(b'\n');
        if let Some(client) = self.clients.iter_mut().find(|c| c.number == client) {
            client.output = Some(text);
            client.deadline = Instant::now() + PATIENCE;
        }
    }

    /// Sends what can be sent, and drops clients that have their answer or took too long.
    pub(crate) fn flush(&mut self) {
        let now = Instant::now();
        self.clients.iter_mut().for_each(Client::write);
        self.clients
            .retain(|client| !client.is_gone && client.deadline > now);
    }

    fn accept(&mut self) {
        while self.clients.len() < CLIENTS_MAX {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            let Some(by) = Asker::peer(&stream) else {
                continue;
            };
            // The file's mode already keeps others out, but it may have been changed.
            if by.who.uid != 0 || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.next += 1;
            self.clients.push(Client {
                number: self.next,
                stream,
                by,
                input: Vec::new(),
                output: None,
                sent: 0,
                deadline: Instant::now() + PATIENCE,
                is_gone: false,
            });
        }
    }
}

impl Client {
    /// Reads what the client has sent. Returns the request if it is complete.
    fn read(&mut self) -> Option<Asked> {
        if self.output.is_some() {
            return None;
        }
        let mut taken = 0;
        let mut buffer = [0; 16384];
        while taken < PASS_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    self.is_gone = true;
                    return None;
                }
                Ok(len) => {
                    let bytes = &buffer[..len];
                    if let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
                        self.input.extend_from_slice(&bytes[..end]);
                        return Some(self.asked());
                    }
                    self.input.extend_from_slice(bytes);
                    taken += len;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => {
                    self.is_gone = true;
                    return None;
                }
            }
            if self.input.len() > REQUEST_BYTES_MAX {
                self.is_gone = true;
                return None;
            }
        }
        None
    }

    fn asked(&mut self) -> Asked {
        // From here on, nothing more is read from this client.
        self.output = Some(Vec::new());
        Asked {
            client: self.number,
            line: std::mem::take(&mut self.input),
            by: self.by.clone(),
        }
    }

    fn write(&mut self) {
        let Some(output) = &self.output else { return };
        while let Some(rest) = output.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(len) => self.sent += len,
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
        let _ = std::fs::remove_file(&self.path);
    }
}
