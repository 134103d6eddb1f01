//! What `-e 2` has locked, and where it is kept: decision 0055.
//!
//! The rules are in a frozen map with a pin of its own, whatever `pin_dir`, `--run-dir` and `--state-dir` a daemon has,
//! and their digest is in the kernel's list, which nobody can change any more. Where the kernel's list has rules itself,
//! as under the kernel engine, these are locked.

use crate::protocol::{hex, unhex};
use crate::start::good_rules::GoodRules;
use crate::start::rule_files;
use crate::stderr::say;
use anyhow::{Context, Result};
use capture::FrozenMap;
use conf::{Config, Overload};
use netlink::{KernelLock, LOCKED};
use rules::{Rule, RuleSet, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Path of the frozen map.
const PIN: &str = "/sys/fs/bpf/tarsier-locked";

/// The kernel's failure mode before anybody sets it.
const FAILURE_AT_BOOT: u32 = 1;

/// What cannot be changed: the rules, and settings that decide what of their events is recorded.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub(crate) struct LockedRules {
    /// In the kernel's form, in hexadecimal.
    rules: Vec<String>,
    /// `-f`
    failure: u32,
    /// `-r`
    rate: u32,
    rate_budgets: BTreeMap<String, u32>,
    io_uring_twins: bool,
    objects_before: bool,
    /// Whether `overload` is `DROP`.
    drops: bool,
}

/// The lock of a daemon.
pub(crate) struct Lock {
    rules: LockedRules,
    map: Option<FrozenMap>,
}

/// What a start finds.
pub(crate) enum LockState {
    /// Nothing is locked.
    Open,
    /// The rules that are locked.
    Rules(Box<LockedRules>),
    /// Audit is locked, and what is locked is not known; the reason.
    Lost(String),
}

impl LockedRules {
    pub(crate) fn of(rules: &[Rule], failure: u32, rate: u32, config: &Config) -> LockedRules {
        LockedRules {
            rules: in_kernel_form(rules),
            failure,
            rate,
            rate_budgets: config.rate_budgets.clone(),
            io_uring_twins: config.io_uring_twins,
            objects_before: config.objects_before,
            drops: config.overload == Overload::Drop,
        }
    }

    /// What a start with these rules and settings puts in force.
    fn of_set(set: &RuleSet, config: &Config) -> LockedRules {
        let failure = set.settings.failure.unwrap_or(FAILURE_AT_BOOT);
        let rate = set.settings.rate.unwrap_or(0);
        LockedRules::of(&set.rules, failure, rate, config)
    }

    /// BLAKE3 digest, in hexadecimal.
    pub(crate) fn digest(&self) -> String {
        blake3::hash(&self.text()).to_hex().to_string()
    }

    // Plain data always has a JSON form.
    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// The rules and settings as a start takes them.
    ///
    /// # Errors
    /// This version does not know one of the rules.
    pub(crate) fn set(&self) -> Result<RuleSet> {
        let mut set = RuleSet::default();
        for (text, line) in self.rules.iter().zip(1..) {
            let bytes = unhex(text).context("a rule is not hexadecimal")?;
            let mut rule = rules::from_kernel(&bytes)?;
            let file = "locked rules".to_owned();
            rule.source = Source { file, line };
            set.rules.push(rule);
        }

        set.settings.failure = Some(self.failure);
        set.settings.rate = Some(self.rate);
        set.settings.enabled = Some(LOCKED);
        Ok(set)
    }

    /// Number of rules.
    pub(crate) fn count(&self) -> usize {
        self.rules.len()
    }

    /// Whether files with these rules and settings want something else. What they do not mention they do not want.
    pub(crate) fn differ_from(&self, set: &RuleSet) -> bool {
        let settings = &set.settings;
        in_kernel_form(&set.rules) != self.rules
            || settings.failure.is_some_and(|value| value != self.failure)
            || settings.rate.is_some_and(|value| value != self.rate)
    }

