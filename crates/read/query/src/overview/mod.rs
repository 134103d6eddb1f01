//! What a responder and an auditor ask first: who logged in from where, who became another user, which accounts, audit
//! rules and settings changed, what SELinux and AppArmor denied, which programs are new, and what each host's log lacks.
//!
//! Memory is bounded: rows for which there is no room are only counted. Parts of a log can be merged; merged in the
//! order of the log, the same parts give the same result.

mod read;

use crate::event::EventView;
use crate::facts::{Facts, Wanted};
use crate::summary::{Count, Serials};
use crate::Dialect;
use std::collections::HashMap;

/// Facts that the table of programs needs.
const EXE: Wanted = read::EXE;
/// Seconds of the end of the log in which programs count as new.
pub const DAY_S: u64 = 24 * 60 * 60;
/// Bytes that a section's rows may take.
const BYTES_MAX: usize = 8 << 20;
/// Bytes of a row beside its texts.
const ROW_BYTES: usize = 160;
/// Serial numbers that wait, so that they are followed in the order of the log.
const SERIALS: usize = 4096;

/// A section: its name, its title, and the columns of its rows, of which `host` is the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Name in CSV and JSON.
    pub name: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Columns behind the counts.
    pub columns: &'static [&'static str],
}

/// The sections, in the order in which they are shown.
pub const SECTIONS: [Section; 7] = [
    Section {
        name: "logins",
        title: "Logins by address and result",
        columns: &["host", "address", "account", "program", "record", "result"],
    },
    Section {
        name: "elevations",
        title: "sudo and su",
        columns: &["host", "user", "program", "account", "command", "result"],
    },
    Section {
        name: "accounts",
        title: "Accounts and groups changed",
        columns: &["host", "user", "record", "account", "operation", "result"],
    },
    Section {
        name: "audit",
        title: "Audit rules, audit daemon and security module changed",
        columns: &["host", "user", "record", "change", "result"],
    },
    Section {
        name: "denials",
        title: "Denied by SELinux and AppArmor",
        columns: &[
            "host",
            "module",
            "subject",
            "permissions",
            "class",
            "object",
            "program",
        ],
    },
    Section {
        name: "programs",
        title: "Programs new in the last 24 hours of the log",
        columns: &["host", "program"],
    },
    Section {
        name: "hosts",
        title: "Hosts: gaps and losses",
        columns: &["host", "missing", "gaps", "lost"],
    },
];

/// Index into [`SECTIONS`].
const LOGINS: usize = 0;
/// Index into [`SECTIONS`].
const ELEVATIONS: usize = 1;
/// Index into [`SECTIONS`].
const ACCOUNTS: usize = 2;
/// Index into [`SECTIONS`].
const AUDIT: usize = 3;
/// Index into [`SECTIONS`].
const DENIALS: usize = 4;
/// Index into [`SECTIONS`].
const PROGRAMS: usize = 5;
/// Index into [`SECTIONS`].
const HOSTS: usize = 6;

/// Seconds since 1970 and milliseconds.
pub type Time = (u64, u32);

/// Values of a row; `None` where the log does not say.
pub type Values = Vec<Option<Box<[u8]>>>;

/// How often a row occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hits {
    /// Number of events.
    pub hits: u64,
    /// Number of those that failed.
    pub failures: u64,
    /// Time of the first.
    pub first: Time,
    /// Time of the last.
    pub last: Time,
}

impl Hits {
    /// One event.
    fn of(event: EventView<'_>, is_failure: bool) -> Hits {
        let (sec, msec, _) = event.time();
        Hits {
            hits: 1,
            failures: is_failure.into(),
            first: (sec, msec),
            last: (sec, msec),
        }
    }

    fn merge(&mut self, other: Hits) {
        self.hits += other.hits;
        self.failures += other.failures;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }
}

impl From<Count> for Hits {
    fn from(count: Count) -> Hits {
        let time = |time_ms: u64| (time_ms / 1000, (time_ms % 1000) as u32);
        Hits {
            hits: count.events,
            failures: count.failed,
            first: time(count.first_ms),
            last: time(count.last_ms),
        }
    }
}

/// The rows of a section.
#[derive(Debug, Default)]
struct Rows {
    rows: HashMap<Values, Hits, foldhash::fast::RandomState>,
    bytes: usize,
    unkept_hits: u64,
}

impl Rows {
    fn add(&mut self, values: Values, hits: Hits) {
        if let Some(known) = self.rows.get_mut(&values) {
            return known.merge(hits);
        }
        let texts = values.iter().flatten().map(|text| text.len());
        let bytes = self.bytes + ROW_BYTES + texts.sum::<usize>();
        if bytes > BYTES_MAX {
            self.unkept_hits += hits.hits;
            return;
        }
        self.bytes = bytes;
        self.rows.insert(values, hits);
    }

    fn merge(&mut self, other: Rows) {
        self.unkept_hits += other.unkept_hits;
        let mut rows: Vec<_> = other.rows.into_iter().collect();
        // Whatever has room is the same in every run.
        rows.sort_unstable_by(|a, b| (a.1.first, &a.0).cmp(&(b.1.first, &b.0)));
        for (values, hits) in rows {
            self.add(values, hits);
        }
    }
}

/// Events and losses of a host.
#[derive(Debug, Clone, Copy)]
struct Host {
    hits: Hits,
    lost: u64,
}

/// Collects the sections.
#[derive(Debug, Default)]
pub struct Overview {
    rows: [Rows; PROGRAMS + 1],
    hosts: HashMap<Box<[u8]>, Host, foldhash::fast::RandomState>,
    /// Host, serial number and milliseconds of events, as they come.
    waiting: Vec<(Box<[u8]>, u64, u64)>,
    serials: Serials,
    first: Option<Time>,
    last: Time,
}

