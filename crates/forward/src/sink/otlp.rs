//! OTLP/HTTP: at least once. Each log record has `log.record.uid`, by which a repetition is told.
//!
//! Source: opentelemetry/proto/logs/v1/logs.proto, and the OTLP specification on answers.

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::write::GzEncoder;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{secret, Limits, Receipt, Sink, SinkError};
use crate::batch::{Batch, Kind, Message};
use crate::config::{Auth, Compression, Config};
use crate::cursor::SinkState;
use crate::http::{Client, Url};

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 13;
const GZIP_LEVEL: u32 = 1;
/// SEVERITY_NUMBER_INFO and SEVERITY_NUMBER_ERROR.
const INFO: u64 = 9;
const ERROR: u64 = 17;

/// The sink.
pub(super) struct Otlp {
    client: Client,
    authorization: Option<String>,
    bytes: usize,
    is_compressed: bool,
}

impl Otlp {
    pub(super) fn new(config: &Config) -> Result<Otlp, SinkError> {
        let url = config.server.first().map_or("", String::as_str);
        let url = Url::parse(url, "/v1/logs").map_err(SinkError::Retry)?;
        let secret = secret(config).map_err(SinkError::Retry)?;
        Ok(Otlp {
            client: Client::new(config, url).map_err(SinkError::Retry)?,
            authorization: match config.auth {
                Auth::Token => Some(format!("Bearer {secret}")),
                Auth::Password => {
                    let pair = format!("{}:{secret}", config.user);
                    Some(format!("Basic {}", BASE64_STANDARD.encode(pair)))
                }
                _ => None,
            },
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            is_compressed: config.compression != Some(Compression::None),
        })
    }

    fn post(&mut self, request: &[u8]) -> Result<Vec<u8>, SinkError> {
        let retry = |error: std::io::Error| SinkError::Retry(error.to_string());
        let packed = match self.is_compressed {
            true => {
                let mut out = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
                out.write_all(request).map_err(retry)?;
                out.finish().map_err(retry)?
            }
            false => request.to_vec(),
        };
        let mut headers = vec![("Content-Type", "application/x-protobuf")];
        if self.is_compressed {
            headers.push(("Content-Encoding", "gzip"));
        }
        if let Some(value) = &self.authorization {
            headers.push(("Authorization", value));
        }
        let answer = self.client.post(&headers, &packed).map_err(retry)?;
        let start = String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]);
        let text = format!("{}: status {}: {start:?}", self.client.url(), answer.status);
        match answer.status {
            200..=299 => Ok(answer.body),
            400 | 413 | 415 | 422 => Err(SinkError::Refused(text)),
            401 | 403 => Err(SinkError::Retry(format!(
                "{text}; check auth and secret_file"
            ))),
            404 | 405 => Err(SinkError::Retry(format!(
                "{text}; check the path in `server`"
            ))),
            _ => Err(SinkError::Retry(text)),
        }
    }
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
            self.client.url()
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
        let answer = self.post(&encode(batch))?;
        Ok(Receipt {
            was_there: false,
            refused: rejected(&answer).unwrap_or(0),
        })
    }
}

/// An ExportLogsServiceRequest.
pub fn encode(batch: &Batch) -> Vec<u8> {
    let mut records = Vec::with_capacity(batch.bytes.len() + batch.messages.len() * 160);
    let mut scope = Vec::new();
    text(1, b"tarsier-forward", &mut scope);
    let (mut name, mut scoped) = (Vec::new(), Vec::new());
    field(1, &scope, &mut scoped);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = since.map_or(0, |time| time.as_nanos() as u64);
    for message in &batch.messages {
        records.clear();
        record(batch, message, now_ns, &mut records);
        field(2, &records, &mut scoped);
    }
    let mut resource = Vec::new();
    attribute(1, "host.name", &batch.host, &mut resource);
    attribute(1, "service.name", "tarsier", &mut resource);
    field(1, &resource, &mut name);
    field(2, &scoped, &mut name);
    let mut request = Vec::with_capacity(name.len() + 8);
    field(1, &name, &mut request);
    request
}

fn record(batch: &Batch, message: &Message, now_ns: u64, out: &mut Vec<u8>) {
    fixed64(1, message.time_ms.saturating_mul(1_000_000), out);
    let severity = match message.kind {
        Kind::Gap => ERROR,
        _ => INFO,
    };
    varint(2 << 3, out);
    varint(severity, out);
    let body = batch.body(message);
    let mut value = Vec::with_capacity(body.len() + 8);
    match std::str::from_utf8(body) {
        Ok(_) if message.kind != Kind::Seal => text(1, body, &mut value),
        _ => text(7, body, &mut value),
    }
    field(5, &value, out);
    let uid = format!("{}/{}", batch.series, message.to);
    attribute(6, "log.record.uid", &uid, out);
    attribute(6, "tarsier.series", &batch.series.to_string(), out);
    attribute(6, "tarsier.kind", message.kind.name(), out);
    attribute(6, "tarsier.from", &message.from.to_string(), out);
    attribute(6, "tarsier.to", &message.to.to_string(), out);
    attribute(6, "tarsier.events", &message.events.to_string(), out);
    attribute(6, "tarsier.filtered", &message.filtered.to_string(), out);
    fixed64(11, now_ns, out);
}

/// The number of records that a partial success rejected: field 1 of field 1.
fn rejected(answer: &[u8]) -> Option<u64> {
    let partial = fields(answer).find_map(|(number, value)| match (number, value) {
        (1, Value::Bytes(bytes)) => Some(bytes),
        _ => None,
    })?;
    fields(partial).find_map(|(number, value)| match (number, value) {
        (1, Value::Number(count)) => Some(count),
        _ => None,
    })
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, as far as they can be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || {
        let tag = take_varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Number(take_varint(&mut rest)?),
            2 => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                let (bytes, after) = rest.split_at_checked(length)?;
                rest = after;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, value))
    })
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn attribute(number: u64, key: &str, value: &str, out: &mut Vec<u8>) {
    let (mut pair, mut any) = (Vec::with_capacity(64), Vec::with_capacity(48));
    text(1, key.as_bytes(), &mut pair);
    text(1, value.as_bytes(), &mut any);
    field(2, &any, &mut pair);
    field(number, &pair, out);
}

/// A field of bytes, text or a message.
fn field(number: u64, value: &[u8], out: &mut Vec<u8>) {
    varint(number << 3 | 2, out);
    varint(value.len() as u64, out);
    out.extend_from_slice(value);
}

fn text(number: u64, value: &[u8], out: &mut Vec<u8>) {
    field(number, value, out);
}

fn fixed64(number: u64, value: u64, out: &mut Vec<u8>) {
    varint(number << 3 | 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_success_is_read_and_garbage_is_not() {
        let (mut partial, mut answer) = (Vec::new(), Vec::new());
        varint(1 << 3, &mut partial);
        varint(300, &mut partial);
        text(2, b"too old", &mut partial);
        field(1, &partial, &mut answer);
        assert_eq!(rejected(&answer), Some(300));
        assert_eq!(rejected(b""), None);
        assert_eq!(rejected(&[0xff; 20]), None);
        assert_eq!(rejected(b"<html>not found</html>"), None);
    }
}
