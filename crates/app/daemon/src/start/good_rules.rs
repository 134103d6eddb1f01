//! The rules that were last in force without an error, kept in the state directory for a start with wrong rules.
//!
//! The file has a line `tarsier-rules 1 DIGEST`, and then JSON, of which DIGEST is the BLAKE3 digest: a file that was cut
//! or damaged is not taken. It keeps nobody from writing another one: whoever can write to the directory is root, and
//! could write the files of rules themselves. Therefore the directory and the file are taken only if nobody but root
//! can change them ([`trust`]), and the digest of what is in force is in the log, with which rules that never were in
//! force before can be told.

use crate::protocol::{hex, unhex};
use crate::stderr::{reasons, say};
use anyhow::{bail, ensure, Context, Result};
use rules::{Rule, RuleSet, RulesFile, Settings, Source};
use rustix::fs::{fsync, openat, renameat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use trust::{Directory, Links};

/// First word of the file, and its version.
const HEAD: &str = "tarsier-rules 1 ";
/// Largest size of the file, in bytes: more rules than that are not kept.
const LEN_MAX: u64 = 256 << 20;
/// Largest size of all files of rules together whose text is kept, in bytes.
const TEXT_LEN_MAX: usize = 4 << 20;

/// The place where the good rules of certain files are kept.
pub(crate) struct GoodRules {
    /// The state directory, or why it cannot be used; `None` if nothing is to be kept.
    directory: Option<Result<Directory, String>>,
    name: String,
    paths: Vec<String>,
}

/// Rules that were in force.
#[derive(Debug)]
pub(crate) struct Good {
    pub(crate) rules: Vec<Rule>,
    pub(crate) settings: Settings,
    /// The files that they were read from; empty if these were too large.
    pub(crate) files: Vec<RulesFile>,
    /// Time at which they were first in force, in seconds since 1970.
    pub(crate) since_s: i64,
}

/// The JSON of the file.
#[derive(Serialize, Deserialize)]
struct KeptBody {
    /// Version of the program that wrote it.
    made_by: String,
    /// The files and directories, as --rules named them.
    paths: Vec<String>,
    settings: Settings,
    rules: Vec<KeptRule>,
    files: Vec<KeptFile>,
}

/// A rule in the kernel's form, and its place.
#[derive(Serialize, Deserialize)]
struct KeptRule {
    file: String,
    line: u32,
    rule: String,
}

/// Path and text of a file, in hexadecimal.
#[derive(Serialize, Deserialize)]
struct KeptFile {
    path: String,
    text: String,
}

/// Digest of rules and settings, in hexadecimal, as records have it.
pub(crate) fn digest(rules: &[Rule], settings: &Settings) -> String {
    let mut hasher = blake3::Hasher::new();
    for rule in rules {
        hasher.update(&rules::to_kernel(rule));
    }
    // Settings are plain data, so that they always have a JSON form.
    hasher.update(&serde_json::to_vec(settings).unwrap_or_default());
    hasher.finalize().to_hex().to_string()
}

impl GoodRules {
    /// The place in `directory` (made with 0700 if needed) for the rules of `paths`; nothing is kept without a
    /// directory. Call it before this process is confined.
    pub(crate) fn open(directory: Option<&Path>, paths: &[PathBuf]) -> GoodRules {
        let absolute = paths.iter().map(|path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            path.to_string_lossy().into_owned()
        });
        let paths: Vec<String> = absolute.collect();
        GoodRules {
            directory: directory.map(|directory| make(directory).map_err(|e| format!("{e:#}"))),
            name: name_for(&paths),
            paths,
        }
    }

    /// Nothing is kept.
    pub(crate) fn none() -> GoodRules {
        GoodRules::open(None, &[])
    }

    /// The place in `directory`, to read what is kept there. Nothing is made.
    pub(crate) fn find(directory: &Path, paths: &[PathBuf]) -> GoodRules {
        let found = match Directory::open(directory, Links::Refuse) {
            Err(error) if error.is_missing() => None,
            found => Some(found.map_err(|error| error.to_string())),
        };
        GoodRules {
            directory: found,
            ..GoodRules::open(None, paths)
        }
    }

    /// The state directory, where it can be used.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()?.as_ref().ok()
    }

    /// The rules that were last in force without an error; `None` if none were kept.
    ///
    /// # Errors
    /// There are some, and they cannot be used.
    pub(crate) fn read(&self) -> Result<Option<Good>> {
        let directory = match &self.directory {
            None => return Ok(None),
            Some(Ok(directory)) => directory,
            Some(Err(error)) => bail!("{error}"),
        };
        let path = directory.path().join(&self.name);
        let file = match trust::open(&path, Links::Refuse) {
            Ok(file) => file,
            Err(error) if error.is_missing() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let since_s = file.metadata().map_or(0, |found| found.mtime());
        let mut bytes = Vec::new();
        file.take(LEN_MAX)
            .read_to_end(&mut bytes)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let good = self.parsed(&bytes, since_s);

        good.map(Some).with_context(|| path.display().to_string())
    }

    fn parsed(&self, bytes: &[u8], since_s: i64) -> Result<Good> {
        let split = bytes.iter().position(|&byte| byte == b'\n');
        let (head, body) = bytes.split_at(split.context("the file is empty or was cut")?);
        let body = &body[1..];
        let digest = head.strip_prefix(HEAD.as_bytes());
        let digest = digest.context("the file is not one of this version of tarsier")?;
        ensure!(
            digest == blake3::hash(body).to_hex().as_bytes(),
            "the digest does not fit: the file was cut or changed"
        );
        let body: KeptBody = serde_json::from_slice(body).context("the file cannot be read")?;
        ensure!(
            body.paths == self.paths,
            "the rules are those of other files: {}",
            body.paths.join(", ")
        );
        let made_by = &body.made_by;
        let rules: Option<Vec<Rule>> = body.rules.iter().map(KeptRule::rule).collect();
        let files: Option<Vec<RulesFile>> = body.files.iter().map(KeptFile::file).collect();

        Ok(Good {
            rules: rules.with_context(|| {
                format!("tarsier {made_by} kept a rule that this version does not know")
            })?,
            settings: body.settings,
            files: files.context("a file's text cannot be read")?,
            since_s,
        })
    }

    /// Keeps rules that are in force, and the text of their files. A failure is printed; recording goes on.
    pub(crate) fn keep(&self, set: &RuleSet, files: &[RulesFile]) {
        let directory = match &self.directory {
            None => return,
            Some(Ok(directory)) => directory,
            Some(Err(error)) => {
                say!("tarsier: the rules in force are not kept for a start with wrong rules: {error}");
                return;
            }
        };

        if let Err(error) = write(directory, &self.name, &self.text(set, files)) {
            let path = directory.path().join(&self.name);
            let path = path.display();
            say!(
                "tarsier: the rules in force are not kept for a start with wrong rules: {path}: {}",
                reasons(&error)
            );
        }
    }

    fn text(&self, set: &RuleSet, files: &[RulesFile]) -> Vec<u8> {
        let size: usize = files.iter().map(|file| file.text.len()).sum();
        let files = if size > TEXT_LEN_MAX { &[] } else { files };
        let mut files: Vec<KeptFile> = files.iter().map(KeptFile::of).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let body = KeptBody {
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            paths: self.paths.clone(),
            settings: set.settings.clone(),
            rules: set.rules.iter().map(KeptRule::of).collect(),
            files,
        };

        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut text = format!("{HEAD}{}\n", blake3::hash(&body).to_hex()).into_bytes();
        text.extend(body);
        text
    }
}