/// Rows of a section, as they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// The section.
    pub section: Section,
    /// Rows: of logins and denials those with the most events first, hosts in the order of their names, all others in
    /// the order of time.
    pub rows: Vec<(Values, Hits)>,
    /// Events whose rows had no room.
    pub unkept_hits: u64,
}

/// All sections of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The sections, in the order of [`SECTIONS`].
    pub sections: Vec<Shown>,
    /// Start of the time in which programs count as new, in seconds since 1970.
    pub new_since_s: u64,
    /// Whether the log begins before that time. If not, no program is known to be new.
    pub has_before: bool,
}

impl Overview {
    /// Takes an event.
    pub fn add(&mut self, event: EventView<'_>) {
        let facts = Facts::read_view(event, &EXE, Dialect::Own).unwrap_or_default();
        if let Some(exe) = facts.exe.as_deref() {
            let hits = Hits::of(event, facts.call.success == 0);
            self.add_program(event.node(), exe, hits);
        }
        self.add_but_program(event);
    }

    /// Takes events of a program.
    pub fn add_program(&mut self, node: Option<&[u8]>, exe: &[u8], hits: Hits) {
        let values = vec![read::boxed(node), read::boxed(Some(exe))];
        self.rows[PROGRAMS].add(values, hits);
    }

    /// Takes an event whose program goes to [`Overview::add_program`].
    pub fn add_but_program(&mut self, event: EventView<'_>) {
        let (sec, msec, serial) = event.time();
        let time = (sec, msec);
        self.first = Some(self.first.map_or(time, |first| first.min(time)));
        self.last = self.last.max(time);
        let mut lost = 0;
        let rows = &mut self.rows;

        let mut put = |section: usize, values: Values, is_failure: bool| {
            rows[section].add(values, Hits::of(event, is_failure));
        };
        read::read(event, &mut lost, &mut put);

        let node = event.node().unwrap_or_default();
        let hits = Hits::of(event, false);
        self.host(node, Host { hits, lost });

        let time_ms = sec.saturating_mul(1000).saturating_add(msec.into());
        self.waiting.push((node.into(), serial, time_ms));
    }

    fn host(&mut self, node: &[u8], host: Host) {
        let has_room = self.hosts.len() < SERIALS;
        match self.hosts.get_mut(node) {
            Some(known) => {
                known.hits.merge(host.hits);
                known.lost = known.lost.saturating_add(host.lost);
            }
            // Beyond these, serial numbers are not followed either.
            None if has_room => drop(self.hosts.insert(node.into(), host)),
            None => {}
        }
    }

    /// Adds the next part of the log.
    pub fn merge(&mut self, other: Overview) {
        self.follow();
        self.first = match (self.first, other.first) {
            (Some(mine), Some(its)) => Some(mine.min(its)),
            (mine, its) => mine.or(its),
        };
        self.last = self.last.max(other.last);
        for (mine, its) in self.rows.iter_mut().zip(other.rows) {
            mine.merge(its);
        }

        let mut hosts: Vec<_> = other.hosts.into_iter().collect();
        hosts.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (node, host) in hosts {
            self.host(&node, host);
        }

        self.waiting = other.waiting;
        self.follow();
    }

    /// Follows the serial numbers that wait.
    fn follow(&mut self) {
        for (node, serial, time_ms) in self.waiting.drain(..) {
            self.serials.add(&node, serial, time_ms);
        }
    }

    /// Bounds what waits, if the events come to this overview alone.
    pub fn settle(&mut self) {
        if self.waiting.len() >= SERIALS {
            self.follow();
        }
    }

    /// The sections.
    pub fn finish(mut self) -> Finished {
        self.follow();
        let new_since_s = self.last.0.saturating_sub(DAY_S);
        let has_before = self.first.is_some_and(|first| first.0 < new_since_s);
        let hosts = self.hosts();
        let mut sections = Vec::new();

        for (section, rows) in SECTIONS.into_iter().zip(self.rows) {
            let is_shown =
                |row: &(Values, Hits)| section.name != "programs" || row.1.first.0 >= new_since_s;
            let mut shown: Vec<_> = rows.rows.into_iter().filter(is_shown).collect();
            let is_counted = ["logins", "denials"].contains(&section.name);
            shown.sort_unstable_by(|a, b| {
                let by_hits = b.1.hits.cmp(&a.1.hits).then(a.1.first.cmp(&b.1.first));
                let by_time = a.1.first.cmp(&b.1.first);
                let order = if is_counted { by_hits } else { by_time };
                order.then_with(|| a.0.cmp(&b.0))
            });
            sections.push(Shown {
                section,
                rows: shown,
                unkept_hits: rows.unkept_hits,
            });
        }

        sections.push(hosts);
        Finished {
            sections,
            new_since_s,
            has_before,
        }
    }

    fn hosts(&self) -> Shown {
        let (gaps, _) = self.serials.gaps();
        let mut rows: Vec<_> = self
            .hosts
            .iter()
            .map(|(node, host)| {
                let its = gaps.iter().filter(|gap| gap.node == *node);
                let missing: u64 = its.clone().map(|gap| gap.last - gap.first + 1).sum();
                let number = |number: u64| Some(number.to_string().into_bytes().into());
                let name = (!node.is_empty()).then(|| node.clone());
                let values = vec![
                    name,
                    number(missing + self.serials.dropped(node)),
                    number(its.count() as u64),
                    number(host.lost),
                ];
                (values, host.hits)
            })
            .collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));

        Shown {
            section: SECTIONS[HOSTS],
            rows,
            unkept_hits: 0,
        }
    }
}

#[cfg(test)]
mod tests;
