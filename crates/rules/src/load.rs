//! Loads rules from a file or directory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::file::parse_lines;
use crate::{merge_lines, parse_text, Dialect, Host, ParsedFile, RuleError, RuleSet, Source};

/// The largest size of a rules file, in bytes.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Why rules were not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file or directory cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system call.
        source: io::Error,
    },
    /// A file is not one that auditctl trusts.
    #[error("{path} {problem}", path = path.display())]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what to do.
        problem: &'static str,
    },
    /// Lines are wrong; all errors, in order.
    #[error("{} error(s) in rules, nothing was loaded; the first: {}", .0.len(), .0.first().map(ToString::to_string).unwrap_or_default())]
    Rules(Vec<RuleError>),
}

/// Loads the rules file `path`, or every `*.rules` file of the directory `path` merged as
/// augenrules does. Errors name the original file and line.
///
/// # Errors
/// A file cannot be read or is not to be trusted (not a regular file, or writable by everyone:
/// auditctl(8) `-R`), or lines are wrong and neither `-i` nor `-c` came before them.
pub fn load(path: &Path, host: &dyn Host) -> Result<RuleSet, LoadError> {
    let metadata = fs::metadata(path).map_err(|source| io_error(path, source))?;
    let parsed = if metadata.is_dir() {
        load_directory(path, host)?
    } else {
        parse_text(
            Dialect::default(),
            &path.to_string_lossy(),
            read(path)?,
            host,
        )
    };
    RuleSet::build(parsed).map_err(LoadError::Rules)
}

fn load_directory(directory: &Path, host: &dyn Host) -> Result<ParsedFile, LoadError> {
    let entries = fs::read_dir(directory).map_err(|source| io_error(directory, source))?;
    let mut files = Vec::new();
    for entry in entries {
        let name = entry
            .map_err(|source| io_error(directory, source))?
            .file_name();
        let bytes = name.as_bytes();
        if bytes.ends_with(b".rules") && !bytes.starts_with(b".") {
            files.push((
                name.to_string_lossy().into_owned(),
                read(&directory.join(&name))?,
            ));
        }
    }
    let lines = merge_lines(&files).into_iter().map(|line| {
        let file = directory.join(line.file).to_string_lossy().into_owned();
        (
            Source {
                file,
                line: line.line,
            },
            line.text,
        )
    });
    Ok(parse_lines(Dialect::default(), lines, host))
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    let file = File::open(path).map_err(|source| io_error(path, source))?;
    let metadata = file.metadata().map_err(|source| io_error(path, source))?;
    let untrusted = |problem| LoadError::Untrusted {
        path: path.to_owned(),
        problem,
    };
    if !metadata.is_file() {
        return Err(untrusted("is not a regular file"));
    }
    if metadata.permissions().mode() & 0o002 != 0 {
        return Err(untrusted("is world writable: run chmod o-w on it"));
    }
    let mut text = Vec::new();
    let mut limited = file.take(FILE_LEN_MAX + 1);
    limited
        .read_to_end(&mut text)
        .map_err(|source| io_error(path, source))?;
    if text.len() as u64 > FILE_LEN_MAX {
        return Err(untrusted("is larger than 64 MiB"));
    }
    Ok(text)
}

fn io_error(path: &Path, source: io::Error) -> LoadError {
    LoadError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StaticHost;
    use abi::Arch;

    fn host() -> StaticHost {
        StaticHost::new(Arch::X86_64)
    }

    #[test]
    fn a_directory_is_merged_and_errors_name_the_true_file() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        put("10-b.rules", "-e 1\n-w /second -k b\n");
        put("9-a.rules", "-D\n-w /first -k a\n-b 5\n");
        put("notes.txt", "no rules\n");
        let set = load(directory.path(), &host()).unwrap();
        let listed = set.list(&crate::ListStyle::default(), None);
        assert_eq!(listed, "-w /first -p rwxa -k a\n-w /second -p rwxa -k b\n");
        assert_eq!(
            (set.settings.backlog, set.settings.enabled),
            (Some(5), Some(1))
        );
        put("9-a.rules", "\n-w wrong\n");
        let Err(LoadError::Rules(errors)) = load(directory.path(), &host()) else {
            panic!("loaded");
        };
        assert!(errors[0].file().ends_with("/9-a.rules"), "{}", errors[0]);
        assert_eq!(errors[0].line(), 2);
    }

    #[test]
    fn files_that_anyone_can_write_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.rules");
        fs::write(&path, "-D\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(matches!(
            load(&path, &host()),
            Err(LoadError::Untrusted { .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(load(&path, &host()).is_ok());
        let missing = directory.path().join("missing");
        assert!(matches!(load(&missing, &host()), Err(LoadError::Io { .. })));
    }
}
