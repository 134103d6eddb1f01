//! Reports on hosts, for people and for programs.

use super::ranges::{Hole, Why};
use super::{HostReport, Seals, SeriesReport, Verdict};
use journal::seal::time_text;
use journal::seal::verify::{End, Report};
use serde_json::{json, Value};
use std::io::{self, Write};

/// Largest number of holes and contradictions that are printed; the count of the rest follows.
const LISTED_MAX: usize = 20;

/// Prints what each host has.
///
/// # Errors
/// `out` cannot be written.
pub fn print(hosts: &[HostReport], out: &mut impl Write) -> io::Result<()> {
    for host in hosts {
        if let Some(error) = &host.error {
            writeln!(out, "{}: UNKNOWN: {error}", host.host)?;
        }
        for series in &host.series {
            print_series(&host.host, series, out)?;
        }
    }
    Ok(())
}

fn print_series(host: &str, report: &SeriesReport, out: &mut impl Write) -> io::Result<()> {
    let ranges = &report.ranges;
    let is_whole = ranges.holes.is_empty();
    writeln!(
        out,
        "{host}: series {}: {} from {} to {}: {} events{}{}",
        report.series,
        if is_whole { "complete" } else { "NOT COMPLETE" },
        ranges.from,
        ranges.to,
        ranges.events,
        count(
            ranges.filtered,
            ", %n kept back by filters or counted with others"
        ),
        count(ranges.repeated, ", %n messages repeated"),
    )?;

    let lines = ranges.holes.iter().map(hole_text);
    let lines = lines.chain(
        ranges
            .contradictions
            .iter()
            .map(|text| format!("ALTERED: {text}")),
    );
    let lines: Vec<String> = lines.collect();
    for line in lines.iter().take(LISTED_MAX) {
        writeln!(out, "{host}: {line}")?;
    }

    if lines.len() > LISTED_MAX {
        writeln!(out, "{host}: and {} more", lines.len() - LISTED_MAX)?;
    }
    match &report.seals {
        Seals::NotAsked => writeln!(out, "{host}: seals were not compared"),
        Seals::Unknown(why) => writeln!(out, "{host}: SEALS UNKNOWN: {why}"),
        Seals::Checked(checked) => print_seals(host, report, checked, out),
    }
}

fn print_seals(
    host: &str,
    report: &SeriesReport,
    checked: &Report,
    out: &mut impl Write,
) -> io::Result<()> {
    for note in &checked.notes {
        writeln!(
            out,
            "{host}: note: {}: {}",
            file_name(&note.path),
            note.text
        )?;
    }

    if let Some(finding) = &checked.finding {
        let bytes = finding.bytes.as_ref();
        let bytes = bytes.map_or(String::new(), |b| {
            format!("bytes {} to {}: ", b.start, b.end)
        });
        let path = file_name(&finding.path);
        writeln!(out, "{host}: ALTERED: {path}: {bytes}{}", finding.what)?;
    }

    let until = checked.until_ms().map_or_else(|| "?".to_owned(), time_text);
    let end = match checked.end {
        _ if checked.finding.is_some() => "",
        _ if report.ranges.filtered > 0 => "; behind the first filtered event nothing is compared",
        End::InOrder if report.unsealed_bytes == 0 => "; the log was closed in order",
        End::Vouched => "; younger than was asked for",
        _ => "; what followed has not arrived, or was stopped",
    };

    writeln!(
        out,
        "{host}: sealed until {until}{}{end}",
        count(
            report.unsealed_bytes,
            ", %n bytes after that not sealed yet"
        ),
    )
}

fn hole_text(hole: &Hole) -> String {
    match hole.why {
        Why::Missing => format!("MISSING from {} to {}", hole.from, hole.to),
        Why::Dropped(events) => format!(
            "DROPPED by the sender from {} to {}: {events} events",
            hole.from, hole.to
        ),
    }
}

/// The text with the number in place of `%n`; nothing for 0.
fn count(number: u64, text: &str) -> String {
    match number {
        0 => String::new(),
        _ => text.replace("%n", &number.to_string()),
    }
}

/// A re-created file by its number in the series.
fn file_name(path: &std::path::Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy());
    let name = name.unwrap_or_default();
    let number = name
        .split('.')
        .next()
        .and_then(|text| text.parse::<u64>().ok());
    number.map_or_else(|| name.to_string(), |number| format!("file {number}"))
}

/// The same as JSON.
pub fn to_json(hosts: &[HostReport], verdict: Verdict) -> Value {
    let hosts = hosts.iter().map(|host| {
        let series: Vec<Value> = host.series.iter().map(series_json).collect();
        json!({"host": host.host, "error": host.error, "series": series})
    });
    json!({"verdict": word(verdict), "hosts": hosts.collect::<Vec<_>>()})
}

fn series_json(report: &SeriesReport) -> Value {
    let ranges = &report.ranges;
    let holes = ranges.holes.iter().map(|hole| {
        let events = match hole.why {
            Why::Missing => None,
            Why::Dropped(events) => Some(events),
        };
        json!({"from": hole.from.to_string(), "to": hole.to.to_string(), "dropped_events": events})
    });

    let (checked, why) = match &report.seals {
        Seals::Checked(checked) => (Some(checked), None),
        Seals::Unknown(why) => (None, Some(why.as_str())),
        Seals::NotAsked => (None, Some("not asked for")),
    };
    let finding = checked.and_then(|checked| checked.finding.as_ref());

    json!({
        "series": report.series.to_string(),
        "verdict": word(report.verdict()),
        "from": ranges.from.to_string(),
        "to": ranges.to.to_string(),
        "events": ranges.events,
        "filtered": ranges.filtered,
        "repeated": ranges.repeated,
        "missing": holes.collect::<Vec<_>>(),
        "contradictions": ranges.contradictions,
        "sealed_until_ms": checked.and_then(Report::until_ms),
        "unsealed_bytes": report.unsealed_bytes,
        "finding": finding.map(|finding| format!("{}: {}", file_name(&finding.path), finding.what)),
        "seals_unknown": why,
    })
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Intact => "intact",
        Verdict::Altered => "altered",
        Verdict::Unknown => "unknown",
        Verdict::Open => "not closed",
    }
}