/// Replaces a file in one step, unless it has this text already: its time is when the rules came in force.
pub(crate) fn write(directory: &Directory, name: &str, text: &[u8]) -> Result<()> {
    ensure!(text.len() as u64 <= LEN_MAX, "the rules are too large");
    if has(directory, name, text) {
        return Ok(());
    }
    let new = format!("{name}.new");
    match unlinkat(directory, &new, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error).context("unlink"),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(directory, &new, flags, Mode::from(0o600)).context("open")?;
    let mut file = File::from(file);

    // On the disk before its name is: after a crash, the file under the name is the earlier one or this one.
    file.write_all(text).context("write")?;
    file.sync_all().context("fsync")?;
    renameat(directory, &new, directory, name).context("rename")?;
    fsync(directory).context("fsync")
}

fn has(directory: &Directory, name: &str, text: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(directory, name, flags, Mode::empty()) else {
        return false;
    };
    let mut there = Vec::new();
    let read = File::from(file).take(LEN_MAX).read_to_end(&mut there);
    read.is_ok() && there == text
}

fn make(directory: &Path) -> Result<Directory> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(Directory::open(directory, Links::Refuse)?)
}

/// Name of the file for the rules of `paths`: those of the standard directory have a name of their own.
fn name_for(paths: &[String]) -> String {
    if let [path] = paths {
        if path == crate::start::rule_files::RULES_DIR {
            return "good.rules-set".to_owned();
        }
    }
    let digest = blake3::hash(paths.join("\0").as_bytes()).to_hex();
    format!("good-{}.rules-set", &digest[..16])
}

