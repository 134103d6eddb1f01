//! The manual: `README.md`, `docs/` and what they are made from.
//!
//! * `docs` writes the generated parts of the pages: [`figures`] from `bench/results`, [`commands`] from the command
//!   lines. Tests compare them with what is committed.
//! * `book DIR` copies all pages to DIR as mdBook wants them: see [`book`].
//! * Tests hold the pages against [`links`] (nothing that is named is missing) and [`layout`] (columns, lengths).

mod book;
mod commands;
mod figures;
mod layout;
mod links;
mod pages;
mod results;
pub(crate) mod text;

use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

/// Writes the generated parts of all pages.
pub(crate) fn write(root: &Path) -> Result<()> {
    for Generated { page, wanted, text } in generated(root)? {
        if text != wanted {
            fs::write(root.join(&page), wanted).with_context(|| format!("writing {page}"))?;
        }
    }
    Ok(())
}

pub(crate) use book::stage;
#[cfg(test)]
pub(crate) use commands::all as command_names;

/// A page with generated parts.
struct Generated {
    /// From the root of the source tree.
    page: String,
    /// The page as it is.
    text: String,
    /// The page as the sources of its generated parts make it.
    wanted: String,
}

/// All pages as they are, and as they should be.
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

/// Names NAME of the parts that begin with a line `<!-- KINDNAME -->`.
fn names_of_parts<'t>(text: &'t str, kind: &'t str) -> impl Iterator<Item = &'t str> {
    text.lines().filter_map(move |line| {
        let inner = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
        inner.strip_prefix(kind)
    })
}

/// `text` with `part` between its lines `<!-- NAME -->` and `<!-- /NAME -->`.
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
    fn pages_have_the_figures_and_options_that_their_sources_have() {
        for Generated { page, text, wanted } in generated(&source_root()).expect("all parts") {
            let differs = text
                .lines()
                .zip(wanted.lines())
                .find(|(one, other)| one != other);
            assert!(
                text == wanted,
                "{page}: not what its sources make; `cargo xtask docs` writes it. First difference: {differs:#?}"
            );
        }
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
