//! The command lines of `tarsier`: commands, options and their help, and the way in which commands and the daemon
//! print messages ([`messages`]). No code that carries out commands is here.
//!
//! This is a separate crate so that `cargo xtask man` can make manual pages and completions from
//! the same definitions as the program.

// Doc comments here are help texts that users read: a type that only holds a command's options has none.
#![allow(missing_docs)]

pub mod central;
pub mod ctl;
pub mod export;
pub mod forward;
pub mod messages;
pub mod report;
pub mod search;
pub mod seccomp;
pub mod top;

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Default directory of a daemon's socket, its lock and the state it has to restore.
pub const RUN_DIR: &str = "/run/tarsier";

/// Default directory for what outlives a reboot.
pub const STATE_DIR: &str = "/var/lib/tarsier";

/// System-call auditing with the rules and the log of the Linux audit system, through eBPF.
#[derive(Parser, Debug)]
#[command(name = "tarsier", version, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Arm rules and record what they select, until stopped or until COMMAND ends
    Run(RunArgs),
    /// Show which hooks the rules need, what they cost and how exactly they are honoured
    Plan(PlanArgs),
    /// Show the running daemon's engine, events and losses
    Status(StatusArgs),
    /// Report what works on this host, what does not, and what to do (status 0: all works, 1: with
    /// limits, 2: something does not)
    Doctor(DoctorArgs),
    /// Replace auditd with Tarsier, or put auditd back
    Migrate(MigrateArgs),
    /// Stop the daemon, and wait until it has stopped
    Stop(StopArgs),
    /// Check, optimise and merge rules files
    #[command(subcommand)]
    Rules(RulesCommand),
    /// Print log files (COMPACT, compressed or plain) as text, for example to pipe them to `ausearch`
    Cat(CatArgs),
    /// Find events in logs with ausearch's options; see `tarsier search -h`
    #[command(disable_help_flag = true)]
    Search {
        /// ausearch's options, after --compat
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Report on logs with aureport's options, and more; see `tarsier report --help`
    #[command(disable_help_flag = true)]
    Report {
        /// aureport's options, after --compat
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Show live who makes events, and with which programs and files
    Top(top::TopArgs),
    /// Write events as a Parquet table for DuckDB, ClickHouse, pandas or Spark
    Export(export::ExportArgs),
    /// Send the log off the host, by tarsier-forward; see `tarsier forward -h`
    #[command(disable_help_flag = true)]
    Forward {
        /// Options of tarsier-forward
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Create the keys of a sealed log, which reveals any later change
    #[command(subcommand)]
    Seal(SealCommand),
    /// Verify that a sealed log is unaltered (status 0: intact, 1: altered, 2: not verifiable,
    /// 3: intact, but its end may be missing); with --from, verify what hosts have sent, by
    /// tarsier-forward: see `tarsier forward verify -h`
    Verify(VerifyArgs),
    /// Make, learn, inspect and apply seccomp filters
    #[command(subcommand)]
    Seccomp(seccomp::SeccompCommand),
    /// Change rules and settings with auditctl's options; see `tarsier ctl -h`
    #[command(disable_help_flag = true)]
    Ctl {
        /// auditctl's options, after --kernel, --run-dir or --dialect
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
}

/// The text that a command whose options clap does not parse prints for `-h`.
pub fn usage(command: &str) -> Option<&'static str> {
    match command {
        "ctl" => Some(ctl::USAGE),
        "search" => Some(search::SEARCH_USAGE),
        "report" => Some(report::REPORT_USAGE),
        _ => None,
    }
}

#[derive(Subcommand, Debug)]
pub enum RulesCommand {
    /// Report problems in rules, and how to solve them (status 0: none, 1: some, 2: error)
    Check(RulesCheckArgs),
    /// Find equivalent rules that cost less, and show what changes and what that saves
    Optimise(RulesOptimiseArgs),
    /// Merge a directory's rules into one file, as augenrules does, and print it
    Merge(RulesMergeArgs),
    /// Print the lines that the checks of a baseline want word for word and that the rules do not have
    Emit(RulesBaselineArgs),
    /// Report what a baseline's checks, which compare text, will miss in the rules, and whether other rules select the
    /// same (status 0: nothing, 1: something, 2: error)
    Scan(RulesBaselineArgs),
}

/// Form in which a log is printed.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CatFormat {
    /// Without the names that numbers stand for
    Raw,
    /// As stored in the file; COMPACT files contain the names
    Enriched,
}

#[derive(Args, Debug)]
pub struct CatArgs {
    /// Form of the text
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "enriched",
        ignore_case = true
    )]
    pub format: CatFormat,
    /// Also print the rotated files of each FILE, oldest first
    #[arg(long)]
    pub rotated: bool,
    /// Skip the writes in COMPACT files whose events are all earlier, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub since: Option<u32>,
    /// Skip the writes in COMPACT files whose events are all later, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub until: Option<u32>,
    /// Log files
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub enum SealCommand {
    /// Create the host's keys beside the log, and the verification key, which must not stay on the host
    Init(SealInitArgs),
}