impl KeptRule {
    fn of(rule: &Rule) -> KeptRule {
        KeptRule {
            file: rule.source.file.clone(),
            line: rule.source.line,
            rule: hex(&rules::to_kernel(rule)),
        }
    }

    fn rule(&self) -> Option<Rule> {
        let mut rule = rules::from_kernel(&unhex(&self.rule)?).ok()?;
        // What no parser makes would be refused by the kernel, too.
        rules::check(&rule, None).ok()?;
        rule.source = Source {
            file: self.file.clone(),
            line: self.line,
        };
        Some(rule)
    }
}

impl KeptFile {
    fn of(file: &RulesFile) -> KeptFile {
        KeptFile {
            path: hex(file.path.as_os_str().as_bytes()),
            text: hex(&file.text),
        }
    }

    fn file(&self) -> Option<RulesFile> {
        Some(RulesFile {
            path: PathBuf::from(OsString::from_vec(unhex(&self.path)?)),
            text: unhex(&self.text)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::{Owner, SystemHost};
    use std::os::unix::fs::{symlink, PermissionsExt};

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new(text: &str) -> Place {
            let place = Place {
                dir: tempfile::tempdir().unwrap(),
            };
            std::fs::write(place.rules(), text).unwrap();
            place
        }

        fn rules(&self) -> PathBuf {
            self.dir.path().join("a.rules")
        }

        fn state(&self) -> PathBuf {
            self.dir.path().join("state")
        }

        fn good(&self) -> GoodRules {
            GoodRules::open(Some(&self.state()), &[self.rules()])
        }

        fn file(&self) -> PathBuf {
            self.state().join(&self.good().name)
        }

        fn keep(&self) {
            let found = rules::gather(&self.rules(), Owner::Root, &SystemHost);
            assert!(
                found.wrong.is_empty() && found.unread.is_empty(),
                "{found:?}"
            );
            self.good().keep(&found.set, &found.files);
        }

        fn why_not(&self) -> String {
            format!("{:#}", self.good().read().expect_err("it is refused"))
        }
    }

    const RULES: &str =
        "-D\n-f 0\n-r 7\n-a always,exit -F arch=b64 -S openat -F dir=/tmp -F auid>=1000 -k one\n\
                         -w /etc/passwd -p wa -k two\n";

    #[test]
    fn rules_settings_places_and_files_come_back() {
        let place = Place::new(RULES);
        assert!(place.good().read().unwrap().is_none());
        place.keep();
        let good = place.good().read().unwrap().expect("what was kept");
        let found = rules::load(&place.rules(), Owner::Root, &SystemHost).unwrap();
        assert_eq!(good.rules.len(), 2);
        for (kept, rule) in good.rules.iter().zip(&found.rules) {
            assert!(kept.same(rule), "{kept} {rule}");
            assert_eq!(kept.source, rule.source);
        }
        assert_eq!(good.settings, found.settings);
        assert_eq!(good.files[0].text, RULES.as_bytes());
        assert_eq!(
            digest(&good.rules, &good.settings),
            digest(&found.rules, &found.settings)
        );
        assert!(good.since_s > 0);
    }

    #[test]
    fn a_file_of_which_any_byte_was_changed_or_cut_is_not_taken() {
        let place = Place::new("-a always,exit -F arch=b64 -S openat -k one\n");
        place.keep();
        let text = std::fs::read(place.file()).unwrap();
        for at in (0..text.len()).step_by(97).chain([0, 20, text.len() - 1]) {
            let mut other = text.clone();
            other[at] ^= 1;
            std::fs::write(place.file(), other).unwrap();
            place.why_not();
            std::fs::write(place.file(), &text[..at]).unwrap();
            place.why_not();
        }
        std::fs::write(place.file(), &text).unwrap();
        assert!(place.good().read().unwrap().is_some());
    }

    #[test]
    fn what_somebody_else_could_have_written_is_not_taken() {
        let place = Place::new("-w /etc/passwd -k one\n");
        place.keep();
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        };
        mode(&place.file(), 0o660);
        assert!(place.why_not().contains("mode 0660"), "{}", place.why_not());
        mode(&place.file(), 0o600);
        mode(&place.state(), 0o770);
        assert!(place.why_not().contains("mode 0770"), "{}", place.why_not());
        mode(&place.state(), 0o700);
        let elsewhere = place.dir.path().join("elsewhere");
        std::fs::rename(place.file(), &elsewhere).unwrap();
        symlink(&elsewhere, place.file()).unwrap();
        assert!(
            place.why_not().contains("symbolic link"),
            "{}",
            place.why_not()
        );
    }

    #[test]
    fn a_rule_of_a_later_version_and_rules_of_other_files_are_not_taken() {
        let place = Place::new("-w /etc/passwd -k one\n");
        let good = place.good();
        let seal = |body: &KeptBody| {
            let body = serde_json::to_vec(body).unwrap();
            let mut text = format!("{HEAD}{}\n", blake3::hash(&body).to_hex()).into_bytes();
            text.extend(body);
            text
        };
        let mut words = rules::to_kernel(
            &rules::load(&place.rules(), Owner::Root, &SystemHost)
                .unwrap()
                .rules[0],
        );
        // The number of the first field (linux/audit.h): one that no version knows.
        words[67 * 4..68 * 4].copy_from_slice(&9999u32.to_ne_bytes());
        let mut body = KeptBody {
            made_by: "9.9.9".to_owned(),
            paths: good.paths.clone(),
            settings: Settings::default(),
            rules: vec![KeptRule {
                file: String::new(),
                line: 0,
                rule: hex(&words),
            }],
            files: Vec::new(),
        };
        let error = format!("{:#}", good.parsed(&seal(&body), 0).unwrap_err());
        assert!(error.contains("tarsier 9.9.9 kept a rule"), "{error}");
        body.rules.clear();
        assert!(good.parsed(&seal(&body), 0).is_ok());
        body.paths = vec!["/etc/other".to_owned()];
        let error = format!("{:#}", good.parsed(&seal(&body), 0).unwrap_err());
        assert!(error.contains("other files: /etc/other"), "{error}");
    }

    #[test]
    fn the_time_of_rules_is_when_they_were_first_in_force() {
        let place = Place::new("-w /etc/passwd -k one\n");
        place.keep();
        let made = std::fs::metadata(place.file()).unwrap().ino();
        place.keep();
        assert_eq!(std::fs::metadata(place.file()).unwrap().ino(), made);
        std::fs::write(place.rules(), "-w /etc/group -k one\n").unwrap();
        // A daemon that was killed while it wrote leaves this.
        std::fs::write(place.file().with_extension("rules-set.new"), "torn").unwrap();
        place.keep();
        assert_ne!(std::fs::metadata(place.file()).unwrap().ino(), made);
        assert_eq!(place.good().read().unwrap().unwrap().rules.len(), 1);
        assert_eq!(std::fs::read_dir(place.state()).unwrap().count(), 1);
    }
}
