//! Contents of a log, counted for a report: events over time, nested tables, process trees, losses and gaps. Memory is
//! bounded for any log; everything left out is counted.

mod digest;
mod gaps;
mod labels;
mod processes;
mod series;
mod tree;

pub use digest::Digests;
pub use gaps::{SerialGap, Silence};
pub use processes::{Branch, Forest, Process};
pub use series::{Bucket, Row as SeriesRow, Rows as SeriesRows};
pub use tree::{Count, Line, Lines as TableLines};

use crate::facts::Facts;
use crate::row::Row;
use crate::walk::find_from;
use crate::Event;
use digest::Digest;
pub(crate) use gaps::Serials;
use gaps::Silences;
use processes::{Processes, Seen};
use series::{Scale, Series};
use tree::Tree;

/// Losses and changes of the daemon that are listed.
const MARKS_MAX: usize = 200;
/// Times without events that are listed.
const SILENCES_MAX: usize = 5;
/// Gaps of serial numbers that are listed.
const GAPS_MAX: usize = 20;
/// Value of a login id or session that is not set.
const UNSET: u32 = u32::MAX;

/// The series of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One series for each key of a rule.
    Key,
    /// One series for each login user.
    User,
    /// One series for each system unit.
    Unit,
}

/// The tables of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// User → session → process → file.
    User,
    /// Key → program → file.
    Key,
    /// Unit → program → file.
    Unit,
    /// Program → file.
    Program,
    /// File → program.
    File,
    /// Failed calls: error → user → program.
    Failure,
}

const TABLES: usize = 6;

/// Losses that the daemon wrote into the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loss {
    /// Time of the record, in milliseconds since 1970.
    pub time_ms: u64,
    /// Events that were lost.
    pub lost: u64,
    /// `cause=` of the record: `CAUSE:N,…`.
    pub cause: Box<[u8]>,
}

/// A start or end of the audit daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DaemonMark {
    /// Time in milliseconds since 1970.
    pub time_ms: u64,
    /// DAEMON_START, DAEMON_END or DAEMON_ABORT.
    pub kind: i32,
}

/// Counts events.
#[derive(Debug, Default)]
pub struct Summary {
    all: Totals,
    scale: Option<Scale>,
    series: [Series; 3],
    tables: [Tree; TABLES],
    processes: Processes,
    serials: Serials,
    silences: Silences,
    losses: Firsts<Loss>,
    lost: u64,
    marks: Firsts<DaemonMark>,
    nodes: Vec<Box<[u8]>>,
}

/// The first [`MARKS_MAX`] of many things, and how many there are in all.
#[derive(Debug)]
struct Firsts<T> {
    items: Vec<T>,
    number: u64,
}

impl<T> Default for Firsts<T> {
    fn default() -> Firsts<T> {
        Firsts {
            items: Vec::new(),
            number: 0,
        }
    }
}

