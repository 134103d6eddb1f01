//! Judges the results of `tests/vm/evade`: how many selected calls an attacker made, and how many were recorded.

use std::path::Path;

use anyhow::{ensure, Result};
use testkit::evade::{Place, Verdict};

/// Engines, and the sets of techniques that were used under each.
const RUNS: [(&str, &[&str]); 2] = [
    ("tracepoint", &["all", "b64", "refused32", "flood"]),
    ("trampoline", &["all", "refused32", "flood"]),
];

/// Every selected call must be recorded; calls of a flood may be counted as lost instead. The text
/// has the numbers.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let mut said = Vec::new();
    let mut is_right = true;
    for (engine, sets) in RUNS {
        for set in sets {
            let name = format!("{engine}.{set}");
            let verdict = Verdict::of_run(dir, &name, Place::Guest).map_err(anyhow::Error::msg)?;
            is_right &= verdict.is_right();
            said.push(format!("{name}: {}", verdict.text()));
            let skipped = verdict.skipped.iter();
            said.extend(skipped.map(|skipped| format!("skipped: {name}: {skipped}")));
        }
    }

    let said = said.join("\n");
    ensure!(is_right, "calls are not in the log:\n{said}");

    Ok(said)
}
