//! The events that a search finds are those that a slow reader finds, which is written here for this: in every form of
//! log, for questions of every kind.
//!
//! `TARSIER_LOGS=N` takes so many logs; by default there are few.

mod made;
mod questions;

use crate::made::search;
use made::{records, Numbers, Record, HOSTS};
use questions::Question;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Host, milliseconds and serial number of an event.
type Id = (String, u64, u64);

/// Most milliseconds by which a record comes late.
const LATE_MS: u64 = 10_000;

/// An event, and what its records say.
pub(crate) struct Told {
    id: Id,
    kinds: Vec<&'static str>,
    /// Fields of each record.
    records: Vec<Vec<(String, String)>>,
}

impl Told {
    /// Whether a record has a field of one of these names with a value that `is_it` takes.
    fn has(&self, names: &[&str], is_it: impl Fn(&str) -> bool) -> bool {
        let mut fields = self.records.iter().flatten();
        fields.any(|(name, value)| names.contains(&name.as_str()) && is_it(value))
    }

    /// The fields of the record of this type.
    fn of(&self, kind: &str, name: &str) -> Option<&str> {
        let at = self.kinds.iter().position(|own| *own == kind)?;
        let field = self.records[at].iter().find(|(own, _)| own == name);
        field.map(|(_, value)| value.as_str())
    }
}

fn events(records: &[Record]) -> Vec<Told> {
    let mut events: BTreeMap<Id, Told> = BTreeMap::new();
    for record in records {
        let event = events.entry(record.event.clone()).or_insert_with(|| Told {
            id: record.event.clone(),
            kinds: Vec::new(),
            records: Vec::new(),
        });
        event.kinds.push(record.kind);
        event.records.push(record.fields());
    }
    events.into_values().collect()
}

fn text<'r>(records: impl Iterator<Item = &'r Record>) -> String {
    records.map(|record| record.line.as_str()).collect()
}

/// What a program makes of a file; false if it is not there.
fn compressed(program: &str, text: &str, path: &Path) -> bool {
    let plain = path.with_extension("plain");
    fs::write(&plain, text).expect("written");
    let to = fs::File::create(path).expect("made");
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(&plain)
        .stdout(to)
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The forms of a log: a name, and the words that give it to a search.
fn forms(
    dir: &TempDir,
    records: &[Record],
    numbers: &mut Numbers,
) -> Vec<(&'static str, Vec<String>)> {
    let mut forms = Vec::new();
    let path = |name: &str| -> PathBuf { dir.path().join(name) };
    let input = |path: &Path| vec!["-if".to_owned(), path.to_str().expect("text").to_owned()];
    let whole = text(records.iter());

    fs::write(path("plain.log"), &whole).expect("written");
    forms.push(("plain", input(&path("plain.log"))));
    for (name, program) in [("gz", "gzip"), ("zst", "zstd")] {
        if compressed(program, &whole, &path(name)) {
            forms.push((name, input(&path(name))));
        } else {
            println!("skipped: {name}: no {program}(1)");
        }
    }

    // As a collector gets it: each record late by its own time, but behind those before it in its event.
    let mut last: BTreeMap<&Id, u64> = BTreeMap::new();
    let mut late = Vec::new();
    for record in records {
        let at_ms = record.at_ms + numbers.below(LATE_MS);
        let before = last.entry(&record.event).or_insert(0);
        *before = at_ms.max(*before);
        late.push((*before, record));
    }
    late.sort_by_key(|(at_ms, _)| *at_ms);
    fs::write(
        path("late.log"),
        text(late.iter().map(|(_, record)| *record)),
    )
    .expect("written");
    forms.push(("shuffled", input(&path("late.log"))));

    // Two files of each host, in a directory for each.
    for host in HOSTS {
        let own: Vec<&Record> = records
            .iter()
            .filter(|record| record.event.0 == host)
            .collect();
        let event = own.get(own.len() / 2).map(|record| record.event.clone());
        let middle = own
            .iter()
            .position(|record| Some(&record.event) == event.as_ref());
        let (first, second) = own.split_at(middle.unwrap_or(0));
        let host_dir = path("hosts").join(host);
        fs::create_dir_all(&host_dir).expect("made");
        fs::write(host_dir.join("audit.log.1"), text(first.iter().copied())).expect("written");
        fs::write(host_dir.join("audit.log"), text(second.iter().copied())).expect("written");
    }
    forms.push(("split", input(&path("hosts"))));
    forms
}

/// The events that a search finds, each with the number of its records.
fn found(words: &[String]) -> BTreeMap<Id, usize> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = search(&words).output().expect("it runs");
    let mut events = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let host = line
            .strip_prefix("node=")
            .and_then(|rest| rest.split(' ').next());
        let stamp = line
            .split_once("msg=audit(")
            .and_then(|(_, rest)| rest.split_once(')'));
        let (time, serial) = stamp
            .expect("a stamp")
            .0
            .split_once(':')
            .expect("a serial number");
        let at_ms = time.replace('.', "").parse().expect("a time");
        let id = (
            host.expect("a host").to_owned(),
            at_ms,
            serial.parse().expect("a number"),
        );
        *events.entry(id).or_insert(0) += 1;
    }
    let status = output.status.code();
    let expected = if events.is_empty() { 1 } else { 0 };
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(status, Some(expected), "{words:?}: {error}");
    events
}

fn check(seed: u64, questions: &[Question]) -> usize {
    let dir = TempDir::new().expect("a directory");
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let count = 40 + numbers.below(120);
    let records = records(&mut numbers, count);
    let events = events(&records);
    let mut answers = 0;
    for (form, input) in forms(&dir, &records, &mut numbers) {
        for question in questions {
            let words = [&input[..], &["-r".to_owned()], &question.words[..]].concat();
            let wanted: BTreeMap<Id, usize> = events
                .iter()
                .filter(|event| (question.is_asked_for)(event))
                .map(|event| (event.id.clone(), event.kinds.len()))
                .collect();
            let found = found(&words);
            let seen: BTreeSet<_> = found.keys().collect();
            let missing = wanted.keys().filter(|id| !seen.contains(id)).count();
            assert_eq!(
                found,
                wanted,
                "seed {seed}, {form}, {:?}: {missing} missing; {}",
                question.words,
                dir.path().display()
            );
            answers += found.len();
        }
    }
    answers
}

#[test]
fn every_form_of_a_log_gives_the_events_of_a_slow_reader() {
    let logs = std::env::var("TARSIER_LOGS")
        .ok()
        .and_then(|logs| logs.parse().ok());
    let questions = questions::all();
    assert!(questions.len() >= 60, "{}", questions.len());
    let mut answers = 0;
    for seed in 1..=logs.unwrap_or(1) {
        answers += check(seed, &questions);
    }
    assert!(answers > 1000, "{answers} events were found");
}
