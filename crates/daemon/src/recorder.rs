//! Composing as this daemon does it: on this machine, with the cost of each rule.

use super::rule_costs::RuleCosts;
use crate::host::HOST;
use compose::{Composer, Tally};
use event::Encoder;
use std::sync::Arc;

/// Turns frames into log lines.
pub(super) type Recorder = Composer<RuleCosts>;

/// A recorder that knows no rule set yet.
pub(super) fn with(encoder: Encoder) -> Recorder {
    Composer::new(encoder, Arc::new(HOST), RuleCosts::default())
}

impl Tally for RuleCosts {
    fn recorded(&mut self, generation: u64, rule: u32, bytes: usize) {
        RuleCosts::recorded(self, generation, rule, bytes);
    }

    fn dropped(&mut self, generation: u64, rule: u32) {
        RuleCosts::dropped(self, generation, rule);
    }
}
