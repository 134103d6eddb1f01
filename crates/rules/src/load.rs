//! Loads rules from a file or directory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use trust::{Directory, Links, TrustError};

use crate::file::parse_lines;
use crate::{merge_lines, parse_text, Dialect, Host, ParsedFile, RuleError, RuleSet, Source};

/// The largest size of a rules file, in bytes.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Permitted owners of the files that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Root's alone, with the directories above them: for rules that are to be armed.
    Root,
    /// Anybody's: to check or to examine rules.
    Anybody,
}

/// Reason why rules were not loaded.
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
    /// Somebody else than root can change a file.
    #[error("rules are loaded from files of root only: {0}")]
    Untrusted(TrustError),
    /// A file is not one of rules.
    #[error("{path} {problem}", path = path.display())]
    NoRules {
        /// The file.
        path: PathBuf,
        /// Description of the fault.
        problem: &'static str,
    },
    /// Lines are wrong; all errors, in order.
    #[error("{} error(s) in rules, nothing was loaded; the first: {}", .0.len(), .0.first().map(ToString::to_string).unwrap_or_default())]
    Rules(Vec<RuleError>),
}

/// Ends of the names of files that augenrules merges.
pub const RULES_ONLY: &[&str] = &[".rules"];
/// Ends of the names of all files of rules. Those of the second kind may name Tarsier's own fields, which auditctl
/// refuses; augenrules does not read them.
pub const EVERY_KIND: &[&str] = &[".rules", OWN_KIND];
/// End of the names of files that may name Tarsier's own fields.
pub const OWN_ONLY: &[&str] = &[OWN_KIND];
const OWN_KIND: &str = ".tarsier";

/// Loads the rules file `path`, or every `*.rules` and `*.tarsier` file of the directory `path` merged as augenrules
/// does with the former: in the order of their names. Errors name the original file and line.
///
/// # Errors
/// A file cannot be read, is not a regular one, or is not of this `owner`; or lines are wrong and
/// neither `-i` nor `-c` came before them.
pub fn load(path: &Path, owner: Owner, host: &dyn Host) -> Result<RuleSet, LoadError> {
    let metadata = fs::metadata(path).map_err(|source| io_error(path, source))?;
    let parsed = if metadata.is_dir() {
        load_directory(path, owner, host)?
    } else {
        let text = read(path, owner)?;
        let name = path.to_string_lossy();
        parse_text(dialect_of(&name), &name, text, host)
    };
    RuleSet::build(parsed).map_err(LoadError::Rules)
}

fn load_directory(
    directory: &Path,
    owner: Owner,
    host: &dyn Host,
) -> Result<ParsedFile, LoadError> {
    let files = read_directory(directory, owner, EVERY_KIND)?;
    let lines = merge_lines(&files).into_iter().map(|line| {
        let file = directory.join(line.file).to_string_lossy().into_owned();
        let line_number = line.line;
        let source = Source {
            file,
            line: line_number,
        };
        (dialect_of(line.file), source, line.text)
    });
    Ok(parse_lines(lines, host))
}

/// Whether a file of this name may name Tarsier's own fields.
pub fn is_own_file(file: &str) -> bool {
    file.ends_with(OWN_KIND)
}

fn dialect_of(file: &str) -> Dialect {
    match is_own_file(file) {
        true => Dialect::Tarsier,
        false => Dialect::default(),
    }
}

/// Name and content of each file of `directory` that `ls` would list and whose name ends like one of `kinds`, in no
/// order.
///
/// # Errors
/// The directory or a file cannot be read, or is not of this `owner`.
pub fn read_directory(
    directory: &Path,
    owner: Owner,
    kinds: &[&str],
) -> Result<Vec<(String, Vec<u8>)>, LoadError> {
    let mut files = Vec::new();
    for name in names(directory, owner)? {
        let bytes = name.as_encoded_bytes();
        let is_wanted = kinds.iter().any(|end| bytes.ends_with(end.as_bytes()));
        if is_wanted && !bytes.starts_with(b".") {
            let text = read(&directory.join(&name), owner)?;
            files.push((name.to_string_lossy().into_owned(), text));
        }
    }
    Ok(files)
}

/// The names in a directory.
fn names(directory: &Path, owner: Owner) -> Result<Vec<OsString>, LoadError> {
    let names = match owner {
        Owner::Root => Directory::open(directory, Links::Follow)
            .map_err(trust_error)?
            .names(),
        Owner::Anybody => fs::read_dir(directory)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect()),
    };
    names.map_err(|source| io_error(directory, source))
}

