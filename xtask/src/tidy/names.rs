//! Checks that a type's name stands for one thing in the whole tree: at most two crates, or modules of them, define a
//! type of one name.

use std::collections::BTreeMap;

use super::impls::defined;
use super::source::{without_comments_and_literals, without_tests, Language, Source};
use super::Offence;

/// Limit of types with one name.
const TYPES: usize = 2;

/// The names of types that have too many definitions, outside tests.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let rust = sources
        .iter()
        .filter(|each| each.language == Language::Rust && !is_test(&each.path));
    for Source { path, text, .. } in rust {
        let code = without_tests(&without_comments_and_literals(text));
        for name in code.lines().filter_map(defined) {
            files.entry(name).or_default().push(path);
        }
    }

    let many = files.into_iter().filter(|(_, files)| files.len() > TYPES);

    many.map(|(name, files)| Offence {
        error: format!(
            "type {name} is defined {} times; at most {TYPES}: name each for what it is ({})",
            files.len(),
            files.join(", ")
        ),
        place: name,
    })
    .collect()
}

fn is_test(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_type_of_one_name_is_an_offence_but_not_those_of_tests() {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            language: Language::Rust,
            text: text.to_owned(),
        };
        let mut sources = vec![
            source("crates/a/src/lib.rs", "pub struct Entry;\n"),
            source("crates/b/src/lib.rs", "pub(crate) enum Entry {\n}\n"),
            source("crates/b/src/tests.rs", "struct Entry;\n"),
            source("crates/c/tests/all.rs", "struct Entry;\n"),
            source("crates/d/src/lib.rs", "// struct Entry;\n"),
        ];
        assert_eq!(offences(&sources), []);

        sources.push(source("crates/e/src/x.rs", "trait Entry {\n}\n"));
        let found = offences(&sources);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].place, "Entry");
        assert!(found[0].error.contains("crates/e/src/x.rs"));
    }
}
