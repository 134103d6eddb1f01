//! The page: its head, the state of the log, and the order of the rest.

use super::text::{grouped, range, span_text, stamp};
use super::{chart, escape, first, tables};
use query::overview::Finished;
use query::summary::{By, Summary, Table};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");
/// The page's style. The page has no script, font, picture or link to another place.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
/// Processes that are drawn, with their ancestors.
const PROCESSES: usize = 150;

/// Whether the log is sealed.
pub(super) enum Seal {
    /// There is no seal beside the log.
    Absent,
    /// There is a seal, but no key was given.
    NotVerified,
    /// The log is verified: unaltered and complete.
    Intact(String),
    /// The log is unaltered as far as the seal goes, but its end may be missing.
    NotClosed(String),
    /// The log was changed.
    Altered(String),
    /// The seal could not be verified.
    Failed(String),
}

/// Facts about a page: its logs, their seal and its time.
pub(super) struct About {
    /// Names of the logs.
    pub(super) logs: Vec<String>,
    /// The log's seal.
    pub(super) seal: Seal,
    /// Time of the report, in milliseconds since 1970.
    pub(super) made_ms: u64,
}

/// The whole page.
pub(super) fn page(summary: &Summary, overview: &Finished, about: &About) -> String {
    let mut out = String::with_capacity(1 << 20);
    head(&mut out, summary, about);
    state(&mut out, summary, about);
    first::tables(&mut out, overview);
    over_time(&mut out, summary);
    all_tables(&mut out, summary);
    out.push_str(
        "<h2 id=processes>Processes</h2><p class=soft>The processes with the most events, below their \
         parents. Dimmed: ancestors of them with fewer events.</p>",
    );

    tables::forest(&mut out, &summary.forest(PROCESSES));
    let _ = write!(
        out,
        "</main>\n<footer>Made by tarsier {} at {} UTC. All times are UTC. An event with several keys or \
         files counts for each of them.</footer></body></html>\n",
        env!("CARGO_PKG_VERSION"),
        stamp(about.made_ms)
    );

    out
}

fn head(out: &mut String, summary: &Summary, about: &About) {
    let count = summary.count();
    let shown = about
        .logs
        .iter()
        .take(3)
        .map(|log| escape::text(log.as_bytes(), 200));
    let mut logs = shown.collect::<Vec<_>>().join(", ");

    if about.logs.len() > 3 {
        let _ = write!(logs, " and {} more", about.logs.len() - 3);
    }

    let _ = write!(
        out,
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta http-equiv=Content-Security-Policy content=\"{POLICY}\">\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <meta name=color-scheme content=\"light dark\"><meta name=referrer content=no-referrer>\
         <title>Audit report</title>\n<style>{STYLE}</style></head>\n<body>\
         <a class=skip href=#state>Skip to the state of the log</a><header><h1>Audit report</h1>\
         <p class=soft>{logs}{}<br>{}</p><nav aria-label=Sections><ul>\
         <li><a href=#state>State of the log</a></li><li><a href=#first>What to look at first</a></li><li><a href=#time>Events over time</a></li>\
         <li><a href=#tables>Tables</a></li><li><a href=#processes>Processes</a></li></ul></nav></header>\n<main>",
        hosts(summary),
        match count.events {
            0 => "no events".to_owned(),
            _ => format!("{} UTC", range(count.first_ms, count.last_ms)),
        }
    );
}

fn hosts(summary: &Summary) -> String {
    let mut names = summary
        .nodes()
        .iter()
        .filter(|node| !node.is_empty())
        .peekable();
    if names.peek().is_none() {
        return String::new();
    }

    let shown: Vec<_> = names
        .by_ref()
        .take(5)
        .map(|node| escape::text(node, 100))
        .collect();
    let rest = names.count();

    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    format!("; hosts: {}{more}", shown.join(", "))
}

