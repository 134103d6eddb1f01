//! `tarsier seccomp learn`: a profile of the calls that a program makes.

use super::{log_reader, source};
use anyhow::{Context as _, Result};
use cli::seccomp::LearnArgs;
use daemon::stderr::say;
use seccomp::policy::Abi;
use seccomp::profile::learned::{Observed, VALUES_MAX};
use seccomp::profile::Context;
use seccomp_kernel::calls::{CallCounter, CallCounts};
use seccomp_kernel::launch::{Launch, Program};
use std::io::Write;

/// Learns a profile. Returns 0, or the program's exit status.
pub(super) fn learn(args: &LearnArgs) -> Result<u8> {
    let context = source::context(&args.with)?;
    let old = match &args.merge {
        Some(path) => {
            let text = source::text(path)?;
            let old = Observed::from_profile(&text, &context);
            Some(old.with_context(|| path.display().to_string())?)
        }
        None => None,
    };
    let (mut seen, status) = match &args.log {
        Some(log) => (log_reader::observed(log, args.exe.as_deref())?, 0),
        None => record(args)?,
    };
    if args.counts {
        print_counts(&seen)?;
        return Ok(status);
    }
    if let Some(old) = old {
        seen.merge(old);
    }
    let profile = format!("{:#}\n", seen.profile(context.native));
    match &args.output {
        Some(path) => std::fs::write(path, profile)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))?,
        None => std::io::stdout().lock().write_all(profile.as_bytes())?,
    }
    summary(&seen);
    if let Some(path) = &args.report {
        report(&seen, path, &context)?;
    }
    Ok(status)
}

/// Runs the program and records it.
fn record(args: &LearnArgs) -> Result<(Observed, u8)> {
    let program = Program::find(&args.command)?;
    let counter = CallCounter::start(&log_reader::telling_calls()).context(
        "learning from a running program needs BPF, as root has it; --log learns from a log",
    )?;
    let mut launch = Launch::start(&program, None)?;
    counter.follow(launch.pidfd())?;
    launch.go();
    let status = launch.wait()?;
    let counts = counter.counts()?;
    let [calls, values, tasks] = counts.missed;
    if calls + values + tasks > 0 {
        say!(
            "tarsier: the profile is incomplete: {calls} calls, {values} values and {tasks} tasks \
             did not fit; learn in shorter runs and merge them"
        );
    }
    Ok((observed(&counts), status))
}

fn observed(counts: &CallCounts) -> Observed {
    let mut seen = Observed::default();
    for (&(arch, nr), &count) in &counts.calls {
        let is_wide = Abi::of(arch, nr).is_none_or(Abi::has_wide_args);
        let mask = if is_wide { u64::MAX } else { 0xffff_ffff };
        let Some(name) = seen.add(arch, nr, count) else {
            continue;
        };
        for &value in counts
            .values
            .get(&(arch, nr))
            .into_iter()
            .flat_map(|values| values.keys())
        {
            seen.add_value(name, value & mask);
        }
    }
    seen
}

fn print_counts(seen: &Observed) -> Result<()> {
    let mut rows: Vec<(&String, &u64)> = seen.calls.iter().collect();
    rows.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let mut out = std::io::stdout().lock();
    for (name, count) in rows {
        writeln!(out, "{count:>12} {name}")?;
    }
    Ok(())
}

fn summary(seen: &Observed) {
    let limited = seen
        .values
        .values()
        .filter(|values| values.len() <= VALUES_MAX)
        .count();
    say!(
        "tarsier: {} system calls, {limited} of them for some values of an argument only",
        seen.calls.len()
    );
    for (abi, nr) in &seen.unnamed {
        say!(
            "tarsier: call {nr} of {} has no name: no profile can allow it",
            abi.oci_name()
        );
    }
}

/// Prints the calls that another profile allows and the program never used.
fn report(seen: &Observed, path: &std::path::Path, context: &Context) -> Result<()> {
    let policy = source::policy(path, context)?;
    let native: Abi = context.native;
    let unused = seen.unused(&policy, native);
    say!(
        "tarsier: {} allows {} calls of {} that were never used:",
        path.display(),
        unused.len(),
        native.systemd_name()
    );
    let mut line = String::from("   ");
    for name in unused {
        if line.len() + name.len() > 98 {
            say!("{line}");
            line = String::from("   ");
        }
        line = line + " " + name;
    }
    say!("{line}");
    Ok(())
}
