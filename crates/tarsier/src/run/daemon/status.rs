//! What the daemon tells of itself.

use super::Daemon;
use crate::run::engine::Engine;
use crate::status::{RuleCost, Status};
use capture::tracepoint::RuleCount;

impl Daemon {
    /// What `tarsier status` tells.
    pub(in crate::run) fn status(&self) -> Status {
        let counters = self.engine.counters();
        let plan = &self.generation.plan;
        let journal = self.journal.counters();
        Status {
            pin_dir: self.pin_dir(),
            pid: std::process::id(),
            engine: self.engine.name().to_owned(),
            hook: match plan.hooks.sys_exit.names() {
                _ if self.engine.is_kernel() => "the kernel's own audit".to_owned(),
                names if names.is_empty() => "none".to_owned(),
                names => names.join(", "),
            },
            gaps: plan.gaps.iter().map(plan::Gap::to_string).collect(),
            rules: plan.rules.len(),
            generation: plan.generation,
            kernel_records: self.kernel.is_some(),
            uptime_s: self.started.elapsed().as_secs(),
            calls_matched: counters.evaluated,
            events_selected: counters.events,
            events_candidate: counters.undecided,
            events_dropped: self.totals.dropped,
            events_recorded: self.totals.recorded,
            kernel_records_received: self.kernel.as_ref().map_or(0, |kernel| kernel.received),
            lost: self.lost_by_cause(),
            lost_by_cpu: counters.lost.iter().map(|cpu| cpu.iter().sum()).collect(),
            lost_by_rule: self.lost_by_rule(),
            ring_fill_per_mille: self.engine.fill_per_mille(),
            log_file: self.journal.path().display().to_string(),
            log_written: self.config.write_logs,
            log_events: journal.written.events,
            log_bytes: journal.written.bytes,
            log_suspended: self.journal.is_suspended(),
            log_syncs: journal.syncs,
            calls_slowed: counters.waits,
            waited_ns: counters.waited_ns,
            durable_after_us: self.durable_after(),
            plugins: self.plugin_statuses(),
        }
    }

    /// What the programs count by place in the rule set; empty if they cannot be asked.
    pub(in crate::run) fn rule_counts(&self, rules: usize) -> Vec<RuleCount> {
        self.engine.rule_counts(rules).0
    }

    /// What `tarsier status --rules` tells.
    pub(in crate::run) fn rule_costs(&self) -> Vec<RuleCost> {
        let rules = &self.generation.plan.rules;
        if let (Engine::Kernel, Some(kernel)) = (&self.engine, &self.kernel) {
            return kernel.costs.table(rules);
        }
        let counts = self.rule_counts(rules.len());
        self.recorder.costs.table(rules, &counts)
    }

    /// p50, p99 and the longest time, microseconds, from a call to its record being durable.
    fn durable_after(&self) -> Option<[u64; 3]> {
        let quantile = |share| self.durability.quantile_us(share);
        Some([quantile(0.5)?, quantile(0.99)?, quantile(1.0)?])
    }
}
