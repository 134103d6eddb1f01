//! What the programs do with events that come faster than they are read, or than a rule may make them.

use super::control::RULE_WORDS;
use super::map_access::{unpreempted, MapAccess};
use super::{Breach, EbpfEngine, Overload};
use crate::error::CaptureError;
use bpf::load::refused;
use bpf::shared::{budget, RULES_MAX};
use libbpf_rs::libbpf_sys::bpf_map_lookup_batch;
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use zerocopy::{transmute, FromZeros, IntoBytes};

impl EbpfEngine {
    /// Sets what happens to calls whose events come faster than they are read. The default is to wait.
    pub fn set_overload(&self, overload: Overload) {
        self.control.set_throttle(overload == Overload::Throttle);
    }

    /// Sets the rules, by place in the plan, whose events wake the daemon at once. If there is any, so do events
    /// that the second stage has to decide.
    pub fn set_urgent<'a>(&self, rules: impl IntoIterator<Item = &'a u32>) {
        let mut words = [0; RULE_WORDS];
        for &rule in rules {
            let rule = rule as usize;
            if let Some(word) = words.get_mut(rule / 64) {
                *word |= 1 << (rule % 64);
            }
        }
        self.control.set_urgent(&words);
    }

    /// Sets how many events per second may be recorded of each of these rules, by place; of the others, all are. What
    /// is over a budget is counted ([`RuleCount::suppressed`]). The budgets are those of the places: before another
    /// rule set is put in force, set none.
    ///
    /// # Errors
    /// The kernel does not take them: then no rule has a budget.
    pub fn set_budgets(&mut self, rates: &BTreeMap<u32, u32>) -> Result<(), CaptureError> {
        self.control.set_has_budgets(false);
        self.budgets.clear();
        if rates.is_empty() {
            return Ok(());
        }
        for rule in 0..RULES_MAX {
            self.set_budget(rule, rates.get(&rule).copied().unwrap_or(0))?;
        }
        self.budgets.clone_from(rates);
        self.control.set_has_budgets(true);
        Ok(())
    }

    /// Gives the rule at this place a new budget.
    fn set_budget(&self, rule: u32, rate: u32) -> Result<(), CaptureError> {
        let budget = budget {
            rate,
            ..budget::new_zeroed()
        };
        let map = &self.maps.budgets;
        let written = map.put(rule.as_bytes(), budget.as_bytes());
        Ok(written.map_err(refused("budgets"))?)
    }

    /// Undoes changes of budgets by others. While no rule has one, the programs do not read them.
    pub(super) fn check_budgets(&self) -> Option<Breach> {
        if self.budgets.is_empty() {
            return None;
        }
        let told = |rule: &u32| self.budgets.get(rule).copied().unwrap_or(0);
        let read = read_budgets(&self.maps.budgets);
        let changed = (0..)
            .zip(&read)
            .filter(|(rule, budget)| budget.rate != told(rule));
        let changed: Vec<u32> = changed.map(|(rule, _)| rule).collect();
        if changed.is_empty() && read.len() == RULES_MAX as usize {
            return None;
        }
        let is_mended = changed
            .iter()
            .all(|rule| self.set_budget(*rule, told(rule)).is_ok());
        Some(Breach {
            what: "map budgets".to_owned(),
            is_mended: is_mended && read.len() == RULES_MAX as usize,
        })
    }
}

/// All budgets, by place, in one system call: there are thousands. Fewer, if the kernel does not give them.
fn read_budgets(map: &MapHandle) -> Vec<budget> {
    const BUDGET_WORDS: usize = size_of::<budget>() / size_of::<u64>();
    let mut places = vec![0u32; RULES_MAX as usize];
    let mut budgets = vec![[0u64; BUDGET_WORDS]; places.len()];
    let mut count = budgets.len() as u32;
    let mut next = 0u32;
    // SAFETY: keys and values have room for `count` entries, of the sizes that the map has.
    let failed = unpreempted(|| unsafe {
        bpf_map_lookup_batch(
            map.as_fd().as_raw_fd(),
            std::ptr::null_mut(),
            (&raw mut next).cast(),
            places.as_mut_ptr().cast(),
            budgets.as_mut_ptr().cast(),
            &mut count,
            std::ptr::null(),
        )
    });
    // The kernel says ENOENT where it has come to the end.
    let is_read = failed == 0 || failed == -libc::ENOENT;
    budgets.truncate(if is_read { count as usize } else { 0 });
    budgets.into_iter().map(|words| transmute!(words)).collect()
}
