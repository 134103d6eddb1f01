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
    let durable = ids_said_durable(&console)?;
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

/// The event ids of the lines `durable TIME:SERIAL` that the console shows whole.
///
/// The machine's power may be cut while it writes such a line. The first line of its next start
/// then follows the torn one without a line break.
fn ids_said_durable(console: &str) -> Result<BTreeSet<&str>> {
    let (whole, torn): (BTreeSet<_>, BTreeSet<_>) = ids(console, "durable ", "\r")
        .into_iter()
        .partition(|id| is_event_id(id));
    ensure!(
        torn.len() <= 1,
        "one cut tears one line of the console at most, not these: {torn:?}"
    );
    Ok(whole)
}

/// Tells whether `text` is `SECONDS.MILLISECONDS:SERIAL`.
fn is_event_id(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let parts = text
        .split_once(':')
        .and_then(|(time, serial)| Some((time.split_once('.')?, serial)));
    parts.is_some_and(|((seconds, milliseconds), serial)| {
        is_number(seconds)
            && milliseconds.len() == 3
            && is_number(milliseconds)
            && is_number(serial)
    })
}

/// Every text between `before` and `after`.
fn ids<'t>(text: &'t str, before: &str, after: &str) -> BTreeSet<&'t str> {
    let rest = text.split(before).skip(1);
    rest.filter_map(|rest| Some(rest.split_once(after)?.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_the_cut_tore_is_no_report() {
        for torn in ["17956039", "1795603943.427:12", ""] {
            let console = format!(
                "durable 1795603943.426:7\r\ndurable {torn}vm: disk on 6.12\r\nvm: disk ended\r\n"
            );
            let durable = ids_said_durable(&console).unwrap();
            assert_eq!(durable, BTreeSet::from(["1795603943.426:7"]));
        }
    }

    #[test]
    fn two_torn_lines_are_an_error() {
        let console = "durable 17\r\ndurable x.427:8\r\n";
        assert!(ids_said_durable(console).is_err());
    }
}
