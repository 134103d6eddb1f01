//! `tarsier rules merge`: does what augenrules(8) does.

use anyhow::{bail, Context, Result};
use cli::RulesMergeArgs;
use rules::{Owner, Source};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Exit status if the existing file differs from the merged rules.
const DIFFERS: u8 = 1;

/// Loads all rules of a directory, those of `*.tarsier` files included, unless they are for the kernel. Returns the exit
/// status.
///
/// # Errors
/// The directory or a file cannot be read, or is not root's alone.
pub(super) fn load(directory: &Path, kernel: bool, run_dir: &Path) -> Result<u8> {
    let kinds = if kernel {
        rules::RULES_ONLY
    } else {
        rules::EVERY_KIND
    };
    let files = rules::read_directory(directory, Owner::Root, kinds)?;
    let lines = rules::merge_lines(&files).into_iter().map(|line| {
        let file = directory.join(line.file);
        let source = Source {
            file: file.to_string_lossy().into_owned(),
            line: line.line,
        };
        (source, line.text)
    });

    super::load(kernel, run_dir, lines)
}

/// Prints, compares or loads the rules of a directory.
///
/// # Errors
/// The directory or one of its files cannot be read, or there is no rules file. Rules that are to be
/// loaded have to be root's alone.
pub(crate) fn merge(args: &RulesMergeArgs) -> Result<u8> {
    // Rules that are only printed may be anybody's.
    let owner = if args.load {
        Owner::Root
    } else {
        Owner::Anybody
    };
    let files = rules::read_directory(&args.directory, owner, rules::RULES_ONLY)?;
    if files.is_empty() {
        bail!("{}: no *.rules file there", args.directory.display());
    }

    let directory = args.directory.to_string_lossy();
    let text = rules::merge_directory(&directory, &files);
    if args.load {
        return load(&args.directory, args.kernel, &args.run_dir);
    }

    let mut out = io::stdout().lock();
    let Some(file) = &args.check else {
        out.write_all(&text)?;
        return Ok(0);
    };

    // A missing file differs from any rules.
    let there = match fs::read(file) {
        Ok(there) => Some(there),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
    };
    if there.is_some_and(|there| there == text) {
        writeln!(out, "{}: No change", file.display())?;
        return Ok(0);
    }

    writeln!(
        out,
        "{}: Rules have changed and should be updated",
        file.display()
    )?;

    Ok(DIFFERS)
}
