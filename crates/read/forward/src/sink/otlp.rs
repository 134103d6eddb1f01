//! OTLP/HTTP: at least once. Each log record has `log.record.uid`, by which a repetition is told.
//!
//! Source: opentelemetry/proto/logs/v1/logs.proto, and the OTLP specification on answers.

use base64::prelude::{Engine, BASE64_STANDARD};
use flate2::write::GzEncoder;
use serde_json::Value as Json;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{secret, Limits, Receipt, Sink, SinkError};
use crate::batch::{Batch, Kind, Message};
use crate::config::{Auth, Compression, Config, OtlpBody};
use crate::cursor::SinkState;
use crate::http::{Answer, Client, Url};

const BATCH_BYTES: usize = 1 << 20;
const MESSAGES_MAX: usize = 1 << 13;
const GZIP_LEVEL: u32 = 1;
/// Longest pause that a server may ask for.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// SEVERITY_NUMBER_INFO, _WARN, _ERROR and _FATAL, with their names.
const INFO: (u64, &str) = (9, "INFO");
const WARN: (u64, &str) = (13, "WARN");
const ERROR: (u64, &str) = (17, "ERROR");
const FATAL: (u64, &str) = (21, "FATAL");

/// The sink.
pub(super) struct Otlp {
    client: Client,
    /// Headers of every request, by name.
    headers: Vec<(String, String)>,
    bytes: usize,
    is_compressed: bool,
    is_structured: bool,
}

impl Otlp {
    pub(super) fn new(config: &Config) -> Result<Otlp, SinkError> {
        let url = config.server.first().map_or("", String::as_str);
        let url = Url::parse(url, "/v1/logs").map_err(SinkError::Retry)?;
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

        Ok(Otlp {
            client: Client::new(config, url).map_err(SinkError::Retry)?,
            headers,
            bytes: config.batch_bytes.unwrap_or(BATCH_BYTES),
            is_compressed: config.compression != Some(Compression::None),
            is_structured: config.otlp_body == OtlpBody::Structured,
        })
    }

    fn post(&mut self, request: &[u8]) -> Result<Vec<u8>, SinkError> {
        let retry = |error: std::io::Error| SinkError::Retry(error.to_string());
        let packed = if self.is_compressed {
            let mut out = GzEncoder::new(Vec::new(), flate2::Compression::new(GZIP_LEVEL));
            out.write_all(request).map_err(retry)?;
            out.finish().map_err(retry)?
        } else {
            request.to_vec()
        };

        let mut headers = vec![("Content-Type", "application/x-protobuf")];
        if self.is_compressed {
            headers.push(("Content-Encoding", "gzip"));
        }
        headers.extend(
            self.headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );

        let answer = self.client.post(&headers, &packed).map_err(retry)?;
        let text = format!(
            "{}: status {}: {}",
            self.client.url(),
            answer.status,
            said(&answer)
        );

        match answer.status {
            200..=299 => Ok(answer.body).and_then(|body| if is_response(&answer.content_type, &body) { Ok(body) } else { Err(SinkError::Retry(format!(
                    "{text}: the answer (Content-Type {:?}) is not one of OTLP, so nothing counts as sent; check `server`, \
                     and proxies and login pages before it",
                    answer.content_type
                ))) }),
            400 | 413 | 415 | 422 => Err(SinkError::Refused(text)),
            401 | 403 => Err(SinkError::Retry(format!(
                "{text}; check auth and secret_file, or the headers"
            ))),
            404 | 405 => Err(SinkError::Retry(format!(
                "{text}; check the path in `server`"
            ))),
            300..=399 => Err(SinkError::Retry(format!(
                "{text}; redirections are not followed: set `server` to where it leads"
            ))),
            _ => Err(match pause(answer.retry_after.as_deref(), SystemTime::now()) {
                Some(pause) => SinkError::RetryAfter {
                    why: format!("{text}; the server asks for {} s", pause.as_secs()),
                    pause,
                },
                None => SinkError::Retry(text),
            }),
        }
    }
}

