//! Reads the tables in `bench/results`, as the benchmarks print them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

/// Directory to which the benchmarks write their results.
const RESULTS: &str = "bench/results";

/// The part of a cell that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// The text before ` (…)`.
    Value,
    /// The text in the brackets: what was added to native.
    Added,
}

/// The tables of all results, read when first needed.
pub(super) struct Results<'r> {
    root: &'r Path,
    files: BTreeMap<String, Vec<Table>>,
}

struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl<'r> Results<'r> {
    pub(super) fn new(root: &'r Path) -> Self {
        Results {
            root,
            files: BTreeMap::new(),
        }
    }

    /// The figure for `FILE: ROW: COLUMN`. ROW is a row's first cell, or the beginning of it if that is unique.
    /// `COLUMN > NEXT` means the first column NEXT after COLUMN; a ` +` at the end selects the value in brackets.
    pub(super) fn figure(&mut self, name: &str) -> Result<String> {
        let parts: Vec<&str> = name.splitn(3, ": ").collect();
        let [file, row, column] = parts[..] else {
            bail!("expected FILE: ROW: COLUMN");
        };

        let (column, part) = match column.strip_suffix(" +") {
            Some(column) => (column, Part::Added),
            None => (column, Part::Value),
        };
        if !self.files.contains_key(file) {
            let path = format!("{RESULTS}/{file}.md");
            let text = fs::read_to_string(self.root.join(&path))
                .with_context(|| format!("reading {path}"))?;
            self.files.insert(file.to_owned(), tables(&text));
        }

        let cell =
            find(&self.files[file], row, column).with_context(|| format!("{RESULTS}/{file}.md"))?;

        taken(&cell, part)
            .with_context(|| format!("{RESULTS}/{file}.md: {row}: {column}: '{cell}'"))
    }
}

/// All tables in a text.
fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        if !line.starts_with('|') {
            is_inside = false;
            continue;
        }
        let inner = line.strip_prefix('|').unwrap_or(line);
        let inner = inner.strip_suffix('|').unwrap_or(inner);
        let cells: Vec<String> = inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect();
        let is_rule = cells
            .iter()
            .all(|cell| cell.starts_with([':', '-']) && cell.ends_with([':', '-']));

        if let (Some(table), true) = (tables.last_mut(), is_inside) {
            if !is_rule {
                table.rows.push(cells);
            }
        } else {
            tables.push(Table {
                head: cells,
                rows: Vec::new(),
            });
        }
        is_inside = true;
    }

    tables
}

fn find(tables: &[Table], row: &str, column: &str) -> Result<String> {
    let labelled = |is: &dyn Fn(&str) -> bool| -> Vec<(&Table, &Vec<String>)> {
        let all = tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |cells| (table, cells)));
        all.filter(|(_, cells)| is(&cells[0])).collect()
    };
    let mut rows = labelled(&|label| label == row);
    if rows.is_empty() {
        rows = labelled(&|label| label.starts_with(row));
    }
    let (table, cells) = match rows[..] {
        [one] => one,
        [] => bail!("no row '{row}'"),
        _ => bail!("{} rows begin with '{row}'", rows.len()),
    };
    let mut at = 0;
    for name in column.split(" > ") {
        let found = table.head[at..].iter().position(|head| head == name);
        at +=
            found.with_context(|| format!("no column '{column}' in the table with row '{row}'"))?;
    }

    let cell = cells.get(at).filter(|cell| !cell.is_empty());

    cell.cloned()
        .with_context(|| format!("row '{row}' has nothing in column '{column}'"))
}

fn taken(cell: &str, part: Part) -> Result<String> {
    let (value, added) = match cell.split_once(" (") {
        Some((value, rest)) => (value, rest.strip_suffix(')')),
        None => (cell, None),
    };
    let figure = match part {
        Part::Value => value,
        Part::Added => added
            .context("nothing in brackets")?
            .trim_start_matches('+'),
    };

    // A percentage that is rounded to zero has no sign.
    Ok(match figure {
        "-0.0 %" | "+0.0 %" => "0.0 %".to_owned(),
        figure => figure.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# T\n\n| ns | null | time | CPU | other: time | CPU |\n|---|---:|---:|---:|---:|---:|\n\
        | native | 135 (200) | 1 | 2 | 3 | -0.0 % |\n| kernel, 1 rule | 341 (+206) | 1 | | 3 | +4 % |\n\
        | kernel, 10 rules | 1 | 1 | 1 | 1 | 1 |\n\n| | all |\n|---|---:|\n| ratio | 7 |\n";

    fn figure(name: &str) -> Result<String> {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(dir.path().join(RESULTS)).expect("a directory");
        fs::write(dir.path().join(RESULTS).join("t.md"), TEXT).expect("a file");
        Results::new(dir.path()).figure(name)
    }

    #[test]
    fn a_figure_is_found_by_row_and_column() {
        for (name, expected) in [
            ("t: native: null", "135"),
            ("t: kernel, 1 rule: null +", "206"),
            ("t: kernel, 1 : other: time > CPU", "+4 %"),
            ("t: nat: other: time > CPU", "0.0 %"),
            ("t: ratio: all", "7"),
        ] {
            assert_eq!(figure(name).expect(name), expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        for (name, expected) in [
            ("t: nobody: null", "no row 'nobody'"),
            ("t: kernel: null", "2 rows begin with 'kernel'"),
            ("t: native: bytes", "no column 'bytes'"),
            ("t: kernel, 1 rule: CPU", "has nothing in column 'CPU'"),
            ("t: native: time +", "nothing in brackets"),
            ("none: native: null", "reading bench/results/none.md"),
            ("t: native", "expected FILE: ROW: COLUMN"),
        ] {
            let error = format!("{:#}", figure(name).expect_err(name));
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}
