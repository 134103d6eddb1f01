//! augenrules(8): the program under that name merges `rules.d` into `audit.rules`, and loads it.
//!
//! Options, messages, statuses and files are those of the script in audit 3.0.9, whose text the
//! merged file has byte by byte. Files `*.tarsier`, which that script does not know, are not in it, and are loaded.

use anyhow::{Context, Result};
use rules::Owner;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The directory of the parts.
const PARTS: &str = "/etc/audit/rules.d";
/// The merged file.
const MERGED: &str = "/etc/audit/audit.rules";
/// Exit status for wrong options, and where there is no directory.
const FAILED: u8 = 1;

/// Carries out `args`, the words after `augenrules`. Returns the script's exit status.
///
/// # Errors
/// A file cannot be read or written, or belongs to somebody else than root.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    let places = Places {
        parts: PathBuf::from(PARTS),
        merged: PathBuf::from(MERGED),
        owner: Owner::Root,
    };
    // The script's messages begin with the path by which it was called.
    let program = std::env::args_os().next().unwrap_or_default();
    let name = program.to_string_lossy();
    let (load, status) = merge(&places, &name, &args, &mut io::stdout().lock())?;
    if !load {
        return Ok(status);
    }

    let own = rules::read_directory(&places.parts, places.owner, rules::OWN_ONLY)?;
    let loaded = if own.is_empty() {
        super::run(vec!["-R".into(), places.merged.into()])?
    } else {
        // The merged file is for auditctl, which refuses rules of `*.tarsier`.
        super::merge::load(&places.parts, false, Path::new(super::RUN_DIR))?
    };

    Ok(status.max(loaded))
}

/// Paths of the rules.
struct Places {
    parts: PathBuf,
    merged: PathBuf,
    /// Owner that the parts must have.
    owner: Owner,
}

/// Merges, or with `--check` only compares. Returns whether the merged file is to be loaded, and the
/// status until then.
fn merge(
    places: &Places,
    name: &str,
    args: &[OsString],
    out: &mut dyn Write,
) -> Result<(bool, u8)> {
    let (mut check, mut load) = (false, false);
    for arg in args {
        match arg.as_encoded_bytes() {
            b"--check" => check = true,
            b"--load" => load = true,
            _ => {
                writeln!(out, "Usage: {name} [--check|--load]")?;
                return Ok((false, FAILED));
            }
        }
    }

    if !places.parts.is_dir() {
        writeln!(
            out,
            "{name}: No rules directory - {}",
            places.parts.display()
        )?;
        return Ok((load, FAILED));
    }

    let files = rules::read_directory(&places.parts, places.owner, rules::RULES_ONLY)?;
    let text = rules::merge_directory(&places.parts.to_string_lossy(), &files);
    let before = match fs::read(&places.merged) {
        Ok(before) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read {}", places.merged.display()))
        }
    };

    if before.as_ref() == Some(&text) {
        writeln!(out, "{name}: No change")?;
        return Ok((load, 0));
    }

    if check {
        writeln!(out, "{name}: Rules have changed and should be updated")?;
        return Ok((false, 0));
    }

    if let Some(before) = before {
        replace(&places.merged.with_extension("rules.prev"), &before)?;
    }
    replace(&places.merged, &text)?;

    Ok((load, 0))
}

/// Puts `text` at `path` (0640): whole, or not at all.
fn replace(path: &Path, text: &[u8]) -> Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".new-{}", std::process::id()));
    let new = PathBuf::from(new);
    let written = || {
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o640)
            .open(&new)?;
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&new, path)
    };

    written().with_context(|| {
        let _ = fs::remove_file(&new);
        format!("cannot write {}: are you root?", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn called(places: &Places, args: &[&str]) -> (String, bool, u8) {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let mut out = Vec::new();
        let (load, status) = merge(places, "augenrules", &args, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), load, status)
    }

    #[test]
    fn rules_are_merged_compared_and_kept_as_by_the_script() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            parts: dir.path().join("rules.d"),
            merged: dir.path().join("audit.rules"),
            owner: Owner::Anybody,
        };
        let shown = places.parts.display();
        let (text, load, status) = called(&places, &["--load"]);
        assert_eq!(text, format!("augenrules: No rules directory - {shown}\n"));
        assert!(load && status == 1);
        fs::create_dir(&places.parts).unwrap();
        fs::write(places.parts.join("2.rules"), "-e 1\n-w /b\n# x\n").unwrap();
        fs::write(places.parts.join("10.rules"), "-b 9\n-D\n-f 1\n-w /c\n").unwrap();
        let changed = "augenrules: Rules have changed and should be updated\n";
        assert_eq!(
            called(&places, &["--check", "--load"]),
            (changed.to_owned(), false, 0)
        );
        assert!(!places.merged.exists(), "only compared");
        assert_eq!(called(&places, &[]), (String::new(), false, 0));
        let merged = fs::read_to_string(&places.merged).unwrap();
        let head = format!("## This file is automatically generated from {shown}\n");
        assert_eq!(
            merged,
            head.clone() + "-D\n-b 9\n-f 1\n-w /b\n-w /c\n-e 1\n"
        );
        let mode = fs::metadata(&places.merged).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o640 & mode, "no more than the script gives");
        let same = "augenrules: No change\n".to_owned();
        assert_eq!(called(&places, &["--load"]), (same, true, 0));
        fs::remove_file(places.parts.join("10.rules")).unwrap();
        assert_eq!(called(&places, &["--load"]), (String::new(), true, 0));
        let before = fs::read_to_string(dir.path().join("audit.rules.prev")).unwrap();
        assert_eq!(before, merged);
        let after = fs::read_to_string(&places.merged).unwrap();
        assert_eq!(after, head + "\n\n\n-w /b\n-e 1\n");
        let usage = "Usage: augenrules [--check|--load]\n".to_owned();
        assert_eq!(called(&places, &["--help"]), (usage, false, 1));
        let left = fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(
            left, 3,
            "nothing but rules.d, audit.rules and audit.rules.prev"
        );
    }
}
