//! OTLP, by HTTP or gRPC: at least once. Each log record has `log.record.uid`, by which a repetition is told.
//!
//! Source: the OTLP specification; it says which answers are to be tried again.

mod grpc;
mod http;
mod protobuf;
mod request;
mod response;

use std::io::{self, Write};
use std::time::Duration;

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::write::GzEncoder;

use super::{secret, Limits, Receipt, Sink, SinkError};
use crate::batch::Batch;
use crate::config::{Auth, Compression, Config, OtlpBody, OtlpProtocol};
use crate::cursor::SinkState;
use grpc::Grpc;
use http::Http;
pub use request::encode;

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 13;
const GZIP_LEVEL: u32 = 1;
/// Longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Names and values of headers.
type Headers = Vec<(String, String)>;

/// The sink.
pub(super) struct Otlp {
    transport: Transport,
    is_compressed: bool,
    bytes: usize,
    is_structured: bool,
}

/// A request as it is sent.
struct PackedRequest<'b> {
    bytes: &'b [u8],
    is_gzip: bool,
}

enum Transport {
    Http(Http),
    Grpc(Grpc),
}

impl Otlp {
    pub(super) fn new(config: &Config) -> Result<Otlp, SinkError> {
        let secret = secret(config).map_err(SinkError::Retry)?;
        let mut headers = config.headers.clone();
        let authorization = match config.auth {
            Auth::Token => Some(format!("Bearer {secret}")),
            Auth::Password => {
                let pair = format!("{}:{secret}", config.user);
                Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
            }
            _ => None,
        };

        headers.extend(authorization.map(|value| ("Authorization".into(), value)));
        if let Some(name) = &config.secret_header {
            let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
            if secret.is_empty() || !secret.chars().all(is_plain) {
                let text = format!("secret_header = {name}: the secret has to be one line of ASCII; check secret_file");
                return Err(SinkError::Retry(text));
            }
            headers.push((name.clone(), secret));
        }

        let transport = match config.otlp_protocol {
            OtlpProtocol::Http => Http::new(config, headers).map(Transport::Http),
            OtlpProtocol::Grpc => Grpc::new(config, headers).map(Transport::Grpc),
        };

        Ok(Otlp {
            transport: transport.map_err(SinkError::Retry)?,
            is_compressed: config.compression != Some(Compression::None),
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            is_structured: config.otlp_body == OtlpBody::Structured,
        })
    }

    /// Sends a request. Returns an ExportLogsServiceResponse.
    fn post(&mut self, request: &[u8]) -> Result<Vec<u8>, SinkError> {
        let packed = self.is_compressed.then(|| gzip(request)).transpose();
        let packed = packed.map_err(|error| SinkError::Retry(error.to_string()))?;
        let body = PackedRequest {
            bytes: packed.as_deref().unwrap_or(request),
            is_gzip: self.is_compressed,
        };

        match &mut self.transport {
            Transport::Http(http) => http.post(&body),
            Transport::Grpc(grpc) => grpc.post(&body),
        }
    }
}

/// The bytes as gzip has them.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
    out.write_all(bytes)?;
    out.finish()
}

impl Sink for Otlp {
    fn limits(&self) -> Limits {
        Limits {
            bytes: self.bytes,
            messages: MESSAGES_MAX,
        }
    }

    fn check(&mut self) -> Result<String, SinkError> {
        // A request without records is valid and writes nothing.
        self.post(&[])?;
        Ok(format!(
            "{}: reached, and takes an empty request",
            match &self.transport {
                Transport::Http(http) => http.url(),
                Transport::Grpc(grpc) => grpc.url(),
            }
        ))
    }

    fn prepare(&mut self, _state: &mut SinkState) -> Result<(), SinkError> {
        Ok(())
    }

    fn send(
        &mut self,
        batch: &Batch,
        _state: &mut SinkState,
        _is_repeated: bool,
    ) -> Result<Receipt, SinkError> {
        let answer = self.post(&request::encode_as(batch, self.is_structured))?;
        let (refused, remark) = response::partial(&answer);
        Ok(Receipt {
            was_there: false,
            refused,
            remark,
        })
    }
}