impl<T> Firsts<T> {
    fn add(&mut self, item: T) {
        self.number += 1;
        if self.items.len() < MARKS_MAX {
            self.items.push(item);
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    count: Count,
    with_result: u64,
}

impl Summary {
    /// Counts an event.
    pub fn add(&mut self, event: &Event) {
        let mut digests = Digests::default();
        digests.add(event.view(), &Row::read(event));
        self.count_all(&digests);
    }

    /// Counts the events that come next in the log.
    pub fn count_all(&mut self, digests: &Digests) {
        for digest in &digests.events {
            self.count_one(digests, digest);
        }
    }

    fn count_one(&mut self, digests: &Digests, digest: &Digest) {
        let node = digests.get(digest.node);
        let time_ms = digest.time_ms;
        self.all.count.add(time_ms, digest.is_failure);
        self.all.with_result += u64::from(digest.has_result);
        if self.nodes.len() < 64 && self.nodes.iter().all(|known| **known != *node) {
            self.nodes.push(node.into());
        }

        self.serials.add(node, digest.serial, time_ms);
        self.silences.add(time_ms, SILENCES_MAX);
        if digest.is_mark() {
            self.marks.add(DaemonMark {
                time_ms,
                kind: digest.kind,
            });
        }

        if let Some((lost, cause)) = digest.loss {
            self.lost = self.lost.saturating_add(lost);
            self.losses.add(Loss {
                time_ms,
                lost,
                cause: digests.get(cause).into(),
            });
        }

        self.over_time(digests, digest);
        self.in_tables(digests, digest);
        self.processes.add(&Seen {
            node,
            pid: digest.pid,
            ppid: digest.ppid,
            exe: digest.exe.map_or(&[], |exe| digests.get(exe)),
            command: digest.command.map(|command| digests.get(command)),
            time_ms,
            is_failure: digest.is_failure,
        });
    }

    fn over_time(&mut self, digests: &Digests, digest: &Digest) {
        let time_s = digest.time_ms / 1000;
        let scale = *self.scale.get_or_insert(Scale::at(time_s));
        let bucket = match scale.bucket(time_s) {
            Some(bucket) => bucket,
            None => {
                let first_s = self.all.count.first_ms / 1000;
                let wider = scale.fitted(first_s, self.all.count.last_ms / 1000);
                for series in &mut self.series {
                    series.rescale(scale, wider);
                }
                self.scale = Some(wider);
                wider.bucket(time_s).unwrap_or(0)
            }
        };

        let is_failure = digest.is_failure;
        let mut add = |by: By, label: &[u8]| {
            self.series[by as usize].add(bucket, is_failure, label);
        };
        for key in digests.list(digest.keys) {
            add(By::Key, key);
        }

        add(By::User, digests.get(digest.user));
        if let Some(unit) = digest.unit {
            add(By::Unit, digests.get(unit));
        }
    }

    fn in_tables(&mut self, digests: &Digests, digest: &Digest) {
        let files = || digests.list(digest.files);
        let user = digests.get(digest.user);
        let program: &[u8] = digest.exe.map_or(b"(no program)", |exe| digests.get(exe));
        let (time_ms, failed) = (digest.time_ms, digest.is_failure);
        let tables = &mut self.tables;
        let path = [
            user,
            digests.get(digest.session),
            digests.get(digest.process),
        ];
        tables[Table::User as usize].add(time_ms, failed, &path, files());

        for key in digests.list(digest.keys) {
            tables[Table::Key as usize].add(time_ms, failed, &[key, program], files());
        }

        if let Some(unit) = digest.unit {
            let path = [digests.get(unit), program];
            tables[Table::Unit as usize].add(time_ms, failed, &path, files());
        }

        if digest.exe.is_some() {
            tables[Table::Program as usize].add(time_ms, failed, &[program], files());
        }
        for file in files() {
            tables[Table::File as usize].add(time_ms, failed, &[file], [program].into_iter());
        }

        if failed {
            let path = [digests.get(digest.error), user, program];
            let none = std::iter::empty();
            tables[Table::Failure as usize].add(time_ms, failed, &path, none);
        }
    }

    /// All events.
    pub fn count(&self) -> Count {
        self.all.count
    }

    /// Events that say whether they succeeded.
    pub fn with_result(&self) -> u64 {
        self.all.with_result
    }

    /// Start of the first interval in seconds since 1970, and the length of all intervals in seconds.
    pub fn intervals(&self) -> (u64, u64) {
        self.scale
            .map_or((0, 1), |scale| (scale.start_s, scale.width_s))
    }

    /// Events over time: the `most` labels with the most events, and the others.
    pub fn series(&self, which: By, most: usize) -> SeriesRows {
        self.series[which as usize].rows(most)
    }

    /// A table: `most` has the number of lines of each level.
    pub fn table(&self, which: Table, most: &[usize]) -> TableLines {
        self.tables[which as usize].lines(most)
    }

    /// Trees of the `most` processes with the most events.
    pub fn forest(&self, most: usize) -> Forest {
        self.processes.forest(most)
    }

    /// Events that the daemon counted as lost; the first records of it, and how many there are.
    pub fn losses(&self) -> (u64, &[Loss], u64) {
        (self.lost, &self.losses.items, self.losses.number)
    }

    /// The first starts and ends of the daemon, and how many there are.
    pub fn marks(&self) -> (&[DaemonMark], u64) {
        (&self.marks.items, self.marks.number)
    }

    /// The largest gaps of serial numbers, how many there are, and how many numbers are missing.
    pub fn serial_gaps(&self) -> (Vec<SerialGap>, usize, u64) {
        let (mut gaps, sum) = self.serials.gaps();
        let number = gaps.len();
        gaps.sort_by_key(|gap| std::cmp::Reverse(gap.last - gap.first));
        gaps.truncate(GAPS_MAX);
        (gaps, number, sum)
    }

    /// Whether there are nodes whose serial numbers were not followed, to bound memory.
    pub fn has_unfollowed_nodes(&self) -> bool {
        self.serials.has_unfollowed()
    }

    /// The longest times without events.
    pub fn silences(&self) -> &[Silence] {
        self.silences.longest()
    }

    /// Values of `node=`, in the order of appearance, at most 64; an empty one for records without.
    pub fn nodes(&self) -> &[Box<[u8]>] {
        &self.nodes
    }
}

/// The keys of an event, each once: an event may have several records with the same key.
fn keys<'f>(facts: &'f Facts<'_>) -> Vec<&'f [u8]> {
    let mut keys: Vec<&[u8]> = Vec::new();
    for key in facts.keys.iter().flatten() {
        if **key != *b"(null)" && !keys.contains(&&**key) {
            keys.push(key);
        }
    }
    keys
}

fn word_of<'e>(text: &'e [u8], field: &[u8]) -> Option<&'e [u8]> {
    let from = find_from(text, 0, field)?;
    let rest = &text[from..];
    let end = rest.iter().position(|byte| b" '\n".contains(byte));
    Some(&rest[..end.unwrap_or(rest.len())])
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
