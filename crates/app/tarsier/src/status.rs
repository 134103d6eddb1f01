//! `tarsier status`: prints the daemon's answer.

mod amounts;
mod makers;
mod memory;

use crate::answer::answered;
use crate::ctl;
use amounts::{short, time};
use anyhow::{Context, Result};
use cli::StatusArgs;
use daemon::protocol::{socket_path, Request, RuleCost, RulesInForce, RulesOrigin, Status};
use std::io::Write;

/// Exit status if another process has changed the capture.
const BREACHED: u8 = 2;

pub(crate) fn status(args: &StatusArgs) -> Result<u8> {
    let path = socket_path(&args.run_dir);
    let request = match args.by {
        Some(by) => makers::request(args, by),
        None if args.rules => Request::RuleCosts,
        None => Request::Status,
    };
    let text = ctl::ask(&path, &request).with_context(|| {
        format!(
            "no daemon answers at {}: is tarsier running, and are you root?",
            path.display()
        )
    })?;
    let mut out = std::io::stdout().lock();

    if args.by.is_some() {
        let costs = makers::answer(&text)?;
        if args.json {
            writeln!(out, "{}", text.trim())?
        } else {
            makers::print(&mut out, &costs)?
        }
        return Ok(0);
    }

    if args.json && args.rules {
        writeln!(out, "{}", text.trim())?;
        return Ok(0);
    }

    if args.rules {
        let costs: Vec<RuleCost> =
            serde_json::from_str(&text).context("the daemon's answer cannot be read")?;
        print_costs(&mut out, &costs)?;
        return Ok(0);
    }

    let status: Status =
        serde_json::from_str(&text).context("the daemon's answer cannot be read")?;

    if args.memory {
        let memory = memory::Memory::of(status.pid).context("the daemon's memory is not known")?;
        if args.json {
            writeln!(out, "{}", serde_json::to_string(&memory)?)?
        } else {
            memory.print(&mut out)?
        }
        return Ok(0);
    }

    let written = if args.json {
        writeln!(out, "{}", text.trim())
    } else {
        print(&mut out, &status)
    };

    let status = match status.integrity_breaches {
        0 => 0,
        _ => BREACHED,
    };
    answered(status, written.map_err(Into::into))
}

/// Prints where the rules in force are from, and what of the files is not in force.
fn print_rules(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    writeln!(
        out,
        "rules               {} (generation {})",
        s.rules, s.generation
    )?;
    let rules = &s.rules_in_force;
    match rules.origin {
        RulesOrigin::Files => {}
        RulesOrigin::Requests => writeln!(
            out,
            "  from              auditctl, which has deleted those of the files"
        )?,
        RulesOrigin::Locked => writeln!(
            out,
            "  from              the lock (-e 2), until the next boot"
        )?,
        RulesOrigin::GoodLines => writeln!(
            out,
            "  from              the lines of the files that are right"
        )?,
        RulesOrigin::LastGood => {
            let since = rules
                .good_since_s
                .and_then(|s| jiff::Timestamp::from_second(s).ok());
            let since = since.map_or_else(|| "?".to_owned(), |since| since.to_string());
            writeln!(
                out,
                "  from              the last rules without an error, first in force on {since}"
            )?;
        }
    }

    if rules.left_out_count == 0 {
        return Ok(());
    }

    writeln!(out, "RULES NOT IN FORCE  {}", rules.left_out_count)?;
    let shown = RulesInForce::SHOWN_MAX;
    for one in rules.left_out.iter().take(shown) {
        writeln!(out, "  {one}")?;
    }
    match rules.left_out_count.saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn print(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    writeln!(out, "pid                 {}", s.pid)?;
    writeln!(out, "engine              {} ({})", s.engine, s.hook)?;
    for gap in &s.gaps {
        writeln!(out, "without             {gap}")?;
    }
    writeln!(out, "uptime              {} s", s.uptime_s)?;
    print_rules(out, s)?;
    writeln!(out, "calls matched       {}", s.calls_matched)?;
    writeln!(out, "events selected     {}", s.events_selected)?;
    writeln!(
        out,
        "  candidates        {}, of them dropped {}",
        s.events_candidate, s.events_dropped
    )?;
    writeln!(out, "events recorded     {}", s.events_recorded)?;
    if s.events_cut > 0 {
        writeln!(out, "  cut               {}", s.events_cut)?;
    }
    if s.events_unsure > 0 {
        writeln!(out, "  unsure            {}", s.events_unsure)?;
    }
    if s.labels_missing > 0 {
        writeln!(out, "labels missing      {}", s.labels_missing)?;
    }
    if s.integrity_breaches > 0 {
        let count = s.integrity_breaches;
        writeln!(
            out,
            "CHANGED BY OTHERS   {count} times: op=integrity in the log"
        )?;
    }

    print_losses(out, s)?;
    print_log(out, s)?;
    writeln!(
        out,
        "not looked up       {} objects, {} names; {} helpers replaced, {} hang",
        s.objects_unanswered, s.names_unanswered, s.helpers_replaced, s.helpers_stuck
    )?;
    if s.events_out_of_time > 0 {
        let count = s.events_out_of_time;
        writeln!(out, "  out of time       {count} events")?;
    }

    print_identity(out, s)?;
    print_confinement(out, s)?;

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
        "calls slowed        {}, in total {}",
        s.calls_slowed,
        time(s.waited_ns)
    )
}

