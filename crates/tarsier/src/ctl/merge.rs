//! `tarsier rules merge`: does what augenrules(8) does.

use anyhow::{bail, Context, Result};
use cli::RulesMergeArgs;
use rules::Source;
use std::fs;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Exit status if the existing file differs from the merged rules.
const DIFFERS: u8 = 1;

/// Prints, compares or loads the rules of a directory.
///
/// # Errors
/// The directory or one of its files cannot be read, or there is no rules file.
pub(crate) fn merge(args: &RulesMergeArgs) -> Result<u8> {
    let files = read(&args.directory)?;
    let directory = args.directory.to_string_lossy();
    let text = rules::merge_directory(&directory, &files);
    if args.load {
        let lines = rules::merge_lines(&files).into_iter().map(|line| {
            let file = args.directory.join(line.file);
            let source = Source {
                file: file.to_string_lossy().into_owned(),
                line: line.line,
            };
            (source, line.text)
        });
        return super::load(args.kernel, &args.run_dir, lines);
    }
    let mut out = io::stdout().lock();
    let Some(file) = &args.check else {
        out.write_all(&text)?;
        return Ok(0);
    };
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

/// Name and content of each file that `ls *.rules` would list.
fn read(directory: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let cannot = |path: &Path| format!("cannot read {}", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| cannot(directory))? {
        let name = entry.with_context(|| cannot(directory))?.file_name();
        if !name.as_bytes().ends_with(b".rules") || name.as_bytes().starts_with(b".") {
            continue;
        }
        let path = directory.join(&name);
        let text = fs::read(&path).with_context(|| cannot(&path))?;
        files.push((name.to_string_lossy().into_owned(), text));
    }
    if files.is_empty() {
        bail!("{}: no *.rules file there", directory.display());
    }
    Ok(files)
}
