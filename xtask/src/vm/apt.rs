//! An apt with its own lists: kernels come from more Debian suites than those this system was installed from, and
//! this system's own sources must not change.
//!
//! The addresses are taken from this system's sources: the entry with this system's release is a Debian archive,
//! which has the other releases, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{ensure, Context, Result};

use super::guest::Guest;
use super::output_of;

/// Releases whose kernels are tested: Debian 11 has 5.10, Debian 12 has 6.1. The security archive of Debian 12 has
/// 6.12, and the backports of Debian 13 have newer kernels.
const SUITES: [&str; 3] = ["bullseye", "bookworm", "trixie-backports"];
/// The tested releases in the archive of security updates.
const SECURITY_SUITES: [&str; 2] = ["bullseye-security", "bookworm-security"];
/// Age from which lists may lack the newest kernel.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// All suites that kernels come from.
pub(super) fn suites() -> Vec<&'static str> {
    [&SUITES[..], &SECURITY_SUITES].concat()
}

/// An apt for the kernels of one architecture.
pub(super) struct Apt {
    config: PathBuf,
    /// File that is written when all lists were refreshed.
    stamp: PathBuf,
}

impl Apt {
    /// Writes configuration and sources below `dir`. Errors say what this system's sources lack.
    pub(super) fn prepare(guest: Guest, dir: &Path) -> Result<Self> {
        let sources = sources_for(&codename()?, &system_entries()?)?;
        for name in ["lists/partial", "cache/archives/partial"] {
            let path = dir.join(name);
            fs::create_dir_all(&path).with_context(|| format!("creating {}", path.display()))?;
        }

        let apt = Apt {
            config: dir.join("apt.conf"),
            stamp: dir.join("refreshed"),
        };
        let (list, status) = (dir.join("kernels.sources"), dir.join("status"));
        let is_same = fs::read_to_string(&list).is_ok_and(|old| old == sources);
        if !is_same {
            // The lists of other sources are not valid for these.
            let _ = fs::remove_file(&apt.stamp);
        }

        let text = format!(
            "#clear APT::Architectures;\nAPT::Architecture \"{arch}\";\nAPT::Architectures {{ \"{arch}\"; }};\n\
             Acquire::Languages \"none\";\nDir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::State \"{}\";\nDir::State::status \"{}\";\nDir::Cache \"{}\";\n",
            list.display(),
            dir.display(),
            status.display(),
            dir.join("cache").display(),
            arch = guest.debian_name(),
        );

        for (path, text) in [
            (&list, &sources),
            (&apt.config, &text),
            (&status, &String::new()),
        ] {
            fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        }

        Ok(apt)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.arg("-c").arg(&self.config);
        command
    }

    /// The names of packages that match a regular expression of apt-cache.
    pub(super) fn names(&self, pattern: &str) -> Result<Vec<String>> {
        let mut command = self.command("apt-cache");
        let listed = output_of(command.args(["search", "--names-only", pattern]))?;
        let names = listed.lines().filter_map(|line| line.split(' ').next());
        Ok(names.map(str::to_owned).collect())
    }

    /// The name of a package's file.
    pub(super) fn file_of(&self, package: &str) -> Result<String> {
        // 'URI' FILE SIZE HASH
        let mut command = self.command("apt-get");
        let uris = output_of(command.args(["download", "--print-uris", package]))?;
        let file = uris.split_whitespace().nth(1).unwrap_or_default();
        ensure!(
            file.ends_with(".deb"),
            "apt-get download --print-uris {package} names no file: {uris}"
        );
        Ok(file.to_owned())
    }

    /// Downloads a package's file into a directory.
    pub(super) fn download(&self, package: &str, dir: &Path) -> Result<()> {
        let mut command = self.command("apt-get");
        output_of(command.args(["download", "-qq", package]).current_dir(dir)).map(drop)
    }

    /// Whether all lists were downloaded less than a day ago.
    pub(super) fn is_fresh(&self) -> bool {
        let written = fs::metadata(&self.stamp).and_then(|stamp| stamp.modified());
        written.is_ok_and(|at| {
            SystemTime::now()
                .duration_since(at)
                .is_ok_and(|age| age < FRESH)
        })
    }

    /// Downloads the lists again. If one suite fails, the lists of the others are still there.
    pub(super) fn refresh(&self) -> Result<()> {
        output_of(
            self.command("apt-get")
                .args(["update", "-qq", "--error-on=any"]),
        )?;
        fs::write(&self.stamp, "").with_context(|| format!("writing {}", self.stamp.display()))
    }
}

/// An archive in apt's sources.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    uris: String,
    suites: Vec<String>,
    /// A file, or a key in lines that begin with a space, as in deb822.
    signed_by: Option<String>,
}

/// The name of this system's release.
fn codename() -> Result<String> {
    let path = "/etc/os-release";
    let text = fs::read_to_string(path).with_context(|| format!("reading {path}"))?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let name = name.with_context(|| format!("{path} has no VERSION_CODENAME"))?;
    Ok(name.trim_matches('"').to_owned())
}

/// The entries in this system's sources.
fn system_entries() -> Result<Vec<Entry>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(listed) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(listed.filter_map(|entry| Some(entry.ok()?.path())));
    }
    let mut entries = Vec::new();

    for file in files.iter().filter(|file| file.exists()) {
        let extension = file.extension().unwrap_or_default();
        let parse = match extension.to_str() {
            Some("list") => of_lines,
            Some("sources") => of_stanzas,
            _ => continue,
        };
        let text =
            fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
        entries.extend(parse(&text));
    }

    Ok(entries)
}

