//! The licences of the third-party crates that are linked into the program, with their texts.

use super::crates::Crate;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files that hold a licence or a notice.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Lists the crates, then each licence text once, with the crates that have it.
pub(super) fn text(crates: &[Crate]) -> Result<String> {
    let others: Vec<&Crate> = crates.iter().filter(|found| !found.is_own).collect();
    let mut out = "Software of others that is part of the program tarsier\n\n".to_owned();
    for found in &others {
        writeln!(out, "{} {}: {}", found.name, found.version, found.licence)?;
    }
    out.push_str(
        "\nlibelf (LGPL-3.0-or-later OR GPL-2.0-or-later), zlib (Zlib), and LLVM's libunwind and compiler-rt (Apache-2.0 \
         WITH LLVM-exception) are part of the packaged programs. Another libelf can be linked: the sources and \
         scripts/build-package are free.\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();

    for found in &others {
        for file in files(&found.directory)? {
            let text = fs::read(&file).with_context(|| file.display().to_string())?;
            let text = String::from_utf8_lossy(&text).replace("\r\n", "\n");
            let shown = file
                .strip_prefix(&found.directory)
                .unwrap_or(&file)
                .display();
            let place = format!("{} {}: {shown}", found.name, found.version);
            texts.entry(text.trim().to_owned()).or_default().push(place);
        }
    }

    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    let rule = "=".repeat(79);
    for (text, places) in texts {
        writeln!(out, "\n{rule}\n{}\n{rule}\n\n{text}", places.join("\n"))?;
    }

    Ok(out)
}

/// Files with licences in a crate, and in the directories of its first level, where vendored sources are.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![(directory.to_owned(), 0)];
    while let Some((directory, depth)) = directories.pop() {
        let entries = fs::read_dir(&directory).with_context(|| directory.display().to_string())?;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().to_uppercase();
            let kind = entry.file_type()?;
            if kind.is_dir() && depth == 0 {
                directories.push((entry.path(), 1));
            } else if kind.is_file() && NAMES.iter().any(|known| name.starts_with(known)) {
                found.push(entry.path());
            }
        }
    }

    found.sort();

    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_of_others_is_listed_and_texts_stand_once() {
        let root = crate::source_root();
        let crates = super::super::crates::of_tarsier(&root, "x86_64-unknown-linux-gnu").unwrap();
        let text = text(&crates).unwrap();
        for found in &crates {
            let line = format!("\n{} {}: {}\n", found.name, found.version, found.licence);
            assert_ne!(text.contains(&line), found.is_own, "{}", found.name);
        }
        for vendored in ["zstd/LICENSE", "libbpf/LICENSE"] {
            assert!(text.contains(vendored), "{vendored}");
        }
        let apache = "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION";
        assert!(
            text.matches(apache).count() < crates.len() / 2,
            "texts are repeated"
        );
    }
}
