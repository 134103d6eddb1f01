//! Judges `tests/vm/polled-icount`: what auditing adds to polled reads that nobody audits.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, ensure, Context, Result};

/// Modes of the ring: the process submits and polls, or the kernel's thread does.
const MODES: [&str; 2] = ["inline", "sqpoll"];
const CASES: [&str; 12] = [
    "native-again",
    "none.kernel-audit",
    "never.kernel-audit",
    "stig.kernel-audit",
    "other.kernel-audit",
    "none.trampoline",
    "stig.trampoline",
    "other.trampoline",
    "floor.tracepoint",
    "none.tracepoint",
    "stig.tracepoint",
    "other.tracepoint",
];
/// Number of runs of each case.
const RUNS: usize = 4;
/// Limit of the share of reads per second that a case may lose, in percent: the trampoline engine, and tracepoints if
/// no rule concerns io_uring.
const LOST_LIMIT: f64 = 2.0;

/// Instructions of a read in each mode, over the runs of a case: mean, and the distance of the runs from each other in
/// percent of it.
fn read(dir: &Path, case: &str) -> Result<[(f64, f64); 2]> {
    let path = dir.join(case);
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let of_mode = |mode: &str| {
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let runs = lines.filter(|(name, _)| *name == mode);
        let runs: Result<Vec<f64>, _> = runs.map(|(_, value)| value.parse()).collect();
        let runs = runs.with_context(|| format!("{case}: {text}"))?;
        ensure!(runs.len() == RUNS, "{case}: expected {RUNS} runs: {text}");
        let mean = runs.iter().sum::<f64>() / runs.len() as f64;
        let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = runs.iter().copied().fold(0.0, f64::max);
        Ok((mean, 100.0 * (high - low) / mean))
    };

    let [inline, sqpoll] = MODES.map(of_mode);

    Ok([inline?, sqpoll?])
}

/// A table of instructions per read and of the lost share of reads per second; an error where more than
/// [`LOST_LIMIT`] is lost.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let native = read(dir, "native")?;
    let mut table = format!("{:<20}", "instructions per read");
    for mode in MODES {
        let _ = write!(table, "{mode:>12}{:>10}{:>10}", "spread", "lost");
    }
    let mut wrong = Vec::new();

    for case in ["native"].iter().chain(&CASES) {
        let _ = write!(table, "\n{case:<20}");
        for ((mean, spread), (base, _)) in read(dir, case)?.into_iter().zip(native) {
            let lost = 100.0 * (1.0 - base / mean);
            let _ = write!(table, "{mean:>12.1}{spread:>8.2} %{lost:>8.2} %");
            let is_limited = case.ends_with(".trampoline") || *case == "none.tracepoint";
            if is_limited && lost > LOST_LIMIT {
                wrong.push(format!("{case}: {lost:.2} % lost, limit {LOST_LIMIT}"));
            }
        }
    }

    if !wrong.is_empty() {
        bail!("{}\n{table}", wrong.join("\n"));
    }

    Ok(table)
}
