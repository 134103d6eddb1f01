//! auditd.conf(5): the daemon's configuration file, read as auditd reads it.
//!
//! Every key of audit 3.0.9 and 4.x is known. A setting that Tarsier does not honour yet is accepted
//! with a [`Notice`] for the program to print. What auditd refuses is refused, with an error that
//! names the place, what was expected and the nearest name. The rules are those of auditd.conf(5) and
//! of the checks in audit-userspace's `src/auditd-config.c`.
//!
//! Tarsier adds these settings, and no others:
//! * `log_format = JSON` (one object per event) and `COMPACT`,
//! * `seal = yes` (decision 0011),
//! * `identity = yes` or `no` (decision 0025),
//! * `label_keys = KEY:LABEL[,KEY:LABEL…]` (decision 0038),
//! * `exe_hash = sha256` and `exe_hash_max = MIB` (decision 0040),
//! * `compress_rotated = yes` (rotated files become zstd files named `….zst`),
//! * `index_rotated = yes` (rotated files have an index named `….idx`),
//! * `io_uring_twins = yes`,
//! * `objects_before = yes` (decision 0042),
//! * `overload = THROTTLE` or `DROP`,
//! * `urgent_keys = KEY[,KEY…]`,
//! * `rate_budgets = KEY:N[,KEY:N…]`,
//! * `pin_dir = /sys/fs/bpf/DIRECTORY` or `off`,
//! * `metrics = unix:/PATH` or `127.0.0.1:PORT`.

mod context;
mod error;
mod group;
mod keys;
mod load;
mod manual;
mod node;
mod parse;
pub mod plugins;
mod values;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use error::{nearest, BadValue, ConfigError, Notice, Place};
pub use group::Group;
pub use load::{load, load_right_lines};
pub use manual::{described_keys, KeyDescription};
pub use parse::{parse, LoadOptions, Loaded, LINE_BYTES_MAX};

/// The program that sends mail for EMAIL actions, the same as auditd's.
pub const SENDMAIL: &str = "/usr/lib/sendmail";

/// Path of auditd's configuration file.
pub const AUDITD_CONF: &str = "/etc/audit/auditd.conf";

/// Format of records (`log_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The kernel's own text.
    Raw,
    /// RAW, followed by a 0x1d byte and the names of uids, gids, system call, architecture and addresses.
    Enriched,
    /// One JSON object per event (Tarsier only).
    Json,
    /// ENRICHED, compressed while it is written (Tarsier only); `tarsier cat` prints it as text.
    Compact,
}

/// Policy for making written records durable (`flush`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// No sync: the kernel writes records back.
    None,
    /// A sync every `freq` records, for which writing waits.
    Incremental,
    /// A sync every `freq` records, in the background.
    IncrementalAsync,
    /// A sync of every batch; data and the file's size only: fdatasync(2).
    Data,
    /// A sync of every batch; data and all metadata: fsync(2).
    Sync,
}

impl Flush {
    /// The modes by their names in the file.
    pub(crate) const NAMES: &'static [(&'static str, Flush)] = &[
        ("none", Flush::None),
        ("incremental", Flush::Incremental),
        ("incremental_async", Flush::IncrementalAsync),
        ("data", Flush::Data),
        ("sync", Flush::Sync),
    ];

    /// Whether every batch is made durable.
    pub fn is_durable(self) -> bool {
        matches!(self, Flush::Data | Flush::Sync)
    }

    /// Whether the log is synced at all, the last sync of a file included.
    pub fn syncs(self) -> bool {
        self != Flush::None
    }

    /// Whether writing waits for its syncs.
    pub fn waits(self) -> bool {
        self == Flush::Incremental
    }
}

/// Action when the log file reaches `max_log_file` (`max_log_file_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SizeAction {
    /// Do nothing.
    Ignore,
    /// Warn in syslog.
    Syslog,
    /// Stop writing until resumed.
    Suspend,
    /// Rotate, keeping `num_logs` files.
    Rotate,
    /// Rotate, keeping all files.
    KeepLogs,
    /// Suspend and run a program (audit 4.x).
    Exec(PathBuf),
}

