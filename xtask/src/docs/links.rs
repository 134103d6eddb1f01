//! Checks that everything that pages name exists: links and their anchors, files in backquotes, pages of the table
//! of contents; and that pages named in sources exist. Needs no network: links out of the tree are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::pages::{self, Page};

/// Directories of sources. Text in backquotes that begins with one of them is the name of a file or directory.
const PLACES: [&str; 9] = [
    "crates/", "xtask/", "tests/", "bench/", "docs/", "scripts/", "share/", "fuzz/", ".ci/",
];

/// The errors on all pages, one sentence each.
pub(super) fn errors(root: &Path) -> Result<Vec<String>> {
    let contents = pages::in_contents(root)?;
    let listed: BTreeSet<&str> = contents.iter().map(String::as_str).collect();
    let mut parsed: BTreeMap<String, Page> = BTreeMap::new();
    let written = pages::written(root)?;
    let mut errors = Vec::new();
    for page in written.iter().chain(&contents) {
        match fs::read_to_string(root.join(page)) {
            Ok(text) => drop(parsed.insert(page.clone(), Page::parse(&text))),
            Err(error) => errors.push(format!("{page}: {error}")),
        }
    }

    for page in &written {
        if !listed.contains(page.as_str()) {
            errors.push(format!("{page}: not in {}", pages::SUMMARY));
        }
    }

    for (name, page) in &parsed {
        for link in page.links.iter().filter(|link| !link.is_external()) {
            let error = pages::resolve(name, &link.to)
                .map(|to| broken(root, &parsed, &to, link.anchor.as_deref()))
                .unwrap_or_else(|error| Some(error.to_string()));
            errors.extend(error.map(|error| format!("{name}: {error}")));
        }
        let named = page.code.iter().filter(|code| is_path(code));
        let missing = named.filter(|code| !root.join(code).exists());
        errors.extend(missing.map(|code| format!("{name}: there is no {code}")));
    }

    Ok(errors)
}

/// Reason why a link is broken; `None` if it is not.
fn broken(
    root: &Path,
    pages: &BTreeMap<String, Page>,
    to: &str,
    anchor: Option<&str>,
) -> Option<String> {
    let page = pages.get(to);
    if page.is_none() && to.ends_with(".md") {
        return Some(format!(
            "the link to {to}, which is not a page of {}",
            pages::SUMMARY
        ));
    }

    if !root.join(to).is_file() {
        return Some(format!("the link to {to}, which is not a file"));
    }

    let anchor = anchor?;
    let has = page.is_some_and(|page| page.anchors.iter().any(|each| each == anchor));

    (!has).then(|| format!("the link to {to}#{anchor}, which has no such heading"))
}

/// Whether a text in backquotes is the name of a file or directory in the source tree.
fn is_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    PLACES.iter().any(|place| code.starts_with(place)) && code.chars().all(plain)
}

/// Pages that sources name but that do not exist, as `FILE: PAGE`.
pub(super) fn named_by_sources(root: &Path) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for place in PLACES.iter().filter(|place| **place != "docs/") {
        visit(root, Path::new(place), &mut missing)?;
    }
    Ok(missing)
}

fn visit(root: &Path, directory: &Path, missing: &mut Vec<String>) -> Result<()> {
    let context = || format!("reading {}", directory.display());
    for entry in fs::read_dir(root.join(directory)).with_context(context)? {
        let entry = entry.with_context(context)?;
        let path = directory.join(entry.file_name());
        let kind = entry.file_type().with_context(context)?;
        if kind.is_dir() && entry.file_name() != "target" && entry.file_name() != "docs" {
            visit(root, &path, missing)?;
        } else if kind.is_file() {
            // Seeds and other binary files name no pages.
            let Ok(text) = fs::read_to_string(root.join(&path)) else {
                continue;
            };
            // A crate may have its own pages.
            let own: std::path::PathBuf = path.iter().take(3).collect();
            let is_there =
                |page: &str| root.join(page).exists() || root.join(&own).join(page).exists();
            let named = pages_in(&text).into_iter().filter(|page| !is_there(page));
            missing.extend(named.map(|page| format!("{}: {page}", path.display())));
        }
    }

    Ok(())
}

/// Every `docs/….md` in a text.
fn pages_in(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let words = text.split(|c| !part(c));
    words
        .filter(|word| word.starts_with("docs/") && word.ends_with(".md"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a tree with a page that has one error of each kind.
    #[test]
    fn each_kind_of_error_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        for directory in ["docs", "crates/log/record/docs"] {
            fs::create_dir_all(root.join(directory)).expect("a directory");
        }
        let contents = [
            "README.md",
            "CHANGELOG.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
        ];
        let mut summary = String::from("# Contents\n\n[Contents](SUMMARY.md)\n");
        for name in contents {
            fs::write(root.join(name), "# Title\n").expect("a page");
            summary += &format!("- [x](../{name})\n");
        }
        fs::write(root.join("crates/log/record/docs/json.md"), "# JSON\n").expect("a page");
        fs::write(root.join("docs/SUMMARY.md"), summary).expect("a page");
        let text = "[a](gone.md) [b](../README.md#none) [c](.) `docs/none.json` [d](../../x) [e](../README.md#title)";
        fs::write(root.join("docs/page.md"), text).expect("a page");
        let found = errors(root).expect("the pages");
        let expected = [
            "crates/log/record/docs/json.md: not in docs/SUMMARY.md",
            "docs/page.md: not in docs/SUMMARY.md",
            "docs/page.md: the link to docs/gone.md, which is not a page of docs/SUMMARY.md",
            "docs/page.md: the link to README.md#none, which has no such heading",
            "docs/page.md: the link to docs, which is not a file",
            "docs/page.md: docs/page.md: the link to ../../x leads out of the source tree",
            "docs/page.md: there is no docs/none.json",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_page_that_a_source_names_and_that_is_not_there_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        for place in PLACES {
            fs::create_dir_all(root.join(place)).expect("a directory");
        }
        fs::create_dir_all(root.join("crates/b/a/docs")).expect("a directory");
        fs::write(root.join("crates/b/a/docs/own.md"), "").expect("a page");
        fs::write(
            root.join("crates/b/a/x.rs"),
            "// docs/own.md, docs/none.md\n",
        )
        .expect("a source");
        let found = named_by_sources(root).expect("the sources");
        assert_eq!(found, ["crates/b/a/x.rs: docs/none.md"]);
    }

    #[test]
    fn only_paths_of_the_tree_count_as_paths() {
        assert!(is_path("crates/core/plan/src/hooks.rs") && is_path("tests/vm"));
        assert!(
            !is_path("crates/*/src")
                && !is_path("target/vm")
                && !is_path("tests/exact/compare DIR")
        );
        let text = "see docs/a-b.md, and (docs/c/d.md). Not xdocs/e.md";
        assert_eq!(pages_in(text), ["docs/a-b.md", "docs/c/d.md"]);
    }
}
