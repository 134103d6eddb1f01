//! What the daemon tells of itself, its plugins and its rules.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer to [`Request::Status`](super::Request::Status).
#[derive(Serialize, Deserialize, Debug, Clone, Default)]
pub struct Status {
    /// Of the daemon.
    pub pid: u32,
    /// Its name, as `--engine` takes it; `none` while what another version left is read.
    pub engine: String,
    /// Where capture is pinned, so that it goes on when the daemon is killed.
    #[serde(default)]
    pub pin_dir: Option<String>,
    /// Where calls are seen.
    pub hook: String,
    /// What the kernel lacks of what the engine's programs use, each with what is less exact without it.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// How many are in force.
    pub rules: usize,
    /// Number of the rule set in force; each reload counts.
    pub generation: u64,
    /// Whether the audit socket is ours, so that the records of others are logged.
    pub kernel_records: bool,
    /// Since the start, seconds.
    pub uptime_s: u64,
    /// Calls that were matched against the rules.
    pub calls_matched: u64,
    /// Events that reached a ring.
    pub events_selected: u64,
    /// Of those, decided by the second stage.
    pub events_candidate: u64,
    /// Candidates that the second stage dropped: no rule selects them.
    pub events_dropped: u64,
    /// Events of the engine in the log.
    pub events_recorded: u64,
    /// Records that the kernel or programs made.
    pub kernel_records_received: u64,
    /// Events lost, by cause.
    pub lost: BTreeMap<String, u64>,
    /// Events lost, by CPU.
    pub lost_by_cpu: Vec<u64>,
    /// Events lost, by key of the rule that selected them.
    pub lost_by_rule: BTreeMap<String, u64>,
    /// Fullest ring, parts per thousand.
    pub ring_fill_per_mille: u32,
    /// Path of the log.
    pub log_file: String,
    /// Whether a log is written: `write_logs`.
    pub log_written: bool,
    /// Events written to the log.
    pub log_events: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Whether writing is suspended, as on a full disk.
    pub log_suspended: bool,
    /// Syncs of the log that succeeded.
    pub log_syncs: u64,
    /// Calls that waited at their end because their ring was filling up.
    pub calls_slowed: u64,
    /// How long they waited, together, nanoseconds.
    pub waited_ns: u64,
    /// From a call to its record being durable, microseconds: p50, p99, longest. Each event counts
    /// as old as the oldest that was written with it. None before the first sync.
    pub durable_after_us: Option<[u64; 3]>,
    /// The active plugins.
    #[serde(default)]
    pub plugins: Vec<PluginStatus>,
}

/// A plugin of `plugin_dir`.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginStatus {
    /// Name of its file.
    pub name: String,
    /// Whether its program runs, or its socket is there.
    pub running: bool,
    /// Records in its queue.
    pub queued: u64,
    /// Records that it was sent.
    pub passed: u64,
    /// Records left out: its queue was full, or it had ended.
    pub lost: u64,
    /// How often its program was started again.
    pub restarts: u32,
}

/// What a rule in force has cost since it was loaded.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCost {
    /// Place in the rule set, from 1, as `tarsier plan` shows it.
    pub position: usize,
    /// Its keys, with commas between them.
    pub key: Option<String>,
    /// The rule in auditctl's words.
    pub rule: String,
    /// Events in the log.
    pub events: u64,
    /// Events that came for it as a candidate and were dropped. One event may have had several
    /// candidates, and counts for each.
    pub dropped: u64,
    /// Bytes of log lines.
    pub bytes: u64,
    /// Events lost on the way to the daemon.
    pub lost: u64,
    /// Time in the daemon, nanoseconds, with reading the ring, looking up names and encoding;
    /// without writing the log. Each batch of events is timed and shared out by the bytes that
    /// each rule has in it, where a dropped event counts as 256 bytes.
    pub spent_ns: u64,
}
