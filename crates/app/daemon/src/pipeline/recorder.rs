//! The composer as the daemon uses it: on this machine, and counting what rules and makers of events cost.

use crate::account::maker_costs::MakerCosts;
use crate::account::rule_costs::RuleCosts;
use crate::start::lookups::Lookups;
use capture::Selinux;
use compose::{Composer, LabelTexts, Maker, Tally};
use record::{Encoder, WorkloadText};
use std::sync::Arc;

/// Turns frames into log lines.
pub(crate) type Recorder = Composer<Costs>;

/// A recorder without a rule set.
pub(crate) fn with(encoder: Encoder, lookups: Lookups) -> Recorder {
    Composer::new(encoder, lookups, Costs::default())
}

/// SELinux of this kernel, whose labels frames have by number.
pub(crate) struct KernelLabels(pub(crate) Selinux);

impl LabelTexts for KernelLabels {
    fn text(&self, number: u32) -> Option<Vec<u8>> {
        self.0.text(number)
    }

    fn policy(&self) -> Option<u64> {
        self.0.policy().map(|policy| policy.loads.into())
    }
}

/// Costs of the engine's events.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    pub(crate) rules: RuleCosts,
    pub(crate) makers: MakerCosts,
}

impl Costs {
    /// Ends a batch that took `spent_ns`. Reading the clock for each event would cost more than it is worth: 56 ns.
    pub(crate) fn share(&mut self, spent_ns: u64) {
        let bytes = self.rules.share(spent_ns);
        self.makers.share(spent_ns as f64 / bytes as f64);
    }
}

impl Tally for Costs {
    fn recorded(&mut self, generation: u64, rule: u32, bytes: usize) {
        self.rules.recorded(generation, rule, bytes);
    }

    fn unsure(&mut self, generation: u64, rule: u32) {
        self.rules.unsure(generation, rule);
    }

    fn dropped(&mut self, generation: u64, rule: u32) {
        self.rules.dropped(generation, rule);
    }

    fn made_by(
        &mut self,
        maker: &Maker<'_>,
        bytes: usize,
        workload: impl FnOnce() -> Option<Arc<WorkloadText>>,
    ) {
        self.makers.recorded(maker, bytes, workload);
    }

    fn admits(&mut self, generation: u64, rule: u32, second: u64, rate: u32) -> bool {
        self.rules.admits(generation, rule, second, rate)
    }
}
