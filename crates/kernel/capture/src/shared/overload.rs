//! Treatment of events that come faster than they are read, or than the budget of a rule allows.

use crate::check::integrity::Breach;
use crate::error::CaptureError;
use crate::shared::control::{Control, RULE_WORDS};
use crate::shared::map_access::{unpreempted, MapAccess};
use bpf::load::refused;
use bpf::shared::{budget, RULES_MAX};
use libbpf_rs::libbpf_sys::bpf_map_lookup_batch;
use libbpf_rs::MapHandle;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use zerocopy::{transmute, FromZeros, IntoBytes};

/// One bit for each of these rules, by place in the plan.
pub(crate) fn rule_bits<'a>(rules: impl IntoIterator<Item = &'a u32>) -> [u64; RULE_WORDS] {
    let mut words = [0; RULE_WORDS];
    for &rule in rules {
        let rule = rule as usize;
        if let Some(word) = words.get_mut(rule / 64) {
            *word |= 1 << (rule % 64);
        }
    }
    words
}

/// The budgets of rules, by place in the plan.
pub(crate) struct Budgets {
    map: MapHandle,
    /// Events per second that may be recorded of the rules at these places.
    rates: BTreeMap<u32, u32>,
}

impl Budgets {
    /// No budgets; `map` is the one that the programs read.
    pub(crate) fn new(map: MapHandle) -> Budgets {
        Budgets {
            map,
            rates: BTreeMap::new(),
        }
    }

    /// See [`crate::in_force::engine::EbpfEngine::set_budgets`].
    pub(crate) fn set(
        &mut self,
        rates: &BTreeMap<u32, u32>,
        control: &Control,
    ) -> Result<(), CaptureError> {
        control.set_has_budgets(false);
        self.rates.clear();
        if rates.is_empty() {
            return Ok(());
        }
        for rule in 0..RULES_MAX {
            self.set_one(rule, rates.get(&rule).copied().unwrap_or(0))?;
        }
        self.rates.clone_from(rates);
        control.set_has_budgets(true);
        Ok(())
    }

    /// Gives the rule at this place a new budget.
    fn set_one(&self, rule: u32, rate: u32) -> Result<(), CaptureError> {
        let budget = budget {
            rate,
            ..budget::new_zeroed()
        };
        let map = &self.map;
        let written = map.put(rule.as_bytes(), budget.as_bytes());
        Ok(written.map_err(refused("budgets"))?)
    }

    /// Undoes changes of budgets by others. While no rule has one, the programs do not read them.
    pub(crate) fn check(&self) -> Option<Breach> {
        if self.rates.is_empty() {
            return None;
        }
        let told = |rule: &u32| self.rates.get(rule).copied().unwrap_or(0);

        let read = read_budgets(&self.map);
        let changed = (0..)
            .zip(&read)
            .filter(|(rule, budget)| budget.rate != told(rule));
        let changed: Vec<u32> = changed.map(|(rule, _)| rule).collect();
        if changed.is_empty() && read.len() == RULES_MAX as usize {
            return None;
        }

        let is_mended = changed
            .iter()
            .all(|rule| self.set_one(*rule, told(rule)).is_ok());
        Some(Breach {
            what: "map budgets".to_owned(),
            is_mended: is_mended && read.len() == RULES_MAX as usize,
        })
    }
}

/// All budgets, by place, in one system call, since there are thousands. The list is shorter if the kernel refuses.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_a_bit_and_places_beyond_the_last_have_none() {
        let bits = rule_bits(&[0, 65, RULES_MAX]);
        assert_eq!((bits[0], bits[1]), (1, 2));
        assert!(bits[2..].iter().all(|word| *word == 0));
    }
}
