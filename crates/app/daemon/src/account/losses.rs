//! Reports losses in the log: at most once a second while recording, and at the end.

use crate::account::daemon_records::{LoggedAction, Who};
use crate::account::failure::Failure;
use crate::account::rule_costs::Missing;
use crate::pipeline::Pipeline;
use capture::{Counters, RuleCount, LOSS_CAUSES};
use record::RecordType;
use std::collections::BTreeMap;

/// Cause of losses in the kernel's audit when it is the engine.
pub(crate) const KERNEL_BACKLOG: &str = "kernel_backlog";

/// Losses that -f does not act on, because something else does: auditd.conf if the log cannot be written
/// (disk_full_action, disk_error_action), and the kernel for those of its own audit.
const OF_OTHERS: [&str; 3] = ["log", "log_other", KERNEL_BACKLOG];

/// The losses, and the events over a budget, that the log already reports.
#[derive(Default)]
pub(crate) struct Losses {
    told: Reported,
    /// Events over a budget, by place and key of the rule.
    suppressed: BTreeMap<String, u64>,
    /// All that the programs have counted, and all that the second stage has.
    suppressed_in_all: [u64; 2],
    /// Reaction to losses.
    pub(crate) failure: Failure,
}

/// Losses since the start.
#[derive(Default, PartialEq, Eq)]
struct Reported {
    by_cause: BTreeMap<String, u64>,
    by_rule: BTreeMap<String, u64>,
    by_uid: BTreeMap<String, u64>,
}

/// Limit of the uids in a record; the others are counted as `other`.
const UIDS_TOLD: usize = 20;

/// Events lost since the start, by cause. `counters` are the engine's.
pub(crate) fn by_cause(pipeline: &Pipeline, counters: &Counters) -> BTreeMap<String, u64> {
    let mut lost = BTreeMap::new();
    for (i, cause) in LOSS_CAUSES.iter().enumerate() {
        let count = counters.lost.iter().map(|cpu| cpu[i]).sum();
        lost.insert((*cause).to_owned(), count);
    }
    lost.insert("missed".to_owned(), counters.missed);

    let [of_engine, others] = pipeline.output().lost();
    lost.insert("log".to_owned(), of_engine);
    if others > 0 {
        lost.insert("log_other".to_owned(), others);
    }

    let kernel = pipeline.kernel();
    let overruns = kernel.map_or(0, |kernel| kernel.overruns);
    lost.insert("netlink".to_owned(), overruns);
    if let Some(kernel) = pipeline.kernel_engine() {
        lost.insert(KERNEL_BACKLOG.to_owned(), kernel.lost);
    }

    // Rare causes are listed only if there were some; the others always, so that a monitor sees their zeros.
    lost.insert("malformed".to_owned(), pipeline.totals().malformed);
    if pipeline.totals().unread > 0 {
        lost.insert("unread".to_owned(), pipeline.totals().unread);
    }
    if pipeline.totals().over_rate > 0 {
        lost.insert("rate_limit".to_owned(), pipeline.totals().over_rate);
    }
    lost
}

/// Events lost on the way to the daemon, by place and key of their rule.
///
/// The kernel is asked only if there are losses: while it copies the counts of a rule, no probe
/// runs on that processor.
pub(crate) fn by_rule(pipeline: &Pipeline, counters: &Counters) -> BTreeMap<String, u64> {
    if counters.lost.iter().flatten().all(|count| *count == 0) {
        return BTreeMap::new();
    }
    let (mut lost, undecided) = by_place(pipeline, |missing| missing.lost);
    if undecided.lost > 0 {
        lost.insert("undecided".to_owned(), undecided.lost);
    }
    lost
}

/// Events over a budget, by place and key of their rule.
pub(crate) fn suppressed(pipeline: &Pipeline) -> BTreeMap<String, u64> {
    let of_programs = pipeline.engine().ring_counters().suppressed;
    match of_programs + pipeline.rule_costs().suppressed {
        0 => BTreeMap::new(),
        _ => by_place(pipeline, |missing| missing.suppressed).0,
    }
}

