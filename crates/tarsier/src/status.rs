//! `tarsier status`, and what the daemon answers.

use crate::ctl::{self, protocol::Request};
use anyhow::{Context, Result};
use cli::StatusArgs;
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
    /// Where capture is pinned, so that it goes on when the daemon is killed.
    #[serde(default)]
    pub(crate) pin_dir: Option<String>,
    pub(crate) hook: String,
    /// What the kernel lacks of what the engine's programs use, each with what is less exact without it.
    #[serde(default)]
    pub(crate) gaps: Vec<String>,
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
    /// Whether a log is written: `write_logs`.
    pub(crate) log_written: bool,
    pub(crate) log_events: u64,
    pub(crate) log_bytes: u64,
    pub(crate) log_suspended: bool,
    /// Syncs of the log that succeeded.
    pub(crate) log_syncs: u64,
    /// Calls that waited at their end because their ring was filling up.
    pub(crate) calls_slowed: u64,
    /// How long they waited, together, nanoseconds.
    pub(crate) waited_ns: u64,
    /// From a call to its record being durable, microseconds: p50, p99, longest. Each event counts
    /// as old as the oldest that was written with it. None before the first sync.
    pub(crate) durable_after_us: Option<[u64; 3]>,
    /// The active plugins.
    #[serde(default)]
    pub(crate) plugins: Vec<PluginStatus>,
}

/// A plugin of `plugin_dir`.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PluginStatus {
    /// Name of its file.
    pub(crate) name: String,
    /// Whether its program runs, or its socket is there.
    pub(crate) running: bool,
    /// Records in its queue.
    pub(crate) queued: u64,
    /// Records that it was sent.
    pub(crate) passed: u64,
    /// Records left out: its queue was full, or it had ended.
    pub(crate) lost: u64,
    /// How often its program was started again.
    pub(crate) restarts: u32,
}

/// What a rule in force has cost since it was loaded.
#[derive(Serialize, Deserialize, Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RuleCost {
    /// Place in the rule set, from 1, as `tarsier plan` shows it.
    pub(crate) position: usize,
    /// Its keys, with commas between them.
    pub(crate) key: Option<String>,
    /// The rule in auditctl's words.
    pub(crate) rule: String,
    /// Events in the log.
    pub(crate) events: u64,
    /// Events that came for it as a candidate and were dropped. One event may have had several
    /// candidates, and counts for each.
    pub(crate) dropped: u64,
    /// Bytes of log lines.
    pub(crate) bytes: u64,
    /// Events lost on the way to the daemon.
    pub(crate) lost: u64,
    /// Time in the daemon, nanoseconds, with reading the ring, looking up names and encoding;
    /// without writing the log. Each batch of events is timed and shared out by the bytes that
    /// each rule has in it, where a dropped event counts as 256 bytes.
    pub(crate) spent_ns: u64,
}

pub(crate) fn status(args: &StatusArgs) -> Result<u8> {
    let path = socket_path(&args.run_dir);
    let request = match args.rules {
        true => Request::RuleCosts,
        false => Request::Status,
    };
    let text = ctl::ask(&path, &request).with_context(|| {
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
    if args.rules {
        let costs: Vec<RuleCost> =
            serde_json::from_str(&text).context("the daemon's answer is not clear")?;
        print_costs(&mut out, &costs)?;
        return Ok(0);
    }
    let status: Status = serde_json::from_str(&text).context("the daemon's answer is not clear")?;
    print(&mut out, &status)?;
    Ok(0)
}

fn print(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    writeln!(out, "pid                 {}", s.pid)?;
    writeln!(out, "engine              {} ({})", s.engine, s.hook)?;
    for gap in &s.gaps {
        writeln!(out, "without             {gap}")?;
    }
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
    print_log(out, s)?;
    for plugin in &s.plugins {
        let state = if plugin.running { "" } else { ", not running" };
        writeln!(out, "plugin              {}{state}", plugin.name)?;
        writeln!(
            out,
            "  records           {} passed on, {} queued, {} left out; {} restarts",
            plugin.passed, plugin.queued, plugin.lost, plugin.restarts
        )?;
    }
    writeln!(
        out,
        "calls slowed        {}, together {}",
        s.calls_slowed,
        time(s.waited_ns)
    )
}

/// Where records come from and go to.
fn print_log(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
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
    let state = match (s.log_written, s.log_suspended) {
        (false, _) => ", not written",
        (true, true) => ", suspended",
        (true, false) => "",
    };
    writeln!(out, "log                 {}{state}", s.log_file)?;
    writeln!(
        out,
        "  written           {} events, {} bytes, {} syncs",
        s.log_events, s.log_bytes, s.log_syncs
    )?;
    if let Some([p50, p99, longest]) = s.durable_after_us {
        let [p50, p99, longest] = [p50, p99, longest].map(|us| time(us * 1000));
        writeln!(
            out,
            "  durable after     p50 {p50}, p99 {p99}, longest {longest}"
        )?;
    }
    Ok(())
}

/// A table of 80 columns. Keys that are longer than theirs are cut.
fn print_costs(out: &mut impl Write, costs: &[RuleCost]) -> std::io::Result<()> {
    const KEY_LEN: usize = 23;
    writeln!(
        out,
        "{:>4}  {:<KEY_LEN$} {:>9} {:>9} {:>7} {:>9} {:>10}",
        "rule", "key", "events", "dropped", "lost", "bytes", "time"
    )?;
    for cost in costs {
        let key: String = match cost.key.as_deref() {
            None => "(no key)".to_owned(),
            Some(key) if key.chars().count() <= KEY_LEN => key.to_owned(),
            Some(key) => key.chars().take(KEY_LEN - 1).chain(['…']).collect(),
        };
        writeln!(
            out,
            "{:>4}  {key:<KEY_LEN$} {:>9} {:>9} {:>7} {:>9} {:>10}",
            cost.position,
            short(cost.events),
            short(cost.dropped),
            short(cost.lost),
            short(cost.bytes),
            time(cost.spent_ns)
        )?;
    }
    Ok(())
}

/// A count in at most 7 columns: from a million on with a unit, as in 1234.5 G.
fn short(count: u64) -> String {
    scaled(
        count,
        &[
            (1_000_000_000_000, " T"),
            (1_000_000_000, " G"),
            (1_000_000, " M"),
        ],
    )
    .unwrap_or_else(|| count.to_string())
}

/// A time with its unit.
fn time(ns: u64) -> String {
    scaled(
        ns,
        &[(1_000_000_000, " s"), (1_000_000, " ms"), (1_000, " µs")],
    )
    .unwrap_or_else(|| format!("{ns} ns"))
}

fn scaled(value: u64, units: &[(u64, &str)]) -> Option<String> {
    let (size, unit) = units.iter().find(|(size, _)| value >= *size)?;
    Some(format!("{:.1}{unit}", value as f64 / *size as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_cost_is_shown_in_80_columns() {
        let cost = RuleCost {
            position: 2000,
            key: Some("a-key-that-is-longer-than-its-column".to_owned()),
            events: 999_999,
            dropped: 123_456_789,
            bytes: 999_900_000_000,
            lost: 0,
            spent_ns: 999_900_000_000,
            ..RuleCost::default()
        };
        let mut out = Vec::new();
        print_costs(&mut out, &[cost, RuleCost::default()]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "rule  key                        events   dropped    lost     bytes       time\n\
             2000  a-key-that-is-longer-t…    999999   123.5 M       0   999.9 G    999.9 s\n   \
             0  (no key)                        0         0       0         0       0 ns\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }
}