fn read(path: &Path, owner: Owner) -> Result<Vec<u8>, LoadError> {
    let wrong = |problem| LoadError::NoRules {
        path: path.to_owned(),
        problem,
    };
    let file = match owner {
        Owner::Root => trust::open(path, Links::Follow).map_err(trust_error)?,
        Owner::Anybody => open(path).map_err(|source| io_error(path, source))?,
    };
    let metadata = file.metadata().map_err(|source| io_error(path, source))?;
    if !metadata.is_file() {
        return Err(wrong("is not a regular file"));
    }
    let mut text = Vec::new();
    let mut limited = file.take(FILE_LEN_MAX + 1);
    limited
        .read_to_end(&mut text)
        .map_err(|source| io_error(path, source))?;
    if text.len() as u64 > FILE_LEN_MAX {
        return Err(wrong("is larger than 64 MiB"));
    }
    Ok(text)
}

/// Opens a file without waiting for the writer of a FIFO.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}

fn trust_error(error: TrustError) -> LoadError {
    match error {
        TrustError::Io { path, source, .. } => LoadError::Io { path, source },
        error => LoadError::Untrusted(error),
    }
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
        let set = load(directory.path(), Owner::Root, &host()).unwrap();
        let listed = set.list(&crate::ListStyle::default(), None);
        assert_eq!(listed, "-w /first -p rwxa -k a\n-w /second -p rwxa -k b\n");
        assert_eq!(
            (set.settings.backlog, set.settings.enabled),
            (Some(5), Some(1))
        );
        put("9-a.rules", "\n-w wrong\n");
        let Err(LoadError::Rules(errors)) = load(directory.path(), Owner::Root, &host()) else {
            panic!("loaded");
        };
        assert!(errors[0].file().ends_with("/9-a.rules"), "{}", errors[0]);
        assert_eq!(errors[0].line(), 2);
    }

    #[test]
    fn files_of_both_kinds_take_turns_by_name_and_only_one_kind_has_own_fields() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        put(
            "20-a.rules",
            "-D\n-a always,exit -F arch=b64 -S openat -k a\n",
        );
        put("10-noise.tarsier", "-a never,exit -F unit=backup.service\n");
        put(
            "30-c.tarsier",
            "-a always,exit -F arch=b64 -S chmod -F container=any -k c\n",
        );
        put(".40-hidden.tarsier", "-a wrong\n");
        let load_all = || load(directory.path(), Owner::Root, &host());
        let listed = load_all().unwrap().list(&crate::ListStyle::default(), None);
        assert_eq!(
            listed,
            "-a never,exit -S all -F unit=backup.service\n\
             -a always,exit -F arch=b64 -S openat -F key=a\n\
             -a always,exit -F arch=b64 -S chmod -F container=any -F key=c\n"
        );
        let one = load(
            &directory.path().join("10-noise.tarsier"),
            Owner::Root,
            &host(),
        );
        assert_eq!(one.unwrap().rules.len(), 1);
        let merged = read_directory(directory.path(), Owner::Root, RULES_ONLY).unwrap();
        assert_eq!(merged.len(), 1);
        put("20-a.rules", "-a never,exit -F unit=backup.service\n");
        let Err(LoadError::Rules(errors)) = load_all() else {
            panic!("loaded");
        };
        assert_eq!(errors[0].message, "-F unknown field: unit");
    }

    #[test]
    fn only_files_of_root_are_loaded_and_anybodys_can_be_checked() {
        use std::os::unix::fs::{chown, PermissionsExt};
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().join("d");
        let path = at.join("a.rules");
        fs::create_dir(&at).unwrap();
        fs::write(&path, "-D\n").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let why = |path: &Path| match load(path, Owner::Root, &host()) {
            Err(error @ LoadError::Untrusted(_)) => error.to_string(),
            other => panic!("{other:?}"),
        };
        mode(&path, 0o660);
        let found = why(&path);
        let ends = format!("run: chmod go-w {}", path.display());
        assert!(found.ends_with(&ends), "{found}");
        assert!(load(&path, Owner::Anybody, &host()).is_ok());
        mode(&path, 0o640);
        assert!(load(&path, Owner::Root, &host()).is_ok());
        // Files in a sticky directory cannot be replaced, but added.
        mode(&at, 0o1777);
        assert!(load(&path, Owner::Root, &host()).is_ok());
        assert!(why(&at).contains("mode 1777"), "{}", why(&at));
        assert!(load(&at, Owner::Anybody, &host()).is_ok());
        mode(&at, 0o755);
        if rustix::process::geteuid().is_root() {
            chown(&at, Some(1234), None).unwrap();
            assert!(why(&path).contains("owned by uid 1234"), "{}", why(&path));
            assert!(load(&at, Owner::Anybody, &host()).is_ok());
        }
        let missing = directory.path().join("missing");
        let found = load(&missing, Owner::Root, &host());
        assert!(matches!(found, Err(LoadError::Io { .. })));
    }
}
