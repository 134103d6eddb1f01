//! The daemon's report about itself, its plugins and its rules.

use super::RulesInForce;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer to [`Request::Status`](super::Request::Status).
#[derive(Serialize, Deserialize, Debug, Clone, Default)]
pub struct Status {
    /// Process id of the daemon.
    pub pid: u32,
    /// Name of the engine, as `--engine` takes it; `none` while leftovers of another version are
    /// read.
    pub engine: String,
    /// Directory where capture is pinned, so that it goes on if the daemon is killed.
    #[serde(default)]
    pub pin_dir: Option<String>,
    /// Places where calls are captured.
    pub hook: String,
    /// Kernel features that the engine's programs use and this kernel lacks, each with what is less
    /// exact without it.
    #[serde(default)]
    pub gaps: Vec<String>,
    /// Number of rules in force.
    pub rules: usize,
    /// Whether all rules of the files are in force, and what is instead.
    #[serde(default)]
    pub rules_in_force: RulesInForce,
    /// Number of the rule set in force; each reload increases it.
    pub generation: u64,
    /// Whether Tarsier owns the audit socket, so that records of other sources are logged.
    pub kernel_records: bool,
    /// Time since the start, in seconds.
    pub uptime_s: u64,
    /// Calls that were matched against the rules.
    pub calls_matched: u64,
    /// Events that reached a ring.
    pub events_selected: u64,
    /// Selected events that the second stage has to decide.
    pub events_candidate: u64,
    /// Candidates that the second stage dropped: no rule selects them.
    pub events_dropped: u64,
    /// Events of the engine in the log.
    pub events_recorded: u64,
    /// Recorded events of which something is missing, because it did not fit: those with `cut=yes`.
    #[serde(default)]
    pub events_cut: u64,
    /// Recorded events that their rule may not select, because not everything that it asks about is known: those with
    /// `match=unsure`.
    #[serde(default)]
    pub events_unsure: u64,
    /// SELinux labels that records lack, because the policy has no text for their numbers.
    #[serde(default)]
    pub labels_missing: u64,
    /// Records received from the kernel's audit and from other programs.
    pub kernel_records_received: u64,
    /// Events lost, by cause.
    pub lost: BTreeMap<String, u64>,
    /// Events lost, by CPU.
    pub lost_by_cpu: Vec<u64>,
    /// Events lost, by place and key of the rule that selected them.
    pub lost_by_rule: BTreeMap<String, u64>,
    /// Events lost, by real uid of the task that made them; `other`: uids that the programs had no room for.
    #[serde(default)]
    pub lost_by_uid: BTreeMap<String, u64>,
    /// Events over the budget of their rule (`rate_budgets`), by place and key of the rule.
    #[serde(default)]
    pub suppressed_by_rule: BTreeMap<String, u64>,
    /// Fill of the fullest ring, in parts per thousand.
    pub ring_fill_per_mille: u32,
    /// Path of the log.
    pub log_file: String,
    /// Whether a log is written (`write_logs`).
    pub log_written: bool,
    /// Events written to the log.
    pub log_events: u64,
    /// Bytes written to the log.
    pub log_bytes: u64,
    /// Whether writing is suspended, as on a full disk.
    pub log_suspended: bool,
    /// Syncs of the log that succeeded.
    pub log_syncs: u64,
    /// Calls that were made to wait at their end because their ring was filling up.
    pub calls_slowed: u64,
    /// Total time that those calls waited, in nanoseconds.
    pub waited_ns: u64,
    /// The longest time since the start in which the daemon did something else than read the rings or wait for events,
    /// in microseconds.
    #[serde(default)]
    pub reader_pause_us: u64,
    /// Number of times that another process changed data that the programs read; each is in the log (op=integrity).
    #[serde(default)]
    pub integrity_breaches: u64,
    /// Time from a call until its record is durable, in microseconds: p50, p99, maximum. Each event
    /// counts as being as old as the oldest that was written with it. `None` before the first sync.
    pub durable_after_us: Option<[u64; 3]>,
    /// Objects that records lack because they could not be looked up, or not in time.
    #[serde(default)]
    pub objects_unanswered: u64,
    /// Events of which something was not looked up because it would have taken longer than the budget of the event or of
    /// its maker. They are recorded if a rule may select them.
    #[serde(default)]
    pub events_out_of_time: u64,
    /// Names of users and groups that records lack because they could not be looked up in time.
    #[serde(default)]
    pub names_unanswered: u64,
    /// Helper processes for look-ups that were replaced because they failed.
    #[serde(default)]
    pub helpers_replaced: u64,
    /// Helper processes that were killed and have not ended, because a file system does not answer.
    #[serde(default)]
    pub helpers_stuck: u64,
    /// Cgroups that the daemon knows, lately removed ones included.
    #[serde(default)]
    pub cgroups_known: u64,
    /// Events whose cgroup is not known, so that their records name no unit, container or pod.
    #[serde(default)]
    pub cgroups_unknown: u64,
    /// Lost messages about new and removed cgroups; these cgroups are looked up if they still exist.
    #[serde(default)]
    pub cgroups_lost: u64,
    /// Containers that no runtime's file names.
    #[serde(default)]
    pub containers_unnamed: u64,
    /// Processes that the daemon knows for the ancestors of others, lately ended ones included.
    #[serde(default)]
    pub processes_known: u64,
    /// Bytes of memory that they take, about.
    #[serde(default)]
    pub processes_bytes: u64,
    /// Events that lack some of the ancestors of their process.
    #[serde(default)]
    pub ancestors_partial: u64,
    /// Lost messages about new, changed and ended processes.
    #[serde(default)]
    pub processes_lost: u64,
    /// Processes with a thread that has an audit context of the kernel, from before Tarsier's rule `never,task`: all
    /// their calls cost more, whatever the rules. `None` if the kernel cannot be asked.
    #[serde(default)]
    pub audited_processes: Option<u64>,
    /// Number of these threads.
    #[serde(default)]
    pub audited_threads: Option<u64>,
    /// The active plugins.
    #[serde(default)]
    pub plugins: Vec<PluginStatus>,
    /// Confinement of the daemon; `None` with `confinement = no`.
    #[serde(default)]
    pub confinement: Option<ConfinementStatus>,
    /// The process that starts programs.
    #[serde(default)]
    pub spawner: Option<SpawnerStatus>,
}

