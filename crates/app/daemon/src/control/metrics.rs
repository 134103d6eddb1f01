//! `metrics`: serves the daemon's state in Prometheus' text format, version 0.0.4, over HTTP on a
//! Unix socket or a loopback port. Never blocks.

mod text;

pub(crate) use text::text;

use anyhow::{Context, Result};
use conf::MetricsAddress;
use rustix::event::{PollFd, PollFlags};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Clients that are served at a time. The oldest makes room for a new one, so that clients that do
/// nothing keep nobody out.
const CLIENTS_MAX: usize = 8;
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest request in bytes, including headers.
const REQUEST_BYTES_MAX: usize = 8192;

enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

trait ClientStream: Read + Write + AsFd {}
impl<T: Read + Write + AsFd> ClientStream for T {}

struct ScrapeClient {
    stream: Box<dyn ClientStream>,
    input: Vec<u8>,
    output: Vec<u8>,
    sent: usize,
    deadline: Instant,
    is_gone: bool,
}

/// The listening socket and its clients.
pub(crate) struct Metrics {
    address: MetricsAddress,
    listener: Listener,
    clients: Vec<ScrapeClient>,
}

impl Metrics {
    /// Listens at `address`. A Unix socket is accessible to root only, and replaces an existing
    /// one.
    pub(crate) fn start(address: &MetricsAddress) -> Result<Metrics> {
        let listener = match address {
            MetricsAddress::Unix(path) => {
                // The socket of a daemon that was killed is in the way; any other file is somebody's.
                let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| {
                    std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type())
                });
                if is_socket {
                    let _ = std::fs::remove_file(path);
                }

                let listener = UnixListener::bind(path)
                    .with_context(|| format!("metrics: cannot listen at {}", path.display()))?;
                let mode = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(path, mode).context("metrics")?;
                listener.set_nonblocking(true).context("metrics")?;
                Listener::Unix(listener, path.clone())
            }
            MetricsAddress::Loopback(port) => {
                let address = SocketAddr::from(([127, 0, 0, 1], *port));
                let listener = TcpListener::bind(address)
                    .with_context(|| format!("metrics: cannot listen at {address}"))?;
                listener.set_nonblocking(true).context("metrics")?;
                Listener::Tcp(listener)
            }
        };

        Ok(Metrics {
            address: address.clone(),
            listener,
            clients: Vec::new(),
        })
    }

    /// The address that it listens at.
    pub(crate) fn address(&self) -> &MetricsAddress {
        &self.address
    }

    /// Adds the descriptors to poll.
    pub(crate) fn poll_fds<'s>(&'s self, fds: &mut Vec<PollFd<'s>>) {
        fds.push(PollFd::from_borrowed_fd(self.fd(), PollFlags::IN));
        fds.extend(self.clients.iter().map(|client| {
            let wanted = if client.output.is_empty() {
                PollFlags::IN
            } else {
                PollFlags::OUT
            };
            PollFd::from_borrowed_fd(client.stream.as_fd(), wanted)
        }));
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.listener {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }

    /// Reads requests and sends answers as far as possible; calls `text` if a request is complete.
    pub(crate) fn serve(&mut self, mut text: impl FnMut() -> String) {
        self.accept();
        let now = Instant::now();
        for client in &mut self.clients {
            if client.read() {
                client.output = response(&client.input, &mut text);
                client.deadline = now + PATIENCE;
            }
            client.write();
        }
        self.clients
            .retain(|client| !client.is_gone && client.deadline > now);
    }

    fn accept(&mut self) {
        // So many at a time that none is dropped before its request was looked at.
        for _ in 0..CLIENTS_MAX {
            let accepted: std::io::Result<Box<dyn ClientStream>> = match &self.listener {
                Listener::Unix(listener, _) => listener.accept().and_then(|(stream, _)| {
                    stream.set_nonblocking(true)?;
                    Ok(Box::new(stream) as Box<dyn ClientStream>)
                }),
                Listener::Tcp(listener) => listener.accept().and_then(|(stream, _)| {
                    stream.set_nonblocking(true)?;
                    Ok(Box::new(stream) as Box<dyn ClientStream>)
                }),
            };

            let Ok(stream) = accepted else { return };
            if self.clients.len() == CLIENTS_MAX {
                self.drop_oldest();
            }

            self.clients.push(ScrapeClient {
                stream,
                input: Vec::new(),
                output: Vec::new(),
                sent: 0,
                deadline: Instant::now() + PATIENCE,
                is_gone: false,
            });
        }
    }
}

