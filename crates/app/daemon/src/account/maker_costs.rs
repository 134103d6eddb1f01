//! Costs of the makers of events: `tarsier status --by`.
//!
//! An event is counted for its *origin*: cgroup, uid and executable together, of which there are few at a time. So an event
//! costs one look-up. The counts of origins are added to those of names when somebody asks, or every [`WINDOW`].

mod period;
mod table;
#[cfg(test)]
mod tests;

use crate::protocol::{MakerCost, MakerCosts as Answer, MakerKind, MakerOrder};
use compose::Maker;
use period::{found, Found, Name, Period};
use record::WorkloadText;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::{ById, Mixer, Row, Sums, NAMES_MAX};

/// Recent costs are those of the last window and of the current one.
const WINDOW: Duration = Duration::from_secs(10);
/// Limit of the origins whose counts wait.
const ORIGINS_MAX: usize = 1024;
/// Limit of the bytes of a name that are kept.
const NAME_BYTES_MAX: usize = 256;
/// Number of names of each kind in the metrics.
const EXPORTED_MAX: usize = 20;

/// Name of the row for all other makers.
pub(crate) const OTHERS: &str = "(others)";

/// Executable, cgroup and uid, which the events of one task and many others have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Origin {
    exe: u64,
    cgroup_id: u64,
    uid: u32,
}

/// Counts of an origin that wait to be added to those of its names.
#[derive(Debug)]
struct Waiting {
    origin: Origin,
    names: [Name; MakerKind::EVERY.len()],
    sums: Sums,
    /// Bytes of its events in the current batch.
    batch_bytes: u64,
}

/// Costs of the makers of events.
#[derive(Debug)]
pub(crate) struct MakerCosts {
    waiting: Vec<Waiting>,
    places: HashMap<Origin, usize, BuildHasherDefault<Mixer>>,
    /// The place of the last event's origin: the next event often has the same one.
    last: usize,
    /// Origins that have events in the current batch.
    charged: Vec<usize>,
    /// Time per byte in the last batch.
    ns_per_byte: f64,
    whole: Period,
    /// The window that is over, if any.
    before: Option<Period>,
    current: Period,
    hasher: RandomState,
}

impl Default for MakerCosts {
    fn default() -> MakerCosts {
        MakerCosts {
            waiting: Vec::new(),
            places: HashMap::default(),
            last: 0,
            charged: Vec::new(),
            ns_per_byte: 0.0,
            whole: Period::new(),
            before: None,
            current: Period::new(),
            hasher: RandomState::new(),
        }
    }
}

impl MakerCosts {
    /// Counts an event of `maker` with `bytes` bytes in the log. `workload` looks its cgroup up: `None` if it is not known.
    pub(crate) fn recorded(
        &mut self,
        maker: &Maker<'_>,
        bytes: usize,
        workload: impl FnOnce() -> Option<Arc<WorkloadText>>,
    ) {
        let origin = Origin {
            exe: maker.exe.map_or(0, |(hash, _)| hash),
            cgroup_id: maker.cgroup_id,
            uid: maker.uid,
        };
        let is_last = |waiting: &Waiting| waiting.origin == origin;
        if !self.waiting.get(self.last).is_some_and(is_last) {
            self.last = match self.places.get(&origin) {
                Some(&place) => place,
                None => self.begin(origin, maker, workload()),
            };
        }
        let bytes = bytes as u64;
        let waiting = &mut self.waiting[self.last];
        waiting.sums.events += 1;
        waiting.sums.bytes += bytes;
        if waiting.batch_bytes == 0 {
            self.charged.push(self.last);
        }
        waiting.batch_bytes += bytes;
    }

    /// Ends a batch that took `ns_per_byte` nanoseconds for each byte of its events.
    pub(crate) fn share(&mut self, ns_per_byte: f64) {
        self.ns_per_byte = ns_per_byte;
        for place in self.charged.drain(..) {
            let waiting = &mut self.waiting[place];
            waiting.sums.spent_ns += (waiting.batch_bytes as f64 * ns_per_byte) as u64;
            waiting.batch_bytes = 0;
        }
    }

    /// Begins a new window if the current one is over. Call it once a second.
    pub(crate) fn tick(&mut self, now: Instant) {
        if now.duration_since(self.current.began) >= WINDOW {
            self.settle();
            self.before = Some(std::mem::replace(&mut self.current, Period::new()));
        }
    }

    /// The answer to `tarsier status --by`: the `top` first makers of a kind, since the start or lately.
    pub(crate) fn table(
        &mut self,
        by: MakerKind,
        order: MakerOrder,
        top: usize,
        is_recent: bool,
    ) -> Answer {
        self.settle();
        let lately = found(&self.recent(), by);
        let recent_s = self.recent_s();

        let rate = |bytes: u64| (bytes as f64 / recent_s) as u64;
        let (mut found, period_s) = if is_recent {
            (lately.clone(), recent_s)
        } else {
            let since_start = self.whole.began.elapsed();
            (found(&[&self.whole], by), since_start.as_secs_f64())
        };

        let rank = |row: &Row| Reverse(rank(&row.sums, order));
        found.named.sort_by_key(rank);
        let names = found.named.len();
        found.named.truncate(top);

        let mut bytes_lately: ById<u64> = ById::default();
        bytes_lately.extend(lately.named.iter().map(|row| (row.id, row.sums.bytes)));
        let of_name = |row: &Row| {
            let bytes = bytes_lately.get(&row.id).copied();
            named_row(row, rate(bytes.unwrap_or(0)))
        };
        let mut rows: Vec<MakerCost> = found.named.iter().map(of_name).collect();

        // Behind the named makers: events of nobody, of unknown makers, and the rest.
        rows.push(row("(none)", found.nameless, rate(lately.nameless.bytes)));
        rows.push(row("(unknown)", found.unknown, rate(lately.unknown.bytes)));
        let total = row("(total)", found.total, rate(lately.total.bytes));
        let shown = rows.iter().map(|row| row.bytes_per_s).sum();
        let others = total.bytes_per_s.saturating_sub(shown);
        rows.push(row(OTHERS, others_of(&found), others));
        rows.retain(|row| row.events > 0);

        Answer {
            by,
            period_s,
            total,
            rows,
            names,
            names_max: NAMES_MAX,
            names_replaced: found.replaced,
            unseen_bytes_max: found.unseen_bytes_max,
        }
    }

