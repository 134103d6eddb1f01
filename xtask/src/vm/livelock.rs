//! Judges `tests/vm/livelock-icount`: how long a login shell takes beside a flood, when both are audited.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

use super::floods::numbers;

/// Limit of the shell's p99 beside the flood, as a multiple of its p99 without, under Tarsier.
const SLOWER_LIMIT: f64 = 3.0;

/// A table of the shell's p99 in ms, the flood's calls in 5 s, and lost events; an error where Tarsier makes the shell
/// slower than the limit, or loses events under THROTTLE. Beside four floods, and while the daemon is stopped, times
/// are only shown.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(dir.join(name));
        text.with_context(|| format!("reading {name}"))
    };
    let mut table = format!(
        "{:<22}{:>10}{:>10}{:>8}{:>12}{:>12}{:>12}{:>10}",
        "ms, p99", "quiet", "flooded", "ratio", "four floods", "stopped", "flood made", "lost"
    );
    let mut wrong = Vec::new();

    for case in read("cases")?.lines() {
        let p99_ms = |state: &str| -> Result<f64> {
            let text = read(&format!("{case}.{state}"))?;
            let [_, _, p99_ns] =
                numbers(&text).with_context(|| format!("{case}.{state}: {text}"))?;
            Ok(p99_ns as f64 / 1e6)
        };
        let is_ours = case.starts_with("tra");
        let (quiet, flooded) = (p99_ms("quiet")?, p99_ms("flooded")?);
        let ratio = flooded / quiet;
        let stopped = if is_ours {
            format!("{:.2}", p99_ms("stopped")?)
        } else {
            String::new()
        };
        let made = read(&format!("{case}.made"))?;
        let [made, _] = numbers(&made).with_context(|| format!("{case}.made: {made}"))?;
        let lost = read(&format!("{case}.lost"))?;
        let lost = lost.trim();
        let four = p99_ms("four")?;
        let _ = write!(
            table,
            "\n{case:<22}{quiet:>10.2}{flooded:>10.2}{ratio:>8.2}{four:>12.2}{stopped:>12}{made:>12}{lost:>10}"
        );
        if is_ours && ratio > SLOWER_LIMIT {
            wrong.push(format!(
                "{case}: p99 is {ratio:.2} times as long, limit {SLOWER_LIMIT}"
            ));
        }
        if case.contains(".THROTTLE") && lost != "0" {
            wrong.push(format!("{case}: {lost} events lost"));
        }
    }

    if wrong.is_empty() {
        Ok(table)
    } else {
        bail!("{}\n{table}", wrong.join("\n"))
    }
}