/// Rights of a confined daemon.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfinementStatus {
    /// Whether a call that the filter does not allow kills the daemon (`confinement = strict`).
    pub strict: bool,
    /// Capabilities of the daemon, as in capabilities(7), in small letters and without `cap_`.
    pub capabilities: Vec<String>,
    /// Capabilities in the daemon's bounding set.
    pub bounding: Vec<String>,
    /// Whether programs that it executes cannot gain rights.
    pub no_new_privs: bool,
    /// Whether its memory can be dumped.
    pub dumpable: bool,
    /// `oom_score_adj` of proc(5).
    pub oom_score_adj: Option<i32>,
    /// Number of system calls that its filter allows, some of them with some arguments only; 0 without a filter.
    pub calls: usize,
    /// Version of the kernel's Landlock; `None` if it is not in force.
    pub landlock_abi: Option<u32>,
    /// Paths where the daemon may write, with Landlock.
    pub writable: Vec<String>,
    /// The parts of the confinement that are not in force, each with the reason.
    pub missing: Vec<String>,
}

/// The processes that start programs for the daemon.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct SpawnerStatus {
    /// Process id of the spawner that is asked; 0 if there is none, or it is not known yet.
    pub pid: u32,
    /// Process id of the one that takes its place.
    #[serde(default)]
    pub standby: Option<u32>,
    /// Whether programs can be started.
    pub running: bool,
}

impl From<privsep::spawn::State> for SpawnerStatus {
    fn from(state: privsep::spawn::State) -> SpawnerStatus {
        SpawnerStatus {
            pid: state.pid.unwrap_or_default(),
            standby: state.standby,
            running: state.running,
        }
    }
}

/// A plugin of `plugin_dir`.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginStatus {
    /// Name of the plugin's file.
    pub name: String,
    /// Whether its program runs, or its socket exists.
    pub running: bool,
    /// Number of records in its queue.
    pub queued: u64,
    /// Number of records sent to it.
    pub passed: u64,
    /// Number of records left out because its queue was full or its program had ended.
    pub lost: u64,
    /// Number of restarts of its program.
    pub restarts: u32,
}

/// Cost of a rule in force since it was loaded.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCost {
    /// Place in the rule set, from 1, as `tarsier plan` shows it.
    pub position: usize,
    /// The rule's keys, separated by commas.
    pub key: Option<String>,
    /// The rule in auditctl's syntax.
    pub rule: String,
    /// Number of the rule's events in the log.
    pub events: u64,
    /// Number of events for which this rule was a candidate, but which were dropped. An event with
    /// several candidates counts for each.
    pub dropped: u64,
    /// Number of events that are recorded because the rule may select them: not everything that it asks about is known of
    /// them (`match=unsure`).
    #[serde(default)]
    pub unsure: u64,
    /// Bytes of log lines of its events.
    pub bytes: u64,
    /// Number of its events lost on the way to the daemon.
    pub lost: u64,
    /// Number of its events over its budget (`rate_budgets`), which were not recorded.
    #[serde(default)]
    pub suppressed: u64,
    /// Time in the daemon, in nanoseconds, for reading the ring, looking up names and encoding,
    /// without writing the log. The time of each batch of events is divided in proportion to the
    /// bytes of each rule's events in it; a dropped event counts as 256 bytes.
    pub spent_ns: u64,
}
