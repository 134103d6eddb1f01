//! The manual: `README.md`, `docs/` and their sources.
//!
//! * `docs` writes the generated parts of the pages: [`figures`] from `bench/results`, [`commands`] from the
//!   command lines. Tests compare them with the committed pages.
//! * `book DIR` copies all pages to DIR, laid out for mdBook: see [`book`].
//! * `docs --check` checks the pages against these sources, [`links`] (everything that is named exists) and
//!   [`layout`] (columns, lengths), [`wounds`] (what a bad merge leaves). Tests do the same.

mod book;
mod commands;
mod figures;
mod layout;
mod links;
mod pages;
mod results;
pub(crate) mod text;
mod wounds;

use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

pub(crate) use book::stage;
#[cfg(test)]
pub(crate) use commands::all as command_names;

/// Writes the generated parts of all pages.
pub(crate) fn write(root: &Path) -> Result<()> {
    for Generated { page, wanted, text } in generated(root)? {
        if text != wanted {
            fs::write(root.join(&page), wanted).with_context(|| format!("writing {page}"))?;
        }
    }
    Ok(())
}

/// Fails with an error that names everything that is wrong with the pages.
pub(crate) fn check(root: &Path) -> Result<()> {
    let mut errors = links::errors(root)?;
    let missing = links::named_by_sources(root)?;
    errors.extend(
        missing
            .iter()
            .map(|each| format!("{each}, which is no page")),
    );

    for Generated { page, text, wanted } in generated(root)? {
        errors.extend(layout::errors(&page, &text));
        errors.extend(wounds::errors(&page, &text));
        if let Some((number, wanted)) = first_difference(&text, &wanted) {
            errors.push(format!(
                "{page}:{number}: not what its sources make, `cargo xtask docs` writes it: {wanted}"
            ));
        }
    }

    match errors.len() {
        0 => Ok(()),
        count => bail!("{count} errors:\n{}", errors.join("\n")),
    }
}

/// Number of the first line that differs, and the line that is wanted there.
fn first_difference<'t>(text: &str, wanted: &'t str) -> Option<(usize, &'t str)> {
    if text == wanted {
        return None;
    }
    let pairs = text.lines().zip(wanted.lines()).zip(1..);
    let mut differing = pairs.filter(|((line, wanted), _)| line != wanted);
    let end = text.lines().count().min(wanted.lines().count()) + 1;
    let first = differing
        .next()
        .map(|((_, wanted), number)| (number, wanted));
    Some(first.unwrap_or((end, "the end")))
}

/// A page with generated parts.
struct Generated {
    /// Path of the page from the root of the source tree.
    page: String,
    /// The current text of the page.
    text: String,
    /// The text that the sources of its generated parts result in.
    wanted: String,
}

/// All pages that have generated parts.
fn generated(root: &Path) -> Result<Vec<Generated>> {
    let figures = figures::render_all(root)?;
    let mut unused: Vec<&str> = figures.keys().map(String::as_str).collect();
    let mut all = Vec::new();

    for page in pages::written(root)? {
        let text =
            fs::read_to_string(root.join(&page)).with_context(|| format!("reading {page}"))?;
        let mut wanted = text.clone();
        for name in names_of_parts(&text, "figures ") {
            let part = figures.get(name);
            let part = part.with_context(|| {
                format!("{page}: no docs/figures/{name}.md makes the part `figures {name}`")
            })?;
            unused.retain(|each| *each != name);
            wanted = with_part(&wanted, &format!("figures {name}"), part)
                .with_context(|| page.clone())?;
        }
        for name in names_of_parts(&text, "help ") {
            let part = commands::help(name).with_context(|| page.clone())?;
            wanted =
                with_part(&wanted, &format!("help {name}"), &part).with_context(|| page.clone())?;
        }
        if names_of_parts(&text, "configuration").next().is_some() {
            let part = crate::man::configuration_tables()?;
            wanted = with_part(&wanted, "configuration", &part).with_context(|| page.clone())?;
        }
        all.push(Generated { page, text, wanted });
    }

    match unused.as_slice() {
        [] => Ok(all),
        [name, ..] => bail!("docs/figures/{name}.md: no page has a part `figures {name}`"),
    }
}

/// The NAME of each part that begins with a line `<!-- KINDNAME -->`.
fn names_of_parts<'t>(text: &'t str, kind: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| {
        let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        inner.strip_prefix(kind)
    })
}

/// Replaces the text between the lines `<!-- NAME -->` and `<!-- /NAME -->` with `part`.
fn with_part(text: &str, name: &str, part: &str) -> Result<String> {
    let (start, end) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n"));
    let (before, rest) = text
        .split_once(&start)
        .with_context(|| format!("no line {}", start.trim_end()))?;
    let (_, after) = rest
        .split_once(&end)
        .with_context(|| format!("no line {}", end.trim_end()))?;
    Ok(format!("{before}{start}{part}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_root;

    #[test]
    fn pages_are_what_their_sources_make_and_name_nothing_that_is_missing() {
        if let Err(error) = check(&source_root()) {
            panic!("{error:#}");
        }
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "c")));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some((2, "the end")));
    }

    #[test]
    fn a_part_is_replaced_between_its_marks_only() {
        let text = "a\n<!-- figures x -->\nold\n<!-- /figures x -->\nb\n";
        let names: Vec<&str> = names_of_parts(text, "figures ").collect();
        assert_eq!(names, ["x"]);
        assert_eq!(
            with_part(text, "figures x", "new\n").expect("marks"),
            "a\n<!-- figures x -->\nnew\n<!-- /figures x -->\nb\n"
        );
        let error = with_part("a\n<!-- figures x -->\n", "figures x", "").expect_err("no end");
        assert_eq!(error.to_string(), "no line <!-- /figures x -->");
    }
}
