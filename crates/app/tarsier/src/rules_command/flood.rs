//! Finds the keys, and so the rules, that fill a recorded log.

use anyhow::{Context, Result};
use record::{text, RecordType};
use rules::Rule;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

/// The events that a key selected.
#[derive(Debug, Serialize)]
pub(super) struct Flood {
    /// The key; several are joined by commas. Empty for events without a key.
    key: String,
    /// Places of the rules with this key.
    rules: Vec<String>,
    events: u64,
    bytes: u64,
    /// Share of the bytes of all selected events, in percent.
    share_percent: f64,
    /// Whether the key has more than half of these bytes, and there are other keys.
    pub(super) is_flood: bool,
}

/// Number, time and node of an event.
type Serial = (u64, u32, u64);

#[derive(Default)]
struct Seen {
    bytes: u64,
    key: Option<Vec<u8>>,
}

/// Counts what the rules selected in the log at `path`, most bytes first: all records of events
/// that have a SYSCALL or URINGOP record. Lines that are not records do not count.
///
/// # Errors
/// The log cannot be read.
pub(super) fn count(path: &Path, rules: &[Rule]) -> Result<Vec<Flood>> {
    let reading = || format!("cannot read {}", path.display());
    let mut log = BufReader::new(File::open(path).with_context(reading)?);
    let mut seen: HashMap<Serial, Seen> = HashMap::new();
    let mut line = Vec::new();

    while log.read_until(b'\n', &mut line).with_context(reading)? > 0 {
        if let Ok(record) = text::parse_line(&line) {
            let stamp = record.stamp;
            let event = seen
                .entry((stamp.sec, stamp.msec as u32, stamp.serial as u64))
                .or_default();
            event.bytes += line.len() as u64;
            if is_call(record.kind) {
                event.key = Some(key_of(record.body));
            }
        }
        line.clear();
    }

    let mut by_key: HashMap<Vec<u8>, (u64, u64)> = HashMap::new();
    for Seen { bytes, key } in seen.into_values() {
        if let Some(key) = key {
            let counts = by_key.entry(key).or_default();
            counts.0 += 1;
            counts.1 += bytes;
        }
    }

    Ok(floods(by_key, rules))
}

fn floods(by_key: HashMap<Vec<u8>, (u64, u64)>, rules: &[Rule]) -> Vec<Flood> {
    let total: u64 = by_key.values().map(|counts| counts.1).sum();
    let keys = by_key.len();
    let mut floods: Vec<Flood> = by_key
        .into_iter()
        .map(|(key, (events, bytes))| Flood {
            rules: rules
                .iter()
                .filter(|rule| rule.list.has_syscalls())
                .filter(|rule| rule.action == rules::Action::Always)
                .filter(|rule| rule.key().unwrap_or_default() == key)
                .map(|rule| format!("{}:{}", rule.source.file, rule.source.line))
                .collect(),
            key: String::from_utf8_lossy(&key).replace('\u{1}', ","),
            events,
            bytes,
            share_percent: 100.0 * bytes as f64 / total.max(1) as f64,
            is_flood: keys > 1 && bytes > total / 2,
        })
        .collect();

    // A key without a rule here is not the fault of these rules.
    floods
        .iter_mut()
        .for_each(|flood| flood.is_flood &= !flood.rules.is_empty());
    floods.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.key.cmp(&b.key)));

    floods
}

fn is_call(kind: Option<RecordType>) -> bool {
    let name = kind.and_then(RecordType::name);
    matches!(name, Some("SYSCALL" | "URINGOP"))
}

/// The value of `key=`: quoted, `(null)`, or hexadecimal when there are several.
fn key_of(body: &[u8]) -> Vec<u8> {
    let Some(field) = text::fields(body)
        .filter(|field| field.name == b"key")
        .last()
    else {
        return Vec::new();
    };
    match field.quoted() {
        Some(key) => key.to_vec(),
        None if field.value == b"(null)" => Vec::new(),
        None => unhex(field.value).unwrap_or_else(|| field.value.to_vec()),
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.chunks(2).map(|pair| match *pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

/// Prints a table of keys, with the rules of a flood below it.
pub(super) fn print(out: &mut impl Write, floods: &[Flood]) -> Result<()> {
    writeln!(
        out,
        "{:>10} {:>14} {:>6}  key (rules)",
        "events", "bytes", "share"
    )?;
    for flood in floods {
        let key = if flood.key.is_empty() {
            "(no key)"
        } else {
            &flood.key
        };
        writeln!(
            out,
            "{:>10} {:>14} {:>5.1}%  {key} ({})",
            flood.events,
            flood.bytes,
            flood.share_percent,
            flood.rules.len()
        )?;
        if flood.is_flood {
            writeln!(
                out,
                "{:>34}more than half of the log [flood]: {}",
                "",
                flood.rules.join(", ")
            )?;
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
type=SYSCALL msg=audit(1.000:1): arch=c000003e syscall=2 comm=\"a key=x\" key=\"opens\"\n\
type=PATH msg=audit(1.000:1): item=0 name=\"/a/long/name/that/makes/it/heavy\"\n\
type=EOE msg=audit(1.000:1): \n\
type=SYSCALL msg=audit(1.000:2): arch=c000003e syscall=2 key=6F6E650174776F\n\
not a record\n\
type=SYSCALL msg=audit(1.001:3): arch=c000003e syscall=2 key=(null)\n\
type=USER_CMD msg=audit(1.001:4): pid=1 msg='key=\"opens\"'\n";

    #[test]
    fn a_log_is_counted_by_key_and_the_rest_of_an_event_counts_with_it() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(LOG.as_bytes()).unwrap();
        let host = rules::StaticHost::new(abi::Arch::X86_64);
        let (commands, _) = rules::parse_file(
            "r",
            "-a always,exit -F arch=b64 -S open -k opens\n\
             -a always,exit -F arch=b64 -S close -k one -k two\n",
            &host,
        );
        let set = rules::RuleSet::apply(commands).unwrap();
        let floods = count(file.path(), &set.rules).unwrap();
        let rows: Vec<_> = floods
            .iter()
            .map(|f| (f.key.as_str(), f.events, f.rules.join(" "), f.is_flood))
            .collect();
        assert_eq!(
            rows,
            [
                ("opens", 1, "r:1".to_owned(), true),
                ("one,two", 1, "r:2".to_owned(), false),
                ("", 1, String::new(), false),
            ]
        );
        let lines: Vec<usize> = LOG.split_inclusive('\n').map(str::len).collect();
        assert_eq!(floods[0].bytes as usize, lines[..3].iter().sum::<usize>());
        assert_eq!(floods[1].bytes as usize, lines[3]);
    }
}
