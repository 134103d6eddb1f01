//! Results of `tests/vm/pressure`: how many calls sixteen processes made at the same time, and how many were
//! recorded.

use super::guest::number_from;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

const ENGINES: [&str; 2] = ["tracepoint", "trampoline"];
/// Environment variable with the number of calls to make under each engine.
const VARIABLE: &str = "TARSIER_PRESSURE_CALLS";
const CALLS: u64 = 30_000;
/// Bytes of log per call, chosen so that the guest has memory left when half of it is used for the log.
const LOG_BYTES: u64 = 3000;
/// Lowest expected rate, under both engines one after the other and on a busy host: 250 to 500 were seen.
const CALLS_PER_SECOND_MIN: u64 = 50;

/// The number of calls to make under each engine, from the environment.
pub(super) fn calls() -> Result<u64> {
    number_from(VARIABLE, CALLS)
}

/// Additional memory that a guest needs for the log of these calls, in MiB.
pub(super) fn memory_mib(tests: &[&str]) -> Result<u32> {
    u32::try_from((more_calls(tests)? * LOG_BYTES) >> 20).context("no memory for so many calls")
}

/// Additional time that these calls may take, in seconds.
pub(super) fn limit_s(tests: &[&str]) -> Result<u64> {
    Ok(more_calls(tests)? / CALLS_PER_SECOND_MIN)
}

/// Number of calls beyond the default.
fn more_calls(tests: &[&str]) -> Result<u64> {
    if tests.contains(&"pressure") {
        Ok(calls()?.saturating_sub(CALLS))
    } else {
        Ok(0)
    }
}

/// Every call must be in the log, under each engine. The text says what was recorded and what was not.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut said = Vec::new();
    let mut is_right = true;
    for engine in ENGINES {
        let case = Case::read(dir, engine)?;
        is_right &= case.is_whole();
        said.push(format!("{engine}: {}", case.text()));
    }
    let said = said.join("\n");
    ensure!(is_right, "calls are not in the log:\n{said}");
    Ok(said)
}

/// The calls under one engine.
struct Case {
    /// Number of calls made and number in the log, by system call.
    calls: BTreeMap<String, [u64; 2]>,
    /// Counts of the daemon when it ended: lost for any cause, and missed by the kernel.
    lost: u64,
    missed: u64,
}

impl Case {
    fn read(dir: &Path, engine: &str) -> Result<Self> {
        let mut calls: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for (at, what) in ["made", "logged"].into_iter().enumerate() {
            for line in read(dir, &format!("{engine}.{what}"))?.lines() {
                let (name, count) = line.split_once(' ').context("NAME COUNT expected")?;
                calls.entry(name.to_owned()).or_default()[at] = count.parse()?;
            }
        }

        ensure!(!calls.is_empty(), "{engine}: no calls were made");
        let said = read(dir, &format!("{engine}.err"))?;
        let lost = said.lines().find_map(|line| {
            let rest = line.strip_prefix("tarsier: ")?.split_once(" dropped, ")?.1;
            rest.split_once(" lost;")?.0.parse().ok()
        });
        let missed = said.lines().find_map(|line| {
            let rest = line.strip_prefix("tarsier: lost ")?;
            rest.strip_suffix(": missed")?.parse().ok()
        });

        Ok(Case {
            calls,
            lost: lost.with_context(|| format!("{engine}: no summary at the end of:\n{said}"))?,
            missed: missed.unwrap_or(0),
        })
    }

    fn is_whole(&self) -> bool {
        let is_logged = self.calls.values().all(|[made, logged]| made == logged);
        is_logged && self.lost == 0 && self.missed == 0
    }

    fn text(&self) -> String {
        let sum = |at: usize| self.calls.values().map(|counts| counts[at]).sum::<u64>();
        let lost = self.lost - self.missed.min(self.lost);
        let unlike = self
            .calls
            .iter()
            .filter(|(_, [made, logged])| made != logged);
        let unlike: Vec<String> = unlike
            .map(|(name, [made, logged])| format!("{name} {logged} of {made}"))
            .collect();
        let mut text = format!(
            "{} made, {} recorded, {} missed, {lost} lost",
            sum(0),
            sum(1),
            self.missed
        );
        if !unlike.is_empty() {
            text += &format!(" ({})", unlike.join(", "));
        }

        text
    }
}

fn read(dir: &Path, name: &str) -> Result<String> {
    let path = dir.join(name);
    fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the guest's results, with `logged` of ten `kill` in the log, and judges them.
    fn judged(logged: u64, summary: &str) -> Result<String> {
        let dir = tempfile::tempdir().expect("a directory");
        for engine in ENGINES {
            let files = [
                ("made", "kill 10\nexecve 2\n".to_owned()),
                ("logged", format!("kill {logged}\nexecve 2\n")),
                ("err", format!("tarsier: armed\ntarsier: 12 events recorded, 0 candidates dropped, {summary}\n")),
            ];
            for (name, text) in files {
                fs::write(dir.path().join(format!("{engine}.{name}")), text).expect("a file");
            }
        }
        judge(dir.path())
    }

    #[test]
    fn every_call_must_be_in_the_log() {
        let said = judged(10, "0 lost; log /l").expect("whole");
        assert!(said.starts_with("tracepoint: 12 made, 12 recorded, 0 missed, 0 lost\n"));
    }

    #[test]
    fn what_is_missing_is_told_by_call_whether_counted_or_not() {
        let error = judged(7, "3 lost; log /l\ntarsier: lost 3: missed").expect_err("missed");
        let wanted = "12 made, 9 recorded, 3 missed, 0 lost (kill 7 of 10)";
        assert!(error.to_string().contains(wanted), "{error}");
        assert!(judged(9, "0 lost; log /l").is_err());
        assert!(judged(10, "1 lost; log /l\ntarsier: lost 1: ring_full").is_err());
    }
}
