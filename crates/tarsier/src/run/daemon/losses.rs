//! What was lost, told in the log: at the moment, at most once a second, and at the end.

use crate::run::daemon::{Daemon, KERNEL_BACKLOG};
use crate::run::daemon_records::{Action, Who};
use crate::run::engine::Engine;
use capture::tracepoint::LOSS_CAUSES;
use event::RecordType;
use std::collections::BTreeMap;

/// What the log has been told of losses.
#[derive(Default)]
pub(in crate::run) struct Told {
    by_cause: BTreeMap<String, u64>,
    by_rule: BTreeMap<String, u64>,
}

impl Daemon {
    /// Events lost since the start, by cause.
    pub(in crate::run) fn lost_by_cause(&self) -> BTreeMap<String, u64> {
        let counters = self.engine.counters();
        let mut lost = BTreeMap::new();
        for (i, cause) in LOSS_CAUSES.iter().enumerate() {
            let count = counters.lost.iter().map(|cpu| cpu[i]).sum();
            lost.insert((*cause).to_owned(), count);
        }
        lost.insert("missed".to_owned(), counters.missed);
        let (by_log, others) = (
            self.journal.counters().lost.total(),
            self.totals.others_lost,
        );
        lost.insert("log".to_owned(), by_log - others);
        if others > 0 {
            lost.insert("log_other".to_owned(), others);
        }
        let overruns = self.kernel.as_ref().map_or(0, |kernel| kernel.overruns);
        lost.insert("netlink".to_owned(), overruns);
        if let (Engine::Kernel, Some(kernel)) = (&self.engine, &self.kernel) {
            lost.insert(KERNEL_BACKLOG.to_owned(), kernel.lost);
        }
        lost.insert("malformed".to_owned(), self.totals.malformed);
        lost
    }

    /// Events lost on the way to the daemon, by place and key of their rule.
    pub(in crate::run) fn lost_by_rule(&self) -> BTreeMap<String, u64> {
        let rules = &self.generation.plan.rules;
        let counts = self.rule_counts(rules.len());
        let undecided = self.engine.rule_counts(0).1;
        let name = |i: usize| {
            let key = rules[i]
                .key()
                .map(|key| String::from_utf8_lossy(key).replace('\u{1}', ","));
            format!("{} {}", i + 1, key.unwrap_or_else(|| "(no key)".to_owned()))
        };
        let lost = self.recorder.costs.lost(&counts).enumerate();
        let lost = lost.filter(|(_, lost)| *lost > 0);
        let mut lost: BTreeMap<String, u64> = lost.map(|(i, lost)| (name(i), lost)).collect();
        if undecided.lost > 0 {
            lost.insert("undecided".to_owned(), undecided.lost);
        }
        lost
    }

    /// Losses that the programs do not count, and that a killed daemon does not leave in their maps.
    pub(in crate::run) fn losses_elsewhere(&self) -> u64 {
        self.journal.counters().lost.total() + self.totals.malformed
    }

    /// An earlier daemon, or the record of the time without one, has told of what the programs had
    /// counted.
    pub(in crate::run) fn told_before(&mut self, counted: &[u64]) {
        let causes = LOSS_CAUSES.iter().copied().chain(["missed"]);
        for (cause, count) in causes.zip(counted) {
            self.told.by_cause.insert(cause.to_owned(), *count);
        }
        self.note_told();
    }

    /// Has a next daemon know what the log was told.
    fn note_told(&mut self) {
        self.told_elsewhere = self.losses_elsewhere();
        if let Some(handover) = self.engine.handover() {
            let causes = LOSS_CAUSES.iter().copied().chain(["missed"]);
            let told = |cause| self.told.by_cause.get(cause).copied().unwrap_or(0);
            handover.set_told(&causes.map(told).collect::<Vec<_>>());
            handover.set_untold(0);
        }
    }

    /// Says what was lost since it was last said, if anything. Call it once a second.
    pub(in crate::run) fn say_losses(&mut self) {
        let by_cause = self.lost_by_cause();
        if by_cause == self.told.by_cause {
            return;
        }
        let by_rule = self.lost_by_rule();
        let lost = total(&by_cause).saturating_sub(total(&self.told.by_cause));
        let causes = added(&self.told.by_cause, &by_cause);
        let rules = added(&self.told.by_rule, &by_rule);
        let told = Told { by_cause, by_rule };
        let whole = total(&told.by_cause);
        self.told = told;
        if lost > 0 {
            self.say_lost("events-lost", lost, whole, &causes, &rules);
            if self.engine.handover().is_some() {
                self.commit();
            }
        }
        self.note_told();
    }

    /// Says at the end what was lost in all, if anything.
    pub(in crate::run) fn say_all_losses(&mut self, who: Who) {
        let (by_cause, by_rule) = (self.lost_by_cause(), self.lost_by_rule());
        let whole = total(&by_cause);
        if whole == 0 {
            return;
        }
        let none = BTreeMap::new();
        let (causes, rules) = (added(&none, &by_cause), added(&none, &by_rule));
        self.say_lost_by("events-lost-in-all", whole, whole, &causes, &rules, who);
    }

    fn say_lost(&mut self, op: &str, lost: u64, whole: u64, causes: &str, rules: &str) {
        self.say_lost_by(op, lost, whole, causes, rules, Who::this_process());
    }

    fn say_lost_by(
        &mut self,
        op: &str,
        lost: u64,
        whole: u64,
        causes: &str,
        rules: &str,
        who: Who,
    ) {
        let (lost, whole) = (lost.to_string(), whole.to_string());
        let mut extra = vec![
            ("lost", lost.as_str()),
            ("total", whole.as_str()),
            ("cause", causes),
        ];
        if !rules.is_empty() {
            extra.push(("rule", rules));
        }
        self.say(&Action {
            kind: RecordType::DAEMON_ERR,
            op,
            who,
            extra: &extra,
            is_success: false,
        });
    }
}

fn total(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// `NAME:COUNT,…` of what `now` has more than `before`. Of a rule's name its place is told, because
/// keys may hold any byte.
fn added(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> String {
    let more = now.iter().filter_map(|(name, count)| {
        let more = count.saturating_sub(before.get(name).copied().unwrap_or(0));
        let name = name.split(' ').next().unwrap_or_default();
        (more > 0).then(|| format!("{name}:{more}"))
    });
    more.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_added_is_told() {
        let before = BTreeMap::from([("log".to_owned(), 3), ("ring_full".to_owned(), 2)]);
        let now = BTreeMap::from([
            ("log".to_owned(), 3),
            ("ring_full".to_owned(), 7),
            ("12 a key".to_owned(), 1),
        ]);
        assert_eq!(added(&before, &now), "12:1,ring_full:5");
        assert_eq!(added(&now, &now), "");
    }
}
