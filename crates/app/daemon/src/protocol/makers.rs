//! The daemon's report about the makers of events.

use serde::{Deserialize, Serialize};

/// Property by which makers of events are told apart.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum MakerKind {
    /// The system unit.
    #[default]
    Unit,
    /// The innermost container.
    Container,
    /// The real uid.
    Uid,
    /// The path of the executable.
    Exe,
}

impl MakerKind {
    /// All kinds, each at the index that it has as a number.
    pub const EVERY: [MakerKind; 4] = [
        MakerKind::Unit,
        MakerKind::Container,
        MakerKind::Uid,
        MakerKind::Exe,
    ];

    /// Name in options, metrics and JSON.
    pub fn name(self) -> &'static str {
        match self {
            MakerKind::Unit => "unit",
            MakerKind::Container => "container",
            MakerKind::Uid => "uid",
            MakerKind::Exe => "exe",
        }
    }
}

/// Count by which rows are sorted, the largest first.
#[derive(Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum MakerOrder {
    /// Bytes in the log.
    #[default]
    Bytes,
    /// Number of events.
    Events,
    /// Time in the daemon.
    Time,
}

/// Costs of the makers of events in a period; the answer to [`Request::MakerCosts`](super::Request::MakerCosts).
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
pub struct MakerCosts {
    /// Property by which the rows are told apart.
    pub by: MakerKind,
    /// Length of the period, in seconds: since the start, or 10 to 20 s for recent costs.
    pub period_s: f64,
    /// All events of the engine in the period.
    pub total: MakerCost,
    /// The makers asked for; after them `(none)`, `(unknown)` and `(others)`, as far as they have events. The rows sum up
    /// to the total.
    pub rows: Vec<MakerCost>,
    /// Number of names that are counted now.
    pub names: usize,
    /// Limit of these names.
    pub names_max: usize,
    /// Number of times that a name took the place of another, whose counts are now in `(others)`.
    pub names_replaced: u64,
    /// Limit of the bytes of a name that is not counted by itself.
    pub unseen_bytes_max: u64,
}

/// A row of the table.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct MakerCost {
    /// Name of the maker, cut after 256 bytes. A name that begins with `(` is told with a backslash before it.
    pub name: String,
    /// Number of its events in the log.
    pub events: u64,
    /// Bytes of log lines of these events.
    pub bytes: u64,
    /// Bytes per second in the last 10 to 20 s.
    pub bytes_per_s: u64,
    /// Time in the daemon for these events, in nanoseconds, as in [`RuleCost`](super::RuleCost). Time for events that were
    /// dropped is not counted.
    pub spent_ns: u64,
    /// Limit of the bytes that the row lacks, because another name had its place for a time.
    pub missing_bytes_max: u64,
    /// Number of its events that were lost on the way to the daemon. Only known by uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}
