//! What a bad merge leaves in a page: a paragraph that breaks off, and one that is there twice.

use std::collections::HashMap;

/// Paragraphs that are shorter may be equal, as may the introductions of tables.
const TWICE_LENGTH: usize = 80;
/// What a paragraph may end with: a sentence, what follows it, or a link.
const ENDS: [char; 8] = ['.', ':', ';', '!', '?', ')', '>', '|'];

/// A paragraph or an item of a list, with the number of its first line.
struct Paragraph {
    line: usize,
    text: String,
    is_item: bool,
}

/// One sentence for each wound of a page.
pub(super) fn errors(page: &str, text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for Paragraph {
        line,
        text,
        is_item,
    } in paragraphs(text)
    {
        let end = text.trim_end_matches(['*', '_', '`', '"']);
        if !is_item && text.contains('\n') && !end.ends_with(ENDS) {
            errors.push(format!(
                "{page}:{line}: a paragraph that breaks off; a full stop ends it"
            ));
        }
        if text.len() > TWICE_LENGTH {
            if let Some(first) = places.insert(text, line) {
                errors.push(format!(
                    "{page}:{line}: the same paragraph as in line {first}"
                ));
            }
        }
    }

    errors
}

/// The paragraphs and items of a page, without code, tables and headings.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (line, words) in (1..).zip(text.lines()) {
        let word = words.trim_start().split(' ').next().unwrap_or_default();
        if word.starts_with("```") {
            (is_code, is_open) = (!is_code, false);
            continue;
        }
        let is_indented = words.starts_with("    ") && !is_open;
        if is_code || is_indented || word.is_empty() || word.starts_with(['#', '|', '<']) {
            is_open &= word.starts_with('<');
            continue;
        }

        let number = word.strip_suffix('.').unwrap_or_default();
        let is_numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_item = is_numbered || matches!(word, "*" | "-");
        let continued = found.last_mut();
        if let (Some(last), true, false) = (continued, is_open, is_item) {
            last.text.push('\n');
            last.text.push_str(words);
        } else {
            found.push(Paragraph {
                line,
                text: words.to_owned(),
                is_item,
            });
        }
        is_open = true;
    }

    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_bad_merge_leaves_is_found() {
        let twice = "x".repeat(TWICE_LENGTH + 1);
        let text = format!(
            "It runs\nand runs\n\n* an item\n  of two lines\n* {twice}\n\n{twice}.\n\n* {twice}\n"
        );
        let found = errors("p.md", &text);
        assert_eq!(
            found,
            [
                "p.md:1: a paragraph that breaks off; a full stop ends it",
                "p.md:10: the same paragraph as in line 6"
            ]
        );
        let whole = "A sentence\nthat ends.\n\n    code\n    code\n\n```\nno\nsentence\n```\n\n| a |\n| b |\n";
        assert_eq!(errors("p.md", whole), [""; 0]);
    }
}
