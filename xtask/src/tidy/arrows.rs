//! Checks that crates depend on each other as the table on the architecture page says, and only on crates above
//! them there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::Offence;

/// The page with the table, and the first line of the table.
const PAGE: &str = "docs/internals/architecture.md";
const HEADER: &str = "| crate | needs |";

/// The dependencies of each crate, in order.
type Arrows = Vec<(String, Vec<String>)>;

/// Differences between the table and the crates' manifests.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("reading {PAGE}"))?;
    let mut manifests = BTreeMap::new();
    for folder in names(&root.join("crates"))? {
        for name in names(&root.join("crates").join(&folder))? {
            let path = format!("crates/{folder}/{name}/Cargo.toml");
            let text =
                fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
            manifests.insert(name, text);
        }
    }

    Ok(differences(&written(&page), &manifests))
}

/// The names of a directory's entries.
fn names(directory: &Path) -> Result<Vec<String>> {
    let context = || format!("reading {}", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(context)? {
        names.push(
            entry
                .with_context(context)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    Ok(names)
}

/// Differences of the table from the manifests: entries that it lacks or has in excess.
fn differences(written: &Arrows, manifests: &BTreeMap<String, String>) -> Vec<Offence> {
    let mut offences = Vec::new();
    let mut offend = |place: String, what: String| {
        let error = format!("{PAGE}, crate {what}");
        offences.push(Offence { place, error });
    };
    let above = |name: &str, needed: &str| {
        let place = |name: &str| written.iter().position(|(each, _)| each == name);
        place(needed) < place(name)
    };

    for (name, manifest) in manifests {
        let Some((_, needs)) = written.iter().find(|(each, _)| each == name) else {
            offend(name.clone(), format!("{name}: not in the table"));
            continue;
        };
        let found: Vec<String> = dependencies(manifest)
            .into_iter()
            .filter(|each| manifests.contains_key(each))
            .collect();
        for each in found.iter().filter(|each| !needs.contains(each)) {
            let what = format!("{name}: its Cargo.toml has {each}, which the table lacks");
            offend(format!("{name} -> {each}"), what);
        }
        for each in needs.iter().filter(|each| !found.contains(each)) {
            let what = format!("{name}: the table has {each}, which its Cargo.toml lacks");
            offend(format!("{name} -> {each}"), what);
        }
        for each in found.iter().filter(|each| !above(name, each)) {
            let what = format!("{name}: {each} is not above it in the table");
            offend(format!("{name} -> {each}"), what);
        }
    }

    for (name, _) in written {
        if !manifests.contains_key(name) {
            offend(name.clone(), format!("{name}: there is no such crate"));
        }
    }

    offences
}

/// The rows of the page's table. `all above` stands for the crates of the rows before; `all above but` leaves some
/// of them out.
fn written(page: &str) -> Arrows {
    let rows = page.lines().skip_while(|line| *line != HEADER).skip(2);
    let mut arrows = Arrows::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut words = row
            .split(['|', ' ', ',', '`'])
            .filter(|word| !word.is_empty())
            .map(str::to_owned);
        let name = words.next().unwrap_or_default();
        let words: Vec<String> = words.collect();
        let above = || arrows.iter().map(|(name, _)| name.clone());
        let needs: Vec<String> = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["all", "above"] => above().collect(),
            ["all", "above", "but", ref others @ ..] => above()
                .filter(|name| !others.contains(&name.as_str()))
                .collect(),
            _ => words,
        };
        arrows.push((name, needs));
    }

    arrows
}

/// The names of a manifest's dependencies, except dev-dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_list = false;
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            let is_of_tests = section.contains("dev-dependencies");
            is_list = section.ends_with("dependencies") && !is_of_tests;
            let single = section.rsplit_once("dependencies.").map(|(_, name)| name);
            if !is_of_tests {
                names.extend(single.map(str::to_owned));
            }
        } else if is_list && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            names.extend((!name.is_empty()).then(|| name.to_owned()));
        }
    }

    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_all_kinds_but_those_of_tests_are_read() {
        let manifest = "\
[package]
name = \"x\"
[dependencies]
a.workspace = true
# z = \"1\"
b = { workspace = true }
[dependencies.c]
path = \"../c\"
[build-dependencies]
d = \"1\"
[target.'cfg(unix)'.dependencies]
e = \"1\"
[dev-dependencies]
f = \"1\"
[features]
g = []
";
        assert_eq!(dependencies(manifest), ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn each_difference_between_table_and_manifests_is_found() {
        let page = "\
text
| crate | needs |
|---|---|
| `low` | |
| `high` | `low`, `gone` |
| `none` | |
| `late` | |
| `last` | all above |

| other | table |
";
        let manifests = [
            ("low", "[dependencies]\nlate = \"1\"\nserde = \"1\"\n"),
            ("high", "[dependencies]\nlow = \"1\"\n"),
            ("late", ""),
            (
                "last",
                "[dependencies]\nlow = \"1\"\nhigh = \"1\"\nnone = \"1\"\n",
            ),
            ("new", ""),
        ];
        let manifests = manifests.map(|(name, text)| (name.to_owned(), text.to_owned()));
        let found = differences(&written(page), &BTreeMap::from(manifests));
        let found: Vec<&str> = found
            .iter()
            .filter_map(|offence| {
                offence
                    .error
                    .strip_prefix("docs/internals/architecture.md, crate ")
            })
            .collect();
        assert_eq!(
            found,
            [
                "high: the table has gone, which its Cargo.toml lacks",
                "last: the table has none, which its Cargo.toml lacks",
                "last: the table has late, which its Cargo.toml lacks",
                "low: its Cargo.toml has late, which the table lacks",
                "low: late is not above it in the table",
                "new: not in the table",
                "none: there is no such crate",
            ]
        );
    }
}
