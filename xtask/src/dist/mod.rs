//! The contents of packages beyond the program and the files of `share/`: manual pages,
//! completions, a sample configuration, the SPDX document and third-party licences.

mod crates;
mod licences;
mod sample;
mod spdx;

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes everything below `directory`: `man/`, `completions/`, `auditd.conf`, `tarsier.spdx.json` and
/// `third-party-licences.txt`. `triple` is the target whose dependencies count, `created` the time in the SPDX
/// document (`YYYY-MM-DDThh:mm:ssZ`), which the caller takes from the commit.
///
/// # Errors
/// `cargo metadata` fails, or a file cannot be written.
pub(crate) fn write(root: &Path, directory: &Path, triple: &str, created: &str) -> Result<()> {
    crate::man::write(directory)?;
    let crates = crates::of_tarsier(root, triple)?;
    let files = [
        ("auditd.conf", sample::text()),
        ("tarsier.spdx.json", spdx::document(&crates, created)?),
        ("third-party-licences.txt", licences::text(&crates)?),
    ];
    for (name, text) in files {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
