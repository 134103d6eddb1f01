//! Connections: TCP with deadlines, and TLS.

mod tls;

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use crate::config::Config;

/// Maker of connections, with their common settings.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Option<Arc<ClientConfig>>,
    timeout: Duration,
}

/// A connection. Reads and writes fail once the time is up that [`Stream::begin`] has set.
pub(crate) enum Stream {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

/// A connection that HTTP/2 reads and writes.
pub(crate) type HttpIo = Box<dyn Duplex>;

/// Both directions of a connection.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Name of HTTP/2 in TLS (RFC 9113, 3.2).
const HTTP2: &[u8] = b"h2";

/// A TCP connection with a deadline for everything until the next [`Timed::begin`]: a server that sends a byte
/// now and then does not hold the sender.
pub(crate) struct Timed {
    tcp: TcpStream,
    timeout: Duration,
    deadline: Instant,
}

impl Connector {
    /// A connector with the timeout of the configuration; with TLS if `is_tls`.
    pub(crate) fn new(config: &Config, is_tls: bool) -> Result<Connector, String> {
        Ok(Connector {
            tls: is_tls.then(|| tls::client(config)).transpose()?,
            timeout: config.timeout,
        })
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// `TLS` or `no TLS`, for the administrator.
    pub(crate) fn tls_text(&self) -> &'static str {
        if self.uses_tls() {
            "TLS"
        } else {
            "no TLS"
        }
    }

    /// Connects to `HOST:PORT`, without TLS yet.
    pub(crate) fn tcp(&self, server: &str) -> io::Result<Timed> {
        let addresses = server.to_socket_addrs().map_err(|error| {
            let text =
                format!("{server}: cannot look up the name: {error}; check DNS and `server`");
            io::Error::new(error.kind(), text)
        })?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        let mut tried = Vec::new();
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.timeout) {
                Ok(tcp) => {
                    tcp.set_nodelay(true)?;
                    return Ok(Timed::new(tcp, self.timeout));
                }
                Err(error) => last = error,
            }
            tried.push(address.to_string());
        }

        let text = format!(
            "{server}: cannot connect to {}: {last}; is the server running, and is this its address?",
            tried.join(", ")
        );
        Err(io::Error::new(last.kind(), text))
    }

    /// Does TLS over a connection to `server`, if it is configured.
    pub(crate) fn secure(&self, stream: Timed, server: &str) -> io::Result<Stream> {
        let Some(config) = &self.tls else {
            return Ok(Stream::Plain(stream));
        };

        let (host, name) = tls_name(server)?;
        let client = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(client, stream);
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .map_err(|error| tls::explained(&error, server, host))?;
        }

        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Connects within `timeout` for HTTP/2, with TLS if it is configured. TCP is connected as by [`Connector::tcp`].
    pub(crate) async fn connect_http2(
        &self,
        server: &str,
        timeout: Duration,
    ) -> io::Result<HttpIo> {
        let tcp = self.tcp(server)?.tcp;
        tcp.set_nonblocking(true)?;
        let tcp = tokio::net::TcpStream::from_std(tcp)?;
        let Some(config) = &self.tls else {
            return Ok(Box::new(tcp));
        };

        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = vec![HTTP2.to_vec()];
        let (host, name) = tls_name(server)?;
        let handshake = TlsConnector::from(Arc::new(config)).connect(name, tcp);
        let stream = match tokio::time::timeout(timeout, handshake).await {
            Ok(stream) => stream.map_err(|error| tls::explained(&error, server, host))?,
            Err(_) => return Err(late(timeout)),
        };
        if stream.get_ref().1.alpn_protocol() != Some(HTTP2) {
            let text = format!(
                "{server}: no HTTP/2 at this port (ALPN); check `server` and `otlp_protocol`"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }

        Ok(Box::new(stream))
    }

    /// Connects, with TLS if it is configured.
    pub(crate) fn connect(&self, server: &str) -> io::Result<Stream> {
        self.secure(self.tcp(server)?, server)
    }
}

/// Host of `HOST:PORT`, and its name for TLS.
fn tls_name(server: &str) -> io::Result<(&str, ServerName<'static>)> {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    Ok((host, name))
}

fn late(timeout: Duration) -> io::Error {
    let text = format!(
        "no answer within {} s (timeout); the server is overloaded, or does not speak this protocol",
        timeout.as_secs_f64()
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

impl Stream {
    /// Gives the next exchange the whole timeout.
    pub(crate) fn begin(&mut self) {
        match self {
            Stream::Plain(timed) => timed.begin(),
            Stream::Tls(stream) => stream.sock.begin(),
        }
    }
}

impl Timed {
    fn new(tcp: TcpStream, timeout: Duration) -> Timed {
        Timed {
            tcp,
            timeout,
            deadline: Instant::now() + timeout,
        }
    }

    fn begin(&mut self) {
        self.deadline = Instant::now() + self.timeout;
    }

    /// Time that is left.
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(late(self.timeout))
        } else {
            Ok(left)
        }
    }

    fn named<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(self.timeout),
            _ => error,
        })
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(Some(self.left()?))?;
        let read = self.tcp.read(buffer);
        self.named(read)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(Some(self.left()?))?;
        let written = self.tcp.write(bytes);
        self.named(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// An error of reading an answer, in words: a connection that was closed in the middle.
pub(crate) fn closed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            let text = "the server closed the connection before it answered; its log says why";
            io::Error::new(error.kind(), text)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Two ends of a connection.
    fn pair(timeout: Duration) -> (Timed, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let ours = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
        let (theirs, _) = listener.accept().expect("a connection");
        (Timed::new(ours, timeout), theirs)
    }

    #[test]
    fn bytes_that_come_one_by_one_do_not_extend_the_deadline() {
        let (mut timed, mut theirs) = pair(Duration::from_millis(200));
        let writer = std::thread::spawn(move || {
            for _ in 0..2000 {
                if theirs.write_all(b"x").is_err() {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
            false
        });
        let error = timed.read_exact(&mut [0; 4000]).expect_err("no answer");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(
            error.to_string().contains("no answer within 0.2 s"),
            "{error}"
        );
        drop(timed);
        assert!(
            writer.join().expect("the writer ends"),
            "the reader went first"
        );
    }

    #[test]
    fn a_new_exchange_has_the_whole_time() {
        let (mut timed, mut theirs) = pair(Duration::from_secs(20));
        timed.deadline = Instant::now();
        assert!(timed.read(&mut [0]).is_err());
        timed.begin();
        theirs.write_all(b"x").expect("write");
        assert_eq!(timed.read(&mut [0]).expect("a byte"), 1);
    }
}
