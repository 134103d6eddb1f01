//! Wraps text.

/// Limit of the columns of a line on a page.
pub(crate) const COLUMNS: usize = 100;

/// Wraps words to lines of at most [`COLUMNS`] characters, unless a word is longer; every line ends with a
/// newline. The first line begins with `first`, the others with as many blanks.
pub(crate) fn wrap(text: &str, first: &str) -> String {
    let indent = " ".repeat(first.chars().count());
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut columns = indent.len();
    let mut is_empty = true;

    for word in text.split_whitespace() {
        let length = word.chars().count();
        if !is_empty && columns + 1 + length > COLUMNS {
            lines.push_str(&line);
            lines.push('\n');
            line.clone_from(&indent);
            columns = indent.len();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
            columns += 1;
        }
        line.push_str(word);
        columns += length;
        is_empty = false;
    }

    if !is_empty {
        lines.push_str(&line);
        lines.push('\n');
    }

    lines
}

/// Wraps the paragraphs of a text; leaves tables and empty lines unchanged.
pub(super) fn wrap_paragraphs(text: &str) -> String {
    let mut wrapped = String::new();
    let mut paragraph = String::new();
    for line in text.lines() {
        if line.is_empty() || line.starts_with('|') {
            wrapped.push_str(&wrap(&paragraph, ""));
            paragraph.clear();
            wrapped.push_str(line);
            wrapped.push('\n');
        } else {
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }

    wrapped + &wrap(&paragraph, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_before_the_last_column() {
        let text = wrap(&"four ".repeat(40), "* ");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("* four four") && lines[1].starts_with("  four"));
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(wrap("", "* "), "");
    }

    #[test]
    fn tables_stay_as_they_are() {
        assert_eq!(
            wrap_paragraphs("one\ntwo\n\n| a | b |\n|---|---|\nthree\n"),
            "one two\n\n| a | b |\n|---|---|\nthree\n"
        );
    }
}
