//! The tables of kernels in `docs/reference/kernels.md` and `README.md`, from `docs/reference/kernels.json`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::docs::text::wrap;

use super::engines::{Engine, ENGINES};
use super::results::{self, numbers, Entry};

/// Paths below the root of the source tree: the results, and the documents with tables made from them.
const RESULTS: &str = "docs/reference/kernels.json";
const LONG: &str = "docs/reference/kernels.md";
const SHORT: &str = "README.md";
/// The lines around a table.
const MARKS: [&str; 2] = ["<!-- matrix -->\n", "<!-- /matrix -->"];
/// The test of kernels without eBPF engines.
const NO_EBPF: &str = "no-ebpf";
/// The kernel that the others are compared with.
const REFERENCE: &str = "6.12";
/// Releases of distributions, and the kernels that they came with.
const DISTRIBUTIONS: [(&str, &str); 10] = [
    ("5.10", "Debian 11"),
    ("5.14", "RHEL 9"),
    ("5.15", "Ubuntu 22.04"),
    ("6.1", "Debian 12"),
    ("6.1", "Amazon Linux 2023"),
    ("6.8", "Ubuntu 24.04"),
    ("6.12", "Debian 13"),
    ("6.12", "RHEL 10"),
    ("6.12", "SLES 16"),
    ("6.17", "Ubuntu 25.10"),
];

/// Copies results to the committed file and writes the tables.
pub(super) fn publish(root: &Path, entries: &[Entry]) -> Result<()> {
    results::write(&root.join(RESULTS), entries)?;
    write_tables(root)
}

/// Writes the tables that result from the committed results.
pub(super) fn write_tables(root: &Path) -> Result<()> {
    let documents = tables(root)?.into_iter();
    for Document { path, wanted, .. } in documents.filter(|each| each.text != each.wanted) {
        fs::write(root.join(path), wanted).with_context(|| format!("writing {path}"))?;
    }
    Ok(())
}

/// A document that contains a table.
struct Document {
    path: &'static str,
    text: String,
    /// The text with the table that results from the committed results.
    wanted: String,
}

fn tables(root: &Path) -> Result<[Document; 2]> {
    let entries = results::read(&root.join(RESULTS))?;
    let rows = rows(&entries);
    Ok([
        document(root, LONG, &long_table(&rows))?,
        document(root, SHORT, &short_table(&rows))?,
    ])
}

fn document(root: &Path, path: &'static str, table: &str) -> Result<Document> {
    let text = fs::read_to_string(root.join(path)).with_context(|| format!("reading {path}"))?;
    let [start, end] = MARKS;
    let parts = text.split_once(start).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(end)?;
        Some((before, after))
    });
    let (before, after) =
        parts.with_context(|| format!("{path} lacks {} or {end}", start.trim_end()))?;
    let wanted = format!("{before}{start}{table}{end}{after}");
    Ok(Document { path, text, wanted })
}

/// A series, whether tested or not.
struct Row {
    series: String,
    released_with: BTreeSet<String>,
    /// One cell for each of [`ENGINES`].
    engines: [String; 2],
    /// Differences from the reference, in the plan and in failing tests.
    differs: Vec<String>,
    /// Variants whose tests all pass.
    variants: Vec<String>,
}

fn rows(entries: &[Entry]) -> Vec<Row> {
    let tested = entries.iter().map(|entry| entry.series.as_str());
    let known = DISTRIBUTIONS.iter().map(|(series, _)| *series);
    let mut series: Vec<&str> = tested.chain(known).collect();
    series.sort_by_key(|series| numbers(series));
    series.dedup();
    series
        .into_iter()
        .map(|series| row(series, entries))
        .collect()
}

