//! `tarsier status`, and what the daemon answers.

use crate::cli::StatusArgs;
use crate::ctl::{self, protocol::Request};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Path of the status socket below a run directory.
pub(crate) fn socket_path(run_dir: &Path) -> PathBuf {
    run_dir.join("tarsier.sock")
}

/// The daemon's answer.
#[derive(Serialize, Deserialize, Debug, Clone, Default)]
pub(crate) struct Status {
    pub(crate) pid: u32,
    pub(crate) engine: String,
    pub(crate) hook: String,
    pub(crate) rules: usize,
    pub(crate) generation: u64,
    pub(crate) kernel_records: bool,
    pub(crate) uptime_s: u64,
    /// Calls that were matched against the rules.
    pub(crate) calls_matched: u64,
    /// Events that reached a ring.
    pub(crate) events_selected: u64,
    /// Of those, decided by the second stage.
    pub(crate) events_candidate: u64,
    /// Candidates that the second stage dropped: no rule selects them.
    pub(crate) events_dropped: u64,
    /// Events of the engine in the log.
    pub(crate) events_recorded: u64,
    /// Records that the kernel or programs made.
    pub(crate) kernel_records_received: u64,
    /// Events lost, by cause.
    pub(crate) lost: BTreeMap<String, u64>,
    /// Events lost, by CPU.
    pub(crate) lost_by_cpu: Vec<u64>,
    /// Events lost, by key of the rule that selected them.
    pub(crate) lost_by_rule: BTreeMap<String, u64>,
    /// Fullest ring, parts per thousand.
    pub(crate) ring_fill_per_mille: u32,
    pub(crate) log_file: String,
    pub(crate) log_events: u64,
    pub(crate) log_bytes: u64,
    pub(crate) log_suspended: bool,
}

pub(crate) fn status(args: &StatusArgs) -> Result<u8> {
    let path = socket_path(&args.run_dir);
    let text = ctl::ask(&path, &Request::Status).with_context(|| {
        format!(
            "no daemon answers at {}: is tarsier running, and are you root?",
            path.display()
        )
    })?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", text.trim_end())?;
        return Ok(0);
    }
    let status: Status = serde_json::from_str(&text).context("the daemon's answer is not clear")?;
    print(&mut out, &status)?;
    Ok(0)
}

fn print(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    writeln!(out, "pid                 {}", s.pid)?;
    writeln!(out, "engine              {} ({})", s.engine, s.hook)?;
    writeln!(out, "uptime              {} s", s.uptime_s)?;
    writeln!(
        out,
        "rules               {} (generation {})",
        s.rules, s.generation
    )?;
    writeln!(out, "calls matched       {}", s.calls_matched)?;
    writeln!(out, "events selected     {}", s.events_selected)?;
    writeln!(
        out,
        "  candidates        {}, of them dropped {}",
        s.events_candidate, s.events_dropped
    )?;
    writeln!(out, "events recorded     {}", s.events_recorded)?;
    writeln!(out, "events lost         {}", s.lost.values().sum::<u64>())?;
    for (cause, count) in &s.lost {
        writeln!(out, "  {cause:<18}{count}")?;
    }
    for (cpu, count) in s
        .lost_by_cpu
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        writeln!(out, "  cpu {cpu:<14}{count}")?;
    }
    for (rule, count) in &s.lost_by_rule {
        writeln!(out, "  rule {rule:<13}{count}")?;
    }
    let from = if s.kernel_records {
        "received"
    } else {
        "not received: socket not ours"
    };
    writeln!(
        out,
        "kernel records      {} {from}",
        s.kernel_records_received
    )?;
    let fill = f64::from(s.ring_fill_per_mille) / 10.0;
    writeln!(out, "fullest ring        {fill:.1} %")?;
    let suspended = if s.log_suspended { ", suspended" } else { "" };
    writeln!(out, "log                 {}{suspended}", s.log_file)?;
    writeln!(
        out,
        "  written           {} events, {} bytes",
        s.log_events, s.log_bytes
    )
}