    /// Puts the locked settings into `config`. Returns whether it had others.
    pub(crate) fn hold(&self, config: &mut Config) -> bool {
        // What the file wanted, before it is overwritten: the caller logs the attempt.
        let wanted = LockedRules {
            rules: self.rules.clone(),
            ..LockedRules::of(&[], self.failure, self.rate, config)
        };
        config.rate_budgets = self.rate_budgets.clone();
        config.io_uring_twins = self.io_uring_twins;
        config.objects_before = self.objects_before;
        config.overload = if self.drops {
            Overload::Drop
        } else {
            Overload::Throttle
        };
        wanted != *self
    }
}

/// Rules in hexadecimal, list by list as the kernel returns them: their order matters within a list only.
fn in_kernel_form(rules: &[Rule]) -> Vec<String> {
    let mut sorted: Vec<&Rule> = rules.iter().collect();
    sorted.sort_by_key(|rule| rule.list as u32);
    let bytes = sorted.into_iter().map(rules::to_kernel);
    bytes.map(|bytes| hex(&bytes)).collect()
}

impl Lock {
    /// A lock of this process alone, without the kernel's.
    pub(crate) fn of_process(rules: LockedRules) -> Lock {
        Lock { rules, map: None }
    }

    /// A lock that the kernel keeps. What is locked is pinned for a daemon with other files; that this failed is
    /// printed.
    pub(crate) fn of_kernel(rules: LockedRules) -> Lock {
        let (path, text) = (Path::new(PIN), rules.text());
        let map = match FrozenMap::find(path) {
            // Another daemon may hold the same one, and would put its own back.
            Some((map, kept)) if kept == text => Ok(map),
            _ => FrozenMap::make(path, &text),
        };
        if let Err(error) = &map {
            say!("tarsier: {PIN}: the locked rules are not kept for a daemon with other files: {error}");
        }

        Lock {
            rules,
            map: map.ok(),
        }
    }

    /// Pins what is locked again if the pin was removed or replaced, and returns whether that was possible; `None` if
    /// the pin is there. Call it once a second.
    pub(crate) fn restore_pin(&self) -> Option<bool> {
        let map = self.map.as_ref()?;
        (!map.is_pinned()).then(|| map.pin().is_ok())
    }

    /// Rules and settings that are locked.
    pub(crate) fn rules(&self) -> &LockedRules {
        &self.rules
    }
}

/// Finds out what is locked, for a start with the rules of `paths`. Call it before this process is confined.
pub(crate) fn find(paths: &[PathBuf], good: &GoodRules, config: &Config) -> LockState {
    let kept = || {
        let (_, text) = FrozenMap::find(Path::new(PIN))?;
        serde_json::from_slice::<LockedRules>(&text).ok()
    };

    let kernel = match KernelLock::find() {
        Ok(None) => return LockState::Open,
        Ok(Some(kernel)) => kernel,
        // Who may not ask the kernel, as in a PID namespace, is bound by what a daemon has kept.
        Err(error) => {
            return match kept() {
                Some(rules) => LockState::Rules(Box::new(rules)),
                None => {
                    say!("tarsier: whether audit is locked (-e 2) is not known: {error}");
                    LockState::Open
                }
            }
        }
    };

    locked_by(&kernel, kept, || of_files(paths, good, config))
}

/// What the kernel's `lock` binds, of what is `kept` in the frozen map and of `others`.
fn locked_by(
    lock: &KernelLock,
    kept: impl FnOnce() -> Option<LockedRules>,
    others: impl FnOnce() -> Vec<LockedRules>,
) -> LockState {
    // Where ours are only shown, the digest binds more than the list: units, and rules whose paths are gone. Defaults:
    // whoever locked the kernel's rules set the rest there, too.
    if !lock.rules.is_empty() && lock.digests.is_empty() {
        let of_kernel = LockedRules {
            rules: lock.rules.iter().map(|rule| hex(rule)).collect(),
            ..LockedRules::of_set(&RuleSet::default(), &Config::default())
        };
        return LockState::Rules(Box::new(of_kernel));
    }
    let is_bound =
        |rules: &LockedRules| lock.digests.is_empty() || lock.digests.contains(&rules.digest());
    if let Some(rules) = kept().filter(is_bound) {
        return LockState::Rules(Box::new(rules));
    }

    // Without a digest nothing tells that the files have what was locked.
    let Some(digest) = lock.digests.first() else {
        return LockState::Lost(format!("there is no {PIN}"));
    };
    match others().into_iter().find(is_bound) {
        Some(rules) => LockState::Rules(Box::new(rules)),
        None => LockState::Lost(format!(
            "neither {PIN} nor the files have the digest {digest}"
        )),
    }
}

