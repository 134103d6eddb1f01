//! Counts of what rules and makers cost.

use super::Maker;
use record::WorkloadText;
use std::sync::Arc;

/// Counts recorded and dropped events per rule and maker. `rule` is the rule's index in the rule set with number `generation`.
pub trait Tally {
    /// An event of the rule was recorded in `bytes` bytes of lines.
    fn recorded(&mut self, generation: u64, rule: u32, bytes: usize);

    /// An event was sent because of the rule, but is not recorded.
    fn dropped(&mut self, generation: u64, rule: u32);

    /// An event is recorded because the rule may select it: not everything that the rule asks about is known.
    fn unsure(&mut self, generation: u64, rule: u32);

    /// An event of this maker was recorded in `bytes` bytes of lines. `workload` looks its cgroup up: `None` if it is not
    /// known.
    fn made_by(
        &mut self,
        maker: &Maker<'_>,
        bytes: usize,
        workload: impl FnOnce() -> Option<Arc<WorkloadText>>,
    );

    /// Whether the rule may record another event of this second of the monotonic clock, if it may record `rate` of
    /// them. If not, the event is counted as suppressed.
    fn admits(&mut self, generation: u64, rule: u32, second: u64, rate: u32) -> bool;
}

/// Counts nothing.
impl Tally for () {
    fn recorded(&mut self, _: u64, _: u32, _: usize) {}
    fn dropped(&mut self, _: u64, _: u32) {}
    fn unsure(&mut self, _: u64, _: u32) {}
    fn made_by(&mut self, _: &Maker<'_>, _: usize, _: impl FnOnce() -> Option<Arc<WorkloadText>>) {}
    fn admits(&mut self, _: u64, _: u32, _: u64, _: u32) -> bool {
        true
    }
}
