//! Values with the most events: hits, failures, first and last time by one field, or by two.

use super::names::Names;
use super::Request;
use crate::event::EventView;
use crate::facts::{Facts, Wanted, NO_ID, NO_LOGIN};
use crate::Dialect;
use std::borrow::Cow;
use std::collections::HashMap;

/// Bytes of values that are kept. Events with further values are only counted.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of a row beside its texts.
const ROW_BYTES: usize = 128;

/// Field that rows are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each is the field of that name
pub enum Field {
    Exe,
    Comm,
    Key,
    Uid,
    Auid,
    Pid,
    Session,
    Syscall,
    File,
    Host,
    Node,
    Terminal,
    Type,
    Unit,
    Container,
}

const FIELDS: [(&str, Field); 15] = [
    ("exe", Field::Exe),
    ("comm", Field::Comm),
    ("key", Field::Key),
    ("uid", Field::Uid),
    ("auid", Field::Auid),
    ("pid", Field::Pid),
    ("ses", Field::Session),
    ("syscall", Field::Syscall),
    ("file", Field::File),
    ("host", Field::Host),
    ("node", Field::Node),
    ("terminal", Field::Terminal),
    ("type", Field::Type),
    ("unit", Field::Unit),
    ("container", Field::Container),
];

impl Field {
    /// The field of that name.
    pub fn from_name(name: &str) -> Option<Field> {
        let found = FIELDS.iter().find(|(its, _)| *its == name)?;
        Some(found.1)
    }

    /// Name of the field.
    pub fn name(self) -> &'static str {
        FIELDS
            .iter()
            .find(|(_, field)| *field == self)
            .map_or("", |(name, _)| name)
    }

    /// The names of all fields, with commas.
    pub fn names() -> String {
        FIELDS.map(|(name, _)| name).join(", ")
    }

    /// Marks the facts that the field needs as wanted.
    pub(super) fn want(self, wanted: &mut Wanted) {
        let which = match self {
            Field::Exe => &mut wanted.exe,
            Field::Comm => &mut wanted.comm,
            Field::Key => &mut wanted.keys,
            Field::Uid => &mut wanted.uid,
            Field::Auid => &mut wanted.auid,
            Field::Pid => &mut wanted.pid,
            Field::Session => &mut wanted.session,
            Field::Syscall => &mut wanted.arch,
            Field::File => &mut wanted.files,
            Field::Host => &mut wanted.host,
            Field::Terminal => &mut wanted.terminal,
            Field::Node | Field::Type | Field::Unit | Field::Container => return,
        };

        *which = true;
    }

    /// The values that an event has.
    pub(super) fn values<'e>(
        self,
        event: EventView<'e>,
        facts: &'e Facts<'e>,
        names: &mut Names,
    ) -> Vec<Cow<'e, [u8]>> {
        let one = |text: &'e Option<Cow<'e, [u8]>>| {
            text.iter().map(|text| Cow::Borrowed(&**text)).collect()
        };
        let several = |texts: &'e Option<Vec<Cow<'e, [u8]>>>| {
            let texts = texts.iter().flatten().map(|text| Cow::Borrowed(&**text));
            texts.filter(|text| **text != b"(null)"[..]).collect()
        };
        let owned = |is_there: bool, text: Vec<u8>| {
            if is_there {
                vec![Cow::Owned(text)]
            } else {
                Vec::new()
            }
        };

        match self {
            Field::Exe => one(&facts.exe),
            Field::Comm => one(&facts.comm),
            Field::Host => one(&facts.host),
            Field::Terminal => one(&facts.terminal),
            Field::Key => several(&facts.keys),
            Field::File => several(&facts.files.names),
            Field::Node => event.node().map(Cow::Borrowed).into_iter().collect(),
            Field::Uid => {
                let name = names.user_of(facts.ids.uid, Some((event, &b"uid"[..])));
                owned(facts.ids.uid != NO_ID, name)
            }
            Field::Auid => {
                let name = names.user_of(facts.ids.auid, Some((event, &b"auid"[..])));
                owned(facts.ids.auid != NO_LOGIN, name)
            }
            Field::Pid => owned(facts.ids.pid != -1, facts.ids.pid.to_string().into_bytes()),
            Field::Session => {
                let session = (facts.ids.session as i32).to_string().into_bytes();
                owned(facts.ids.session != NO_LOGIN, session)
            }
            Field::Syscall => owned(facts.call.arch != 0, names.syscall(event, facts)),
            Field::Type => {
                let name = match event.kind() {
                    -1 => event
                        .records()
                        .next()
                        .map_or(Vec::new(), |record| record.type_name().to_vec()),
                    kind => super::list::type_name(kind, crate::Dialect::Own),
                };
                owned(!name.is_empty(), name)
            }
            Field::Unit => enriched(event, b"unit"),
            Field::Container => enriched(event, b"container"),
        }
    }
}

/// The workload that ENRICHED gives to an event.
fn enriched<'e>(event: EventView<'e>, field: &[u8]) -> Vec<Cow<'e, [u8]>> {
    let found = event
        .records()
        .filter_map(|record| record.names)
        .find_map(|names| crate::facts::enriched_name(names, field, Dialect::Own));
    found.map(Cow::Owned).into_iter().collect()
}

