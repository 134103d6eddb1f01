//! Checks that a type is read in few places and owns few things.
//!
//! The inherent `impl` blocks of a type stand in at most three files of its crate, and a struct has at most
//! [`FIELDS`] fields. A struct that is only data, without a method that takes `&mut self`, may have more: a status,
//! facts about a call, a record.
//!
//! Types and blocks are found by the indentation that rustfmt requires, outside tests.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{without_comments_and_literals, without_tests, Language, Source};
use super::Offence;

/// Limit of files with `impl` blocks of one type.
const FILES: usize = 3;
/// Limit of fields of a struct that has state of its own.
const FIELDS: usize = 14;

/// The types that are spread over too many files or have too many fields.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let mut crates: BTreeMap<&str, Crate> = BTreeMap::new();
    let rust = sources
        .iter()
        .filter(|each| each.language == Language::Rust);
    for Source { path, text, .. } in rust {
        if let Some((name, _)) = path.split_once("/src/") {
            let code = without_tests(&without_comments_and_literals(text));
            crates.entry(name).or_default().add(path, &code);
        }
    }
    let types = crates.values().flat_map(Crate::types);
    types
        .flat_map(|((file, name), found)| found.offences(&format!("{file}: {name}")))
        .collect()
}

/// A type: the file that defines it, and its name.
type Place<'s> = (&'s str, String);

/// Facts found about a type.
#[derive(Default)]
struct Type<'s> {
    /// Number of fields, if it is a struct with names for them.
    fields: usize,
    /// Files with inherent `impl` blocks.
    files: BTreeSet<&'s str>,
    /// Whether a method takes `&mut self`.
    is_changed: bool,
}

impl Type<'_> {
    /// Offences of the type at this place.
    fn offences(&self, place: &str) -> Vec<Offence> {
        let (fields, files) = (self.fields, self.files.len());
        let mut errors = Vec::new();
        if files > FILES {
            let list = self.files.iter().copied().collect::<Vec<_>>().join(", ");
            errors.push(format!(
                "{place} has impl blocks in {files} files; at most {FILES}: compose it of parts ({list})"
            ));
        }
        if fields > FIELDS && self.is_changed {
            errors.push(format!(
                "{place} has {fields} fields; at most {FIELDS}: compose it of parts"
            ));
        }
        let offence = |error| Offence {
            place: place.to_owned(),
            error,
        };
        errors.into_iter().map(offence).collect()
    }
}

/// An inherent `impl` block.
struct Block<'s> {
    file: &'s str,
    of: String,
    is_changing: bool,
}

/// The types and blocks of a crate.
#[derive(Default)]
struct Crate<'s> {
    fields: BTreeMap<Place<'s>, usize>,
    blocks: Vec<Block<'s>>,
}

impl<'s> Crate<'s> {
    /// Adds what a file defines at its top level.
    fn add(&mut self, file: &'s str, code: &str) {
        let lines: Vec<&str> = code.lines().map(str::trim_end).collect();
        for (at, line) in lines.iter().enumerate() {
            let body = || {
                let end = lines[at..].iter().position(|line| line.starts_with('}'));
                &lines[at..end.map_or(lines.len(), |end| at + end)]
            };
            if let Some(name) = defined(line) {
                let is_block = line.ends_with('{') || lines.get(at + 1) == Some(&"where");
                let fields = match is_block && !is_enum(line) {
                    true => {
                        let mut members = body().iter().skip_while(|line| !line.ends_with('{'));
                        members.next();
                        members.filter(|line| is_field(line)).count()
                    }
                    false => 0,
                };
                self.fields.insert((file, name), fields);
            } else if let Some(of) = inherent(line) {
                self.blocks.push(Block {
                    file,
                    of,
                    is_changing: body().iter().any(|line| changes_self(line)),
                });
            }
        }
    }

