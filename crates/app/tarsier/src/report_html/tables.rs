//! Tables whose lines expand (user → session → process → file), and trees of processes.

use super::escape;
use super::text::{grouped, range};
use query::summary::{Branch, Count, Forest, TableLines};
use std::fmt::Write as _;

/// Largest size of a label's HTML, in bytes.
const LABEL_BYTES: usize = 200;

/// A table. `path` names its levels: "User → session".
pub(super) fn table(out: &mut String, title: &str, path: &str, lines: &TableLines) {
    let _ = write!(
        out,
        "<section class=table><h3>{title}</h3><div class=\"row head\"><span>{path}</span>\
         <data>Events</data><data>Failed</data><time>First and last (UTC)</time></div>"
    );

    if lines.lines.is_empty() {
        out.push_str("<p class=soft>None in this log.</p>");
    }

    let most = lines.lines.first().map_or(1, |line| line.count.events);
    level(out, lines, Some(most));
    if lines.is_pruned {
        out.push_str(
            "<p class=soft>Of so many names, those with few events were not kept: the others are more than \
             the table says.</p>",
        );
    }

    out.push_str("</section>\n");
}

/// Lines of a level. With `most`, bars show the share of the line with the most events.
fn level(out: &mut String, lines: &TableLines, most: Option<u64>) {
    for line in &lines.lines {
        let opens = !line.below.lines.is_empty();
        out.push_str(if opens {
            "<details><summary class=row>"
        } else {
            "<div class=row>"
        });
        out.push_str("<span>");
        escape::push(out, &line.label, LABEL_BYTES);
        out.push_str("</span>");
        counts(out, &line.count);
        if let Some(most) = most {
            let share = (line.count.events * 100 / most.max(1)).max(1);
            let _ = write!(
                out,
                "<svg class=b viewBox=\"0 0 100 1\" preserveAspectRatio=none aria-hidden=true><rect \
                 width={share} height=1 /></svg>"
            );
        }
        if opens {
            out.push_str("</summary><div class=below>");
            level(out, &line.below, None);
            out.push_str("</div></details>");
        } else {
            out.push_str("</div>");
        }
    }

    if lines.others > 0 {
        let _ = write!(
            out,
            "<div class=\"row rest\"><span>({} others)</span>",
            grouped(lines.others)
        );
        counts(out, &lines.others_count);
        out.push_str("</div>");
    }
}

fn counts(out: &mut String, count: &Count) {
    let _ = write!(out, "<data>{}<i> events</i></data>", grouped(count.events));
    match count.failed {
        0 => out.push_str("<data></data>"),
        failed => {
            let _ = write!(
                out,
                "<data class=f>{}<i> failed</i></data>",
                grouped(failed)
            );
        }
    }

    let _ = write!(out, "<time>{}</time>", range(count.first_ms, count.last_ms));
}

/// Trees of processes.
pub(super) fn forest(out: &mut String, forest: &Forest) {
    out.push_str("<section class=table><ul class=tree>");
    branches(out, &forest.roots);
    out.push_str("</ul>");
    if forest.roots.is_empty() {
        out.push_str("<p class=soft>No event in this log names a process.</p>");
    }

    if forest.others > 0 {
        let _ = write!(
            out,
            "<p class=soft>{} other processes with {} events are not drawn.</p>",
            grouped(forest.others),
            grouped(forest.others_events)
        );
    }

    if forest.is_pruned {
        out.push_str("<p class=soft>Further processes with few events were not kept.</p>");
    }

    out.push_str("</section>\n");
}

fn branches(out: &mut String, all: &[Branch]) {
    for branch in all {
        out.push_str(if branch.is_chosen {
            "<li>"
        } else {
            "<li class=dim>"
        });
        let opens = !branch.children.is_empty();
        if opens {
            out.push_str("<details open><summary>");
        }
        process(out, branch);
        if opens {
            out.push_str("</summary><ul>");
            branches(out, &branch.children);
            out.push_str("</ul></details>");
        }
        out.push_str("</li>");
    }
}

fn process(out: &mut String, branch: &Branch) {
    let process = &branch.process;
    let _ = write!(out, "[{}] <b>", process.pid);
    if process.exe.is_empty() {
        out.push_str("(no event of its own)")
    } else {
        escape::push(out, &process.exe, LABEL_BYTES)
    }

    out.push_str("</b> ");
    if !process.command.is_empty() {
        escape::push(out, &process.command, LABEL_BYTES);
    }

    let count = &process.count;
    if count.events > 0 {
        let _ = write!(
            out,
            " <span class=soft>· {} events, {}",
            grouped(count.events),
            range(count.first_ms, count.last_ms)
        );
        out.push_str("</span>");
    }

    if count.failed > 0 {
        let _ = write!(
            out,
            " <span class=f>· {} failed</span>",
            grouped(count.failed)
        );
    }
}
