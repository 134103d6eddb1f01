//! The program of `tests/vm/broken-kernels`: a test of crate `capture`, for a guest that lets programs hook functions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

use super::output_of;

/// The test in `tests/vm`.
pub(super) const NAME: &str = "broken-kernels";
/// The name of the program in the guest.
pub(super) const PROGRAM: &str = "bin/broken_kernels";

/// A message of cargo about a program that it has built.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
}

/// Builds the program, optimised, because it reads the kernel's types again and again.
pub(super) fn build(source: &Path) -> Result<PathBuf> {
    let said = output_of(
        Command::new("cargo")
            .current_dir(source)
            .args(["test", "--release", "--no-run", "--quiet"])
            .args(["--package", "tarsier-capture", "--test", "broken_kernels"])
            .arg("--message-format=json"),
    )?;

    let artifacts = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut executables = artifacts.filter_map(|artifact: Artifact| artifact.executable);
    executables
        .next_back()
        .context("cargo names no program of the test broken_kernels")
}

/// Summary of the things that the test broke, which must be all of the object's relocations.
pub(super) fn judge(dir: &Path) -> Result<String> {
    let path = dir.join("output");
    let said = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let sum = said.lines().find(|line| line.contains(" things missing, "));
    let is_right = said.contains("test result: ok. 1 passed");
    ensure!(is_right, "the test did not pass");
    sum.map(str::to_owned)
        .context("the test does not say what it broke")
}
