//! Parses logs, as far as tests need it.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// Lines of the SYSCALL records in a log's text.
pub(crate) fn calls(text: &str) -> Vec<&str> {
    let lines = text.lines();
    lines
        .filter(|line| line.starts_with("type=SYSCALL"))
        .collect()
}

/// A record: a line of the log.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) kind: String,
    text: String,
}

impl Record {
    /// The value of a field, without quotes but otherwise unchanged.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let value = self
            .text
            .split([' ', '\''])
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        Some(value.trim_matches('"'))
    }

    /// The text after the stamp.
    pub(crate) fn body(&self) -> &str {
        &self.text
    }

    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.field(name)?.parse().ok()
    }
}

/// All records with one stamp.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) records: Vec<Record>,
}

impl Event {
    pub(crate) fn record(&self, kind: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.kind == kind)
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        let kinds = self.records.iter();
        kinds.map(|record| record.kind.as_str()).collect()
    }

    /// `openat keyname`, or `b32:openat keyname`; several keys are joined by commas, `-` means
    /// none.
    pub(crate) fn brief(&self) -> Option<String> {
        let call = self.record("SYSCALL")?;
        let arch = u32::from_str_radix(call.field("arch")?, 16).ok()?;
        let arch = abi::Arch::from_audit_arch(arch)?;
        let nr = call.number("syscall")?;
        let name = abi::syscall_name(arch, nr as u32).map_or(nr.to_string(), str::to_owned);
        let width = if arch.is_64bit() { "" } else { "b32:" };
        let key = match call.field("key")? {
            "(null)" => "-",
            key => key,
        };
        Some(format!("{width}{name} {key}"))
    }
}

/// The events of a RAW or ENRICHED log, in order of their first record.
pub(crate) fn events(path: &Path) -> Vec<Event> {
    let bytes = std::fs::read(path).expect("the log is readable");
    assert!(
        bytes.is_empty() || bytes.ends_with(b"\n"),
        "{}: the last line is torn",
        path.display()
    );
    let text = String::from_utf8(bytes).expect("a log is ASCII");
    let mut events: Vec<Event> = Vec::new();
    let mut places = HashMap::new();
    for line in text.lines() {
        let parts = line
            .strip_prefix("type=")
            .and_then(|rest| rest.split_once(" msg=audit("))
            .and_then(|(kind, rest)| Some((kind, rest.split_once("): ")?)));
        let (kind, (stamp, body)) = parts.unwrap_or_else(|| panic!("no audit record: {line:?}"));
        let body = body.split('\u{1d}').next().unwrap_or(body);
        let place = *places.entry(stamp).or_insert_with(|| {
            events.push(Event {
                records: Vec::new(),
            });
            events.len() - 1
        });
        events[place].records.push(Record {
            kind: kind.to_owned(),
            text: body.to_owned(),
        });
    }
    events
}

/// The logged calls of one process: see [`Event::brief`].
pub(crate) fn calls_of(events: &[Event], pid: u32) -> Vec<String> {
    events_of(events, pid).filter_map(Event::brief).collect()
}

/// The SYSCALL events of one process.
pub(crate) fn events_of(events: &[Event], pid: u32) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| {
        let call = event.record("SYSCALL");
        call.and_then(|call| call.number("pid")) == Some(pid.into())
    })
}

/// The records of a type.
pub(crate) fn records<'e>(events: &'e [Event], kind: &str) -> Vec<&'e Record> {
    let records = events.iter().flat_map(|event| &event.records);
    records.filter(|record| record.kind == kind).collect()
}

/// Number of SYSCALL records of this call in a log that may be too long to keep in memory. Checks
/// that every line is whole.
pub(crate) fn count_calls(path: &Path, nr: i64, key: &str) -> u64 {
    let file = std::fs::File::open(path).expect("the log is readable");
    let mut lines = BufReader::with_capacity(1 << 20, file);
    let (call, key) = (format!(" syscall={nr} "), format!(" key=\"{key}\""));
    let (mut count, mut line) = (0, String::new());
    loop {
        line.clear();
        if lines.read_line(&mut line).expect("a log is ASCII") == 0 {
            return count;
        }
        assert!(
            line.starts_with("type=") && line.ends_with('\n'),
            "{}: torn line {line:?}",
            path.display()
        );
        let is_call = line.starts_with("type=SYSCALL ") && line.contains(&call);
        count += u64::from(is_call && line.contains(&key));
    }
}
