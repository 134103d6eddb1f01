//! Judges `tests/vm/floods`: who floods the rings is slowed or loses events, and his neighbour is not and does not.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use serde_json::Value;

/// How much slower the neighbour's calls may be beside a flood that is recorded than beside one that is not, at p99.
const SLOWER_MAX: f64 = 0.05;

/// Counts of the rule with this key: events in the log, and lost.
fn counts(rules: &Value, key: &str) -> Result<[u64; 2]> {
    let rules = rules.as_array().context("a list of rules expected")?;
    let rule = rules.iter().find(|rule| rule["key"] == key);
    let rule = rule.with_context(|| format!("no rule with key {key}"))?;
    let count = |name: &str| {
        rule[name]
            .as_u64()
            .with_context(|| format!("{key}: no {name}"))
    };
    Ok([count("events")?, count("lost")?])
}

/// The two numbers of `WORD N WORD N`.
fn numbers(text: &str) -> Option<[u64; 2]> {
    let mut words = text.split_whitespace().skip(1).step_by(2);
    Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
}

pub(super) fn judge(dir: &Path) -> Result<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(dir.join(name));
        text.with_context(|| format!("reading {name}"))
    };
    let pair = |name: &str| -> Result<[u64; 2]> {
        let text = read(name)?;
        numbers(&text).with_context(|| format!("{name}: {text}"))
    };
    let mut said = String::new();
    let mut wrong = Vec::new();
    let mut usual_ns = 0;
    for run in read("runs")?.lines() {
        let [made, urgent] = pair(&format!("{run}.flood"))?;
        let [few, p99_ns] = pair(&format!("{run}.neighbour"))?;
        let rules: Value = serde_json::from_str(&read(&format!("{run}.rules"))?)?;
        let [recorded, lost] = counts(&rules, "flood")?;
        let [recorded_urgent, lost_urgent] = counts(&rules, "urgent")?;
        let [recorded_few, lost_few] = counts(&rules, "quiet")?;
        writeln!(
            said,
            "{run}: flood {made} made, {recorded} recorded, {lost} lost; urgent {urgent} made, {recorded_urgent} recorded; \
             neighbour {few} made, {recorded_few} recorded, p99 {p99_ns} ns"
        )?;
        let mut expect = |is_so: bool, what: &str| {
            if !is_so {
                wrong.push(format!("{run}: {what}"));
            }
        };
        expect(
            recorded_few == few && lost_few == 0,
            "the neighbour lost events",
        );
        if run.ends_with(".none") {
            usual_ns = p99_ns;
            continue;
        }
        expect(made == recorded + lost, "made is not recorded and lost");
        expect(
            urgent == recorded_urgent + lost_urgent,
            "urgent: made is not recorded and lost",
        );
        expect(lost_urgent == 0, "urgent events were lost");
        expect(
            lost == 0 || run.contains(".DROP."),
            "events were lost although calls wait",
        );
        expect(
            lost > 0 || !run.contains(".DROP."),
            "nothing was dropped: there was no overload",
        );
        let slowest_ns = usual_ns as f64 * (1.0 + SLOWER_MAX);
        expect(
            p99_ns as f64 <= slowest_ns,
            "the neighbour's calls were slower",
        );
    }
    ensure!(wrong.is_empty(), "{}\n{said}", wrong.join("\n"));
    Ok(said.trim_end().to_owned())
}