/// Action when disk space runs out or the disk fails (`space_left_action`, `admin_space_left_action`,
/// `disk_full_action`, `disk_error_action`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureAction {
    /// Do nothing (for a full disk, auditd still warns).
    Ignore,
    /// Warn in syslog.
    Syslog,
    /// Rotate; the oldest file is lost.
    Rotate,
    /// Send a mail to `action_mail_acct` and warn in syslog.
    Email,
    /// Suspend and run a program, which has to resume logging when it is done.
    Exec(PathBuf),
    /// Stop writing until resumed.
    Suspend,
    /// Put the system in single user mode.
    Single,
    /// Shut the system down.
    Halt,
}

/// Action when a plugin's queue is full (`overflow_action`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverflowAction {
    /// Do nothing.
    Ignore,
    /// Warn in syslog.
    Syslog,
    /// Stop passing events to the plugin.
    Suspend,
    /// Put the system in single user mode.
    Single,
    /// Shut the system down.
    Halt,
}

/// Treatment of calls whose events come faster than they can be recorded (`overload`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overload {
    /// Each call waits at its end: at most 1 ms, or 20 ms once the ring is nearly full.
    #[default]
    Throttle,
    /// Events are dropped and counted.
    Drop,
}

/// Confinement of the daemon (`confinement`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// No confinement.
    No,
    /// An unexpected system call fails, and is recorded.
    #[default]
    Yes,
    /// An unexpected system call kills the daemon.
    Strict,
}

/// What a start does with rules of which some cannot be put in force (`rules_error`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RulesError {
    /// The daemon does not start.
    Refuse,
    /// The rules that were last in force without an error are put in force; without them, the lines that are right.
    #[default]
    LastGood,
    /// The lines that are right are put in force.
    Skip,
}

/// Address at which the daemon's counters can be read in Prometheus' text format (`metrics`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricsAddress {
    /// Absolute path of a Unix socket.
    Unix(PathBuf),
    /// A TCP port of 127.0.0.1.
    Loopback(u16),
}

/// Digests of executed files in events (`exe_hash`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExeHash {
    /// No digests.
    None,
    /// SHA-256, and the measurement of fs-verity where a file has one.
    Sha256,
}

/// Node name that precedes each record (`name_format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameFormat {
    /// No node name.
    None,
    /// gethostname(2).
    Hostname,
    /// The host's fully qualified name.
    Fqd,
    /// The host's address.
    Numeric,
    /// The `name` key.
    User,
}

/// A free-space threshold (`space_left`, `admin_space_left`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceLimit {
    /// An absolute size.
    Mib(u64),
    /// A share of the whole file system, 0 to 99.
    Percent(u8),
}

/// Transport of events from remote hosts (`transport`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Clear text.
    Tcp,
    /// TLS 1.3 with a pre-shared key (audit 4.2).
    Tls,
    /// Kerberos 5.
    Krb5,
}

/// Keys about events from other hosts (`tcp_*`, `transport`, `krb5_*`, `tls_*`). They are parsed and
/// checked, but Tarsier does not listen for such events yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// `tcp_listen_port`, 1 to 65535; `None` means that auditd does not listen.
    pub tcp_listen_port: Option<u16>,
    /// `tcp_listen_queue`.
    pub tcp_listen_queue: u16,
    /// `tcp_max_per_addr`, 1 to 1024.
    pub tcp_max_per_addr: u16,
    /// `use_libwrap`.
    pub use_libwrap: bool,
    /// `tcp_client_ports`: first and last allowed source port.
    pub tcp_client_ports: (u16, u16),
    /// `tcp_client_max_idle`, in seconds; 0 means no limit.
    pub tcp_client_max_idle_s: u32,
    /// `transport`, or KRB5 if the older `enable_krb5` is set.
    pub transport: Transport,
    /// `krb5_principal`.
    pub krb5_principal: Option<String>,
    /// `krb5_key_file`.
    pub krb5_key_file: Option<PathBuf>,
    /// `distribute_network`.
    pub distribute_network: bool,
    /// The `tls_*` keys of audit 4.2, as written: (key, value).
    pub tls: Vec<(&'static str, String)>,
}

/// Keys about plugins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugins {
    /// `q_depth`, 0 to 99999 events.
    pub q_depth: u32,
    /// `overflow_action`.
    pub overflow_action: OverflowAction,
    /// `max_restarts`, per plugin.
    pub max_restarts: u32,
    /// `plugin_dir`.
    pub plugin_dir: PathBuf,
}

