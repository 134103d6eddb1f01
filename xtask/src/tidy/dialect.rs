//! Checks that a condition is an `if`: not a `.filter` whose closure ignores what it gets.

use super::source::{without_comments_and_literals, Language, Source};
use super::Offence;

const FILTER: &str = ".filter(|_|";

/// The files with conditions that are written as filters.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let rust = sources
        .iter()
        .filter(|each| each.language == Language::Rust);
    let mut offences = Vec::new();
    for Source { path, text, .. } in rust {
        let code = without_comments_and_literals(text);
        let is_wrong = |line: &str| line.contains(FILTER);
        if let Some(at) = code.lines().position(is_wrong) {
            offences.push(Offence {
                place: path.clone(),
                error: format!("{path}:{}: `{FILTER}` is a condition: use `if`", at + 1),
            });
        }
    }

    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_ignores_its_item_is_an_offence() {
        let source = |text: &str| Source {
            path: "a.rs".to_owned(),
            language: Language::Rust,
            text: text.to_owned(),
        };
        let fine = source("// x.filter(|_| y)\nlet a = b.filter(|c| *c);\n");
        assert_eq!(offences(&[fine]), []);

        let found = offences(&[source("\nlet a = b.filter(|_| is_c);\n")]);
        assert_eq!(
            found[0].error,
            "a.rs:2: `.filter(|_|` is a condition: use `if`"
        );
    }
}
