//! Limits of the length of lines, cells and pages.

use super::text::COLUMNS;

/// Limit of the characters that a reader sees in a cell of a table.
const CELL: usize = 80;
/// Limits of the lines of the README, and of a decision.
const README_LINES: usize = 200;
const DECISION_LINES: usize = 40;

/// One sentence for each thing on a page that is too long.
pub(super) fn errors(page: &str, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let limit = match page {
        "README.md" => README_LINES,
        _ if page.starts_with("docs/decisions/") => DECISION_LINES,
        _ => usize::MAX,
    };
    let lines = text.lines().count();
    if lines > limit {
        errors.push(format!("{page}: {lines} lines; at most {limit}"));
    }
    let mut is_code = false;

    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{page}:{number}");
        is_code ^= line.trim_start().starts_with("```");
        if !is_code && line.starts_with('|') {
            let cells = cells(line).into_iter().map(|cell| shown(&cell));
            let long = cells.filter(|cell| cell.chars().count() > CELL);
            errors.extend(
                long.map(|cell| format!("{place}: a cell of more than {CELL} characters: {cell}")),
            );
        } else if line.chars().count() > COLUMNS {
            errors.push(format!(
                "{place}: {} columns; at most {COLUMNS}",
                line.chars().count()
            ));
        }
        if line.ends_with(' ') {
            errors.push(format!("{place}: a blank at the end"));
        }
    }

    errors
}

/// The cells of a row; `\|` is a part of a cell.
fn cells(row: &str) -> Vec<String> {
    let hidden = row.replace("\\|", "\u{0}");
    let inner = hidden.trim().trim_matches('|');
    let cells = inner
        .split('|')
        .map(|cell| cell.trim().replace('\u{0}', "|"));
    cells.collect()
}

/// The text of a cell as a reader sees it: without link targets and backquotes.
fn shown(cell: &str) -> String {
    let mut shown = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once("](") {
        shown.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    (shown + rest).replace(['`', '['], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_found() {
        let long = "x".repeat(101);
        let text = format!(
            "{long}\n| {} | b |\n| [{}]({long}) |\n",
            "y".repeat(81),
            "z".repeat(80)
        );
        let found = errors("docs/decisions/1.md", &text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("docs/decisions/1.md:1: 101 columns"),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("docs/decisions/1.md:2: a cell"),
            "{found:?}"
        );
        let many = "a\n".repeat(41);
        assert_eq!(errors("docs/decisions/1.md", &many).len(), 1);
        assert!(errors("docs/guide.md", &many).is_empty());
        assert_eq!(errors("README.md", &many.repeat(5)).len(), 1);
    }

    #[test]
    fn cells_end_at_bars_that_are_not_escaped() {
        assert_eq!(cells("| a \\| b | `c` |"), ["a | b", "`c`"]);
        assert_eq!(shown("[a](b) `c` [d](e)"), "a c d");
    }
}
