//! Events as JSON, in the form of `log_format = JSON`, and in ECS and OCSF.

use cli::messages::report;
use formats::{Format, LogEvent};
use query::{Event, Interpretations};
use record::{Encoder, NoNames, Stamp};
use serde_json::{Map, Value};

/// Arrangement of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonForm {
    /// `--format jsonl`: a line for each.
    Lines,
    /// `--format json`: an array.
    Array,
}

/// Writes events as JSON.
pub(super) struct Json {
    form: JsonForm,
    encoder: Encoder,
    count: u64,
}

impl Json {
    pub(super) fn new(form: JsonForm) -> Json {
        Json {
            form,
            encoder: Encoder::new(record::Format::Json, Box::new(NoNames)),
            count: 0,
        }
    }

    /// A writer of objects for another thread; `None` if it depends on what was written before.
    fn of_lines(&self) -> Option<Json> {
        (self.form == JsonForm::Lines).then(|| Json::new(JsonForm::Lines))
    }

    /// Appends an event.
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.form == JsonForm::Array {
            out.extend_from_slice(if self.count == 0 { b"[" } else { b"," });
        }

        self.count += 1;
        let source = event.source();
        if source.starts_with(b"{") && memchr::memchr(b'\n', source) == Some(source.len() - 1) {
            return out.extend_from_slice(source);
        }

        let key = event.key();
        let stamp = Stamp {
            sec: key.sec,
            msec: key.msec as u16,
            serial: u32::try_from(key.serial).unwrap_or(u32::MAX),
        };

        self.encoder.set_node(key.node.as_deref());
        let out_start = out.len();
        let mut writer = self.encoder.begin(out, stamp);
        for record in event.records() {
            // What follows `audit(…):`.
            let head =
                memchr::memmem::find(record.text, b"): ").map_or(record.text.len(), |at| at + 3);
            writer.raw(
                u16::try_from(record.kind).unwrap_or(0),
                &record.text[head..],
            );
        }

        writer.end();
        write_types(event, out_start, out);
        write_names(event, out);
    }

    /// Appends the end of the array.
    fn end(&mut self, out: &mut Vec<u8>) {
        if self.form == JsonForm::Array {
            out.extend_from_slice(if self.count == 0 { b"[]\n" } else { b"]\n" });
        }
    }
}

/// Puts the names that the log has for record types in the place of `UNKNOWN[n]`, into the object that begins at `start`.
fn write_types(event: &Event, start: usize, out: &mut Vec<u8>) {
    const UNKNOWN: &[u8] = b"{\"type\":\"UNKNOWN[";

    let mut at = start;
    for record in event.records() {
        let is_known = u32::try_from(record.kind)
            .ok()
            .and_then(abi::record_type_name)
            .is_some();
        if is_known {
            continue;
        }
        let Some(found) = memchr::memmem::find(&out[at..], UNKNOWN) else {
            return;
        };
        let name_start = at + found + b"{\"type\":\"".len();
        let length = memchr::memchr(b'"', &out[name_start..]).unwrap_or(0);
        let name = record.type_name();
        if name
            .iter()
            .all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(byte))
        {
            out.splice(name_start..name_start + length, name.iter().copied());
        }
        at = name_start;
    }
}

/// Adds the names of ENRICHED to the object at the end of `out`: each with its value, or with all if records differ.
fn write_names(event: &Event, out: &mut Vec<u8>) {
    let mut names: Map<String, Value> = Map::new();
    let text = |value: &[u8]| Value::from(String::from_utf8_lossy(value).into_owned());
    for names_of_record in event.records().filter_map(|record| record.names) {
        let Some(read) = Interpretations::read(names_of_record) else {
            continue;
        };
        for (name, value) in read.iter() {
            let value = text(query::unescaped(value).as_slice());
            match names.get_mut(&*String::from_utf8_lossy(name)) {
                None => drop(names.insert(String::from_utf8_lossy(name).into_owned(), value)),
                Some(Value::Array(values)) if !values.contains(&value) => values.push(value),
                Some(known) if *known != value && !known.is_array() => {
                    *known = Value::Array(vec![known.take(), value]);
                }
                Some(_) => {}
            }
        }
    }

    if names.is_empty() || !out.ends_with(b"}\n") {
        return;
    }

    out.truncate(out.len() - 2);
    out.extend_from_slice(format!(",\"names\":{}}}\n", Value::Object(names)).as_bytes());
}

/// Writes events as objects.
pub(super) enum Objects {
    Json(Box<Json>),
    Mapped(Mapped),
}

impl Objects {
    /// A writer for another thread; `None` if it depends on what was written before.
    pub(super) fn of_thread(&self) -> Option<Objects> {
        match self {
            Objects::Json(json) => json.of_lines().map(|json| Objects::Json(Box::new(json))),
            Objects::Mapped(mapped) => mapped.again().map(Objects::Mapped),
        }
    }

    /// Appends an event.
    pub(super) fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        match self {
            Objects::Json(json) => json.write(event, out),
            Objects::Mapped(mapped) => mapped.write(event, out),
        }
    }

    /// Appends what ends the output.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Objects::Json(json) = self {
            json.end(out);
        }
    }
}

/// Writes events in one of the formats of [`formats`], a line for each.
pub(super) struct Mapped {
    format: Box<dyn Format>,
    /// Host of events without `node=`; empty if nobody said.
    host: String,
}

impl Mapped {
    /// The format of this name; `None` if there is none.
    pub(super) fn new(name: &str, host: &str) -> Option<Mapped> {
        Some(Mapped {
            format: formats::format(name)?,
            host: host.to_owned(),
        })
    }

    /// A writer for another thread.
    fn again(&self) -> Option<Mapped> {
        Mapped::new(self.format.name(), &self.host)
    }

    /// Appends an event. One that has no form in the format is left out, which is said.
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        let key = event.key();
        let node = key.node.as_deref().map(String::from_utf8_lossy);
        let start = out.len();
        let mapped = self.format.event(
            &LogEvent {
                lines: event.source(),
                place: None,
                host: node.as_deref().unwrap_or(&self.host),
                stamp: formats::Stamp {
                    sec: key.sec,
                    msec: key.msec,
                    serial: key.serial,
                },
            },
            out,
        );

        match mapped {
            Ok(()) => out.push(b'\n'),
            Err(refused) => {
                out.truncate(start);
                report!("tarsier: event {}: {refused}", key.serial);
            }
        }
    }
}
