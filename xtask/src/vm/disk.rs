//! Judges the results of `tests/vm/disk`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

/// Least number of events that must have been reported as durable before the power was cut.
const DURABLE_MIN: usize = 300;

/// Every event that was reported as durable before the power cut must be in the log, in whole lines.
///
/// The guest itself has checked what it can.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let read = |path: &Path| {
        let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&text).into_owned())
    };
    // The console of the machine, over all its starts.
    let console = read(&dir.join("../../console.log"))?;
    let durable = ids(&console, "durable ", "\r");
    ensure!(
        durable.len() >= DURABLE_MIN,
        "{} events were reported as durable before the cut, expected {DURABLE_MIN}",
        durable.len()
    );
    let log = read(&dir.join("log.after-cut"))?;
    for (number, line) in log.split_inclusive('\n').enumerate() {
        let is_whole = line.starts_with("type=") && line.ends_with('\n') && !line.contains('\0');
        ensure!(is_whole, "line {} after the cut: {line:?}", number + 1);
    }
    let calls = log.lines().filter(|line| line.starts_with("type=SYSCALL "));
    let logged: BTreeSet<&str> = calls.flat_map(|line| ids(line, "audit(", ")")).collect();
    let missing: Vec<_> = durable.difference(&logged).take(5).collect();
    ensure!(
        missing.is_empty(),
        "reported as durable and not in the log after the cut: {missing:?}"
    );
    let said = read(&dir.join("output"))?;
    Ok(format!(
        "power cut: {} events durable, all of them among the {} in the log\n{}",
        durable.len(),
        logged.len(),
        said.trim_end()
    ))
}

/// Every text between `before` and `after`.
fn ids<'t>(text: &'t str, before: &str, after: &str) -> BTreeSet<&'t str> {
    let rest = text.split(before).skip(1);
    rest.filter_map(|rest| Some(rest.split_once(after)?.0))
        .collect()
}