fn card(out: &mut String, class: &str, title: &str, figure: &str, text: &str) {
    let _ = write!(
        out,
        "<div class=\"card {class}\"><h3>{title}</h3><strong>{figure}</strong><p>{text}</p></div>"
    );
}

fn state(out: &mut String, summary: &Summary, about: &About) {
    let count = summary.count();
    out.push_str("<h2 id=state>State of the log</h2><div class=cards>");
    let of = summary.with_result();
    card(
        out,
        "",
        "Events",
        &grouped(count.events),
        "records of one call are one event",
    );

    card(
        out,
        "",
        "Failed",
        &grouped(count.failed),
        &format!("of {} that have a result", grouped(of)),
    );
    losses_card(out, summary);

    gaps_card(out, summary);
    seal_card(out, &about.seal);
    out.push_str("</div>");
    details(out, summary);
}

fn losses_card(out: &mut String, summary: &Summary) {
    let (lost, _, number) = summary.losses();
    match number {
        0 => card(
            out,
            "ok",
            "Losses",
            "none",
            "no record in this log says that events were lost",
        ),
        _ => card(
            out,
            "bad",
            "Losses",
            &format!("{} lost", grouped(lost)),
            &format!("said by {} op=events-lost", counted(number, "record")),
        ),
    }
}

fn gaps_card(out: &mut String, summary: &Summary) {
    let (_, number, missing) = summary.serial_gaps();
    let silence = match summary.silences().first() {
        Some(silence) => format!(
            "longest time without events: {}",
            span_text((silence.to_ms - silence.from_ms) / 1000)
        ),
        None => "no minute without events".to_owned(),
    };
    let mut text = match number {
        0 => silence,
        _ => format!(
            "in {} of serial numbers; {silence}",
            counted(number as u64, "range")
        ),
    };

    if summary.has_unfollowed_nodes() {
        text.push_str("; too many hosts to follow all of them");
    }

    match missing {
        0 => card(out, "ok", "Gaps", "none", &text),
        _ => card(
            out,
            "warn",
            "Gaps",
            &format!("{} missing", grouped(missing)),
            &text,
        ),
    }
}

fn seal_card(out: &mut String, seal: &Seal) {
    let (class, figure, text) = match seal {
        Seal::Absent => ("warn", "not sealed", "changes of this log cannot be found"),
        Seal::NotVerified => ("warn", "not verified", "sealed; --key FILE verifies it"),
        Seal::Intact(text) => ("ok", "intact", text.as_str()),
        Seal::NotClosed(text) => ("warn", "not closed", text.as_str()),
        Seal::Altered(text) => ("bad", "altered", text.as_str()),
        Seal::Failed(text) => ("warn", "not verified", text.as_str()),
    };

    card(
        out,
        class,
        "Seal",
        figure,
        &escape::text(text.as_bytes(), 400),
    );
}

/// The figures on the cards.
fn details(out: &mut String, summary: &Summary) {
    let (_, losses, number) = summary.losses();
    if !losses.is_empty() {
        rows(
            out,
            &listed("Losses", losses.len().min(50), number),
            "Time, lost, causes",
            |out| {
                for loss in losses.iter().take(50) {
                    let cause = escape::text(&loss.cause, 200);
                    let (time, lost) = (stamp(loss.time_ms), grouped(loss.lost));
                    let _ = write!(
                        out,
                        "<tr><td>{time}</td><td class=n>{lost}</td><td>{cause}</td></tr>"
                    );
                }
            },
        );
    }

    let (gaps, number, _) = summary.serial_gaps();
    if !gaps.is_empty() {
        let title = listed("Missing serial numbers", gaps.len(), number as u64);
        let note = "Time behind the gap, numbers, host. The records were lost, excluded by rules, or are in \
                    another file";
        rows(out, &title, note, |out| {
            for gap in &gaps {
                let (time, node) = (stamp(gap.time_ms), escape::text(&gap.node, 100));
                let size = grouped(gap.last - gap.first + 1);
                let _ = write!(
                    out,
                    "<tr><td>{time}</td><td class=n>{size}</td><td>{} to {} {node}</td></tr>",
                    gap.first, gap.last
                );
            }
        });
    }

    if !summary.silences().is_empty() {
        rows(
            out,
            "Longest times without events",
            "From, to, how long",
            |out| {
                for silence in summary.silences() {
                    let (from, to) = (stamp(silence.from_ms), stamp(silence.to_ms));
                    let span = span_text((silence.to_ms - silence.from_ms) / 1000);
                    let _ = write!(out, "<tr><td>{from}</td><td>{to}</td><td>{span}</td></tr>");
                }
            },
        );
    }

    marks(out, summary);
}