fn row(series: &str, entries: &[Entry]) -> Row {
    let of = |series: &'_ str| -> Vec<&Entry> {
        entries
            .iter()
            .filter(|entry| entry.series == series)
            .collect()
    };
    let own = of(series);
    let mut released_with: BTreeSet<String> = DISTRIBUTIONS
        .iter()
        .filter(|(each, _)| *each == series)
        .map(|(_, name)| name.to_string())
        .collect();
    released_with.extend(own.iter().filter_map(|entry| {
        let (_, release) = entry.package.split_once("~bpo")?;
        Some(format!("Debian {} backports", release.split_once('+')?.0))
    }));
    let names: BTreeSet<&str> = own.iter().map(|entry| entry.variant.as_str()).collect();
    let passes = |variant: &&str| {
        own.iter()
            .all(|entry| entry.variant != **variant || entry.passed)
    };
    let variants = names
        .into_iter()
        .filter(|name| *name != "stock")
        .filter(passes);

    Row {
        series: series.to_owned(),
        released_with,
        engines: ENGINES.map(|engine| cell(engine, &own)),
        differs: differences(&own, &of(REFERENCE)),
        variants: variants.map(str::to_owned).collect(),
    }
}

fn found<'e>(engine: &str, entries: &[&'e Entry]) -> Option<&'e Engine> {
    let stock = entries.iter().filter(|entry| entry.variant == "stock");
    stock.filter_map(|entry| entry.engines.get(engine)).next()
}

fn cell(engine: &str, entries: &[&Entry]) -> String {
    if let Some(test) = entries.iter().find(|entry| entry.test == NO_EBPF) {
        let text = if test.passed {
            "kernel's audit"
        } else {
            "test fails"
        };
        return text.to_owned();
    }

    let all_pass = entries
        .iter()
        .all(|entry| entry.variant != "stock" || entry.passed);
    let text = match found(engine, entries) {
        None => "not tried",
        Some(engine) if !engine.works => "does not load",
        Some(_) if all_pass => "works",
        Some(_) => "in part",
    };
    text.to_owned()
}

/// The notes of engines that they do not give on the reference, and the tests that fail.
fn differences(own: &[&Entry], reference: &[&Entry]) -> Vec<String> {
    let mut all = Vec::new();
    let tests = own.iter().filter(|entry| entry.test == NO_EBPF);
    all.extend(tests.flat_map(|entry| entry.said.first().cloned()));

    for engine in ENGINES {
        let Some(here) = found(engine, own) else {
            continue;
        };
        if !here.works {
            all.push(format!("{engine}: {}", here.why));
        }
        let known = found(engine, reference).map_or(&[][..], |there| &there.notes[..]);
        let notes = here.notes.iter().filter(|note| !known.contains(note));
        all.extend(notes.map(|note| format!("{engine}: {note}")));
    }

    let failed = own
        .iter()
        .filter(|entry| !entry.passed && entry.test != NO_EBPF);
    let failed: Vec<String> = failed
        .map(|entry| match entry.variant.as_str() {
            "stock" => entry.test.clone(),
            variant => format!("{} ({variant})", entry.test),
        })
        .collect();
    if !failed.is_empty() {
        all.push(format!("fails: {}", failed.join(", ")));
    }

    all
}

fn joined<'t>(texts: impl IntoIterator<Item = &'t String>, by: &str) -> String {
    let texts: Vec<&str> = texts.into_iter().map(String::as_str).collect();
    texts.join(by).replace('|', "\\|")
}

fn long_table(rows: &[Row]) -> String {
    let mut table = format!(
        "| Linux | released with | {} | {} | also as |\n|---|---|---|---|---|\n",
        ENGINES[0], ENGINES[1]
    );
    for row in rows {
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} | {} |",
            row.series,
            joined(&row.released_with, ", "),
            row.engines[0],
            row.engines[1],
            shown_variants(&row.variants)
        );
    }

    table + &differing(rows)
}

/// A list, below the table, of what differs on each kernel: too long for a cell.
fn differing(rows: &[Row]) -> String {
    let mut list = String::new();
    for row in rows.iter().filter(|row| !row.differs.is_empty()) {
        if list.is_empty() {
            let _ = write!(list, "\nWhat differs from {REFERENCE}:\n\n");
        }
        let text = format!("**{}**: {}", row.series, row.differs.join("; "));
        list.push_str(&wrap(&text, "* "));
    }
    list
}

/// A table with one row for consecutive series with the same results.
fn short_table(rows: &[Row]) -> String {
    let mut table = format!(
        "| Linux | released with | {} engine | {} engine |\n|---|---|---|---|\n",
        ENGINES[0], ENGINES[1]
    );
    let groups = rows.chunk_by(|one, next| {
        one.engines == next.engines && follows(numbers(&one.series), numbers(&next.series))
    });
    for group in groups {
        let [first, .., last] = group else {
            let row = &group[0];
            write_short(&mut table, &row.series, &row.released_with, row);
            continue;
        };
        let released = group.iter().flat_map(|row| row.released_with.clone());
        let series = format!("{} to {}", first.series, last.series);
        write_short(&mut table, &series, &released.collect(), first);
    }

    table
}