/// Prepares that [`Lock::of_kernel`] is called when this process is confined. A failure is printed.
pub(crate) fn prepare_pin() {
    if let Err(error) = FrozenMap::prepare(Path::new(PIN)) {
        say!("tarsier: {error}");
    }
}

/// The rules of the files, and those that were last in force without an error.
fn of_files(paths: &[PathBuf], good: &GoodRules, config: &Config) -> Vec<LockedRules> {
    let of_files = rule_files::gather(paths).set;
    let mut all = vec![LockedRules::of_set(&of_files, config)];
    if let Ok(Some(good)) = good.read() {
        let set = RuleSet {
            rules: good.rules,
            settings: good.settings,
            ..RuleSet::default()
        };
        all.push(LockedRules::of_set(&set, config));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(budget: u32) -> LockedRules {
        let mut config = Config::default();
        config.rate_budgets.insert("files".to_owned(), budget);
        LockedRules::of_set(&RuleSet::default(), &config)
    }

    fn found(lock: &KernelLock, kept: Option<LockedRules>, others: Vec<LockedRules>) -> LockState {
        locked_by(lock, || kept, || others)
    }

    fn lock_of(rules: &LockedRules) -> KernelLock {
        KernelLock {
            digests: vec![rules.digest()],
            has_never_task: true,
            rules: Vec::new(),
        }
    }

    #[test]
    fn what_has_the_digest_in_the_kernel_s_list_is_locked_wherever_it_is() {
        let (right, wrong) = (locked(1), locked(2));
        let lock = lock_of(&right);
        let is_right = |found| matches!(found, LockState::Rules(rules) if *rules == right);
        assert!(is_right(found(
            &lock,
            Some(right.clone()),
            vec![wrong.clone()]
        )));
        assert!(is_right(found(
            &lock,
            Some(wrong.clone()),
            vec![wrong.clone(), right.clone()]
        )));
        assert!(is_right(found(&lock, None, vec![right.clone()])));

        // A pin that somebody else has made, and files that were changed.
        let lost = found(&lock, Some(wrong.clone()), vec![wrong]);
        assert!(matches!(lost, LockState::Lost(_)));
    }

    #[test]
    fn without_a_digest_only_the_frozen_map_tells_what_is_locked() {
        let lock = KernelLock::default();
        let kept = found(&lock, Some(locked(1)), vec![]);
        assert!(matches!(kept, LockState::Rules(rules) if *rules == locked(1)));
        assert!(matches!(
            found(&lock, None, vec![locked(1)]),
            LockState::Lost(_)
        ));
    }

    #[test]
    fn the_kernel_s_own_rules_are_locked_where_there_are_any() {
        let lock = KernelLock {
            rules: vec![vec![1, 2]],
            ..KernelLock::default()
        };
        let of_kernel = found(&lock, Some(locked(1)), vec![]);
        assert!(matches!(of_kernel, LockState::Rules(rules) if rules.rules == ["0102"]));
    }

    #[test]
    fn locked_settings_are_held_and_others_are_free() {
        let mut config = Config::default();
        let rules = LockedRules::of_set(&RuleSet::default(), &config);
        config.max_log_file_mib += 1;
        assert!(!rules.hold(&mut config));

        config.overload = Overload::Drop;
        config.io_uring_twins = false;
        config.rate_budgets.insert("files".to_owned(), 1);
        let log_size = config.max_log_file_mib;
        assert!(rules.hold(&mut config));
        assert!(config.io_uring_twins && config.rate_budgets.is_empty());
        assert_eq!(
            (config.overload, config.max_log_file_mib),
            (Overload::Throttle, log_size)
        );
        assert!(!rules.hold(&mut config));
    }
}
