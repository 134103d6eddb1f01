//! The tables that a responder and an auditor look at first.

use super::escape;
use super::text::{grouped, range};
use query::overview::{Finished, Hits, Shown};
use std::fmt::Write as _;

/// Rows of a table that are on the page.
const ROWS_MAX: usize = 100;
/// Largest size of a cell's HTML, in bytes.
const CELL_BYTES: usize = 200;

/// All tables.
pub(super) fn tables(out: &mut String, finished: &Finished) {
    out.push_str(
        "<h2 id=first>What to look at first</h2><p class=soft>tarsier report --overview has all rows, also as \
         CSV and JSON.</p>",
    );

    for shown in &finished.sections {
        let _ = write!(out, "<section class=table><h3>{}</h3>", shown.section.title);
        let is_unknown = shown.section.name == "programs" && !finished.has_before;
        if is_unknown {
            out.push_str(
                "<p class=soft>The log is not longer than a day: no program is known to be new.</p>",
            )
        } else {
            table(out, shown)
        }
        out.push_str("</section>\n");
    }
}

fn table(out: &mut String, shown: &Shown) {
    if shown.rows.is_empty() {
        out.push_str("<p class=soft>None in this log.</p>");
        return;
    }

    // Hosts are known only if records have node=.
    let has_host = shown.rows.iter().any(|(values, _)| values[0].is_some());
    let first = usize::from(!has_host);
    out.push_str("<table class=first><thead><tr>");
    for column in &shown.section.columns[first..] {
        let _ = write!(out, "<th scope=col>{column}</th>");
    }

    out.push_str("<th scope=col class=n>events</th><th scope=col>first and last (UTC)</th></tr></thead><tbody>");
    for (values, hits) in shown.rows.iter().take(ROWS_MAX) {
        row(out, &values[first..], hits);
    }

    out.push_str("</tbody></table>");
    let rest = &shown.rows[shown.rows.len().min(ROWS_MAX)..];
    if !rest.is_empty() || shown.unkept_hits > 0 {
        let events: u64 = rest.iter().map(|(_, hits)| hits.hits).sum();
        let _ = write!(
            out,
            "<p class=soft>{} further rows with {} events are not on this page.</p>",
            grouped(rest.len() as u64),
            grouped(events + shown.unkept_hits)
        );
    }
}

fn row(out: &mut String, values: &[Option<Box<[u8]>>], hits: &Hits) {
    out.push_str(if hits.failures > 0 {
        "<tr class=f>"
    } else {
        "<tr>"
    });

    for value in values {
        out.push_str("<td>");
        match value {
            Some(text) => escape::push(out, text, CELL_BYTES),
            None => out.push_str("<span class=soft>–</span>"),
        }
        out.push_str("</td>");
    }

    let ms = |(sec, msec): (u64, u32)| sec.saturating_mul(1000).saturating_add(msec.into());
    let _ = write!(
        out,
        "<td class=n>{}</td><td class=t>{}</td></tr>",
        grouped(hits.hits),
        range(ms(hits.first), ms(hits.last))
    );
}