/// All settings of auditd.conf(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `local_events`: record events of this host.
    pub local_events: bool,
    /// `write_logs`: write a log at all.
    pub write_logs: bool,
    /// `log_file`, absolute.
    pub log_file: PathBuf,
    /// `log_format`.
    pub log_format: LogFormat,
    /// `identity`: events name unit, container, pod and ancestors. `None`: the format's default.
    pub identity: Option<bool>,
    /// `exe_hash`: events have digests of the files that they executed.
    pub exe_hash: ExeHash,
    /// `exe_hash_max`, in MiB: size up to which files are hashed.
    pub exe_hash_max_mib: u64,
    /// `seal`: keep a seal beside the log.
    pub seal: bool,
    /// `confinement`: what the daemon gives up before it arms anything.
    pub confinement: Confinement,
    /// `rules_error`: what a start does with rules of which some cannot be put in force.
    pub rules_error: RulesError,
    /// `compress_rotated`: compress files after rotation.
    pub compress_rotated: bool,
    /// `index_rotated`: make an index of each file after rotation.
    pub index_rotated: bool,
    /// `log_group`: group of the files, which may read them unless it is gid 0.
    pub log_group: Group,
    /// `priority_boost`: nice value to subtract.
    pub priority_boost: u32,
    /// `flush`.
    pub flush: Flush,
    /// `freq`: records between two syncs of the incremental modes.
    pub freq: u32,
    /// `num_logs`, 0 to 999: files that ROTATE keeps, the current one included. Below 2, ROTATE does
    /// nothing.
    pub num_logs: u32,
    /// `name_format`.
    pub name_format: NameFormat,
    /// `name`, for `name_format = USER`.
    pub name: Option<String>,
    /// `max_log_file`, in MiB; 0 means no limit.
    pub max_log_file_mib: u64,
    /// `max_log_file_action`.
    pub max_log_file_action: SizeAction,
    /// `verify_email`.
    pub verify_email: bool,
    /// `action_mail_acct`.
    pub action_mail_acct: String,
    /// `space_left`.
    pub space_left: SpaceLimit,
    /// `space_left_action`.
    pub space_left_action: FailureAction,
    /// `admin_space_left`.
    pub admin_space_left: SpaceLimit,
    /// `admin_space_left_action`.
    pub admin_space_left_action: FailureAction,
    /// `disk_full_action`.
    pub disk_full_action: FailureAction,
    /// `disk_error_action`.
    pub disk_error_action: FailureAction,
    /// Keys about events from other hosts.
    pub network: Network,
    /// Keys about plugins.
    pub plugins: Plugins,
    /// `end_of_event_timeout`: age in seconds at which readers of the log consider an event complete.
    pub end_of_event_timeout_s: u64,
    /// `report_interval` (audit 4.x), in seconds; 0 means never.
    pub report_interval_s: u64,
    /// `io_uring_twins` (Tarsier only): rules on system calls also select the io_uring operations
    /// that do the same.
    pub io_uring_twins: bool,
    /// `objects_before` (Tarsier only): the tracepoint engine records what a call removes or changes as it was before.
    pub objects_before: bool,
    /// `overload` (Tarsier only).
    pub overload: Overload,
    /// `urgent_keys` (Tarsier only): keys of rules whose events are made durable at once.
    pub urgent_keys: Vec<String>,
    /// `label_keys` (Tarsier only): events of rules with the key give their process the label.
    pub label_keys: Vec<(String, String)>,
    /// `rate_budgets` (Tarsier only): how many events per second each rule with this key records.
    pub rate_budgets: BTreeMap<String, u32>,
    /// `pin_dir` (Tarsier only): directory of the pins with which capture outlives the daemon;
    /// `None` if it is off.
    pub pin_dir: Option<PathBuf>,
    /// `metrics` (Tarsier only); `None` if it is off.
    pub metrics: Option<MetricsAddress>,
}

impl Config {
    /// Whether events name unit, container, pod and ancestors. If `identity` is not set, JSON does, and
    /// auditd's formats do not.
    pub fn tells_identity(&self) -> bool {
        self.identity.unwrap_or(self.log_format == LogFormat::Json)
    }

    /// Whether events name the ancestors of their processes: RAW has no place for them.
    pub fn tells_ancestors(&self) -> bool {
        self.tells_identity() && self.log_format != LogFormat::Raw
    }

    /// Whether events have the labels of their processes: RAW has no place for them.
    pub fn tells_labels(&self) -> bool {
        !self.label_keys.is_empty() && self.log_format != LogFormat::Raw
    }