/// Time of an event in seconds since 1970 and milliseconds.
pub type Time = (u64, u32);

/// A row of the report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Value of each field; `None` where the event has none.
    pub values: Vec<Option<Vec<u8>>>,
    /// Events.
    pub hits: u64,
    /// Events of them that failed.
    pub failures: u64,
    /// Time of the first.
    pub first: Time,
    /// Time of the last.
    pub last: Time,
}

/// The rows with most hits, and counts of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows {
    /// Most hits first.
    pub rows: Vec<Row>,
    /// Rows that are left out.
    pub other_rows: u64,
    /// Hits of the rows that are left out.
    pub other_hits: u64,
    /// Hits of values for which there was no room; their rows may be missing.
    pub unkept_hits: u64,
}

/// Counts by one field or two.
pub struct Top {
    request: Request,
    fields: Vec<Field>,
    wanted: Wanted,
    names: Names,
    rows: HashMap<Vec<Option<Vec<u8>>>, Row, foldhash::fast::RandomState>,
    bytes: usize,
    unkept_hits: u64,
}

impl Top {
    /// An empty report. `request` says which events count.
    pub fn new(request: Request, fields: Vec<Field>) -> Top {
        let mut wanted = Wanted {
            success: true,
            ..Wanted::default()
        };
        for field in &fields {
            field.want(&mut wanted);
        }

        Top {
            names: Names::new(&request),
            request,
            fields,
            wanted,
            rows: HashMap::default(),
            bytes: 0,
            unkept_hits: 0,
        }
    }

    /// Counts an event.
    pub fn add(&mut self, event: EventView<'_>) {
        let Some(facts) = Facts::read_view(event, &self.wanted, self.request.dialect) else {
            return;
        };
        if !self.request.takes(event, &facts) {
            return;
        }

        let mut keys: Vec<Vec<Option<Vec<u8>>>> = vec![Vec::new()];
        for field in &self.fields {
            let mut values = field.values(event, &facts, &mut self.names);
            values.sort_unstable();
            values.dedup();
            let mut values: Vec<_> = values
                .into_iter()
                .map(|value| Some(value.into_owned()))
                .collect();
            if values.is_empty() {
                values.push(None);
            }
            let both = keys.iter().flat_map(|key| {
                values.iter().map(|value| {
                    let mut key = key.clone();
                    key.push(value.clone());
                    key
                })
            });
            keys = both.collect();
        }

        // Events without the first field are not what is asked about.
        keys.retain(|key| key.first().is_some_and(Option::is_some));
        let time = (event.time().0, event.time().1);
        for key in keys {
            self.count(key, time, facts.call.success == 0);
        }
    }

    fn count(&mut self, key: Vec<Option<Vec<u8>>>, time: Time, is_failure: bool) {
        if let Some(row) = self.rows.get_mut(&key) {
            row.hits += 1;
            row.failures += u64::from(is_failure);
            row.first = row.first.min(time);
            row.last = row.last.max(time);
            return;
        }

        if !self.takes(&key) {
            self.unkept_hits += 1;
            return;
        }

        let row = Row {
            values: key.clone(),
            hits: 1,
            failures: is_failure.into(),
            first: time,
            last: time,
        };
        self.rows.insert(key, row);
    }

    /// Adds what another part of the log counted.
    pub fn merge(&mut self, other: Top) {
        self.unkept_hits += other.unkept_hits;
        let mut rows: Vec<_> = other.rows.into_iter().collect();
        // Whatever has room is the same with any number of threads.
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));

        for (key, row) in rows {
            if let Some(mine) = self.rows.get_mut(&key) {
                mine.hits += row.hits;
                mine.failures += row.failures;
                mine.first = mine.first.min(row.first);
                mine.last = mine.last.max(row.last);
            } else if self.takes(&key) {
                self.rows.insert(key, row);
            } else {
                self.unkept_hits += row.hits;
            }
        }
    }

    /// Whether there is room for another row. Counts it if there is.
    fn takes(&mut self, key: &[Option<Vec<u8>>]) -> bool {
        let text_bytes: usize = key.iter().flatten().map(Vec::len).sum();
        let bytes = self.bytes + text_bytes * 2 + ROW_BYTES;
        let has_room = bytes <= BYTES_MAX;
        if has_room {
            self.bytes = bytes;
        }
        has_room
    }

    /// The fields.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The `rows_max` rows with the most hits; among equal hits, the earliest first.
    pub fn finish(self, rows_max: usize) -> Rows {
        let mut rows: Vec<Row> = self.rows.into_values().collect();
        rows.sort_unstable_by(|a, b| {
            let tie = || (a.first, &a.values).cmp(&(b.first, &b.values));
            b.hits.cmp(&a.hits).then_with(tie)
        });
        let others = rows.split_off(rows.len().min(rows_max));
        Rows {
            rows,
            other_rows: others.len() as u64,
            other_hits: others.iter().map(|row| row.hits).sum(),
            unkept_hits: self.unkept_hits,
        }
    }
}