/// Parses `deb [signed-by=FILE …] URI SUITE COMPONENT…`: see sources.list(5).
fn of_lines(text: &str) -> Vec<Entry> {
    let parse = |line: &str| {
        let rest = line.trim().strip_prefix("deb")?;
        let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
        let (options, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", rest),
        };
        let signed_by = options
            .split_whitespace()
            .find_map(|option| option.strip_prefix("signed-by="));
        let mut words = rest.split_whitespace();
        Some(Entry {
            uris: words.next()?.to_owned(),
            suites: vec![words.next()?.to_owned()],
            signed_by: signed_by.map(str::to_owned),
        })
    };

    text.lines().filter_map(parse).collect()
}

/// Parses stanzas of `Field: value`; a value may continue in lines that begin with a space.
fn of_stanzas(text: &str) -> Vec<Entry> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let text = lines.collect::<Vec<_>>().join("\n");
    let parse = |stanza: &str| {
        let field = |name: &str| {
            let mut lines = stanza.lines().skip_while(|line| {
                !line
                    .split_once(':')
                    .is_some_and(|(field, _)| field.eq_ignore_ascii_case(name))
            });
            let (_, first) = lines.next()?.split_once(':')?;
            let more = lines.take_while(|line| line.starts_with([' ', '\t']));
            let value = std::iter::once(first.trim()).chain(more);
            Some(value.collect::<Vec<_>>().join("\n"))
        };
        let has = |field: Option<String>, word: &str| {
            field.is_some_and(|value| value.split_whitespace().any(|each| each == word))
        };
        let is_used = has(field("Types"), "deb") && !has(field("Enabled"), "no");
        is_used.then_some(())?;
        Some(Entry {
            uris: field("URIs")?,
            suites: field("Suites")?
                .split_whitespace()
                .map(str::to_owned)
                .collect(),
            signed_by: field("Signed-By"),
        })
    };

    text.split("\n\n").filter_map(parse).collect()
}

/// Sources for the suites with kernels, in the archives that have this system's release.
fn sources_for(codename: &str, entries: &[Entry]) -> Result<String> {
    let archive_of = |suite: &str| {
        let mut having = entries.iter();
        having.find(|entry| entry.suites.iter().any(|each| each == suite))
    };
    let archive = archive_of(codename).with_context(|| {
        format!("no entry of this system's apt sources has the suite {codename}")
    })?;
    let mut text = stanza(archive, &SUITES);

    // A system without security updates does not know the address for those of other releases.
    if let Some(security) = archive_of(&format!("{codename}-security")) {
        text += "\n";
        text += &stanza(security, &SECURITY_SUITES);
    }

    Ok(text)
}

fn stanza(archive: &Entry, suites: &[&str]) -> String {
    let mut text = format!(
        "Types: deb\nURIs: {}\nSuites: {}\nComponents: main\nTargets: Packages\n",
        archive.uris,
        suites.join(" ")
    );
    if let Some(signed_by) = &archive.signed_by {
        text += &format!("Signed-By: {signed_by}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANZAS: &str = "Types: deb\n# a comment\nURIs: http://mirror.example/debian\nSuites: twelve twelve-updates\n\
        Components: main\nSigned-By: /keys/debian.gpg\n\n\
        Types: deb-src\nURIs: http://source.example\nSuites: twelve\n\n\
        Enabled: no\nTypes: deb\nURIs: http://off.example\nSuites: twelve\n\n\
        Types: deb\nURIs: http://mirror.example/security\nSuites: twelve-security\nSigned-By:\n -----BEGIN\n .\n -----END\nComponents: main\n";
    const LINES: &str = "# deb http://off.example twelve main\n\
        deb-src http://source.example twelve main\n\
        deb [arch=amd64 signed-by=/keys/other.gpg] http://other.example tools main\n\
        deb http://mirror.example/debian twelve main contrib\n";

    #[test]
    fn suites_of_other_releases_come_from_the_archives_of_this_one() {
        let sources = sources_for("twelve", &of_stanzas(STANZAS)).expect("sources");
        assert_eq!(
            sources,
            "Types: deb\nURIs: http://mirror.example/debian\nSuites: bullseye bookworm trixie-backports\n\
             Components: main\nTargets: Packages\nSigned-By: /keys/debian.gpg\n\n\
             Types: deb\nURIs: http://mirror.example/security\nSuites: bullseye-security bookworm-security\n\
             Components: main\nTargets: Packages\nSigned-By: \n -----BEGIN\n .\n -----END\n"
        );
    }

    #[test]
    fn the_older_form_of_sources_is_read_too() {
        let entries = of_lines(LINES);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].signed_by.as_deref(), Some("/keys/other.gpg"));
        let sources = sources_for("twelve", &entries).expect("sources");
        assert!(sources.starts_with("Types: deb\nURIs: http://mirror.example/debian\n"));
        assert!(!sources.contains("Signed-By") && !sources.contains("security"));
    }

    #[test]
    fn a_system_that_is_not_debian_is_told_what_its_sources_lack() {
        let error = sources_for("noble", &of_lines(LINES)).expect_err("no such suite");
        assert!(error.to_string().contains("the suite noble"));
    }
}
