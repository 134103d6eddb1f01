//! The newest events, as numbers of labels. Memory is bounded.

use query::row::Row;
use query::{Event, NO_LOGIN};
use std::collections::{HashMap, VecDeque};

/// Events that are kept.
pub(super) const EVENTS_MAX: usize = 100_000;
/// Labels per kept event; with more, labels that no event has are forgotten.
const LABELS_PER_EVENT: usize = 4;
/// Files of an event that are kept.
const FILES_MAX: usize = 4;
/// Bytes of records that are kept, of the newest events.
const RECORDS_BYTES_MAX: usize = 64 << 20;
/// Bytes of a label that are kept.
const LABEL_BYTES_MAX: usize = 400;

/// Byte between a record and its interpretations.
const NAMES_SEPARATOR: u8 = 0x1d;

/// Kind of lines in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Key,
    User,
    Unit,
    Process,
    File,
    Event,
}

/// The views in the order of their numbers.
pub(super) const VIEWS: [View; 6] = [
    View::Key,
    View::User,
    View::Unit,
    View::Process,
    View::File,
    View::Event,
];

impl View {
    pub(super) fn name(self) -> &'static str {
        match self {
            View::Key => "Key",
            View::User => "User",
            View::Unit => "Unit",
            View::Process => "Process",
            View::File => "File",
            View::Event => "Events",
        }
    }

    /// View that Enter leads to.
    pub(super) fn below(self) -> View {
        match self {
            View::Key => View::User,
            View::User | View::Unit => View::Process,
            View::Process => View::File,
            View::File | View::Event => View::Event,
        }
    }
}

/// An event.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) time_ms: u64,
    pub(super) serial: u64,
    pub(super) is_failure: bool,
    /// Call, or type of the first record.
    pub(super) what: u32,
    /// Keys, user, unit, process, files: `ends` says where each ends.
    labels: Box<[u32]>,
    ends: [u8; 5],
    /// The lines of its records; `None` if newer ones took their room.
    records: Option<Box<[u8]>>,
}

impl Item {
    /// The numbers of its labels in a view.
    pub(super) fn labels(&self, view: View) -> &[u32] {
        let at = match view {
            View::Event => return &[],
            _ => view as usize,
        };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.labels[usize::from(start)..usize::from(self.ends[at])]
    }

    /// The lines of its records as a terminal shows them, interpretations below their record. `None` if they are not kept.
    pub(super) fn records(&self) -> Option<Vec<String>> {
        let records = self.records.as_deref()?;
        let mut shown = Vec::new();
        for line in records.split(|byte| *byte == b'\n') {
            let mut parts = line.split(|byte| *byte == NAMES_SEPARATOR);
            shown.extend(parts.next().filter(|text| !text.is_empty()).map(printable));
            shown.extend(parts.map(|names| format!("    {}", printable(names))));
        }
        Some(shown)
    }
}

/// The newest events, and their labels.
#[derive(Debug)]
pub(super) struct Events {
    most: usize,
    items: VecDeque<Item>,
    /// Number of the oldest items whose records are not kept.
    without_records: usize,
    records_bytes: usize,
    labels: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// Number of all events seen, including those no longer kept.
    pub(super) seen: u64,
    pub(super) failed: u64,
    /// Time of the latest event.
    pub(super) last_ms: u64,
}

impl Events {
    /// Keeps at most `most` events.
    pub(super) fn new(most: usize) -> Events {
        Events {
            most,
            items: VecDeque::new(),
            without_records: 0,
            records_bytes: 0,
            labels: Vec::new(),
            numbers: HashMap::new(),
            seen: 0,
            failed: 0,
            last_ms: 0,
        }
    }