/// A count of each rule, by place and key, and the counts of undecided events.
fn by_place(
    pipeline: &Pipeline,
    count: impl Fn(Missing) -> u64,
) -> (BTreeMap<String, u64>, RuleCount) {
    let rules = pipeline.rules();
    let (counts, undecided) = pipeline.engine().rule_counts(rules.len());
    let name = |i: usize| {
        let key = rules[i]
            .key()
            .map(|key| String::from_utf8_lossy(key).replace('\u{1}', ","));
        format!("{} {}", i + 1, key.unwrap_or_else(|| "(no key)".to_owned()))
    };

    let costs = pipeline.rule_costs().missing(&counts).enumerate();
    let counts = costs.map(|(i, missing)| (i, count(missing)));
    let counts = counts.filter(|(_, count)| *count > 0);
    (
        counts.map(|(i, count)| (name(i), count)).collect(),
        undecided,
    )
}

/// Events lost on the way to the daemon, by the real uid of the task that made them; `other`: uids for which the programs
/// had no room.
pub(crate) fn by_uid(pipeline: &Pipeline, counters: &Counters) -> BTreeMap<String, u64> {
    let lost: u64 = counters.lost.iter().flatten().sum();
    if lost == 0 {
        return BTreeMap::new();
    }
    let counts = pipeline.engine().lost_by_uid();
    // The programs have room for a limited number of uids.
    let other = lost.saturating_sub(counts.values().sum());
    let counts = counts
        .into_iter()
        .map(|(uid, lost)| (uid.to_string(), lost));
    let other = (other > 0).then(|| (OTHER.to_owned(), other));
    counts.chain(other).collect()
}

const OTHER: &str = "other";

/// Growth of the counts: for the uids with the largest growth, and for the others together.
fn most(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    let more = now.iter().map(|(uid, count)| {
        let before = before.get(uid).copied().unwrap_or(0);
        (uid.clone(), count.saturating_sub(before))
    });
    let mut more: Vec<(String, u64)> = more.filter(|(_, more)| *more > 0).collect();
    more.sort_by_key(|(uid, more)| (uid == OTHER, std::cmp::Reverse(*more)));
    let rest = more.split_off(more.len().min(UIDS_TOLD));
    let rest: u64 = rest.iter().map(|(_, more)| more).sum();
    let mut told: BTreeMap<String, u64> = more.into_iter().collect();
    if rest > 0 {
        *told.entry(OTHER.to_owned()).or_default() += rest;
    }
    told
}

impl Losses {
    /// Notes that an earlier daemon, or the record of the time without a daemon, already reported
    /// these counts.
    pub(crate) fn told_before(&mut self, counted: &[u64], pipeline: &mut Pipeline) {
        for (cause, count) in counted_causes().zip(counted) {
            self.told.by_cause.insert(cause.to_owned(), *count);
        }
        self.suppressed_in_all[0] = counted.last().copied().unwrap_or(0);
        self.note_told(pipeline);
    }

    /// Tells the next daemon, through its page, what the log reports.
    fn note_told(&self, pipeline: &mut Pipeline) {
        let told = |cause| self.told.by_cause.get(cause).copied().unwrap_or(0);
        let counted = counted_causes()
            .map(told)
            .chain([self.suppressed_in_all[0]]);
        pipeline.note_told(&counted.collect::<Vec<_>>());
    }

    /// Logs how many events were over a budget since the last report, if any.
    pub(crate) fn log_suppressed(&mut self, pipeline: &mut Pipeline) {
        let second_stage = pipeline.rule_costs().suppressed;
        let in_all = [pipeline.engine().ring_counters().suppressed, second_stage];
        // As for losses, the kernel is asked about rules only if there is something to tell.
        if in_all == self.suppressed_in_all {
            return;
        }

        let now = suppressed(pipeline);
        let rules = added(&self.suppressed, &now);
        let before = |name: &String| self.suppressed.get(name).copied().unwrap_or(0);
        let more = now
            .iter()
            .map(|(name, count)| count.saturating_sub(before(name)));
        let more: u64 = more.sum();

        self.suppressed = now;
        self.suppressed_in_all = in_all;
        // The last record may have had some that were counted while it was made.
        if more == 0 {
            return;
        }

        let more = more.to_string();
        pipeline.log_action(&LoggedAction {
            kind: RecordType::DAEMON_ERR,
            op: "events-suppressed",
            who: Who::this_process(),
            extra: &[("suppressed", &more), ("rule", &rules)],
            is_success: true,
        });
        self.note_told(pipeline);
    }

    /// Notes that another rule set is in force, where rules have other places. Everything about the one before has been
    /// reported.
    pub(crate) fn note_places(&mut self, pipeline: &Pipeline) {
        self.suppressed = suppressed(pipeline);
    }