/// The pause that Retry-After asks for, in seconds or as a date (RFC 9110, 10.2.3), up to [`PAUSE_MAX`].
fn pause(retry_after: Option<&str>, now: SystemTime) -> Option<Duration> {
    let text = retry_after?;
    let seconds = match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(text).ok()?;
            let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs();
            u64::try_from(date.timestamp().as_second())
                .ok()?
                .saturating_sub(now)
        }
    };

    Some(Duration::from_secs(seconds).min(PAUSE_MAX))
}

/// What a server says in an answer that is no success: the message of google.rpc.Status, else the beginning of the body.
fn said(answer: &Answer) -> String {
    let is_message = |field: &(u64, Value<'_>)| field.0 == 2;
    let message = if is_protobuf(&answer.content_type) {
        fields(&answer.body).find(is_message)
    } else {
        None
    };
    let bytes = match message {
        Some((_, Value::Bytes(text))) => text,
        _ => &answer.body[..],
    };

    format!(
        "{:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(200)])
    )
}

fn is_protobuf(content_type: &str) -> bool {
    matches!(
        content_type,
        "application/x-protobuf" | "application/protobuf" | "application/vnd.google.protobuf"
    )
}

/// Whether a body is an ExportLogsServiceResponse. An empty one is, whatever its type: all its fields are optional.
fn is_response(content_type: &str, body: &[u8]) -> bool {
    if body.is_empty() {
        return true;
    }
    match content_type {
        "application/json" => match serde_json::from_slice(body) {
            Ok(Json::Object(object)) => object.keys().all(|name| name == "partialSuccess"),
            _ => false,
        },
        "" | "application/octet-stream" => is_whole(body),
        kind => is_protobuf(kind) && is_whole(body),
    }
}

/// Whether the bytes are fields of a message up to the last, and the first field is a message where it is there.
fn is_whole(body: &[u8]) -> bool {
    let mut rest = body;
    while !rest.is_empty() {
        match take_field(&mut rest) {
            Some((1, Value::Bytes(_))) => {}
            Some((number, _)) if number > 1 => {}
            _ => return false,
        }
    }
    true
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
        let answer = self.post(&encode_as(batch, self.is_structured))?;
        let (refused, remark) = partial(&answer);
        Ok(Receipt {
            was_there: false,
            refused,
            remark,
        })
    }
}

/// An ExportLogsServiceRequest whose bodies are texts.
pub fn encode(batch: &Batch) -> Vec<u8> {
    encode_as(batch, false)
}

