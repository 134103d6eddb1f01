//! Rules from the files that the command line names.

use anyhow::{bail, Result};
use rules::{Host, LoadError, RuleError, RuleSet, SystemHost};
use std::path::PathBuf;

/// Loads all of `paths`, one after the other, as one rule set. Errors are printed with place,
/// expectation and remedy; nothing is loaded then.
pub(crate) fn load(paths: &[PathBuf]) -> Result<RuleSet> {
    load_for(paths, &SystemHost)
}

/// As [`load`], for any host.
pub(crate) fn load_for(paths: &[PathBuf], host: &dyn Host) -> Result<RuleSet> {
    let mut all = RuleSet::default();
    for path in paths {
        let set = match rules::load(path, host) {
            Ok(set) => set,
            Err(LoadError::Rules(errors)) => {
                errors.iter().for_each(report);
                bail!("{} error(s) in the rules: nothing was loaded", errors.len());
            }
            Err(error) => bail!("{error}"),
        };
        set.skipped.iter().chain(&set.warnings).for_each(report);
        merge(&mut all, set);
    }
    Ok(all)
}

fn merge(all: &mut RuleSet, set: RuleSet) {
    for rule in set.rules {
        if !all.rules.iter().any(|known| known.same(&rule)) {
            all.rules.push(rule);
        }
    }
    all.settings = set.settings;
}

fn report(error: &RuleError) {
    eprintln!("{:?}", miette::Report::new(error.clone()));
}