#[derive(Args, Debug)]
pub struct SealInitArgs {
    /// auditd.conf(5) that names the log [default: /etc/audit/auditd.conf]
    #[arg(long, value_name = "FILE", conflicts_with = "log_file")]
    pub config: Option<PathBuf>,
    /// The log to be sealed
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// New file for the verification key, instead of standard output: below /run (tmpfs) or on
    /// another host
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Allow FILE on a disk, which then has to leave the host
    #[arg(long, requires = "key")]
    pub on_disk: bool,
}

#[derive(Args, Debug)]
pub struct VerifyArgs {
    /// Verification key that `tarsier seal init` created
    #[arg(long, value_name = "FILE", required_unless_present = "index")]
    pub key: Option<PathBuf>,
    /// Check the indexes of `tarsier search` against the log, instead of the seal
    #[arg(long, conflicts_with_all = ["key", "max_age", "json"])]
    pub index: bool,
    /// Reject a seal that ends longer ago than this, unless it was closed in order: 2m, 1h
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    pub max_age: Option<Duration>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// The log, which is verified with its rotated files; or several files, oldest first
    #[arg(value_name = "LOG", required = true)]
    pub logs: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RulesMergeArgs {
    /// Directory of *.rules
    #[arg(value_name = "DIR", default_value = "/etc/audit/rules.d")]
    pub directory: PathBuf,
    /// Only compare FILE with what would be printed (status 0: equal, 1: different)
    #[arg(long, value_name = "FILE", num_args = 0..=1,
          default_missing_value = "/etc/audit/audit.rules")]
    pub check: Option<PathBuf>,
    /// Load the rules into the running Tarsier
    #[arg(long, conflicts_with = "check")]
    pub load: bool,
    /// Load them into the kernel's own audit instead
    #[arg(long, requires = "load")]
    pub kernel: bool,
    /// The daemon's --run-dir
    #[arg(long, value_name = "DIR", default_value = RUN_DIR)]
    pub run_dir: PathBuf,
}

#[derive(Args, Debug)]
pub struct RulesBaselineArgs {
    /// Baseline whose checks are meant; `list` prints all names, with source and version
    #[arg(long = "for", value_name = "BASELINE")]
    pub baseline: String,
    /// Rules file, or directory of *.rules merged as augenrules does; may be repeated
    #[arg(value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RulesOptimiseArgs {
    /// Rules file, or directory of *.rules merged as augenrules does
    #[arg(value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// For kernel audit: first, a never rule on the calls that no rule can match. Records of SELinux,
    /// AppArmor and seccomp on these calls then have no SYSCALL record beside them
    #[arg(long)]
    pub leading_never: bool,
    /// Write the rules and settings to FILE; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub write: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RulesCheckArgs {
    /// Rules file, or directory of *.rules merged as augenrules does
    #[arg(value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
    /// Audit log (RAW or ENRICHED): also report which keys fill it
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Instead report what a start of the daemon would not put in force, for timers and package hooks
    /// (status 0: nothing, 2: something)
    #[arg(long, conflicts_with = "log")]
    pub boot: bool,
    /// With --boot: the daemon's --state-dir
    #[arg(long, value_name = "DIR", default_value = STATE_DIR, requires = "boot")]
    pub state_dir: PathBuf,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

/// Engine that captures events.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// The best engine that loads on this kernel
    Auto,
    /// eBPF programs at the ends of the kernel's functions: calls that no rule names cost nothing
    Trampoline,
    /// eBPF programs on tracepoints
    Tracepoint,
    /// The kernel's own audit, with the rules loaded there
    Kernel,
}