    /// Costs in the metrics for a kind: those of the names with the most bytes since the start. Recent costs are not
    /// shown: a maker of ever new names would add some to each scrape.
    pub(crate) fn exported(&mut self, by: MakerKind) -> Vec<MakerCost> {
        self.settle();
        let all = found(&[&self.whole], by);
        let named = all.named.iter().take(EXPORTED_MAX);
        let named = named.map(|row| named_row(row, 0));
        let others = [
            row("(none)", all.nameless, 0),
            row("(unknown)", all.unknown, 0),
        ];
        let rows = named.chain(others);
        rows.filter(|row| row.events > 0).collect()
    }

    /// Hash of a path, for [`Maker::exe`] where nothing else has made one.
    pub(crate) fn hash(&self, path: &[u8]) -> u64 {
        self.hasher.hash_one(path)
    }

    /// Begins to count events of an origin. Returns its place.
    fn begin(
        &mut self,
        origin: Origin,
        maker: &Maker<'_>,
        workload: Option<Arc<WorkloadText>>,
    ) -> usize {
        if self.waiting.len() >= ORIGINS_MAX {
            self.settle();
        }

        let name = |text: &Arc<[u8]>| Name::Known(self.hasher.hash_one(text), kept(text));
        let of_workload = |text: fn(&WorkloadText) -> Option<&Arc<[u8]>>| match &workload {
            None => Name::Unknown,
            Some(workload) => text(workload).map_or(Name::None, name),
        };
        let uid = || Arc::from(maker.uid.to_string().as_bytes());
        let exe = maker
            .exe
            .map(|(hash, path)| Name::Known(hash, kept(&Arc::from(path))));

        let names = [
            of_workload(WorkloadText::unit),
            of_workload(WorkloadText::container),
            Name::Known(self.hasher.hash_one(maker.uid), uid()),
            exe.unwrap_or(Name::None),
        ];

        let place = self.waiting.len();
        self.waiting.push(Waiting {
            origin,
            names,
            sums: Sums::default(),
            batch_bytes: 0,
        });
        self.places.insert(origin, place);
        place
    }

    /// Adds all waiting counts to those of names. A byte of a batch that has not ended costs as much time as one of the
    /// last batch.
    fn settle(&mut self) {
        self.share(self.ns_per_byte);
        self.places.clear();
        for waiting in self.waiting.drain(..) {
            self.whole.add(&waiting.names, waiting.sums);
            self.current.add(&waiting.names, waiting.sums);
        }
    }

    fn recent(&self) -> Vec<&Period> {
        self.before.iter().chain([&self.current]).collect()
    }

    /// Length of the recent time in seconds.
    fn recent_s(&self) -> f64 {
        let first = self.before.as_ref().unwrap_or(&self.current);
        first.began.elapsed().as_secs_f64().max(0.001)
    }
}

/// Count by which rows are sorted.
fn rank(sums: &Sums, order: MakerOrder) -> u64 {
    match order {
        MakerOrder::Bytes => sums.bytes,
        MakerOrder::Events => sums.events,
        MakerOrder::Time => sums.spent_ns,
    }
}

/// Sums of makers that are in no row: neither in a named one nor in those for makers without a name.
fn others_of(found: &Found) -> Sums {
    let mut shown = found.nameless;
    shown += found.unknown;
    found.named.iter().for_each(|row| shown += row.sums);
    Sums {
        events: found.total.events.saturating_sub(shown.events),
        bytes: found.total.bytes.saturating_sub(shown.bytes),
        spent_ns: found.total.spent_ns.saturating_sub(shown.spent_ns),
    }
}

fn named_row(of: &Row, bytes_per_s: u64) -> MakerCost {
    let mut name = String::from_utf8_lossy(&of.name).into_owned();
    // Names are chosen by others, and must not look like the rows for those without one.
    if name.starts_with('(') {
        name.insert(0, '\\');
    }
    MakerCost {
        missing_bytes_max: of.missing_bytes_max,
        ..row(&name, of.sums, bytes_per_s)
    }
}

fn row(name: &str, sums: Sums, bytes_per_s: u64) -> MakerCost {
    MakerCost {
        name: name.to_owned(),
        events: sums.events,
        bytes: sums.bytes,
        bytes_per_s,
        spent_ns: sums.spent_ns,
        ..MakerCost::default()
    }
}

/// The name, cut to the bytes that are kept.
fn kept(name: &Arc<[u8]>) -> Arc<[u8]> {
    match name.get(..NAME_BYTES_MAX) {
        Some(head) => [head, "…".as_bytes()].concat().into(),
        None => Arc::clone(name),
    }
}
