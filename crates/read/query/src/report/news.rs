//! Values that a log has since a time and did not have before: programs, users, destinations and units.

use super::names::Names;
use super::top::{Field, Time};
use super::Request;
use crate::event::EventView;
use crate::facts::{Facts, Wanted};
use std::collections::HashMap;

/// Length in seconds of the end of the log whose values are new, if no time is given.
pub const WEEK_S: u64 = 7 * 24 * 60 * 60;
/// Bytes of values that are kept.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of an entry beside its text.
const ENTRY_BYTES: usize = 96;

/// Fields whose values are noted, and their names in the report.
const WHAT: [(&str, Field); 4] = [
    ("program", Field::Exe),
    ("user", Field::Auid),
    ("destination", Field::Host),
    ("unit", Field::Unit),
];

/// Something that is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct New {
    /// `program`, `user`, `destination` or `unit`.
    pub what: &'static str,
    /// Value that is new.
    pub value: Vec<u8>,
    /// Number of events with it.
    pub hits: u64,
    /// Number of those events that failed.
    pub failures: u64,
    /// Time of the first.
    pub first: Time,
    /// Time of the last.
    pub last: Time,
}

/// Values that are new since a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// New values in the order in which they appeared.
    pub news: Vec<New>,
    /// Start of the new values, in seconds since 1970.
    pub since_s: u64,
    /// Time of the first event, if there is one. If it is not before `since_s`, everything is new.
    pub log_first: Option<Time>,
    /// Events with values for which there was no room.
    pub unkept_hits: u64,
}

/// Notes when everything appeared.
pub struct Appearances {
    request: Request,
    wanted: Wanted,
    names: Names,
    seen: HashMap<(&'static str, Vec<u8>), New, foldhash::fast::RandomState>,
    bytes: usize,
    unkept_hits: u64,
    first: Option<Time>,
    last: Time,
}

impl Appearances {
    /// A report before its first event. `request` says which events count.
    pub fn new(request: Request) -> Appearances {
        let mut wanted = Wanted {
            success: true,
            ..Wanted::default()
        };
        for (_, field) in WHAT {
            field.want(&mut wanted);
        }

        Appearances {
            names: Names::new(&request),
            request,
            wanted,
            seen: HashMap::default(),
            bytes: 0,
            unkept_hits: 0,
            first: None,
            last: (0, 0),
        }
    }

    /// Notes what an event has.
    pub fn add(&mut self, event: EventView<'_>) {
        let time = (event.time().0, event.time().1);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
        let Some(facts) = Facts::read_view(event, &self.wanted, self.request.dialect) else {
            return;
        };

        if !self.request.takes(event, &facts) {
            return;
        }

        for (what, field) in WHAT {
            if field == Field::Auid && facts.ids.auid == crate::NO_ID {
                continue;
            }
            for value in field.values(event, &facts, &mut self.names) {
                if !matches!(&*value, b"?" | b"(null)") {
                    self.note(what, value.into_owned(), time, facts.call.success == 0);
                }
            }
        }
    }

    /// Adds what another part of the log has.
    pub fn merge(&mut self, other: Appearances) {
        self.first = match (self.first, other.first) {
            (Some(mine), Some(its)) => Some(mine.min(its)),
            (mine, its) => mine.or(its),
        };
        self.last = self.last.max(other.last);
        self.unkept_hits += other.unkept_hits;
        let mut seen: Vec<_> = other.seen.into_iter().collect();

        // Whatever has room is the same with any number of threads.
        seen.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (key, new) in seen {
            if let Some(mine) = self.seen.get_mut(&key) {
                mine.hits += new.hits;
                mine.failures += new.failures;
                mine.first = mine.first.min(new.first);
                mine.last = mine.last.max(new.last);
            } else if self.takes(&key.1) {
                self.seen.insert(key, new);
            } else {
                self.unkept_hits += new.hits;
            }
        }
    }

    /// Whether there is room for another value. Counts it if there is.
    fn takes(&mut self, value: &[u8]) -> bool {
        let bytes = self.bytes + value.len() * 2 + ENTRY_BYTES;
        let has_room = bytes <= BYTES_MAX;
        if has_room {
            self.bytes = bytes;
        }
        has_room
    }

    fn note(&mut self, what: &'static str, value: Vec<u8>, time: Time, is_failure: bool) {
        let key = (what, value);
        if let Some(seen) = self.seen.get_mut(&key) {
            seen.hits += 1;
            seen.failures += u64::from(is_failure);
            seen.first = seen.first.min(time);
            seen.last = seen.last.max(time);
            return;
        }

        if !self.takes(&key.1) {
            self.unkept_hits += 1;
            return;
        }

        let new = New {
            what,
            value: key.1.clone(),
            hits: 1,
            failures: is_failure.into(),
            first: time,
            last: time,
        };

        self.seen.insert(key, new);
    }

    /// Values that appeared at `since_s` or later; `None` is a week before the last event.
    pub fn finish(self, since_s: Option<u64>) -> News {
        let since_s = since_s.unwrap_or(self.last.0.saturating_sub(WEEK_S));
        let mut news: Vec<New> = self
            .seen
            .into_values()
            .filter(|new| new.first.0 >= since_s)
            .collect();
        news.sort_unstable_by(|a, b| (a.first, a.what, &a.value).cmp(&(b.first, b.what, &b.value)));
        News {
            news,
            since_s,
            log_first: self.first,
            unkept_hits: self.unkept_hits,
        }
    }
}