    /// The types with their blocks. A block is of the type that its own file defines, or else the crate's only one of
    /// that name. Of several, it counts for each.
    fn types(&self) -> BTreeMap<Place<'s>, Type<'s>> {
        let mut types: BTreeMap<Place<'s>, Type<'s>> = BTreeMap::new();
        for (place, &fields) in &self.fields {
            types.entry(place.clone()).or_default().fields = fields;
        }
        for block in &self.blocks {
            let own = (block.file, block.of.clone());
            let is_meant = |place: &Place<'s>| match types.contains_key(&own) {
                true => *place == own,
                false => place.1 == block.of,
            };
            let meant: Vec<Place<'s>> = types
                .keys()
                .filter(|each| is_meant(each))
                .cloned()
                .collect();
            for place in meant {
                let each = types.entry(place).or_default();
                each.files.insert(block.file);
                each.is_changed |= block.is_changing;
            }
        }
        types
    }
}

/// The name of the type that a line begins to define.
fn defined(line: &str) -> Option<String> {
    let rest = without_visibility(line);
    let rest = rest
        .strip_prefix("struct ")
        .or_else(|| rest.strip_prefix("enum "))?;
    Some(word(rest))
}

fn is_enum(line: &str) -> bool {
    without_visibility(line).starts_with("enum ")
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

/// Whether a line of a struct names a field: `    pub(crate) name: Type,`.
fn is_field(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("    ") else {
        return false;
    };
    let rest = without_visibility(rest);
    let name = word(rest);
    !name.is_empty() && rest[name.len()..].starts_with(": ")
}

/// Whether a line has the receiver `&mut self` or `&'a mut self`.
fn changes_self(line: &str) -> bool {
    let before = line
        .split_once("mut self")
        .map(|(before, _)| before.trim_end());
    let lifetime = |before: &str| {
        before
            .rsplit_once("&'")
            .is_some_and(|(_, rest)| word(rest) == rest)
    };
    before.is_some_and(|before| before.ends_with('&') || lifetime(before))
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

    /// A struct with this many fields, and a method with this receiver.
    fn with_fields(count: usize, receiver: &str) -> String {
        let fields: String = (0..count)
            .map(|i| format!("    /// Doc: text.\n    pub(crate) f{i}: u8,\n"))
            .collect();
        format!("pub struct S<'a, T>\nwhere\n    T: Copy,\n{{\n{fields}}}\nimpl<'a, T: Fn() -> u8> S<'a, T> {{\n    fn f({receiver}) {{}}\n}}\n")
    }

    #[test]
    fn impl_blocks_in_three_files_are_too_many_but_those_of_traits_and_tests_do_not_count() {
        let mut sources = vec![
            source("a.rs", "pub(crate) enum S {\n    A,\n}\nimpl S {\n}\n"),
            source("b.rs", "impl<'a> S<'a> {\n}\n"),
            source("c.rs", "impl Drop for S {\n}\nimpl<T> From<T> for S {\n}\nimpl std::fmt::Display for S {\n}\n"),
            source("d.rs", "#[cfg(test)]\nmod tests {\n    impl S {}\n}\n"),
            source("e.rs", "// impl S {\nstruct S;\nimpl S {\n}\n"),
        ];
        assert_eq!(places(&sources), Vec::<String>::new());
        sources.push(source("f.rs", "impl S {\n}\n"));
        // It is not known which of the two is meant.
        assert_eq!(places(&sources), ["a.rs: S", "e.rs: S"]);
    }

    #[test]
    fn many_fields_are_too_many_only_where_a_method_changes_them() {
        let found = |count, receiver| places(&[source("a.rs", &with_fields(count, receiver))]);
        let none: [&str; 0] = [];
        assert_eq!(found(FIELDS, "&mut self"), none);
        assert_eq!(found(FIELDS + 1, "&self, x: &mut u8"), none);
        assert_eq!(found(FIELDS + 1, "mut self"), none);
        for receiver in ["&mut self", "&'a mut self"] {
            assert_eq!(found(FIELDS + 1, receiver), ["a.rs: S"], "{receiver}");
        }
    }
}