/// An ExportLogsServiceRequest. `is_structured`: events that are JSON objects are maps.
fn encode_as(batch: &Batch, is_structured: bool) -> Vec<u8> {
    let mut records = Vec::with_capacity(batch.bytes.len() + batch.messages.len() * 160);
    let mut scope = Vec::new();
    text(1, b"tarsier-forward", &mut scope);
    let (mut name, mut scoped) = (Vec::new(), Vec::new());
    field(1, &scope, &mut scoped);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_ns = since.map_or(0, |time| time.as_nanos() as u64);
    for message in &batch.messages {
        records.clear();
        record(batch, message, is_structured, now_ns, &mut records);
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

fn record(batch: &Batch, message: &Message, is_structured: bool, now_ns: u64, out: &mut Vec<u8>) {
    fixed64(1, message.time_ms.saturating_mul(1_000_000), out);
    let body = batch.body(message);
    let is_json = message.kind == Kind::Event && body.first() == Some(&b'{');
    let object = if is_json {
        serde_json::from_slice::<Json>(body)
            .ok()
            .filter(Json::is_object)
    } else {
        None
    };

    let (number, name) = match message.kind {
        Kind::Gap => ERROR,
        Kind::Event => severity(object.as_ref(), body),
        _ => INFO,
    };
    varint(2 << 3, out);
    varint(number, out);
    text(3, name.as_bytes(), out);

    let value = match object {
        Some(object) if is_structured => any_value(&object),
        _ => {
            let mut value = Vec::with_capacity(body.len() + 8);
            match std::str::from_utf8(body) {
                Ok(_) if message.kind != Kind::Seal => text(1, body, &mut value),
                _ => text(7, body, &mut value),
            }
            value
        }
    };

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

/// Severity of an event: that of OCSF; else WARN if it failed, in the words of ECS, JSON or the log itself.
fn severity(object: Option<&Json>, body: &[u8]) -> (u64, &'static str) {
    let Some(object) = object else {
        let marks: [&[u8]; 4] = [b"success=no", b"res=failed", b" res=0", b"res=no"];
        let has_failed = marks
            .iter()
            .any(|mark| memchr::memmem::find(body, mark).is_some());
        return if has_failed { WARN } else { INFO };
    };

    match object.get("severity_id").and_then(Json::as_u64) {
        Some(2 | 3) => return WARN,
        Some(4) => return ERROR,
        Some(5 | 6) => return FATAL,
        _ => {}
    }

    let outcome = object.pointer("/event/outcome").and_then(Json::as_str);
    let record_failed = |record: &Json| {
        let inner = record.get("msg_fields");
        [Some(record), inner].into_iter().flatten().any(|fields| {
            fields["success"] == "no"
                || fields["res"] == "failed"
                || fields["res"] == 0
                || fields["res"] == "no"
        })
    };

    let records = object.get("records").and_then(Json::as_array);
    let has_failed = records.is_some_and(|records| records.iter().any(record_failed));
    if outcome == Some("failure") || object["status_id"] == 2 || has_failed {
        WARN
    } else {
        INFO
    }
}

/// An AnyValue of what JSON has.
fn any_value(value: &Json) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Json::Null => {}
        Json::Bool(is) => {
            varint(2 << 3, &mut out);
            varint(u64::from(*is), &mut out);
        }
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => {
                varint(3 << 3, &mut out);
                varint(number as u64, &mut out);
            }
            (None, number) => fixed64(4, number.unwrap_or_default().to_bits(), &mut out),
        },
        Json::String(string) => text(1, string.as_bytes(), &mut out),
        Json::Array(list) => {
            let mut values = Vec::new();
            for value in list {
                field(1, &any_value(value), &mut values);
            }
            field(5, &values, &mut out);
        }
        Json::Object(object) => {
            let mut pairs = Vec::new();
            for (name, value) in object {
                let mut pair = Vec::new();
                text(1, name.as_bytes(), &mut pair);
                field(2, &any_value(value), &mut pair);
                field(1, &pair, &mut pairs);
            }
            field(6, &pairs, &mut out);
        }
    }

    out
}

