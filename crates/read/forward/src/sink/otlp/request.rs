//! Requests: batches as log records.
//!
//! Source: opentelemetry/proto/logs/v1/logs.proto.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value as Json;

use super::protobuf::{attribute, field, fixed64, text, varint};
use crate::batch::{Batch, Kind, Message};

/// SEVERITY_NUMBER_INFO, _WARN, _ERROR and _FATAL, with their names.
const INFO: (u64, &str) = (9, "INFO");
const WARN: (u64, &str) = (13, "WARN");
const ERROR: (u64, &str) = (17, "ERROR");
const FATAL: (u64, &str) = (21, "FATAL");

/// An ExportLogsServiceRequest whose bodies are texts.
pub fn encode(batch: &Batch) -> Vec<u8> {
    encode_as(batch, false)
}

/// An ExportLogsServiceRequest. `is_structured`: events that are JSON objects are maps.
pub(super) fn encode_as(batch: &Batch, is_structured: bool) -> Vec<u8> {
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

#[cfg(test)]
mod tests {
    use super::super::protobuf::{fields, Value};
    use super::*;

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