    /// Logs what was lost since the last report, if anything. Call it once a second.
    pub(crate) fn log(&mut self, pipeline: &mut Pipeline) {
        self.log_suppressed(pipeline);

        let counters = pipeline.engine().counters();
        let by_cause = by_cause(pipeline, &counters);
        if by_cause == self.told.by_cause {
            return;
        }
        let now = Reported {
            by_rule: by_rule(pipeline, &counters),
            by_uid: by_uid(pipeline, &counters),
            by_cause,
        };

        let before = std::mem::replace(&mut self.told, now);
        if total(&self.told.by_cause) > total(&before.by_cause) {
            self.told
                .log(&before, "events-lost", Who::this_process(), pipeline);

            // In the log before the page says so: the next daemon reports what the page does not have.
            if pipeline.engine().handover().is_some() {
                pipeline.commit();
            }

            let causes = of_failure(&before.by_cause, &self.told.by_cause);
            self.failure.act(&causes, pipeline);
        }

        self.note_told(pipeline);
    }

    /// Logs the total losses at the end, if there are any.
    pub(crate) fn log_all(&self, who: Who, pipeline: &mut Pipeline) {
        let counters = pipeline.engine().counters();
        let all = Reported {
            by_cause: by_cause(pipeline, &counters),
            by_rule: by_rule(pipeline, &counters),
            by_uid: by_uid(pipeline, &counters),
        };
        if total(&all.by_cause) > 0 {
            all.log(&Reported::default(), "events-lost-in-all", who, pipeline);
        }
    }
}

impl Reported {
    /// Logs the losses since `before`.
    fn log(&self, before: &Reported, op: &str, who: Who, pipeline: &mut Pipeline) {
        let whole = total(&self.by_cause);
        let lost = (whole - total(&before.by_cause)).to_string();
        let whole = whole.to_string();
        let causes = added(&before.by_cause, &self.by_cause);
        let rules = added(&before.by_rule, &self.by_rule);

        let mut extra = vec![
            ("lost", lost.as_str()),
            ("total", whole.as_str()),
            ("cause", causes.as_str()),
        ];
        if !rules.is_empty() {
            extra.push(("rule", rules.as_str()));
        }

        let uids = added(&BTreeMap::new(), &most(&before.by_uid, &self.by_uid));
        if !uids.is_empty() {
            extra.push(("lost_uid", uids.as_str()));
        }

        pipeline.log_action(&LoggedAction {
            kind: RecordType::DAEMON_ERR,
            op,
            who,
            extra: &extra,
            is_success: false,
        });
    }
}

/// Losses since `before` that -f acts on, as `CAUSE:COUNT,…`.
fn of_failure(before: &BTreeMap<String, u64>, now: &BTreeMap<String, u64>) -> String {
    let mut now = now.clone();
    now.retain(|cause, _| !OF_OTHERS.contains(&cause.as_str()));
    added(before, &now)
}

/// The causes that the programs count, in the order of the page for the next daemon.
fn counted_causes() -> impl Iterator<Item = &'static str> {
    LOSS_CAUSES.iter().copied().chain(["missed"])
}

fn total(counts: &BTreeMap<String, u64>) -> u64 {
    counts.values().sum()
}

/// `NAME:COUNT,…` of the counts that have grown since `before`. Only the place of a rule's name is
/// given, because keys may contain any byte.
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

    #[test]
    fn the_uids_that_lost_most_are_told_and_the_others_are_counted() {
        let now = |uids: u64| (1..=uids).map(|uid| (uid.to_string(), 10 * uid));
        let few = most(&BTreeMap::new(), &now(3).collect());
        assert_eq!(added(&BTreeMap::new(), &few), "1:10,2:20,3:30");
        let other = std::iter::once((OTHER.to_owned(), 7));
        let many = most(&now(24).collect(), &now(25).chain(other).collect());
        assert_eq!(added(&BTreeMap::new(), &many), "25:250,other:7");
        let many = most(&BTreeMap::new(), &now(22).collect());
        assert_eq!(many.len(), UIDS_TOLD + 1);
        assert_eq!(many[OTHER], 30);
    }

    #[test]
    fn what_the_log_could_not_take_is_left_to_auditd_conf() {
        let counts = |counts: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let counts = counts.iter();
            counts
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let before = counts(&[("log", 1), ("ring_full", 3)]);
        let of = |now: &[(&str, u64)]| of_failure(&before, &counts(now));
        assert_eq!(of(&[("log", 9), ("log_other", 2), ("ring_full", 3)]), "");
        let now = [("log", 9), ("netlink", 2), ("ring_full", 4)];
        assert_eq!(of(&now), "netlink:2,ring_full:1");
    }
}
