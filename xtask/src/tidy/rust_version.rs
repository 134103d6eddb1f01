//! The stated version of Rust is one with which everything can be built, the tests included.

use super::Offence;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Dependencies that ask for a newer Rust than the workspace states, as cargo's metadata have it.
pub(super) fn offences(root: &Path) -> Result<Vec<Offence>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked"]);
    let text = crate::command::output_of(command.current_dir(root))?;
    newer(&serde_json::from_str(&text).context("the output of cargo metadata")?)
}

fn newer(metadata: &serde_json::Value) -> Result<Vec<Offence>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let own = packages
        .iter()
        .find(|package| package["source"].is_null())
        .context("no package of this workspace")?;
    let stated = version(own).context("this workspace states no rust-version")?;
    let newer = packages
        .iter()
        .filter(|package| version(package) > Some(stated));
    let offences = newer.map(|package| {
        let name = package["name"].as_str().unwrap_or_default();
        let asked = package["rust_version"].as_str().unwrap_or_default();
        Offence {
            place: "Cargo.toml".to_owned(),
            error: format!(
                "Cargo.toml: rust-version is {}.{}, but {name} needs {asked}: state that, or use an earlier {name}",
                stated.0, stated.1
            ),
        }
    });

    Ok(offences.collect())
}

/// Major and minor number of the version of Rust that a package asks for.
fn version(package: &serde_json::Value) -> Option<(u32, u32)> {
    let mut numbers = package["rust_version"].as_str()?.split('.');
    let mut number = || numbers.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_that_needs_a_newer_rust_is_named() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "own", "source": null, "rust_version": "1.85" },
            { "name": "same", "source": "registry", "rust_version": "1.85.1" },
            { "name": "silent", "source": "registry", "rust_version": null },
            { "name": "newer", "source": "registry", "rust_version": "1.88.0" },
        ]});
        let found = newer(&metadata).expect("it is read");
        assert_eq!(found.len(), 1);
        assert!(
            found[0].error.contains("1.85, but newer needs 1.88.0"),
            "{}",
            found[0].error
        );
    }
}