    /// Adds an event, and forgets the oldest if there are too many.
    pub(super) fn add(&mut self, event: &Event) {
        let row = Row::read(event);
        let mut labels = Vec::new();
        let mut ends = [0; 5];
        let keys = row
            .facts
            .keys
            .iter()
            .flatten()
            .filter(|key| ***key != *b"(null)");
        labels.extend(keys.take(32).map(|key| self.number(key)));

        ends[0] = labels.len() as u8;
        labels.push(self.number(&user(&row)));
        ends[1] = labels.len() as u8;
        labels.extend(row.unit.as_deref().map(|unit| self.number(unit)));
        ends[2] = labels.len() as u8;
        labels.extend(process(&row).map(|process| self.number(&process)));
        ends[3] = labels.len() as u8;
        let files = Row::paths(event);
        labels.extend(
            files
                .iter()
                .take(FILES_MAX)
                .map(|file| self.number(&file.path)),
        );

        ends[4] = labels.len() as u8;
        let kind = u32::try_from(row.kind).ok().and_then(abi::record_type_name);
        let what = row.call.as_deref().or(kind).unwrap_or("(unknown)");
        let what = self.number(what.as_bytes());
        self.seen += 1;
        self.failed += u64::from(row.is_failure());
        self.last_ms = self.last_ms.max(row.time_ms);

        self.items.push_back(Item {
            time_ms: row.time_ms,
            serial: row.serial,
            is_failure: row.is_failure(),
            what,
            labels: labels.into(),
            ends,
            records: Some(event.text().into()),
        });

        self.records_bytes += event.text().len();
        while self.records_bytes > RECORDS_BYTES_MAX && self.without_records < self.items.len() {
            let oldest = self.items[self.without_records].records.take();
            self.records_bytes -= oldest.map_or(0, |records| records.len());
            self.without_records += 1;
        }

        if self.items.len() > self.most {
            self.forget(1);
        }
        if self.labels.len() > self.most.saturating_mul(LABELS_PER_EVENT) {
            self.forget_labels();
        }
    }

    /// The text of a label.
    pub(super) fn label(&self, number: u32) -> &str {
        self.labels.get(number as usize).map_or("", |label| label)
    }

    pub(super) fn newest(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().rev()
    }

    /// Events that are kept.
    pub(super) fn kept(&self) -> usize {
        self.items.len()
    }

    /// Labels that are kept.
    #[cfg(test)]
    pub(super) fn labels(&self) -> usize {
        self.labels.len()
    }

    /// The number of a label that an event has.
    pub(super) fn find(&self, label: &str) -> Option<u32> {
        self.numbers.get(label).copied()
    }

    fn number(&mut self, label: &[u8]) -> u32 {
        let label = printable(&label[..label.len().min(LABEL_BYTES_MAX)]);
        if let Some(number) = self.numbers.get(&*label) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.labels.push(label.clone().into());
        self.numbers.insert(label.into(), number);
        number
    }

    /// Forgets the oldest items.
    fn forget(&mut self, count: usize) {
        let records = self.items.drain(..count).filter_map(|item| item.records);
        self.records_bytes -= records.map(|records| records.len()).sum::<usize>();
        self.without_records = self.without_records.saturating_sub(count);
    }

    /// Gives new numbers to the labels that events have, and forgets the others.
    fn forget_labels(&mut self) {
        // If each event has labels of its own, all of them may be in use.
        self.forget(self.items.len() / 2);
        let mut used = vec![false; self.labels.len()];
        for item in &self.items {
            for label in item.labels.iter().chain([&item.what]) {
                used[*label as usize] = true;
            }
        }

        let mut old = std::mem::take(&mut self.labels);
        self.numbers.clear();
        let mut numbers = vec![0; old.len()];
        for (at, label) in old.iter_mut().enumerate().filter(|(at, _)| used[*at]) {
            numbers[at] = self.labels.len() as u32;
            let label = std::mem::take(label);
            self.numbers.insert(label.clone(), numbers[at]);
            self.labels.push(label);
        }

        for item in &mut self.items {
            for label in item.labels.iter_mut() {
                *label = numbers[*label as usize];
            }
            item.what = numbers[item.what as usize];
        }
    }
}

fn user(row: &Row<'_>) -> Vec<u8> {
    match (row.facts.ids.auid, &row.auid_name) {
        (NO_LOGIN.., _) => b"no login".to_vec(),
        (_, Some(name)) => name.to_vec(),
        (auid, None) => format!("auid {auid}").into_bytes(),
    }
}

fn process(row: &Row<'_>) -> Option<Vec<u8>> {
    let name = row.facts.exe.as_deref().or(row.facts.comm.as_deref());
    let name = name.unwrap_or(b"(no program)");
    (row.facts.ids.pid >= 0)
        .then(|| [format!("{:>7} ", row.facts.ids.pid).as_bytes(), name].concat())
}

/// Text that a terminal shows as it is: no control characters.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let shown = |character: char| {
        if character.is_control() {
            '\u{fffd}'
        } else {
            character
        }
    };
    text.chars().map(shown).collect()
}
