//! Results of the tests as a file: `target/vm/matrix.json`, and its committed copy `docs/reference/kernels.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::engines::{self, Engine};
use super::judges::Test;
use super::machine::Machine;

/// Number of lines of a test's text that are kept.
const LINES: usize = 4;
const LINE_CHARS: usize = 300;

/// The result of a test in a machine.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct TestResult {
    /// `6.12`
    pub(super) series: String,
    pub(super) release: String,
    /// The version of Debian's package.
    pub(super) package: String,
    pub(super) variant: String,
    pub(super) test: String,
    pub(super) passed: bool,
    /// The first lines of why it failed, or of the text of success.
    pub(super) said: Vec<String>,
    /// Duration by this system's clock.
    pub(super) seconds: u32,
    /// Results of the test `engines`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) engines: BTreeMap<String, Engine>,
}

impl TestResult {
    /// Makes the result from what a test left in `dir` and from the verdict.
    pub(super) fn new(
        machine: &Machine,
        test: &Test,
        judged: &Result<String, String>,
        seconds: f64,
        dir: &Path,
    ) -> Self {
        let kernel = machine.kernel;
        let (Ok(text) | Err(text)) = judged;
        let found = match test.name {
            // A machine without results has failed already.
            "engines" => engines::read(dir).unwrap_or_default(),
            _ => BTreeMap::new(),
        };
        TestResult {
            series: kernel.series().map(|number| number.to_string()).join("."),
            release: kernel.release.clone(),
            package: kernel.package_version(),
            variant: machine.variant.name.to_owned(),
            test: test.name.to_owned(),
            passed: judged.is_ok(),
            said: heart(text),
            seconds: seconds.round() as u32,
            engines: found,
        }
    }

    /// Sort key: by kernel, stock before variants.
    fn rank(&self) -> ([u64; 2], bool, &str, &str) {
        let is_variant = self.variant != "stock";
        (numbers(&self.series), is_variant, &self.variant, &self.test)
    }
}

/// The first lines of a text, without those that name a file of this system.
fn heart(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with("--- "));
    let shortened = |line: &str| line.chars().take(LINE_CHARS).collect();
    lines.take(LINES).map(shortened).collect()
}

/// The numbers of a series: `[6, 12]` for `6.12`.
pub(super) fn numbers(series: &str) -> [u64; 2] {
    let mut numbers = series.split('.').map(|number| number.parse().unwrap_or(0));
    [0; 2].map(|none: u64| numbers.next().unwrap_or(none))
}

/// Reads a file of results; empty if there is no such file.
pub(super) fn read(path: &Path) -> Result<Vec<TestResult>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}: not results", path.display()))
}

/// Writes results in order, one per line.
pub(super) fn write(path: &Path, entries: &[TestResult]) -> Result<()> {
    let mut entries: Vec<&TestResult> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.rank());
    let lines: serde_json::Result<Vec<String>> =
        entries.iter().map(serde_json::to_string).collect();
    let text = format!("[\n{}\n]\n", lines?.join(",\n"));
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Merges results of a part of the matrix into the others. The new result replaces that of the same test in the
/// same machine.
pub(super) fn merge(old: &[TestResult], new: &[TestResult]) -> Vec<TestResult> {
    let place = |entry: &TestResult| {
        (
            entry.series.clone(),
            entry.variant.clone(),
            entry.test.clone(),
        )
    };
    let mut all = BTreeMap::new();
    for entry in old.iter().chain(new) {
        all.insert(place(entry), entry.clone());
    }
    all.into_values().collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A result of a test that passed or failed.
    pub(crate) fn entry(series: &str, variant: &str, test: &str, passed: bool) -> TestResult {
        TestResult {
            series: series.to_owned(),
            release: format!("{series}.4+deb13-cloud-amd64"),
            package: format!("{series}.4-1"),
            variant: variant.to_owned(),
            test: test.to_owned(),
            passed,
            said: vec!["as it was".to_owned()],
            seconds: 7,
            engines: BTreeMap::new(),
        }
    }

    #[test]
    fn a_part_run_again_takes_the_place_of_what_was_there() {
        let old = [
            entry("6.12", "stock", "rings", false),
            entry("6.1", "stock", "rings", true),
        ];
        let all = merge(&old, &[entry("6.12", "stock", "rings", true)]);
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|entry| entry.passed));
    }

    #[test]
    fn results_are_read_as_they_were_written_in_the_order_of_versions() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("matrix.json");
        let all = ["6.12", "6.1", "5.10"].map(|series| entry(series, "stock", "rings", true));
        write(&path, &all).expect("written");
        let read = read(&path).expect("read");
        let series: Vec<&str> = read.iter().map(|entry| entry.series.as_str()).collect();
        assert_eq!(series, ["5.10", "6.1", "6.12"]);
    }
}
