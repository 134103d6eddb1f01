//! Connections: TCP with deadlines, and TLS.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::config::Config;

/// What TLS needs, read once.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Connector {
    tls: Option<Tls>,
    timeout: Duration,
}

/// A connection.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Tls {
    /// Reads the certificates of the configuration.
    pub(crate) fn new(config: &Config) -> Result<Tls, String> {
        let mut roots = RootCertStore::empty();
        let ca = &config.tls_ca;
        let bad = |path: &std::path::Path, what: &str, error: &dyn std::fmt::Display| {
            format!("{}: {what}: {error}; expected a PEM file", path.display())
        };
        let certificates = CertificateDer::pem_file_iter(ca)
            .map_err(|error| bad(ca, "cannot read tls_ca", &error))?;
        for certificate in certificates.flatten() {
            // Stores of systems have certificates that are not understood; one that is enough.
            let _ = roots.add(certificate);
        }
        if roots.is_empty() {
            return Err(bad(ca, "tls_ca", &"no certificate in it"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots);
        let client = match (&config.tls_cert, &config.tls_key) {
            (Some(cert), Some(key)) => {
                let chain = CertificateDer::pem_file_iter(cert)
                    .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                    .map_err(|error| bad(cert, "cannot read tls_cert", &error))?;
                let secret = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| bad(key, "cannot read tls_key", &error))?;
                builder
                    .with_client_auth_cert(chain, secret)
                    .map_err(|error| bad(key, "tls_key", &error))?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Tls(Arc::new(client)))
    }
}

impl Connector {
    /// A connector with the timeout of the configuration; with TLS if `tls`.
    pub(crate) fn new(config: &Config, tls: bool) -> Result<Connector, String> {
        Ok(Connector {
            tls: tls.then(|| Tls::new(config)).transpose()?,
            timeout: config.timeout,
        })
    }

    pub(crate) fn uses_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Connects to `HOST:PORT`, without TLS yet.
    pub(crate) fn tcp(&self, server: &str) -> io::Result<TcpStream> {
        let addresses = server.to_socket_addrs().map_err(|error| {
            io::Error::new(error.kind(), format!("{server}: cannot look up: {error}"))
        })?;
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(self.timeout))?;
                    stream.set_write_timeout(Some(self.timeout))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(io::Error::new(
            last.kind(),
            format!("{server}: cannot connect: {last}"),
        ))
    }

    /// Does TLS over a connection to `server`, if it is configured.
    pub(crate) fn secure(&self, stream: TcpStream, server: &str) -> io::Result<Stream> {
        let Some(Tls(config)) = &self.tls else {
            return Ok(Stream::Plain(stream));
        };
        let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let client = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(client, stream);
        while stream.conn.is_handshaking() {
            stream
                .conn
                .complete_io(&mut stream.sock)
                .map_err(|error| io::Error::new(error.kind(), format!("{server}: TLS: {error}")))?;
        }
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// Connects, with TLS if it is configured.
    pub(crate) fn connect(&self, server: &str) -> io::Result<Stream> {
        self.secure(self.tcp(server)?, server)
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
