//! Events as `log_format = JSON` has them.

use super::parsed::{Object, Reader};
use super::{Format, ForwardEvent, Refused};
use serde_json::{Number, Value};

/// One object per event, as `log_format = JSON` writes it, whatever the log's own format is. ENRICHED's names of
/// users are in `names`; lines that are no records are in `unread`.
#[derive(Default)]
pub struct Json(Reader);

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn event(&mut self, event: &ForwardEvent<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let line = event.lines.strip_suffix(b"\n").unwrap_or(event.lines);
        let text = std::str::from_utf8(line).ok();
        let text = text.filter(|text| text.starts_with('{') && !text.contains('\n'));
        if text.is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()) {
            out.extend_from_slice(line);
            return Ok(());
        }
        let document = document(&mut self.0, event);
        serde_json::to_writer(out, &document).map_err(|error| Refused(error.to_string()))
    }
}

fn document(reader: &mut Reader, event: &ForwardEvent<'_>) -> Value {
    let parsed = reader.read(event.lines);
    let stamp = event.stamp;
    let mut out = Object::new();
    let time = format!("{}.{:03}", stamp.sec, stamp.msec.min(999));
    let time: Option<Number> = time.parse().ok();
    out.insert("time".into(), time.map_or(Value::Null, Value::Number));
    out.insert("serial".into(), stamp.serial.into());
    if let Some(node) = &parsed.node {
        out.insert("node".into(), node.as_str().into());
    }
    if !parsed.workload.is_empty() {
        out.insert("workload".into(), parsed.workload.into());
    }
    if !parsed.names.is_empty() {
        out.insert("names".into(), parsed.names.into());
    }
    let records: Vec<Value> = parsed.records.into_iter().map(Value::Object).collect();
    out.insert("records".into(), records.into());
    if parsed.has_unread {
        out.insert("unread".into(), parsed.original.into());
        if let Some(hex) = parsed.original_hex {
            out.insert("unread_hex".into(), hex.into());
        }
    }
    Value::Object(out)
}
