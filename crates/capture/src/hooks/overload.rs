//! What the programs do with events that come faster than they are read, or than a rule may make them.

use super::control::RULE_WORDS;
use super::{EbpfEngine, Overload};
use crate::error::CaptureError;
use bpf::load::refused;
use bpf::shared::{budget, RULES_MAX};
use libbpf_rs::{MapCore, MapFlags};
use std::collections::BTreeMap;
use zerocopy::{FromZeros, IntoBytes};

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
    pub fn set_budgets(&self, rates: &BTreeMap<u32, u32>) -> Result<(), CaptureError> {
        self.control.set_has_budgets(false);
        if rates.is_empty() {
            return Ok(());
        }
        for rule in 0..RULES_MAX {
            let budget = budget {
                rate: rates.get(&rule).copied().unwrap_or(0),
                ..budget::new_zeroed()
            };
            let map = &self.maps.budgets;
            map.update(rule.as_bytes(), budget.as_bytes(), MapFlags::ANY)
                .map_err(refused("budgets"))?;
        }
        self.control.set_has_budgets(true);
        Ok(())
    }
}
