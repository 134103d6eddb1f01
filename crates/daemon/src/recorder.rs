//! The composer as the daemon uses it: on this machine, and counting the cost of each rule.

use super::rule_costs::RuleCosts;
use crate::lookups::Lookups;
use compose::{Composer, Tally};
use event::Encoder;

/// Turns frames into log lines.
pub(super) type Recorder = Composer<RuleCosts>;

/// A recorder without a rule set.
pub(super) fn with(encoder: Encoder, lookups: Lookups) -> Recorder {
    Composer::new(encoder, lookups, RuleCosts::default())
}

impl Tally for RuleCosts {
    fn recorded(&mut self, generation: u64, rule: u32, bytes: usize) {
        RuleCosts::recorded(self, generation, rule, bytes);
    }

    fn dropped(&mut self, generation: u64, rule: u32) {
        RuleCosts::dropped(self, generation, rule);
    }

    fn admits(&mut self, generation: u64, rule: u32, second: u64, rate: u32) -> bool {
        RuleCosts::admits(self, generation, rule, second, rate)
    }
}
