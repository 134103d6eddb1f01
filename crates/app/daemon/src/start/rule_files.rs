//! Rules from the files that the command line names.

use crate::stderr::say;
use anyhow::{bail, Result};
use rules::{
    Gathered, Host, Owner, RuleError, RuleSet, RulesFile, Settings, SystemHost, EVERY_KIND,
};
use std::path::{Path, PathBuf};

/// Directory of the rules that are loaded if no other is named.
pub const RULES_DIR: &str = "/etc/audit/rules.d";
/// Advice for a host without rules. The file is in packages; a checkout has it in share/rules.
pub const STARTER_REMEDY: &str =
    "to begin with a starter set, `install -D -m 0640 /usr/share/tarsier/rules/starter.rules \
     /etc/audit/rules.d/starter.rules` (in a checkout: share/rules/starter.rules); `tarsier plan` \
     shows what it costs";

/// Whether `path` does not exist, or is a directory without a file of rules.
pub fn is_missing(path: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(path) else {
        return !path.exists();
    };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    !names.any(|name| {
        let name = name.as_encoded_bytes();
        let mut kinds = EVERY_KIND.iter();
        kinds.any(|end| name.ends_with(end.as_bytes())) && !name.starts_with(b".")
    })
}

/// Reads all of `paths` in order, as one rule set, as far as they are root's alone and right. Warnings and errors are
/// printed with place, expectation and remedy.
pub(crate) fn gather(paths: &[PathBuf]) -> Gathered {
    explain_if_none(paths);
    read(paths, Owner::Root, &SystemHost)
}

/// The rules and settings of `found`, and the files that they are from.
///
/// # Errors
/// Files were not read, or lines are wrong. They have been printed.
pub(crate) fn complete(found: Gathered) -> Result<(RuleSet, Vec<RulesFile>)> {
    if let Some(unread) = found.unread.first() {
        bail!("{}", unread.error);
    }
    if !found.wrong.is_empty() {
        let count = found.wrong.len();
        bail!("{count} error(s) in the rules: nothing was loaded");
    }
    Ok((found.set, found.files))
}

/// Explains the next step on a host that has no rules yet.
fn explain_if_none(paths: &[PathBuf]) {
    let [path] = paths else {
        return;
    };
    if path != Path::new(RULES_DIR) || !is_missing(path) {
        return;
    }
    let none = if path.exists() {
        "no *.rules file is in"
    } else {
        "there is no"
    };

    say!(
        "tarsier: no rules: {none} {RULES_DIR}: {STARTER_REMEDY}; or name other rules with --rules"
    );
}

/// Reads all of `paths` in order, whosever they are, for any host: to examine the rules, not to arm
/// them.
///
/// # Errors
/// A file cannot be read, or lines are wrong; these are printed.
pub fn examine(paths: &[PathBuf], host: &dyn Host) -> Result<RuleSet> {
    Ok(complete(read(paths, Owner::Anybody, host))?.0)
}

fn read(paths: &[PathBuf], owner: Owner, host: &dyn Host) -> Gathered {
    let mut all = Gathered::default();
    for path in paths {
        let found = rules::gather(path, owner, host);
        report(&found.wrong, "errors");
        report(&found.set.skipped, "skipped rules");
        report(&found.set.warnings, "warnings");
        all.unread.extend(found.unread);
        all.wrong.extend(found.wrong);
        all.files.extend(found.files);
        merge(&mut all.set, found.set);
    }

    all
}

/// Prints which settings of the rules files have no effect: most of them, unless the kernel's audit
/// is the engine.
pub fn report_settings(settings: &Settings, is_kernel: bool) {
    if is_kernel {
        if settings.enabled.is_some_and(|enabled| enabled < 2) {
            say!(
                "tarsier: -e 0 and 1 in rules files have no effect: audit is on while Tarsier runs"
            );
        }
        return;
    }

    let given = [
        (settings.enabled.is_some_and(|enabled| enabled < 2), "-e"),
        (settings.backlog.is_some(), "-b"),
        (settings.backlog_wait_time.is_some(), "--backlog_wait_time"),
    ];
    let given: Vec<&str> = given
        .iter()
        .filter(|(given, _)| *given)
        .map(|(_, name)| *name)
        .collect();

    if !given.is_empty() {
        let given = given.join(", ");
        say!("tarsier: settings of the kernel's own audit, left as they are: {given}");
    }
}

fn merge(all: &mut RuleSet, set: RuleSet) {
    for rule in set.rules {
        if !all.rules.iter().any(|known| known.same(&rule)) {
            all.rules.push(rule);
        }
    }
    all.settings.overlay(set.settings);
    all.setting_places.extend(set.setting_places);
    all.skipped.extend(set.skipped);
    all.deleted.extend(set.deleted);
}

/// Prints the first of `errors` with their lines, and the number of further `what`.
fn report(errors: &[RuleError], what: &str) {
    const SHOWN_MAX: usize = 20;
    for error in errors.iter().take(SHOWN_MAX) {
        say!("{:?}", miette::Report::new(error.clone()));
    }
    if let Some(more) = errors.len().checked_sub(SHOWN_MAX + 1) {
        say!("tarsier: {} more {what} are not shown", more + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_files_of_rules_counts_as_missing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(is_missing(&dir.path().join("none")));
        assert!(is_missing(dir.path()));
        for other in [".hidden.rules", "a.rules.bak"] {
            std::fs::write(dir.path().join(other), "").unwrap();
        }
        assert!(is_missing(dir.path()));
        let file = dir.path().join("a.rules");
        std::fs::write(&file, "").unwrap();
        assert!(!is_missing(dir.path()) && !is_missing(&file));
        std::fs::rename(&file, dir.path().join("a.tarsier")).unwrap();
        assert!(!is_missing(dir.path()));
    }
}
