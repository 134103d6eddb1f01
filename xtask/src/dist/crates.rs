//! The crates that the programs consist of.

use anyhow::{ensure, Context, Result};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs of package tarsier.
const PROGRAMS: [&str; 3] = ["tarsier", "tarsier-forward", "tarsier-export"];

/// A crate that is linked into a program.
#[derive(Clone, Debug)]
pub(super) struct Crate {
    pub(super) name: String,
    pub(super) version: String,
    /// SPDX expression.
    pub(super) licence: String,
    /// Directory of its sources.
    pub(super) directory: PathBuf,
    /// Whether it is part of this workspace.
    pub(super) is_own: bool,
    /// SHA-256 of the archive that the registry has, in hexadecimal.
    pub(super) checksum: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
    source: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

/// The crates that the programs need on the target `triple`, except those for building and tests,
/// by name and version.
pub(super) fn of_tarsier(root: &Path, triple: &str) -> Result<Vec<Crate>> {
    let arguments = [
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        triple,
    ];

    let output = Command::new("cargo")
        .args(arguments)
        .current_dir(root)
        .output();
    let output = output.context("cargo metadata")?;
    ensure!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let lock = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).with_context(|| lock.display().to_string())?;

    linked(metadata, &checksums(&lock))
}

fn linked(
    metadata: Metadata,
    checksums: &BTreeMap<(String, String), String>,
) -> Result<Vec<Crate>> {
    let mut waiting = Vec::new();
    for program in PROGRAMS {
        let mut packages = metadata.packages.iter();
        let package = packages.find(|package| package.name == program);
        let package = package.with_context(|| format!("the workspace has no package {program}"))?;
        waiting.push(package.id.as_str());
    }

    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|node| (node.id.as_str(), node))
        .collect();
    let mut needed: BTreeSet<&str> = waiting.iter().copied().collect();

    while let Some(id) = waiting.pop() {
        let node = nodes
            .get(id)
            .with_context(|| format!("{id} is not resolved"))?;
        for dependency in &node.deps {
            let is_linked = dependency.dep_kinds.iter().any(|kind| kind.kind.is_none());
            if is_linked && needed.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }

    let packages = metadata
        .packages
        .iter()
        .filter(|package| needed.contains(package.id.as_str()));
    let mut crates = packages
        .map(|package| found(package, checksums))
        .collect::<Result<Vec<_>>>()?;
    crates.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));

    Ok(crates)
}

fn found(package: &Package, checksums: &BTreeMap<(String, String), String>) -> Result<Crate> {
    let directory = package
        .manifest_path
        .parent()
        .context("a manifest is in a directory")?;
    let licence = package.license.as_deref();
    let licence = licence.with_context(|| format!("{} names no licence", package.name))?;
    let key = (package.name.clone(), package.version.clone());

    Ok(Crate {
        name: package.name.clone(),
        version: package.version.clone(),
        // An old form of OR.
        licence: licence.replace(" / ", " OR ").replace('/', " OR "),
        directory: directory.to_owned(),
        is_own: package.source.is_none(),
        checksum: checksums.get(&key).cloned(),
    })
}

/// The checksums of a Cargo.lock, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut found = BTreeMap::new();
    for package in lock.split("[[package]]") {
        let value = |key: &str| {
            let mut lines = package.lines();
            let line = lines.find_map(|line| line.strip_prefix(key))?;
            Some(line.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            found.insert((name, version), sum);
        }
    }

    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_found_and_what_builds_or_tests_is_not() {
        let root = crate::source_root();
        let crates = of_tarsier(&root, "x86_64-unknown-linux-gnu").unwrap();
        let names: BTreeSet<&str> = crates.iter().map(|found| found.name.as_str()).collect();
        for name in [
            "tarsier",
            "tarsier-daemon",
            "libbpf-sys",
            "clap",
            "zstd-sys",
            "rustls",
            "parquet",
        ] {
            assert!(names.contains(name), "{name}");
        }
        for name in ["tarsier-testkit", "proptest", "libbpf-cargo", "xtask"] {
            assert!(!names.contains(name), "{name}");
        }
        for found in &crates {
            let is_summed = found.checksum.as_ref().is_some_and(|sum| sum.len() == 64);
            assert_ne!(found.is_own, is_summed, "{found:?}");
            assert!(!found.licence.contains('/'), "{found:?}");
        }
    }
}
