//! Text with figures: the template `docs/figures/NAME.md` makes the part `figures NAME` of a page. In it, `{FILE:
//! ROW: COLUMN}` stands for a figure of `bench/results`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::results::Results;
use super::text;

const TEMPLATES: &str = "docs/figures";

/// The parts made from all templates, by name.
pub(super) fn render_all(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut results = Results::new(root);
    let mut parts = BTreeMap::new();
    let context = || format!("reading {TEMPLATES}");

    for entry in fs::read_dir(root.join(TEMPLATES)).with_context(context)? {
        let name = entry.with_context(context)?.file_name();
        let name = name.to_string_lossy();
        let path = format!("{TEMPLATES}/{name}");
        let template =
            fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        let part = render(&template, &mut results).with_context(|| path.clone())?;
        let stem = name
            .strip_suffix(".md")
            .with_context(|| format!("{path}: expected NAME.md"))?;
        parts.insert(stem.to_owned(), part);
    }

    Ok(parts)
}

fn render(template: &str, results: &mut Results<'_>) -> Result<String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after
            .split_once('}')
            .with_context(|| format!("no }} after {{{after}"))?;
        let figure = results
            .figure(name)
            .with_context(|| format!("{{{name}}}"))?;
        filled.push_str(before);
        filled.push_str(&figure);
        rest = after;
    }

    Ok(text::wrap_paragraphs(&(filled + rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_take_the_places_of_their_names() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        fs::create_dir_all(root.join("bench/results")).expect("a directory");
        fs::create_dir_all(root.join(TEMPLATES)).expect("a directory");
        fs::write(
            root.join("bench/results/t.md"),
            "| x | calls |\n|---|---|\n| native | 12 (15) |\n",
        )
        .expect("a file");
        let template = root.join(TEMPLATES).join("a.md");
        fs::write(&template, "It makes {t: native: calls} calls\nin\nall.\n").expect("a file");
        let parts = render_all(root).expect("figures");
        assert_eq!(parts["a"], "It makes 12 calls in all.\n");
        for (wrong, expected) in [
            ("{t: other: calls}", "no row 'other'"),
            ("a {t", "no } after {t"),
        ] {
            fs::write(&template, wrong).expect("a file");
            let error = format!("{:#}", render_all(root).expect_err("no such figure"));
            assert!(
                error.starts_with("docs/figures/a.md: ") && error.contains(expected),
                "{error}"
            );
        }
    }
}
