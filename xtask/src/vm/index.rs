//! Judges `tests/vm/index-icount`: an index of workloads like UnixBench's, in instructions.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

/// The sides, native first.
const SIDES: [&str; 5] = [
    "native",
    "native-again",
    "trampoline",
    "tracepoint",
    "kernel-audit",
];

/// The name of each workload, and the processor time of its quickest run in ns, which are instructions.
fn read(dir: &Path, side: &str) -> Result<Vec<(String, f64)>> {
    let path = dir.join(side);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let mut loads: Vec<(String, f64)> = Vec::new();

    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, _, _, processor_ns] = fields[..] else {
            bail!("{side}: expected four columns: {line}");
        };
        let processor_ns: f64 = processor_ns.parse().with_context(|| line.to_owned())?;
        match loads.last_mut().filter(|(last, _)| last == name) {
            Some((_, quickest)) => *quickest = quickest.min(processor_ns),
            None => loads.push((name.to_owned(), processor_ns)),
        }
    }

    Ok(loads)
}

/// A table of instructions, and the geometric mean of native's to each side's, as an index of which native has 100.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = read(dir, SIDES[0])?;
    let sides: Result<Vec<_>> = SIDES[1..].iter().map(|side| read(dir, side)).collect();
    let sides = sides?;
    let mut table = format!("{:<14}{:>14}", "instructions", SIDES[0]);
    for side in &SIDES[1..] {
        let _ = write!(table, "{side:>16}");
    }
    for (row, (name, base)) in native.iter().enumerate() {
        let _ = write!(table, "\n{name:<14}{base:>14.0}");
        for (side, loads) in SIDES[1..].iter().zip(&sides) {
            let load = loads.get(row).filter(|(other, _)| other == name);
            let (_, value) = load.with_context(|| format!("{side}: has no {name}"))?;
            let _ = write!(table, "{:>+14.2} %", (value / base - 1.0) * 100.0);
        }
    }

    let _ = write!(table, "\n{:<14}{:>14}", "index", 100);

    for (side, loads) in SIDES[1..].iter().zip(&sides) {
        ensure!(loads.len() == native.len(), "{side}: other workloads");
        let ratios = native
            .iter()
            .zip(loads)
            .map(|((_, base), (_, value))| base / value);
        let logarithms: f64 = ratios.map(f64::ln).sum();
        let _ = write!(
            table,
            "{:>16.1}",
            100.0 * (logarithms / native.len() as f64).exp()
        );
    }

    Ok(table)
}
