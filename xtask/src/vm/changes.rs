//! Judges `tests/vm/changes`: rules that need other hooks, beside a process that makes selected calls. The guest's
//! clock counts instructions, so that the times do not depend on this host.

use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};

/// Longest time in which the daemon may neither read the rings nor wait for events.
const PAUSE_US_MAX: u64 = 50_000;
/// Longest time that a change of the rules may take, as seen by the process that asked for it.
const CHANGE_MS_MAX: u64 = 1000;

pub(super) fn judge(dir: &Path) -> Result<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(dir.join(name));
        text.with_context(|| format!("reading {name}"))
    };
    let number = |name: &str| -> Result<u64> {
        let text = read(name)?;
        text.trim()
            .parse()
            .with_context(|| format!("{name}: {text}"))
    };
    let (made, recorded) = (number("made")?, number("recorded")?);
    let status: serde_json::Value = serde_json::from_str(&read("status.json")?)?;
    let lost = status["lost"].as_object().context("lost is not there")?;
    let lost: u64 = lost.values().filter_map(serde_json::Value::as_u64).sum();
    let pause_us = status["reader_pause_us"].as_u64();
    let pause_us = pause_us.context("reader_pause_us is not there")?;
    let mut slowest = ("", 0);
    let changes = read("changes")?;
    for line in changes.lines() {
        let (what, took_ms) = line.split_once(' ').context("WHAT MILLISECONDS expected")?;
        let took_ms = took_ms.parse().with_context(|| line.to_owned())?;
        if took_ms >= slowest.1 {
            slowest = (what, took_ms);
        }
    }

    let (what, took_ms) = slowest;
    let said = format!(
        "{made} calls, {recorded} recorded, {lost} lost; longest pause of the reader {:.1} ms; slowest of {} changes \
         {took_ms} ms ({what})",
        pause_us as f64 / 1000.0,
        changes.lines().count(),
    );
    ensure!(
        made > 0 && made == recorded && lost == 0,
        "events are missing: {said}"
    );
    ensure!(
        pause_us <= PAUSE_US_MAX,
        "the rings were not read for more than {PAUSE_US_MAX} us: {said}"
    );
    ensure!(
        took_ms <= CHANGE_MS_MAX,
        "a change took more than {CHANGE_MS_MAX} ms: {said}"
    );

    Ok(said)
}
