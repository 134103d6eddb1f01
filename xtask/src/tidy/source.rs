//! The source files, and their text without comments and literals.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Directories that contain code.
const PLACES: [&str; 8] = [
    "crates", "xtask", "tests", "bench", "scripts", "share", "fuzz", ".ci",
];

/// Written by `cargo xtask tables` from a kernel's headers: one long table per file, which nobody reads or edits.
const GENERATED: &str = "crates/core/abi/src/generated/";
/// Written by bindgen from headers, as their first lines say.
const BINDINGS: [&str; 2] = [
    "crates/kernel/bpf/src/shared.rs",
    "crates/log/record/src/wire/bindings.rs",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Rust,
    C,
    Python,
    Shell,
}

/// A source file.
pub(super) struct Source {
    /// Path from the root of the source tree.
    pub(super) path: String,
    pub(super) language: Language,
    pub(super) text: String,
}

/// All source files except generated ones, by path.
pub(super) fn all(root: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for place in PLACES {
        if root.join(place).is_dir() {
            visit(root, place, &mut sources)?;
        }
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(sources)
}

fn visit(root: &Path, directory: &str, sources: &mut Vec<Source>) -> Result<()> {
    let context = || format!("reading {directory}");
    for entry in fs::read_dir(root.join(directory)).with_context(context)? {
        let entry = entry.with_context(context)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{directory}/{name}");
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() && name != "target" && !path.starts_with(GENERATED.trim_end_matches('/')) {
            visit(root, &path, sources)?;
        } else if kind.is_file() && !BINDINGS.contains(&path.as_str()) {
            // Logs and other binary files are not code.
            let Ok(text) = fs::read_to_string(root.join(&path)) else {
                continue;
            };
            if let Some(language) = language(&name, &text) {
                sources.push(Source {
                    path,
                    language,
                    text,
                });
            }
        }
    }

    Ok(())
}

/// The language, by the end of the name; for a script without a suffix, by its first line.
fn language(name: &str, text: &str) -> Option<Language> {
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("rs") => return Some(Language::Rust),
        Some("c" | "h") => return Some(Language::C),
        Some("py") => return Some(Language::Python),
        Some("sh") => return Some(Language::Shell),
        _ => {}
    }

    let interpreter = text.lines().next()?.strip_prefix("#!")?;
    match interpreter.rsplit(['/', ' ']).next()? {
        "python3" => Some(Language::Python),
        "sh" | "bash" => Some(Language::Shell),
        _ => None,
    }
}

/// The text with comments and the contents of literals replaced by blanks; lines keep their positions.
pub(super) fn without_comments_and_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = comment_or_literal(rest).unwrap_or(0);
        if length == 0 {
            // Words are copied whole: an `r` or `'` inside one begins no literal.
            let word = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            let taken = word.max(first.len_utf8());
            out.push_str(&rest[..taken]);
            rest = &rest[taken..];
            continue;
        }
        let blank = |c: char| if c == '\n' { c } else { ' ' };
        out.extend(rest[..length].chars().map(blank));
        rest = &rest[length..];
    }

    out
}

/// Length in bytes of the comment or literal at the beginning of the text.
fn comment_or_literal(text: &str) -> Option<usize> {
    let until = |end: &str, from: usize| {
        let found = text.get(from..).and_then(|rest| rest.find(end));
        Some(found.map_or(text.len(), |at| from + at + end.len()))
    };
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }

    let raw = text.strip_prefix("br").or_else(|| text.strip_prefix('r'));
    if let Some(raw) = raw {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let begin = text.len() - raw.len() + hashes + 1;
            return until(&format!("\"{}", "#".repeat(hashes)), begin);
        }
    }

    if text.starts_with('"') {
        return Some(end_of_quoted(text, '"'));
    }

    let mut chars = text.strip_prefix('\'')?.chars();
    let inner = chars.next()?;

    // Anything else is a lifetime.
    (inner == '\\' || chars.next() == Some('\'')).then(|| end_of_quoted(text, '\''))
}

/// Length in bytes up to and including the closing quote; the text begins with the opening one.
fn end_of_quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !is_escaped && c == quote {
            return at + 1;
        }
        is_escaped = !is_escaped && c == '\\';
    }
    text.len()
}

/// The code without modules that are defined in the file itself: tests, or constants that share a prefix.
pub(super) fn without_tests(code: &str) -> String {
    let mut is_inside = false;
    let mut rest = String::new();
    for line in code.lines() {
        let words = line
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub(super) ");
        let begins = words.trim_start_matches("pub ").starts_with("mod ") && line.ends_with('{');
        is_inside |= begins;
        if !is_inside {
            rest.push_str(line);
            rest.push('\n');
        }
        is_inside &= line != "}";
    }

    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blanks() {
        let blanked = |text| {
            let out = without_comments_and_literals(text);
            assert_eq!(out.lines().count(), str::lines(text).count());
            out.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(blanked("a // b\n/* c\n d */ e"), "a e");
        assert_eq!(
            blanked("f(\"a \\\" b\", 'x', '\\'', b'\"') g"),
            "f( , , , b ) g"
        );
        assert_eq!(blanked("r#\"a \" b\"# + br\"c\" + bar"), "+ + bar");
        assert_eq!(
            blanked("fn f<'a>(x: &'a str) // 'b'"),
            "fn f<'a>(x: &'a str)"
        );
    }

    #[test]
    fn scripts_are_known_by_their_first_line() {
        assert_eq!(
            language("run", "#!/usr/bin/env python3\n"),
            Some(Language::Python)
        );
        assert_eq!(language("init", "#!/bin/sh\n"), Some(Language::Shell));
        assert_eq!(
            language("x.rs", "#![allow(missing_docs)]\n"),
            Some(Language::Rust)
        );
        assert_eq!(language("README.md", "# Title\n"), None);
    }
}