/// Starts and ends of the daemon.
fn marks(out: &mut String, summary: &Summary) {
    let (marks, number) = summary.marks();
    if !marks.is_empty() {
        let title = listed(
            "Starts and ends of the audit daemon",
            marks.len().min(50),
            number,
        );
        rows(out, &title, "Time, record", |out| {
            for mark in marks.iter().take(50) {
                let name = match mark.kind {
                    abi::record_type::DAEMON_START => "DAEMON_START",
                    abi::record_type::DAEMON_END => "DAEMON_END",
                    _ => "DAEMON_ABORT",
                };
                let _ = write!(
                    out,
                    "<tr><td>{}</td><td>{name}</td></tr>",
                    stamp(mark.time_ms)
                );
            }
        });
    }
}

/// A title that says how many of all entries are listed.
fn listed(title: &str, shown: usize, all: u64) -> String {
    if shown as u64 == all {
        title.to_owned()
    } else {
        format!("{title} ({shown} of {})", grouped(all))
    }
}

/// A number with its noun.
fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

fn rows(out: &mut String, title: &str, caption: &str, body: impl FnOnce(&mut String)) {
    let _ = write!(
        out,
        "<details class=more><summary>{title}</summary><table><caption>{caption}</caption><tbody>"
    );
    body(out);
    out.push_str("</tbody></table></details>");
}

fn over_time(out: &mut String, summary: &Summary) {
    let (start_s, width_s) = summary.intervals();
    let (_, losses, _) = summary.losses();
    let axis = chart::Axis {
        start_s,
        width_s,
        buckets: ((summary.count().last_ms / 1000).saturating_sub(start_s) / width_s + 1) as usize,
        losses,
    };

    out.push_str("<h2 id=time>Events over time</h2>");
    for (by, what) in [
        (By::Key, "key"),
        (By::User, "login user"),
        (By::Unit, "unit"),
    ] {
        let rows = summary.series(by, chart::LABELS);
        if rows.rows.is_empty() {
            let _ = write!(
                out,
                "<p class=soft>By {what}: no event of this log has one{}.</p>",
                match by {
                    By::Unit => " (identity = yes writes units into ENRICHED logs)",
                    _ => "",
                }
            );
        } else {
            chart::figure(out, what, &rows, &axis)
        }
    }
}

fn all_tables(out: &mut String, summary: &Summary) {
    out.push_str(
        "<h2 id=tables>Tables</h2><p class=soft>Each line opens (click, or Tab and Enter) to what it consists \
         of.</p>",
    );

    let tables: [(Table, &str, &str, &[usize]); 6] = [
        (
            Table::User,
            "Users",
            "Login user → session → process → file",
            &[8, 5, 6, 5],
        ),
        (
            Table::Failure,
            "Failures",
            "Error and call → login user → program",
            &[12, 5, 4],
        ),
        (
            Table::Key,
            "Keys",
            "Key of the rule → program → file",
            &[12, 6, 5],
        ),
        (Table::Unit, "Units", "Unit → program → file", &[12, 6, 5]),
        (Table::Program, "Programs", "Program → file", &[20, 8]),
        (Table::File, "Files", "File → program", &[30, 5]),
    ];

    for (table, title, path, most) in tables {
        tables::table(out, title, path, &summary.table(table, most));
    }
}