/// Prints what is known of cgroups and processes.
fn print_identity(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    if s.cgroups_unknown > 0 || s.cgroups_lost > 0 {
        let (events, lost) = (s.cgroups_unknown, s.cgroups_lost);
        writeln!(
            out,
            "cgroups             {} known; {events} events of unknown ones; {lost} changes not seen",
            s.cgroups_known
        )?;
    }

    if s.containers_unnamed > 0 {
        let count = s.containers_unnamed;
        writeln!(out, "containers          {count} without a name")?;
    }

    if s.processes_known > 0 {
        let (events, lost) = (s.ancestors_partial, s.processes_lost);
        writeln!(
            out,
            "processes           {} known, {} KiB; {events} events lack ancestors; {lost} changes not seen",
            s.processes_known,
            s.processes_bytes / 1024
        )?;
    }

    if let (Some(processes @ 1..), Some(threads)) = (s.audited_processes, s.audited_threads) {
        writeln!(
            out,
            "audited by kernel   {processes} processes, {threads} threads, started before: each of their \
             calls costs more,\n                    whatever the rules, until they are started again"
        )?;
    }

    Ok(())
}

/// Prints what the daemon has given up, and who starts programs for it.
fn print_confinement(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    match &s.confinement {
        None => writeln!(out, "confinement         none")?,
        Some(all) => {
            let others = if all.strict {
                "kill the daemon"
            } else {
                "fail"
            };
            writeln!(
                out,
                "confinement         {} system calls, others {others}",
                all.calls
            )?;
            let mark = |name, is_set| if is_set { name } else { "" };
            let oom = all
                .oom_score_adj
                .map_or("?".to_owned(), |score| score.to_string());
            writeln!(
                out,
                "  process           {}{}oom_score_adj {oom}",
                mark("no_new_privs, ", all.no_new_privs),
                mark("not dumpable, ", !all.dumpable)
            )?;
            writeln!(out, "  capabilities      {}", all.capabilities.join(" "))?;
            if all.bounding != all.capabilities {
                writeln!(out, "  bounding set      {}", all.bounding.join(" "))?;
            }
            if let Some(abi) = all.landlock_abi {
                let paths = all.writable.join(" ");
                writeln!(out, "  writes to         {paths} (Landlock {abi})")?;
            }
            for missing in &all.missing {
                writeln!(out, "  lacks             {missing}")?;
            }
        }
    }

    if let Some(spawner) = &s.spawner {
        let standby = spawner.standby.map(|pid| format!(", then {pid}"));
        let standby = standby.unwrap_or_default();
        if spawner.running {
            writeln!(
                out,
                "programs            started by process {}{standby}",
                spawner.pid
            )?
        } else {
            writeln!(
                out,
                "programs            CANNOT BE STARTED: restart tarsier"
            )?
        }
    }

    Ok(())
}

/// Prints what was lost: by cause, processor, rule and uid.
fn print_losses(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
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
    for (uid, count) in &s.lost_by_uid {
        writeln!(out, "  uid {uid:<14}{count}")?;
    }
    if !s.suppressed_by_rule.is_empty() {
        let all: u64 = s.suppressed_by_rule.values().sum();
        writeln!(out, "over rate_budgets   {all}")?;
    }

    for (rule, count) in &s.suppressed_by_rule {
        writeln!(out, "  rule {rule:<13}{count}")?;
    }

    Ok(())
}

/// Prints where records come from and go to.
fn print_log(out: &mut impl Write, s: &Status) -> std::io::Result<()> {
    let from = if s.kernel_records {
        "received"
    } else {
        "not received: Tarsier does not own the audit socket"
    };
    writeln!(
        out,
        "kernel records      {} {from}",
        s.kernel_records_received
    )?;
    let fill = f64::from(s.ring_fill_per_mille) / 10.0;
    writeln!(out, "fullest ring        {fill:.1} %")?;
    let pause = time(s.reader_pause_us * 1000);
    writeln!(out, "longest pause       {pause}")?;
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

/// Prints a table of 80 columns. Keys that are longer than their column are cut.
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