/// Form of the log.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// The kernel's text
    Raw,
    /// RAW, plus the names that numbers stand for
    Enriched,
    /// One JSON object per event
    Json,
    /// ENRICHED, compressed; read with `tarsier cat`
    Compact,
}

#[derive(Args, Debug)]
pub struct RunArgs {
    /// Rules file, or directory of *.rules merged as augenrules does; may be repeated
    #[arg(long, value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
    /// auditd.conf(5) [default: /etc/audit/auditd.conf if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Log file, instead of the configuration's log_file
    #[arg(long, value_name = "FILE")]
    pub log_file: Option<PathBuf>,
    /// Form of the log, instead of the configuration's log_format
    #[arg(long, value_name = "FORMAT", ignore_case = true)]
    pub log_format: Option<LogFormat>,
    /// Engine that captures events
    #[arg(long, default_value = "auto")]
    pub engine: Engine,
    /// Stop after this time: 10s, 5m, 1h, or seconds
    #[arg(long, value_name = "T", value_parser = parse_duration)]
    pub duration: Option<Duration>,
    /// Show one line per event, and a status line on a terminal
    #[arg(long)]
    pub live: bool,
    /// Size of each CPU's ring buffer, in KiB, at least 128 [default: 4096, less with more than 64 CPUs]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(128..=1_048_576))]
    pub ring_size: Option<u32>,
    /// Directory for the status socket, the lock and the state to restore
    #[arg(long, value_name = "DIR", default_value = RUN_DIR)]
    pub run_dir: PathBuf,
    /// Directory for the rules that were last in force without an error, which a start with wrong rules takes
    /// [default: /var/lib/tarsier, or with another --run-dir, that directory]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Directory on a BPF file system that keeps capture alive if the daemon is killed, instead of
    /// the configuration's pin_dir
    #[arg(long, value_name = "DIR")]
    pub pin_dir: Option<PathBuf>,
    /// Socket of the service that starts programs (tarsier-spawner.socket), instead of a process of
    /// this daemon's own
    #[arg(long, value_name = "SOCKET", conflicts_with = "command")]
    pub spawner: Option<PathBuf>,
    /// Leave the kernel's audit socket alone; not possible with --engine kernel, which reads it
    #[arg(long)]
    pub no_kernel_records: bool,
    /// Show the rules in the kernel's own list, too, where auditctl lists and changes them; what it
    /// changes there is taken over
    #[arg(long, conflicts_with = "no_kernel_records")]
    pub kernel_list: bool,
    /// Program to run while recording; when it ends, Tarsier stops with the same status
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Args, Debug)]
pub struct PlanArgs {
    /// Rules file, or directory of *.rules merged as augenrules does; may be repeated
    #[arg(long, value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
    /// Engine to plan for
    #[arg(long, default_value = "auto")]
    pub engine: Engine,
    /// Show this system call instead: its candidates, fields and tables; may be repeated
    #[arg(long = "syscall", value_name = "NAME")]
    pub syscalls: Vec<String>,
    /// Predict what the rules will cost this host instead: `live` counts the calls that it makes, LOG (a file, or a
    /// directory with audit.log) has events like those that the rules will record
    #[arg(long, value_name = "live|LOG", conflicts_with = "syscalls")]
    pub profile: Option<PathBuf>,
    /// Time for which `--profile live` counts
    #[arg(long, value_name = "N", default_value_t = 10, requires = "profile",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub seconds: u32,
    /// Show the kernel's memory for the rules instead: loads the programs, attaches none, and asks the kernel
    #[arg(long, conflicts_with_all = ["syscalls", "profile"])]
    pub memory: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct StopArgs {
    /// Leave pinned programs armed for the next daemon: calls are still recorded
    #[arg(long, conflicts_with = "disarm")]
    pub keep: bool,
    /// Also remove what a daemon left that was killed or stopped with --keep. Where audit had never
    /// been enabled, a rule never,task stays in the kernel: `auditctl -d never,task` removes it
    #[arg(long)]
    pub disarm: bool,
    /// The daemon's --run-dir
    #[arg(long, value_name = "DIR", default_value = RUN_DIR)]
    pub run_dir: PathBuf,
}

/// Property by which makers of events are told apart.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusBy {
    /// systemd's system unit
    Unit,
    /// Innermost container
    Container,
    /// Real uid
    Uid,
    /// Path of the executable
    Exe,
}

