//! Records of RAW and ENRICHED lines as one JSON object, written without an object tree.
//!
//! The output equals that of [`super::json`] for the [`Parsed`](super::parsed::Parsed) event. Events with anything
//! unusual are left to that module.

use record::text::{self, fields, Field};
use record::{put, Encoder, Format, NoNames};

use super::parsed::MSG;
use super::Stamp;
use std::borrow::Cow;

/// The encoder's object has this stamp, which is cut off.
const NO_STAMP: record::Stamp = record::Stamp {
    sec: 0,
    msec: 0,
    serial: 0,
};
const HEAD: &[u8] = b"{\"time\":0.000,\"serial\":0";

/// Writes events. Keep it and reuse it, for its buffers.
pub(super) struct Direct {
    encoder: Encoder,
    object: Vec<u8>,
    names: Members,
    workload: Members,
    scratch: Vec<u8>,
}

/// Members of a JSON object: the text between its braces, and where in it the names are.
#[derive(Default)]
struct Members {
    text: Vec<u8>,
    names: Vec<(usize, usize)>,
}

impl Default for Direct {
    fn default() -> Direct {
        Direct {
            encoder: Encoder::new(Format::Json, Box::new(NoNames)),
            object: Vec::new(),
            names: Members::default(),
            workload: Members::default(),
            scratch: Vec::new(),
        }
    }
}

impl Direct {
    /// Appends the object of an event. `false`, and nothing appended, if a line is no record of a known type, or
    /// the event says twice where it belongs.
    pub(super) fn event(&mut self, lines: &[u8], stamp: Stamp, out: &mut Vec<u8>) -> bool {
        self.object.clear();
        self.names.clear();
        self.workload.clear();
        let Some(node) = self.records(lines) else {
            return false;
        };
        let Some(records) = self.object.strip_prefix(HEAD) else {
            return false;
        };

        put::text(out, "{\"time\":");
        put::decimal(out, stamp.sec);
        out.push(b'.');
        put::padded(out, stamp.msec.min(999).into(), 3);
        put::text(out, ",\"serial\":");
        put::decimal(out, stamp.serial);
        if let Some(node) = node {
            put::text(out, ",\"node\":");
            string(node, out);
        }

        self.workload.put("workload", out);
        self.names.put("names", out);
        out.extend_from_slice(records.strip_suffix(b"\n").unwrap_or(records));
        true
    }

    /// Fills `object`, `names` and `workload`. Returns the value of `node=`, if there is one.
    fn records<'a>(&mut self, lines: &'a [u8]) -> Option<Option<&'a [u8]>> {
        let mut node = None;
        let mut writer = self.encoder.begin(&mut self.object, NO_STAMP);
        let mut rest = lines;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if line.is_empty() {
                continue;
            }
            let record = text::parse_line(line).ok()?;
            writer.raw(record.kind?, record.body);
            node = record.node.or(node);
            let is_told = match record.interpretations {
                Some(names) if record.type_name != b"PATH" => interpret(
                    names,
                    &mut self.names,
                    &mut self.workload,
                    &mut self.scratch,
                ),
                _ => true,
            };
            if !is_told {
                return None;
            }
        }

        writer.end();
        Some(node)
    }
}

/// Sorts the names that ENRICHED gives. False if the same place is said twice.
fn interpret(
    text: &[u8],
    names: &mut Members,
    workload: &mut Members,
    scratch: &mut Vec<u8>,
) -> bool {
    let mut before = Vec::new();
    for field in fields(text).filter(|field| field.has_value) {
        let (name, inner) = match field.name {
            b"UNIT" => ("unit", None),
            b"USER_UNIT" => ("user_unit", None),
            b"CONTAINER" => ("container", Some("id")),
            b"POD" => ("pod", Some("uid")),
            name => {
                let name = if before.contains(&name) {
                    Cow::Owned([MSG, name].concat())
                } else {
                    Cow::Borrowed(name)
                };
                before.push(field.name);
                if !names.has(&name) {
                    names.begin(&name);
                    string(value(&field, scratch), &mut names.text);
                }
                continue;
            }
        };
        if workload.has(name.as_bytes()) {
            return false;
        }
        workload.begin(name.as_bytes());
        if let Some(inner) = inner {
            put::text(&mut workload.text, "{\"");
            put::text(&mut workload.text, inner);
            put::text(&mut workload.text, "\":");
        }
        string(value(&field, scratch), &mut workload.text);
        if inner.is_some() {
            workload.text.push(b'}');
        }
    }

    true
}

/// The value without quotes, or decoded from hex.
fn value<'a>(field: &Field<'a>, scratch: &'a mut Vec<u8>) -> &'a [u8] {
    match field.quoted() {
        Some(inner) => inner,
        None if text::is_hex(field.value) => {
            scratch.clear();
            text::unhex(scratch, field.value);
            scratch
        }
        None => field.value,
    }
}

impl Members {
    fn clear(&mut self) {
        self.text.clear();
        self.names.clear();
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names
            .iter()
            .any(|(start, end)| &self.text[*start..*end] == name)
    }

    /// Appends `"NAME":`. The caller appends the value.
    fn begin(&mut self, name: &[u8]) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
        let start = self.text.len() + 1;
        string(name, &mut self.text);
        self.names.push((start, self.text.len() - 1));
        self.text.push(b':');
    }

    /// Appends `,"NAME":{…}` unless there are no members.
    fn put(&self, name: &str, out: &mut Vec<u8>) {
        if self.text.is_empty() {
            return;
        }
        put::text(out, ",\"");
        put::text(out, name);
        put::text(out, "\":{");
        out.extend_from_slice(&self.text);
        out.push(b'}');
    }
}

/// Appends a JSON string, with U+FFFD in place of bytes that are not UTF-8.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b'"' && *byte != b'\\';
    if bytes.iter().all(is_plain) {
        return put::quoted(out, bytes);
    }
    let text = String::from_utf8_lossy(bytes);
    // Writing a string into memory cannot fail.
    let _ = serde_json::to_writer(out, text.as_ref());
}
