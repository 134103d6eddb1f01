//! Checks that a type is read in few places: its inherent `impl` blocks stand in at most three files of its crate.
//!
//! Types and blocks are found by the indentation that rustfmt requires, outside tests.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{without_comments_and_literals, without_tests, Language, Source};
use super::Offence;

/// Limit of files with `impl` blocks of one type.
const FILES: usize = 3;

/// The types that are spread over too many files.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let mut crates: BTreeMap<&str, CrateTypes> = BTreeMap::new();
    let rust = sources
        .iter()
        .filter(|each| each.language == Language::Rust);
    for Source { path, text, .. } in rust {
        if let Some((name, _)) = path.split_once("/src/") {
            let code = without_tests(&without_comments_and_literals(text));
            crates.entry(name).or_default().add(path, &code);
        }
    }
    crates.values().flat_map(CrateTypes::offences).collect()
}

/// A type: the file that defines it, and its name.
type TypePath<'s> = (&'s str, String);

/// The types of a crate, and the files and types of its inherent `impl` blocks.
#[derive(Default)]
struct CrateTypes<'s> {
    types: BTreeSet<TypePath<'s>>,
    blocks: BTreeSet<TypePath<'s>>,
}

impl<'s> CrateTypes<'s> {
    /// Adds what a file defines at its top level.
    fn add(&mut self, file: &'s str, code: &str) {
        for line in code.lines().map(str::trim_end) {
            if let Some(name) = defined(line) {
                self.types.insert((file, name));
            } else if let Some(of) = inherent(line) {
                self.blocks.insert((file, of));
            }
        }
    }

    fn offences(&self) -> Vec<Offence> {
        let mut offences = Vec::new();
        for path in &self.types {
            let files = self.files(path);
            if files.len() > FILES {
                let place = format!("{}: {}", path.0, path.1);
                let error = format!(
                    "{place} has impl blocks in {} files; at most {FILES}: compose it of parts ({})",
                    files.len(),
                    files.join(", ")
                );
                offences.push(Offence { place, error });
            }
        }

        offences
    }

    /// The files with blocks of a type. A block is of the type that its own file defines, or else the crate's only one
    /// of that name. Of several, it counts for each.
    fn files(&self, path: &TypePath<'s>) -> Vec<&'s str> {
        let is_of_type = |block: &&TypePath<'s>| {
            *block == path || (block.1 == path.1 && !self.types.contains(*block))
        };
        let blocks = self.blocks.iter().filter(is_of_type);
        blocks.map(|(file, _)| *file).collect()
    }
}

/// The name of the type that a line begins to define, except an alias.
pub(super) fn defined(line: &str) -> Option<String> {
    let rest = without_visibility(line);
    let rest = ["struct ", "enum ", "union ", "trait "]
        .iter()
        .find_map(|keyword| rest.strip_prefix(keyword))?;
    Some(word(rest))
}

/// The type of the inherent `impl` block that a line begins.
fn inherent(line: &str) -> Option<String> {
    let rest = line.strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(rest) => after_generics(rest),
        None => rest,
    };
    let rest = rest.strip_prefix(' ')?;
    let name = word(rest);
    let after = match rest[name.len()..].strip_prefix('<') {
        Some(rest) => after_generics(rest),
        None => &rest[name.len()..],
    };

    // Paths are of traits, as in `impl fmt::Display for X`.
    let is_inherent = !name.is_empty() && !after.starts_with("::") && !after.starts_with(" for ");

    is_inherent.then_some(name)
}

/// Text after the `>` that ends these generic arguments.
fn after_generics(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[at + 1..];
        }
    }
    ""
}

fn without_visibility(text: &str) -> &str {
    let Some(rest) = text.strip_prefix("pub") else {
        return text;
    };
    let rest = match rest.strip_prefix('(') {
        Some(inside) => inside.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    };
    rest.strip_prefix(' ').unwrap_or(text)
}

/// The word at the beginning of a text.
fn word(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.chars().take_while(|&c| is_part(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> Source {
        Source {
            path: format!("crates/c/src/{file}"),
            language: Language::Rust,
            text: text.to_owned(),
        }
    }

    fn places(sources: &[Source]) -> Vec<String> {
        let found = offences(sources).into_iter();
        found
            .map(|each| each.place.replace("crates/c/src/", ""))
            .collect()
    }

    #[test]
    fn impl_blocks_in_four_files_are_too_many_but_those_of_traits_and_tests_do_not_count() {
        let mut sources = vec![
            source("a.rs", "pub(crate) enum S {\n    A,\n}\nimpl S {\n}\n"),
            source("b.rs", "impl<'a> S<'a> {\n}\n"),
            source("c.rs", "impl Drop for S {\n}\nimpl<T> From<T> for S {\n}\nimpl std::fmt::Display for S {\n}\n"),
            source("d.rs", "#[cfg(test)]\nmod tests {\n    impl S {}\n}\n"),
            source("e.rs", "// impl S {\nstruct S;\nimpl S {\n}\n"),
        ];
        sources.push(source("f.rs", "impl S {\n}\n"));
        assert_eq!(places(&sources), Vec::<String>::new());
        sources.push(source("g.rs", "impl S {\n}\n"));
        // It is not known which of the two is meant.
        assert_eq!(places(&sources), ["a.rs: S", "e.rs: S"]);
    }
}