/// Count by which makers of events are sorted.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusSort {
    /// Bytes of log lines
    Bytes,
    /// Number of events
    Events,
    /// Time in the daemon
    Time,
}

#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Show the cost of each loaded rule, most bytes first
    #[arg(long)]
    pub rules: bool,
    /// Show who fills the log, by KIND: events, bytes of log lines, bytes per second in the
    /// last 10 to 20 s, and the daemon's time. Losses are known by uid only; status without --by counts
    /// them by cause, processor and rule
    #[arg(long, value_name = "KIND", conflicts_with = "rules")]
    pub by: Option<StatusBy>,
    /// Show the memory that the daemon, its helpers, and its BPF programs and maps take, as the kernel accounts for it
    #[arg(long, conflicts_with_all = ["rules", "by"])]
    pub memory: bool,
    /// With --by: number of names; the others are counted together
    #[arg(long, value_name = "N", default_value_t = 20, requires = "by")]
    pub top: usize,
    /// With --by: what names are sorted by
    #[arg(long, value_name = "COUNT", default_value = "bytes", requires = "by")]
    pub sort: StatusSort,
    /// With --by: count the last 10 to 20 s only, not all since the daemon's start
    #[arg(long, requires = "by")]
    pub recent: bool,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
    /// The daemon's --run-dir
    #[arg(long, value_name = "DIR", default_value = RUN_DIR)]
    pub run_dir: PathBuf,
}

#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Rules file, or directory of *.rules merged as augenrules does; may be repeated
    #[arg(long, value_name = "PATH", default_value = "/etc/audit/rules.d")]
    pub rules: Vec<PathBuf>,
    /// auditd.conf(5) [default: /etc/audit/auditd.conf if it exists]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args, Debug)]
pub struct MigrateArgs {
    /// Change nothing: say for each rule, setting and plugin whether it will be honoured, and what a
    /// scanner will find (status 0: all, 1: with differences, 2: with parts that would not be in
    /// force)
    #[arg(long)]
    pub check: bool,
    /// Undo what `tarsier migrate` did
    #[arg(long, conflicts_with_all = ["check", "json"])]
    pub back: bool,
    /// Run as tarsier.service: mask auditd's units, and replace auditctl and augenrules by links to
    /// Tarsier. Without it, Tarsier becomes auditd.service, and all files of auditd stay
    #[arg(long, conflicts_with = "back")]
    pub own_unit: bool,
    /// Print JSON, for programs
    #[arg(long, requires = "check")]
    pub json: bool,
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "ms" => {
            return number
                .parse()
                .map(Duration::from_millis)
                .map_err(|_| format!("{text}: expected a time such as 10s, 5m, 1h or 500ms"))
        }
        _ => {
            return Err(format!(
                "{text}: expected a time such as 10s, 5m, 1h or 500ms"
            ))
        }
    };

    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .map(Duration::from_secs)
        .ok_or_else(|| format!("{text}: expected a time such as 10s, 5m, 1h or 500ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse_duration("250ms"), Ok(Duration::from_millis(250)));
        for wrong in [
            "",
            "s",
            "1d",
            "-1",
            "99999999999999999999",
            "18446744073709551615h",
        ] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
