//! Results of `tests/vm/workloads-icount`: whole workloads in instructions, for every side.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

/// The sides, native first. The second one shows how much a count varies by itself.
const SIDES: [&str; 5] = [
    "native",
    "native-again",
    "trampoline",
    "tracepoint",
    "kernel-audit",
];

/// A workload on one side; times are in ns, which are instructions.
struct Load {
    name: String,
    amount: u64,
    /// Time of all processes of the workload.
    processor_ns: u64,
    /// Number of events in the log.
    events: u64,
}

/// A table of processor time per workload, in percent above native; an error if a side did other
/// work than native, or lost events.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = read(dir, SIDES[0])?;
    let mut table = format!("{:<14}{:>14}", "instructions", "native");
    for side in &SIDES[1..] {
        let _ = write!(table, "{side:>16}");
    }
    let others: Result<Vec<Vec<Load>>> = SIDES[1..].iter().map(|side| read(dir, side)).collect();
    let others = others?;

    for (row, base) in native.iter().enumerate() {
        let _ = write!(table, "\n{:<14}{:>14}", base.name, base.processor_ns);
        for (side, loads) in SIDES[1..].iter().zip(&others) {
            let load = loads.get(row).filter(|load| {
                load.name == base.name && load.amount == base.amount && load.processor_ns > 0
            });
            let Some(load) = load else {
                bail!("{side}: {} is not what native did", base.name);
            };
            let added = load.processor_ns as f64 / base.processor_ns as f64 - 1.0;
            let _ = write!(table, "{:>+14.2} %", added * 100.0);
        }
    }

    let lost = text(dir, "lost")?;
    ensure!(
        lost.lines().count() == 3 && lost.lines().all(|line| line.ends_with(" 0")),
        "events were lost:\n{lost}{table}"
    );
    let events = |loads: &[Load]| loads.iter().map(|load| load.events).sum::<u64>();
    let counts: Vec<u64> = others.iter().map(|loads| events(loads)).collect();
    ensure!(
        counts[0] == 0 && counts[1] > 0 && counts[1..].iter().all(|count| *count == counts[1]),
        "events logged by {:?}: {counts:?}\n{table}",
        &SIDES[1..]
    );

    Ok(table)
}

fn text(dir: &Path, name: &str) -> Result<String> {
    let path = dir.join(name);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Reads one side's file: name, amount, elapsed ns, processor ns, the logger's processor ns, events, candidates
/// dropped.
fn read(dir: &Path, side: &str) -> Result<Vec<Load>> {
    let text = text(dir, side)?;
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, amount, _, processor, _, events, _] = fields[..] else {
            return None;
        };
        Some(Load {
            name: name.to_string(),
            amount: amount.parse().ok()?,
            processor_ns: processor.parse().ok()?,
            events: events.parse().ok()?,
        })
    };

    match text.lines().map(parse).collect::<Option<Vec<Load>>>() {
        Some(loads) if !loads.is_empty() => Ok(loads),
        _ => bail!("{side}: expected seven columns per workload:\n{text}"),
    }
}
