//! Rules from the files that the command line names.

use crate::stderr::say;
use anyhow::{bail, Result};
use rules::{Host, LoadError, Owner, RuleError, RuleSet, Settings, SystemHost};
use std::path::PathBuf;

/// Loads all of `paths` in order, as one rule set, if they are root's alone. Errors are printed with
/// place, expectation and remedy; then nothing is loaded.
pub(super) fn load(paths: &[PathBuf]) -> Result<RuleSet> {
    read(paths, Owner::Root, &SystemHost)
}

/// Reads all of `paths` in order, whosever they are, for any host: to examine the rules, not to arm
/// them.
pub fn examine(paths: &[PathBuf], host: &dyn Host) -> Result<RuleSet> {
    read(paths, Owner::Anybody, host)
}

fn read(paths: &[PathBuf], owner: Owner, host: &dyn Host) -> Result<RuleSet> {
    let mut all = RuleSet::default();
    for path in paths {
        let set = match rules::load(path, owner, host) {
            Ok(set) => set,
            Err(LoadError::Rules(errors)) => {
                report(&errors, "errors");
                bail!("{} error(s) in the rules: nothing was loaded", errors.len());
            }
            Err(error) => bail!("{error}"),
        };
        report(&set.skipped, "skipped rules");
        report(&set.warnings, "warnings");
        merge(&mut all, set);
    }
    Ok(all)
}

/// Prints which settings of the rules files have no effect: most of them, unless the kernel's audit
/// is the engine.
pub fn say_settings(settings: &Settings, is_kernel: bool) {
    if is_kernel {
        if settings.enabled.is_some() {
            say!("tarsier: -e in rules files has no effect: audit is on while Tarsier runs");
        }
        return;
    }
    let given = [
        (settings.enabled.is_some(), "-e"),
        (settings.backlog.is_some(), "-b"),
        (settings.backlog_wait_time.is_some(), "--backlog_wait_time"),
        (settings.loginuid_immutable, "--loginuid-immutable"),
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
    all.settings = set.settings;
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