fn write_short(table: &mut String, series: &str, released_with: &BTreeSet<String>, row: &Row) {
    let _ = writeln!(
        table,
        "| {series} | {} | {} | {} |",
        joined(released_with, ", "),
        row.engines[0],
        row.engines[1]
    );
}

/// Whether no series can be between the two: 6.19 was followed by 7.0.
fn follows([major, minor]: [u64; 2], next: [u64; 2]) -> bool {
    next == [major, minor + 1] || next == [major + 1, 0]
}

/// The names that fit into a cell of a table, and the number of the others.
fn shown_variants(names: &[String]) -> String {
    const CELL_MAX: usize = 60;
    let mut text = String::new();
    for (place, name) in names.iter().enumerate() {
        let separator = if place > 0 { ", " } else { "" };
        if text.len() + separator.len() + name.len() > CELL_MAX {
            return format!("{text} and {} more", names.len() - place);
        }
        text += separator;
        text += name;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::entry;
    use super::super::source_root;
    use super::*;

    /// A kernel on which both engines work, the second one with a note.
    fn working(series: &str, note: &str) -> Entry {
        let mut entry = entry(series, "stock", "engines", true);
        for (engine, notes) in ENGINES.into_iter().zip([vec![], vec![note.to_owned()]]) {
            let engine_found = Engine {
                works: true,
                why: String::new(),
                notes,
            };
            entry.engines.insert(engine.to_owned(), engine_found);
        }
        entry
    }

    #[test]
    fn the_documents_have_the_tables_that_the_results_make() {
        for Document { path, text, wanted } in tables(&source_root()).expect("the documents") {
            let remedy = "made by: cargo xtask vm --matrix --write, or cargo xtask vm --tables";
            assert!(
                text == wanted,
                "{path}: not the table of {RESULTS}; {remedy}:\n{wanted}"
            );
        }
    }

    #[test]
    fn a_row_says_what_a_kernel_does_otherwise_than_the_reference() {
        let mut backport = working("6.16", "no clocks");
        backport.package = "6.16.12-1~bpo13+1".to_owned();
        let entries = [
            working("6.12", "as ever"),
            backport,
            entry("6.16", "stock", "names", false),
            entry("6.16", "cpus-1", "rings", true),
        ];
        let table = long_table(&rows(&entries));
        let line = |start: &str| table.lines().find(|line| line.starts_with(start));
        assert_eq!(
            line("| 6.16 "),
            Some("| 6.16 | Debian 13 backports | in part | in part | cpus-1 |")
        );
        let differs =
            "\nWhat differs from 6.12:\n\n* **6.16**: trampoline: no clocks; fails: names\n";
        assert!(table.ends_with(differs), "{table}");
        let reference = "| 6.12 | Debian 13, RHEL 10, SLES 16 | works | works |  |";
        assert_eq!(line("| 6.12 "), Some(reference));
        assert_eq!(
            line("| 6.8 "),
            Some("| 6.8 | Ubuntu 24.04 | not tried | not tried |  |")
        );
    }

    #[test]
    fn series_that_follow_each_other_and_do_the_same_share_a_row() {
        let entries = ["6.12", "6.18", "6.19", "7.0"].map(|series| working(series, ""));
        let table = short_table(&rows(&entries));
        assert!(
            table.contains("\n| 6.18 to 7.0 |  | works | works |\n"),
            "{table}"
        );
        assert!(table.contains("\n| 6.12 | "), "{table}");
    }

    #[test]
    fn a_kernel_that_is_too_old_has_the_kernel_s_audit_in_the_program_s_words() {
        let entries = [entry("5.10", "stock", NO_EBPF, true)];
        let table = long_table(&rows(&entries));
        assert!(
            table.contains("| 5.10 | Debian 11 | kernel's audit | kernel's audit |  |")
                && table.contains("\n* **5.10**: as it was\n"),
            "{table}"
        );
    }
}
