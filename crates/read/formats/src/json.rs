//! Events as `log_format = JSON` has them.

use super::direct::Direct;
use super::parsed::{Object, Reader};
use super::value::Value;
use super::{Format, LogEvent, Refused};
use serde_json::Number;

/// One object per event, as `log_format = JSON` writes it, whatever the log's own format is. ENRICHED's names of
/// users are in `names`; lines that are no records are in `unread`.
#[derive(Default)]
pub struct Json {
    direct: Direct,
    reader: Reader,
}

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn content_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn event(&mut self, event: &LogEvent<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        let line = event.lines.strip_suffix(b"\n").unwrap_or(event.lines);
        let is_object = line.first() == Some(&b'{') && memchr::memchr(b'\n', line).is_none();
        let text = is_object.then(|| std::str::from_utf8(line).ok()).flatten();
        if text.is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()) {
            out.extend_from_slice(line);
            return Ok(());
        }
        if self.direct.event(event.lines, event.stamp, out) {
            return Ok(());
        }

        let document = document(&mut self.reader, event);
        serde_json::to_writer(out, &document).map_err(|error| Refused(error.to_string()))
    }
}

fn document(reader: &mut Reader, event: &LogEvent<'_>) -> Value {
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

#[cfg(test)]
mod tests {
    use super::*;
    use query::{Assembler, Dialect};

    const CORPORA: [&str; 4] = [
        "../../log/record/tests/corpus",
        "../../log/compose/tests/corpus",
        "../../../fuzz/seeds/log_lines",
        "tests/formats/events",
    ];

    /// Compares the two ways of writing, which have to give the same text. Returns the number of events of `text` that
    /// are written directly, and the number of all.
    fn compare(text: &[u8], direct: &mut Direct, reader: &mut Reader) -> (usize, usize) {
        let (mut written, mut all) = (0, 0);
        let mut assembler = Assembler::new(Dialect::Own, 2, Default::default());
        text.split_inclusive(|byte| *byte == b'\n')
            .for_each(|line| {
                assembler.add(line);
            });
        assembler.finish();
        while let Some(event) = assembler.pop() {
            let key = event.key();
            let stamp = crate::Stamp {
                sec: key.sec,
                msec: key.msec,
                serial: key.serial,
            };
            let lines = event.text();
            let given = LogEvent {
                lines,
                place: None,
                host: "web1",
                stamp,
            };
            let mut out = Vec::new();
            all += 1;
            if direct.event(lines, stamp, &mut out) {
                written += 1;
                let lines = String::from_utf8_lossy(lines);
                let object: Value = serde_json::from_slice(&out).expect("JSON");
                assert_eq!(object, document(reader, &given), "{lines}");
            } else {
                assert!(out.is_empty(), "nothing is left behind");
            }
        }
        (written, all)
    }

    #[test]
    fn events_written_directly_are_those_of_the_object_tree() {
        let (mut direct, mut reader) = (Direct::default(), Reader::default());
        let mut written = 0;
        for dir in CORPORA {
            for entry in std::fs::read_dir(dir).expect("a corpus") {
                let path = entry.expect("an entry").path();
                if !path.is_file() {
                    continue;
                }
                let text = std::fs::read(&path).expect("a file");
                written += compare(&text, &mut direct, &mut reader).0;
            }
        }
        // The corpora have other files, too, and seeds that are no records.
        assert!(written > 1000, "{written} events are written directly");
    }

    #[test]
    fn names_and_workload_of_enriched_lines_are_told() {
        let line = b"node=n\"1 type=SYSCALL msg=audit(7.004:9): a0=1 auid=0\x1dARCH=x86_64 AUID=\"root\" AUID=\"x\" \
                     UNIT=\"a.service\" CONTAINER=6162 POD=\"p\xff\"\n";
        let (mut direct, mut reader) = (Direct::default(), Reader::default());
        assert_eq!(compare(line, &mut direct, &mut reader), (1, 1));
        let mut out = Vec::new();
        let stamp = crate::Stamp {
            sec: 7,
            msec: 4,
            serial: 9,
        };
        assert!(direct.event(line, stamp, &mut out));
        let object: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(object["node"], "n\"1");
        assert_eq!(object["names"]["AUID"], "root");
        assert_eq!(object["workload"]["container"]["id"], "ab");
        assert_eq!(object["workload"]["pod"]["uid"], "p\u{fffd}");
        let twice = b"type=USER msg=audit(7.004:9): x=1\x1dUNIT=\"a\" UNIT=\"b\"\n";
        assert_eq!(compare(twice, &mut direct, &mut reader), (0, 1));
    }
}