impl Metrics {
    /// Drops the oldest client without a whole request or, if all have one, the oldest.
    fn drop_oldest(&mut self) {
        let mut clients = self.clients.iter();
        let idle = clients.position(|client| client.output.is_empty());
        self.clients.remove(idle.unwrap_or(0));
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.listener {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl ScrapeClient {
    /// Reads what the client has sent. Returns whether the request is complete.
    fn read(&mut self) -> bool {
        if !self.output.is_empty() {
            return false;
        }

        let mut buffer = [0; 2048];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_gone = true,
                Ok(len) if self.input.len() + len <= REQUEST_BYTES_MAX => {
                    self.input.extend_from_slice(&buffer[..len]);
                    if self.input.windows(4).any(|end| end == b"\r\n\r\n") {
                        return true;
                    }
                    continue;
                }
                Ok(_) => self.is_gone = true,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => self.is_gone = error.kind() != std::io::ErrorKind::WouldBlock,
            }
            return false;
        }
    }

    fn write(&mut self) {
        while !self.is_gone && self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(len) => {
                    self.sent += len;
                    self.is_gone = len == 0 || self.sent == self.output.len();
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => self.is_gone = true,
            }
        }
    }
}

fn response(request: &[u8], text: impl FnOnce() -> String) -> Vec<u8> {
    let (line, body) = if request.starts_with(b"GET /metrics ") {
        ("200 OK", text())
    } else {
        ("404 Not Found", "only GET /metrics is served\n".to_owned())
    };
    let head = format!(
        "HTTP/1.0 {line}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixStream;

    fn served() -> String {
        "tarsier_events_recorded_total 42\n".to_owned()
    }

    fn asked(path: &std::path::Path, metrics: &mut Metrics, request: &str) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        metrics.serve(served);
        let mut text = String::new();
        BufReader::new(client).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_scrape_gets_the_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.sock");
        let mut metrics = Metrics::start(&MetricsAddress::Unix(path.clone())).unwrap();
        let text = asked(
            &path,
            &mut metrics,
            "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
        );
        assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
        assert!(
            text.contains("\ntarsier_events_recorded_total 42\n"),
            "{text}"
        );
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        assert!(metrics.clients.is_empty());
        let other = asked(&path, &mut metrics, "GET / HTTP/1.0\r\n\r\n");
        assert!(other.starts_with("HTTP/1.0 404 "), "{other}");
        drop(metrics);
        assert!(!path.exists());
    }

    #[test]
    fn a_client_that_asks_for_too_much_or_nothing_holds_nobody_up() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.sock");
        let mut metrics = Metrics::start(&MetricsAddress::Unix(path.clone())).unwrap();
        let silent = UnixStream::connect(&path).unwrap();
        let mut greedy = UnixStream::connect(&path).unwrap();
        greedy.write_all(&[b'x'; REQUEST_BYTES_MAX + 1]).unwrap();
        metrics.serve(served);
        assert_eq!(metrics.clients.len(), 1);
        let mut line = String::new();
        assert_eq!(BufReader::new(greedy).read_line(&mut line).unwrap_or(0), 0);
        drop(silent);
        metrics.serve(served);
        assert!(metrics.clients.is_empty());
    }

    #[test]
    fn clients_that_do_nothing_make_room_for_new_ones_oldest_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.sock");
        let mut metrics = Metrics::start(&MetricsAddress::Unix(path.clone())).unwrap();
        let connect = || UnixStream::connect(&path).unwrap();
        let mut idle: Vec<UnixStream> = (0..CLIENTS_MAX).map(|_| connect()).collect();
        metrics.serve(served);
        assert_eq!(metrics.clients.len(), CLIENTS_MAX);
        let mut fds = Vec::new();
        metrics.poll_fds(&mut fds);
        assert_eq!(fds.len(), CLIENTS_MAX + 1, "new clients are waited for");
        drop(fds);
        let text = asked(&path, &mut metrics, "GET /metrics HTTP/1.1\r\n\r\n");
        assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
        // The oldest is gone; the others are still served.
        assert_eq!(metrics.clients.len(), CLIENTS_MAX - 1);
        assert_eq!(idle.remove(0).read(&mut [0]).unwrap(), 0);
        let last = idle.last_mut().unwrap();
        last.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        metrics.serve(served);
        let mut text = String::new();
        last.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.0 200 OK\r\n"), "{text}");
    }
}
