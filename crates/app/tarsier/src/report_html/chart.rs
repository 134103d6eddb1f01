//! Events over time as inline SVG: all events above, failed ones below, stacked by label.

use super::escape;
use super::text::{grouped, span_text, stamp};
use query::summary::{Bucket, Loss, SeriesRow, SeriesRows};
use std::fmt::Write as _;

/// Labels that have a colour of their own. The last colour is that of the others.
pub(super) const LABELS: usize = 7;
/// Height of a picture in its own units.
const HEIGHT: u64 = 1000;

/// The time axis, which all charts of a page share.
pub(super) struct Axis<'a> {
    /// Start of the first interval, in seconds since 1970.
    pub(super) start_s: u64,
    /// Length of an interval in seconds.
    pub(super) width_s: u64,
    /// Number of intervals, up to that of the last event.
    pub(super) buckets: usize,
    /// Times of losses, which the time axis marks.
    pub(super) losses: &'a [Loss],
}

impl Axis<'_> {
    /// Start of an interval, in milliseconds since 1970.
    fn start_ms(&self, bucket: u64) -> u64 {
        let more_s = self.width_s.saturating_mul(bucket);
        self.start_s.saturating_add(more_s).saturating_mul(1000)
    }

    /// Start of an interval as text, without seconds if they do not matter.
    fn tick(&self, bucket: u64) -> String {
        let mut text = stamp(self.start_ms(bucket));
        if self.width_s >= 60 {
            text.truncate(text.rfind(':').unwrap_or(text.len()));
        }
        text
    }
}

struct Layer<'r> {
    label: String,
    colour: usize,
    row: &'r SeriesRow,
}

/// A figure of `rows`, with its legend as a table. `what` names the labels: "key".
pub(super) fn figure(out: &mut String, what: &str, rows: &SeriesRows, axis: &Axis<'_>) {
    let layers = layers(rows);
    let buckets = axis.buckets;
    let _ = write!(
        out,
        "<figure><figcaption><h3>By {what}</h3><span class=soft>Each bar is {}.</span></figcaption>",
        span_text(axis.width_s)
    );

    out.push_str("<div class=plot>");
    panel(out, &layers, buckets, axis, Part::All);
    panel(out, &layers, buckets, axis, Part::Failed);
    losses(out, buckets, axis);
    let ticks = [0, buckets as u64 / 2, buckets as u64].map(|at| axis.tick(at));
    let _ = write!(
        out,
        "<span></span><div class=x><span>{}</span><span>{}</span><span>{}</span></div></div>",
        ticks[0], ticks[1], ticks[2]
    );

    legend(out, what, &layers);
    if rows.is_pruned {
        out.push_str("<p class=soft>Labels with few events are counted among the others.</p>");
    }

    out.push_str("</figure>\n");
}

fn layers(rows: &SeriesRows) -> Vec<Layer<'_>> {
    let mut layers: Vec<_> = rows
        .rows
        .iter()
        .enumerate()
        .map(|(colour, row)| Layer {
            label: escape::text(&row.label, 160),
            colour,
            row,
        })
        .collect();
    layers.extend(rows.others.as_ref().map(|row| Layer {
        label: match (rows.others_number, rows.is_pruned) {
            (_, true) => "(all others)".to_owned(),
            (number, false) => format!("({number} others)"),
        },
        colour: LABELS,
        row,
    }));

    layers
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    All,
    Failed,
}

impl Part {
    fn of(self, bucket: Option<&Bucket>) -> u64 {
        bucket.map_or(0, |bucket| bucket[usize::from(self == Part::Failed)])
    }
}

fn panel(out: &mut String, layers: &[Layer<'_>], buckets: usize, axis: &Axis<'_>, part: Part) {
    let value = |layer: &Layer<'_>, at: usize| part.of(layer.row.buckets.get(at));
    let height = |at: usize| layers.iter().map(|layer| value(layer, at)).sum::<u64>();
    let top = (0..buckets).map(height).max().unwrap_or(0);
    let (class, name) = match part {
        Part::All => ("all", "events"),
        Part::Failed => ("failed", "failed"),
    };

    let _ = write!(
        out,
        "<div class=y>{}<br>{name}</div><svg class={class} viewBox=\"0 0 {} {HEIGHT}\" \
         preserveAspectRatio=none role=img aria-label=\"{name} over time, at most {top} in {}; figures \
         in the table below\">",
        grouped(top),
        buckets.max(1),
        span_text(axis.width_s)
    );

    let mut base = vec![0; buckets];
    for layer in layers {
        let mut path = String::new();
        for (at, base) in base.iter_mut().enumerate() {
            let more = value(layer, at);
            if more == 0 {
                continue;
            }
            let (low, high) = (scaled(*base, top), scaled(*base + more, top));
            let (y, up) = (HEIGHT - low, (high - low).max(1));
            let _ = write!(path, "M{at} {y}v-{up}h.92v{up}z");
            *base += more;
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=c{} d=\"{path}\"/>", layer.colour);
        }
    }

    for at in (0..buckets).filter(|at| part == Part::All && height(*at) > 0) {
        let failed: u64 = layers
            .iter()
            .map(|layer| Part::Failed.of(layer.row.buckets.get(at)))
            .sum();
        let _ = write!(
            out,
            "<rect x={at} width=1 height={HEIGHT}><title>from {}: {} events, {} failed</title></rect>",
            stamp(axis.start_ms(at as u64)),
            grouped(height(at)),
            grouped(failed)
        );
    }

    out.push_str("</svg>");
}

fn scaled(value: u64, top: u64) -> u64 {
    (u128::from(value) * u128::from(HEIGHT) / u128::from(top.max(1))) as u64
}

/// Marks of the intervals in which the daemon wrote that it lost events.
fn losses(out: &mut String, buckets: usize, axis: &Axis<'_>) {
    let at = |loss: &Loss| ((loss.time_ms / 1000).checked_sub(axis.start_s)? / axis.width_s).into();
    let mut marks: Vec<u64> = axis.losses.iter().filter_map(at).collect();
    marks.dedup();
    if marks.is_empty() {
        return;
    }

    let _ = write!(
        out,
        "<div class=y>lost</div><svg class=lost viewBox=\"0 0 {} 10\" preserveAspectRatio=none role=img \
         aria-label=\"times at which events were lost; see State of the log\"><path class=loss d=\"",
        buckets.max(1)
    );
    for mark in marks {
        let _ = write!(out, "M{mark} 10v-10h1v10z");
    }

    out.push_str("\"/></svg>");
}

fn legend(out: &mut String, what: &str, layers: &[Layer<'_>]) {
    let _ = write!(
        out,
        "<table class=legend><thead><tr><th scope=col>{what}</th><th scope=col class=n>Events</th>\
         <th scope=col class=n>Failed</th></tr></thead><tbody>"
    );

    for layer in layers {
        let [events, failed] = layer.row.sum;
        let _ = write!(
            out,
            "<tr><td><b class=c{}></b>{}</td><td class=n>{}</td><td class=n>{}</td></tr>",
            layer.colour,
            layer.label,
            grouped(events),
            grouped(failed)
        );
    }

    out.push_str("</tbody></table>");
}