/// What a response says of a partial success: how many records were rejected, and why or what else.
fn partial(answer: &[u8]) -> (u64, Option<String>) {
    if answer.first() == Some(&b'{') {
        let object: Json = serde_json::from_slice(answer).unwrap_or_default();
        let partial = &object["partialSuccess"];
        let count = &partial["rejectedLogRecords"];
        // Numbers of 64 bits are strings in JSON of protobuf.
        let count = count.as_u64().or_else(|| count.as_str()?.parse().ok());
        let text = partial["errorMessage"]
            .as_str()
            .filter(|text| !text.is_empty());
        return (count.unwrap_or(0), text.map(str::to_owned));
    }

    let (mut count, mut remark) = (0, None);
    for (number, value) in fields(answer) {
        let (1, Value::Bytes(partial)) = (number, value) else {
            continue;
        };
        for field in fields(partial) {
            match field {
                (1, Value::Number(rejected)) => count = rejected,
                (2, Value::Bytes(text)) if !text.is_empty() => {
                    remark = Some(String::from_utf8_lossy(text).into_owned());
                }
                _ => {}
            }
        }
    }

    (count, remark)
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, as far as they can be read.
fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    std::iter::from_fn(move || take_field(&mut rest))
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let tag = take_varint(rest)?;
    let value = match tag & 7 {
        0 => Value::Number(take_varint(rest)?),
        2 => {
            let length = usize::try_from(take_varint(rest)?).ok()?;
            Value::Bytes(take(rest, length)?)
        }
        1 => Value::Bytes(take(rest, 8)?),
        5 => Value::Bytes(take(rest, 4)?),
        _ => return None,
    };

    Some((tag >> 3, value))
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (bytes, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(bytes)
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
    fn a_partial_success_is_read_with_the_servers_text() {
        let (mut inner, mut answer) = (Vec::new(), Vec::new());
        varint(1 << 3, &mut inner);
        varint(300, &mut inner);
        text(2, b"too old", &mut inner);
        field(1, &inner, &mut answer);
        let said = (300, Some("too old".to_owned()));
        assert_eq!(partial(&answer), said);
        let json = br#"{"partialSuccess":{"rejectedLogRecords":"300","errorMessage":"too old"}}"#;
        assert_eq!(partial(json), said);
        assert_eq!(partial(b""), (0, None));
        assert_eq!(partial(&[0xff; 20]), (0, None));
    }

    #[test]
    fn only_a_response_of_otlp_counts_as_one() {
        let response = [0x0a, 0x04, 0x08, 0x02, 0x12, 0x00];
        for (kind, body, is) in [
            ("application/x-protobuf", &b""[..], true),
            ("", b"", true),
            ("application/x-protobuf", &response, true),
            ("application/octet-stream", &response, true),
            ("application/json", b"{}", true),
            ("application/json", br#"{"partialSuccess":{}}"#, true),
            ("application/json", br#"{"error":"unauthenticated"}"#, false),
            ("text/html", b"<html>log in</html>", false),
            ("", b"<html>log in</html>", false),
            ("application/x-protobuf", b"<html>log in</html>", false),
            ("application/x-protobuf", &response[..3], false),
            ("text/plain", b"ok", false),
        ] {
            assert_eq!(is_response(kind, body), is, "{kind} {body:?}");
        }
    }

    #[test]
    fn a_pause_is_read_in_seconds_and_as_a_date_and_has_a_limit() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text| pause(Some(text), now).map(|pause| pause.as_secs());
        assert_eq!(read("5"), Some(5));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(read("99999999999"), Some(600));
        assert_eq!(read("soon"), None);
        assert_eq!(pause(None, now), None);
    }

    #[test]
    fn severity_is_that_of_the_event() {
        let of = |body: &str| {
            let object = serde_json::from_str::<Json>(body).ok();
            severity(object.as_ref(), body.as_bytes()).1
        };
        for (body, name) in [
            ("type=SYSCALL msg=audit(1.0:1): success=no exit=-13", "WARN"),
            (
                "type=USER_LOGIN msg=audit(1.0:1): msg='op=login res=failed'",
                "WARN",
            ),
            ("type=SYSCALL msg=audit(1.0:1): success=yes exit=0", "INFO"),
            (r#"{"event":{"outcome":"failure"}}"#, "WARN"),
            (r#"{"event":{"outcome":"success"}}"#, "INFO"),
            (r#"{"severity_id":4,"status_id":1}"#, "ERROR"),
            (r#"{"severity_id":1,"status_id":2}"#, "WARN"),
            (r#"{"records":[{"msg_fields":{"res":"failed"}}]}"#, "WARN"),
            (r#"{"records":[{"success":"yes"}]}"#, "INFO"),
        ] {
            assert_eq!(of(body), name, "{body}");
        }
    }

    #[test]
    fn a_structured_body_has_the_values_of_the_object() {
        let value = any_value(&serde_json::json!({"a": [1, "x", true, null], "b": {"c": -1.5}}));
        let (number, Value::Bytes(pairs)) = fields(&value).next().expect("a map") else {
            panic!("no bytes");
        };
        assert_eq!((number, fields(pairs).count()), (6, 2));
        assert!(memchr::memmem::find(pairs, &(-1.5_f64).to_le_bytes()).is_some());
    }
}
