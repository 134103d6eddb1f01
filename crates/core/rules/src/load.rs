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

impl LoadError {
    /// Whether there is no such file or directory.
    fn is_missing(&self) -> bool {
        matches!(self, LoadError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
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
    gather(path, owner, host).complete()
}

/// A file of rules as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesFile {
    /// The path under which it was read.
    pub path: PathBuf,
    /// All of its bytes.
    pub text: Vec<u8>,
}

/// A file or directory of rules that was not read.
#[derive(Debug)]
pub struct Unread {
    /// The path under which it was to be read.
    pub path: PathBuf,
    /// The reason.
    pub error: LoadError,
}

/// What a file or directory of rules has, and everything of it that cannot be used.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The rules and settings of all lines that can be carried out.
    pub set: RuleSet,
    /// Files, or the directory, that were not read; their lines are not in the set.
    pub unread: Vec<Unread>,
    /// Lines that are wrong and not tolerated, sorted by file and line; they are not in the set.
    pub wrong: Vec<RuleError>,
    /// The files that were read, in no order.
    pub files: Vec<RulesFile>,
}

impl Gathered {
    /// The rules, if every file was read and every line is right or tolerated.
    ///
    /// # Errors
    /// The first file that was not read, or all wrong lines.
    pub fn complete(self) -> Result<RuleSet, LoadError> {
        if let Some(unread) = self.unread.into_iter().next() {
            return Err(unread.error);
        }
        if self.wrong.is_empty() {
            Ok(self.set)
        } else {
            Err(LoadError::Rules(self.wrong))
        }
    }
}

/// Reads rules as [`load`] does, but takes what it can of them.
pub fn gather(path: &Path, owner: Owner, host: &dyn Host) -> Gathered {
    let mut gathered = Gathered::default();
    let unread = |error| Unread {
        path: path.to_owned(),
        error,
    };
    let parsed = match fs::metadata(path) {
        Err(source) => {
            gathered.unread.push(unread(io_error(path, source)));
            return gathered;
        }
        Ok(metadata) if metadata.is_dir() => {
            let (files, unread) = read_each(path, owner, EVERY_KIND);
            gathered.unread = unread;
            let parsed = parse_directory(path, &files, host);
            let in_directory = |(name, text)| RulesFile {
                path: path.join(name),
                text,
            };
            gathered.files = files.into_iter().map(in_directory).collect();
            parsed
        }
        Ok(_) => match read(path, owner) {
            Err(error) => {
                gathered.unread.push(unread(error));
                return gathered;
            }
            Ok(text) => {
                let name = path.to_string_lossy();
                let parsed = parse_text(dialect_of(&name), &name, &text, host);
                gathered.files.push(RulesFile {
                    path: path.to_owned(),
                    text,
                });
                parsed
            }
        },
    };

    // Only now: -i and -c count for all later lines, whichever file they are in.
    (gathered.set, gathered.wrong) = RuleSet::build_from_good(parsed);
    gathered
}

fn parse_directory(directory: &Path, files: &[(OsString, Vec<u8>)], host: &dyn Host) -> ParsedFile {
    let named: Vec<(String, &Vec<u8>)> = files
        .iter()
        .map(|(name, text)| (name.to_string_lossy().into_owned(), text))
        .collect();
    let lines = merge_lines(&named).into_iter().map(|line| {
        let file = directory.join(line.file).to_string_lossy().into_owned();
        let line_number = line.line;
        let source = Source {
            file,
            line: line_number,
        };
        (dialect_of(line.file), source, line.text)
    });

    parse_lines(lines, host)
}

/// Whether a file of this name may name Tarsier's own fields.
pub fn is_own_file(file: &str) -> bool {
    file.ends_with(OWN_KIND)
}

fn dialect_of(file: &str) -> Dialect {
    if is_own_file(file) {
        Dialect::Tarsier
    } else {
        Dialect::default()
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
    let (files, unread) = read_each(directory, owner, kinds);
    if let Some(unread) = unread.into_iter().next() {
        return Err(unread.error);
    }
    let named = |(name, text): (OsString, _)| (name.to_string_lossy().into_owned(), text);
    Ok(files.into_iter().map(named).collect())
}

/// The files that [`read_directory`] returns, as far as they can be read, and the reasons why others were not.
fn read_each(
    directory: &Path,
    owner: Owner,
    kinds: &[&str],
) -> (Vec<(OsString, Vec<u8>)>, Vec<Unread>) {
    let (mut files, mut unread) = (Vec::new(), Vec::new());
    let found = match names(directory, owner) {
        Ok(found) => found,
        Err(error) => {
            let path = directory.to_owned();
            return (files, vec![Unread { path, error }]);
        }
    };

    for name in found {
        let bytes = name.as_encoded_bytes();
        let is_wanted = kinds.iter().any(|end| bytes.ends_with(end.as_bytes()));
        // Names with a dot in front are those that `ls` does not list.
        if !is_wanted || bytes.starts_with(b".") {
            continue;
        }
        let path = directory.join(&name);
        match read(&path, owner) {
            Ok(text) => files.push((name, text)),
            Err(error) => unread.push(Unread { path, error }),
        }
    }

    (files, unread)
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
    let opened = match owner {
        Owner::Root => trust::open(path, Links::Follow).map_err(trust_error),
        Owner::Anybody => open(path).map_err(|source| io_error(path, source)),
    };
    // open(2) fails with ENOENT for a name that the directory shows: the error has to say why.
    let file = match opened {
        Err(error) if error.is_missing() && path.is_symlink() => {
            return Err(wrong("is a symbolic link that leads to no file: remove it"));
        }
        opened => opened?,
    };

    let metadata = file.metadata().map_err(|source| io_error(path, source))?;
    if !metadata.is_file() {
        return Err(wrong("is not a regular file"));
    }

    let mut text = Vec::new();
    // One byte more than the limit shows a larger file without reading all of it.
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
    fn what_can_be_read_of_a_directory_is_gathered_beside_what_cannot() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("10-good.rules"), "-D\n-w /first -k a\n").unwrap();
        fs::write(at("20-bad.rules"), "-w wrong\n-w /second -k b\n").unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("30-link.rules")).unwrap();
        fs::create_dir(at("40-dir.rules")).unwrap();
        let gathered = gather(directory.path(), Owner::Root, &host());
        assert_eq!(gathered.set.rules.len(), 2);
        let unread = gathered.unread.iter();
        let mut unread: Vec<String> = unread.map(|unread| unread.error.to_string()).collect();
        unread.sort();
        assert_eq!(unread.len(), 2, "{unread:?}");
        assert!(
            unread[0].contains("30-link.rules is a symbolic link"),
            "{unread:?}"
        );
        assert!(unread[1].contains("40-dir.rules"), "{unread:?}");
        let wrong: Vec<u32> = gathered.wrong.iter().map(RuleError::line).collect();
        assert_eq!((wrong, gathered.files.len()), (vec![1], 2));
        let missing = gather(&at("none"), Owner::Root, &host());
        assert_eq!((missing.set.rules.len(), missing.unread.len()), (0, 1));
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
