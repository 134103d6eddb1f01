//! Modules of a kernel that tests load: block devices in memory, file systems, and what they need.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// The modules. A kernel may have some of them built in, and lack others.
const MODULES: [&str; 11] = [
    "null_blk", "dm_mod", "dm_delay", "ext4", "xfs", "btrfs", "vfat", "overlay", "fuse", "nfsd",
    "nfsv4",
];
/// Those that mounting a file system of [`MODULES`] loads by name, which no module says.
const BY_NAME: [&str; 5] = [
    "nls_cp437",
    "nls_ascii",
    "nls_iso8859-1",
    "crc32c_generic",
    "blake2b_generic",
];
/// File beside the modules with the names of those that were looked for.
const TAKEN: &str = "taken";
/// File beside the modules: `MODULE: FILE…`, the files to load for a module, in order.
const ORDER: &str = "order";

/// Directory with the modules of the kernel whose image this is.
pub(super) fn directory(image: &Path) -> PathBuf {
    let name = image.file_name().unwrap_or_default().to_string_lossy();
    image.with_file_name(format!("modules-{name}"))
}

/// Whether all modules of a package have been taken that it has.
pub(super) fn are_taken(image: &Path) -> bool {
    let taken = fs::read_to_string(directory(image).join(TAKEN));
    taken.is_ok_and(|text| text == wanted().join("\n"))
}

fn wanted() -> Vec<&'static str> {
    [&BY_NAME[..], &MODULES[..]].concat()
}

/// Copies modules of the packages unpacked at `unpacked`, and what these need, decompressed.
pub(super) fn take(unpacked: &Path, release: &str, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("creating {}", to.display()))?;
    let mut files = BTreeMap::new();
    for root in ["lib/modules", "usr/lib/modules"] {
        find(
            &unpacked.join(root).join(release).join("kernel"),
            &mut files,
        )?;
    }

    let mut order = String::new();
    for module in wanted() {
        let mut needed = Vec::new();
        add(module, &files, to, &mut needed)?;
        if !needed.is_empty() {
            order += &format!("{module}: {}\n", needed.join(" "));
        }
    }

    for (name, text) in [(ORDER, order), (TAKEN, wanted().join("\n"))] {
        let path = to.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }

    Ok(())
}

/// Adds the modules below a directory, by name.
fn find(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    let Ok(listed) = fs::read_dir(dir) else {
        return Ok(());
    };

    for entry in listed {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if let Some((name, _)) = path.to_string_lossy().rsplit_once(".ko") {
            let name = name.rsplit('/').next().unwrap_or_default();
            files.insert(canonical(name), path.clone());
        }
    }

    Ok(())
}

/// A module's name as the kernel has it: file names may have a `-` instead.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Copies a module after those that it depends on, and adds their files to `needed`.
fn add(
    module: &str,
    files: &BTreeMap<String, PathBuf>,
    to: &Path,
    needed: &mut Vec<String>,
) -> Result<()> {
    let name = canonical(module);
    let file = format!("{name}.ko");
    if needed.contains(&file) {
        return Ok(());
    }
    let Some(path) = files.get(&name) else {
        return Ok(());
    };

    let content = if path.extension().is_some_and(|extension| extension == "xz") {
        decompressed(path)?
    } else {
        fs::read(path).with_context(|| format!("reading {}", path.display()))?
    };
    for each in depends(&content) {
        add(&each, files, to, needed)?;
    }
    let copy = to.join(&file);
    fs::write(&copy, content).with_context(|| format!("writing {}", copy.display()))?;
    needed.push(file);

    Ok(())
}

fn decompressed(path: &Path) -> Result<Vec<u8>> {
    let mut command = Command::new("xz");
    let output = command.arg("-dc").arg(path).output();
    let output = output.context("starting xz (scripts/setup test installs it)")?;
    anyhow::ensure!(output.status.success(), "xz -dc {}", path.display());
    Ok(output.stdout)
}

/// The modules that a module says it depends on: `depends=NAME,NAME` among the texts of its section `.modinfo`.
fn depends(module: &[u8]) -> Vec<String> {
    let mark = b"\0depends=";
    let found = module.windows(mark.len()).position(|each| each == mark);
    let text = found.and_then(|at| module[at + mark.len()..].split(|byte| *byte == 0).next());
    let text = String::from_utf8_lossy(text.unwrap_or_default()).into_owned();
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_taken_with_what_they_depend_on_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let kernel = dir.path().join("usr/lib/modules/1.2.3/kernel/fs");
        fs::create_dir_all(&kernel).expect("directories");
        for (name, text) in [
            ("xfs.ko", "\0license=GPL\0depends=crc-sums,sums\0"),
            ("crc-sums.ko", "\0depends=sums\0"),
            ("sums.ko", "\0depends=\0"),
            ("other.ko", "\0depends=\0"),
        ] {
            fs::write(kernel.join(name), text).expect("a module");
        }
        let to = dir.path().join("to");
        take(dir.path(), "1.2.3", &to).expect("taken");
        let order = fs::read_to_string(to.join(ORDER)).expect("the order");
        assert_eq!(order, "xfs: sums.ko crc_sums.ko xfs.ko\n");
        assert!(to.join("crc_sums.ko").exists() && !to.join("other.ko").exists());
    }
}