    /// Size in bytes up to which executed files are hashed; `None` if events have no digests: RAW has no place for them.
    pub fn hashed_bytes_max(&self) -> Option<u64> {
        let is_told = self.exe_hash == ExeHash::Sha256 && self.log_format != LogFormat::Raw;
        is_told.then_some(self.exe_hash_max_mib << 20)
    }

    /// The values that auditd uses for keys that its file does not set (`clear_config()` in
    /// `auditd-config.c`; for some keys the man page differs).
    pub fn unset() -> Self {
        Config {
            local_events: true,
            write_logs: true,
            log_file: PathBuf::from("/var/log/audit/audit.log"),
            log_format: LogFormat::Enriched,
            identity: None,
            exe_hash: ExeHash::None,
            exe_hash_max_mib: 100,
            seal: false,
            confinement: Confinement::Yes,
            rules_error: RulesError::LastGood,
            compress_rotated: false,
            index_rotated: false,
            log_group: Group::root(),
            priority_boost: 4,
            flush: Flush::None,
            freq: 0,
            num_logs: 0,
            name_format: NameFormat::None,
            name: None,
            max_log_file_mib: 0,
            max_log_file_action: SizeAction::Ignore,
            verify_email: true,
            action_mail_acct: "root".into(),
            space_left: SpaceLimit::Mib(0),
            space_left_action: FailureAction::Ignore,
            admin_space_left: SpaceLimit::Mib(0),
            admin_space_left_action: FailureAction::Ignore,
            disk_full_action: FailureAction::Ignore,
            disk_error_action: FailureAction::Syslog,
            network: Network {
                tcp_listen_port: None,
                tcp_listen_queue: 5,
                tcp_max_per_addr: 1,
                use_libwrap: true,
                tcp_client_ports: (0, u16::MAX),
                tcp_client_max_idle_s: 0,
                transport: Transport::Tcp,
                krb5_principal: None,
                krb5_key_file: None,
                distribute_network: false,
                tls: Vec::new(),
            },
            plugins: Plugins {
                q_depth: 2000,
                overflow_action: OverflowAction::Syslog,
                max_restarts: 10,
                plugin_dir: PathBuf::from("/etc/audit/plugins.d"),
            },
            end_of_event_timeout_s: 2,
            report_interval_s: 0,
            io_uring_twins: true,
            objects_before: false,
            overload: Overload::Throttle,
            urgent_keys: Vec::new(),
            label_keys: Vec::new(),
            rate_budgets: BTreeMap::new(),
            pin_dir: None,
            metrics: None,
        }
    }

    /// The node name that precedes each record as `node=NAME `; `None` if `name_format` is NONE. FQD
    /// and NUMERIC ask the resolver, which may take long.
    ///
    /// # Errors
    /// The resolver does not know the host's name. As in auditd, this is an error.
    pub fn node_name(&self) -> Result<Option<String>, ConfigError> {
        let host = node::hostname();
        let resolved = |outcome: std::io::Result<String>, format| {
            outcome.map(Some).map_err(|source| ConfigError::NodeName {
                format,
                host: host.clone(),
                source,
            })
        };

        match self.name_format {
            NameFormat::None => Ok(None),
            NameFormat::User => Ok(self.name.clone()),
            NameFormat::Hostname => Ok(Some(host)),
            NameFormat::Fqd => resolved(node::canonical(&host), "FQD"),
            NameFormat::Numeric => resolved(node::address(&host), "NUMERIC"),
        }
    }

    /// Directory of the log file.
    pub fn log_dir(&self) -> &Path {
        match self.log_file.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("/"),
        }
    }
}

/// The values of the configuration file that auditd ships (with group root), which Tarsier also uses
/// if there is no file.
impl Default for Config {
    fn default() -> Self {
        Config {
            flush: Flush::IncrementalAsync,
            freq: 50,
            num_logs: 5,
            max_log_file_mib: 8,
            max_log_file_action: SizeAction::Rotate,
            space_left: SpaceLimit::Mib(75),
            space_left_action: FailureAction::Syslog,
            admin_space_left: SpaceLimit::Mib(50),
            admin_space_left_action: FailureAction::Suspend,
            disk_full_action: FailureAction::Suspend,
            disk_error_action: FailureAction::Suspend,
            ..Config::unset()
        }
    }
}
