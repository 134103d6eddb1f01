//! Fields of earlier records as JSON members. Most fields of a record are those of the record of its type before, and
//! copying a member costs a fraction of making it.

use abi::Arch;

use crate::text::Field;
use crate::{put, RecordType};

/// Longest field that is remembered, in bytes.
const FIELD_BYTES_MAX: usize = 256;
/// Number of fields of a record that are remembered.
const FIELDS_MAX: usize = 64;
/// Number of records that are remembered. If there are more, all are forgotten.
const RECORDS_MAX: usize = 32;
/// Number of records of one type in an event that are told apart: the directory, the file and others of PATH.
const SAME_TYPE_MAX: usize = 4;

/// Records of earlier events.
#[derive(Debug, Default)]
pub(crate) struct RememberedRecords(Vec<RememberedRecord>);

/// The last record of a type and number.
#[derive(Debug)]
pub(crate) struct RememberedRecord {
    kind: RecordType,
    number: usize,
    /// `{"type":"NAME"`.
    head: Vec<u8>,
    fields: Vec<RememberedField>,
}

/// A field and its member.
#[derive(Debug, Default)]
struct RememberedField {
    /// The field with the blanks before it; empty if it is not kept.
    text: Vec<u8>,
    /// `,"NAME":VALUE`.
    json: Vec<u8>,
    /// Architecture of the record before the field, which decides about the names of calls, and after it.
    arch: (Option<Arch>, Option<Arch>),
}

impl RememberedRecords {
    /// The record of this type that was the last to have this number among those of the type in its event.
    pub(crate) fn record(&mut self, kind: RecordType, number: usize) -> &mut RememberedRecord {
        let number = number.min(SAME_TYPE_MAX - 1);
        let is_same = |known: &RememberedRecord| (known.kind, known.number) == (kind, number);
        let known = self.0.iter().position(is_same);

        let place = known.unwrap_or_else(|| {
            if self.0.len() >= RECORDS_MAX {
                self.0.clear();
            }
            self.0.push(RememberedRecord::new(kind, number));
            self.0.len() - 1
        });

        &mut self.0[place]
    }
}

impl RememberedRecord {
    fn new(kind: RecordType, number: usize) -> RememberedRecord {
        let mut head = b"{\"type\":\"".to_vec();
        put::record_type(&mut head, kind);
        head.push(b'"');
        RememberedRecord {
            kind,
            number,
            head,
            fields: Vec::new(),
        }
    }

    /// Beginning of the record's object: `{"type":"NAME"`.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Appends the member of the first field of `text`, if that is the remembered field of this place. Returns what
    /// follows the field.
    pub(crate) fn copy<'a>(
        &self,
        place: usize,
        text: &'a [u8],
        arch: &mut Option<Arch>,
        out: &mut Vec<u8>,
    ) -> Option<&'a [u8]> {
        let member = self.fields.get(place).filter(|member| member.is_kept())?;
        let rest = text.strip_prefix(&member.text[..])?;
        // A field that goes on is another one.
        if !matches!(rest, [] | [b' ', ..]) || member.arch.0 != *arch {
            return None;
        }

        *arch = member.arch.1;
        out.extend_from_slice(&member.json);
        Some(rest)
    }

    /// Remembers a field: `text` with the blanks before it, and its member.
    pub(crate) fn keep(
        &mut self,
        place: usize,
        (text, field): (&[u8], &Field<'_>),
        json: &[u8],
        arch: (Option<Arch>, Option<Arch>),
    ) {
        if place >= FIELDS_MAX {
            return;
        }
        if place >= self.fields.len() {
            self.fields.resize_with(place + 1, RememberedField::default);
        }

        let member = &mut self.fields[place];
        let is_kept = text.len() <= FIELD_BYTES_MAX && field.ends_by_itself();
        member.text.clear();
        member.json.clear();
        if is_kept {
            member.text.extend_from_slice(text);
            member.json.extend_from_slice(json);
            member.arch = arch;
        }
    }
}

impl RememberedField {
    fn is_kept(&self) -> bool {
        !self.text.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Encoder, Format, NoNames, RecordType, Stamp};

    /// Fields of which one may be the beginning of another, or end where the next one says.
    const FIELDS: [&str; 19] = [
        "arch=c000003e",
        "arch=40000003",
        "syscall=5",
        "syscall=59",
        "a=1",
        "a=12",
        "a=\"b",
        "a=\"b\"",
        "a=\"b\"c",
        "a={ x",
        "a={ x }",
        "msg='x",
        "msg='x=1 y'",
        "'",
        "\"",
        "op=add",
        "op=add user",
        "word",
        "  a=1 ",
    ];

    fn json(encoder: &mut Encoder, bodies: &[&str]) -> String {
        let stamp = Stamp {
            sec: 1,
            msec: 2,
            serial: 3,
        };
        let mut out = Vec::new();
        let mut event = encoder.begin(&mut out, stamp);
        for body in bodies {
            event.raw(RecordType::SYSCALL, body.as_bytes());
        }
        event.end();
        String::from_utf8(out).expect("text")
    }

    fn encoder() -> Encoder {
        Encoder::new(Format::Json, Box::new(NoNames))
    }

    #[test]
    fn what_was_encoded_before_changes_no_event() {
        let pairs = FIELDS.iter().flat_map(|a| FIELDS.map(|b| [*a, b]));
        let triples = pairs.flat_map(|[a, b]| FIELDS.map(|c| [a, b, c].join(" ")));
        let bodies: Vec<(String, String)> = triples
            .map(|body| (json(&mut encoder(), &[&body]), body))
            .collect();
        let mut used = encoder();

        // Each body after many others, among them those that differ in one field only.
        for step in [1, 2, 19, 361, 5] {
            for start in 0..step {
                for (expected, body) in bodies.iter().skip(start).step_by(step) {
                    assert_eq!(json(&mut used, &[body]), *expected, "{body}");
                }
            }
        }
    }

    #[test]
    fn more_types_and_fields_than_are_remembered_are_encoded() {
        let long: Vec<String> = (0..200).map(|n| format!("f{n}={n}")).collect();
        let text = format!("{} x=\"{}\"", long.join(" "), "y".repeat(5000));
        let mut used = encoder();
        for round in 0..3 {
            for (kind, _) in RecordType::all().filter(|row| row.0 != RecordType::EOE) {
                let (mut out, mut alone) = (Vec::new(), Vec::new());
                let message = format!("audit(1.002:{round}): {text}");
                used.raw(&mut out, kind, message.as_bytes());
                encoder().raw(&mut alone, kind, message.as_bytes());
                assert_eq!(out, alone);
                assert!(out.len() > text.len(), "{kind}");
            }
        }
        let bodies = ["a=1 b=2", "a=1 b=3", "a=1 b=2", "a=2", "a=1", "a=1"];
        assert_eq!(json(&mut used, &bodies), json(&mut encoder(), &bodies));
    }
}
