//! What each rule in force has cost since it was loaded: `tarsier status --rules`.

use crate::protocol::RuleCost;
use capture::hooks::RuleCount;
use rules::Rule;
use std::collections::{HashMap, VecDeque};

/// Rule sets whose events may still come.
const SETS_KEPT: usize = 8;
/// What a dropped event counts as when time is shared by bytes: it is read and looked up, and not
/// encoded. About a quarter of what an event with a path has.
const DROPPED_BYTES: u64 = 256;

/// Counts of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Events of this rule in the log.
    pub(super) events: u64,
    /// Events that came for this rule and that no rule recorded: candidates that the second stage
    /// dropped, and events that an exclude rule drops.
    pub(super) dropped: u64,
    /// Bytes of log lines.
    pub(super) bytes: u64,
    /// Its share of the time that the daemon spent on events, nanoseconds.
    pub(super) spent_ns: u64,
    /// Its part in the batch that is being read.
    weight: u64,
    /// Lost on the way to the daemon, at earlier places in the rule set.
    lost_before: u64,
    /// What the programs had counted as lost at this place when the rule came there.
    lost_elsewhere: u64,
}

impl Cost {
    /// Events lost on the way to the daemon, where the programs count `now` at this rule's place.
    fn lost(&self, now: u64) -> u64 {
        self.lost_before + now.saturating_sub(self.lost_elsewhere)
    }
}

/// Counts of the rules in force. They survive a change of the rule set for the rules that stay.
#[derive(Debug, Default)]
pub(super) struct RuleCosts {
    generation: u64,
    costs: Vec<Cost>,
    /// Rules that have a part in the batch that is being read.
    charged: Vec<usize>,
    /// All parts, those of rules that are gone included.
    weight: u64,
    /// Earlier generations: where each of their rules is now, if it is still in force.
    earlier: VecDeque<(u64, Vec<Option<usize>>)>,
}

impl RuleCosts {
    /// Goes from the rules `old` to `new`, which are `generation`. `counts` is what the programs
    /// have counted by place so far; they go on counting, whatever rule is there. No batch is under
    /// way.
    pub(super) fn replace(
        &mut self,
        generation: u64,
        old: &[Rule],
        new: &[Rule],
        counts: &[RuleCount],
    ) {
        let moves = places(old, new);
        let lost = |place: usize| counts.get(place).map_or(0, |count| count.lost);
        let mut costs: Vec<Cost> = (0..new.len())
            .map(|place| Cost {
                lost_elsewhere: lost(place),
                ..Cost::default()
            })
            .collect();
        for (place, (cost, to)) in self.costs.iter().zip(&moves).enumerate() {
            if let Some(kept) = to.and_then(|to| costs.get_mut(to)) {
                *kept = Cost {
                    lost_before: cost.lost(lost(place)),
                    lost_elsewhere: kept.lost_elsewhere,
                    ..*cost
                };
            }
        }
        for (_, places) in &mut self.earlier {
            for place in places {
                *place = place.and_then(|place| moves.get(place).copied().flatten());
            }
        }
        self.earlier.push_front((self.generation, moves));
        self.earlier.truncate(SETS_KEPT);
        self.generation = generation;
        self.costs = costs;
    }

    /// An event of the rule at `place` of `generation` is `bytes` of the log.
    pub(super) fn recorded(&mut self, generation: u64, place: u32, bytes: usize) {
        let bytes = bytes as u64;
        if let Some(cost) = self.charge(generation, place, bytes) {
            cost.events += 1;
            cost.bytes += bytes;
        }
    }

    /// An event came for the rule at `place` of `generation`, and is not in the log.
    pub(super) fn dropped(&mut self, generation: u64, place: u32) {
        if let Some(cost) = self.charge(generation, place, DROPPED_BYTES) {
            cost.dropped += 1;
        }
    }

    /// The batch is over and took `spent_ns`: each rule gets its part of that. A clock that is read
    /// for each event would cost more than it says: 56 ns.
    pub(super) fn share(&mut self, spent_ns: u64) {
        let whole = self.weight.max(1) as f64;
        for place in self.charged.drain(..) {
            let cost = &mut self.costs[place];
            cost.spent_ns += (spent_ns as f64 * cost.weight as f64 / whole) as u64;
            cost.weight = 0;
        }
        self.weight = 0;
    }

    fn charge(&mut self, generation: u64, place: u32, weight: u64) -> Option<&mut Cost> {
        self.weight += weight;
        let place = self.place(generation, place)?;
        let cost = self.costs.get_mut(place)?;
        if cost.weight == 0 {
            self.charged.push(place);
        }
        cost.weight += weight;
        Some(cost)
    }

    /// Where the rule at `place` of `generation` is now; none if it is no longer in force.
    fn place(&self, generation: u64, place: u32) -> Option<usize> {
        let place = place as usize;
        if generation == self.generation {
            return Some(place);
        }
        let (_, places) = self.earlier.iter().find(|(of, _)| *of == generation)?;
        *places.get(place)?
    }

    /// What the rules in force have lost on the way to the daemon.
    pub(super) fn lost<'a>(&'a self, counts: &'a [RuleCount]) -> impl Iterator<Item = u64> + 'a {
        let now = |place: usize| counts.get(place).map_or(0, |count| count.lost);
        let costs = self.costs.iter().enumerate();
        costs.map(move |(place, cost)| cost.lost(now(place)))
    }

    /// The table, most bytes first.
    pub(super) fn table(&self, rules: &[Rule], counts: &[RuleCount]) -> Vec<RuleCost> {
        let costs = rules.iter().zip(&self.costs).zip(self.lost(counts));
        let mut table: Vec<RuleCost> = costs
            .enumerate()
            .map(|(place, ((rule, cost), lost))| RuleCost {
                position: place + 1,
                key: rule
                    .key()
                    .map(|key| String::from_utf8_lossy(key).replace('\u{1}', ",")),
                rule: rule.to_string(),
                events: cost.events,
                dropped: cost.dropped,
                bytes: cost.bytes,
                lost,
                spent_ns: cost.spent_ns,
            })
            .collect();
        table.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.dropped)));
        table
    }
}

/// Where each rule of `old` is among `new`. Each place of `new` is taken once.
fn places(old: &[Rule], new: &[Rule]) -> Vec<Option<usize>> {
    if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.same(new)) {
        return (0..old.len()).map(Some).collect();
    }
    let mut by_bytes: HashMap<Vec<u8>, VecDeque<usize>> = HashMap::new();
    for (place, rule) in new.iter().enumerate() {
        let same = by_bytes.entry(rules::to_kernel(rule)).or_default();
        same.push_back(place);
    }
    let find = |rule: &Rule| {
        let same = by_bytes.get_mut(&rules::to_kernel(rule))?;
        same.pop_front().filter(|&place| new[place].same(rule))
    };
    old.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(keys: &[&str]) -> Vec<Rule> {
        let line = |key: &&str| format!("-a always,exit -F arch=b64 -S mkdir -k {key}\n");
        let text: String = keys.iter().map(line).collect();
        let (commands, errors) = rules::parse_file("test", text, &rules::SystemHost);
        assert!(errors.is_empty(), "{errors:?}");
        let rule = |(_, command)| match command {
            rules::Command::Append(rule) => Some(rule),
            _ => None,
        };
        commands.into_iter().filter_map(rule).collect()
    }

    fn lost(lost: [u64; 3]) -> [RuleCount; 3] {
        lost.map(|lost| RuleCount { selected: 0, lost })
    }

    #[test]
    fn counts_follow_a_rule_to_its_new_place() {
        let (first, second) = (parse(&["a", "b"]), parse(&["new", "b", "a"]));
        let mut costs = RuleCosts::default();
        costs.replace(1, &[], &first, &[]);
        (0..3).for_each(|_| costs.dropped(1, 0));
        costs.recorded(1, 1, 768);
        costs.share(1000);
        costs.replace(2, &first, &second, &lost([10, 1, 0]));
        // Late events of the first set, and what the programs lost at each place since.
        costs.dropped(1, 0);
        costs.share(10);
        let table = costs.table(&second, &lost([15, 1, 2]));
        let shown: Vec<_> = table
            .iter()
            .map(|row| {
                (
                    row.position,
                    row.key.as_deref(),
                    row.dropped,
                    row.bytes,
                    row.lost,
                    row.spent_ns,
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (2, Some("b"), 0, 768, 1, 500),
                (3, Some("a"), 4, 0, 12, 510),
                (1, Some("new"), 0, 0, 5, 0),
            ]
        );
        costs.replace(3, &second, &first[1..], &lost([15, 1, 2]));
        assert_eq!((costs.place(1, 0), costs.place(2, 2)), (None, None));
        // What is gone takes its part of the time all the same.
        costs.dropped(1, 0);
        costs.recorded(1, 1, 256);
        costs.share(100);
        let table = costs.table(&first[1..], &[]);
        assert_eq!((table[0].bytes, table[0].spent_ns), (1024, 550));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let rules = parse(&["a"]);
        let mut costs = RuleCosts::default();
        for generation in 1..100 {
            costs.replace(generation, &rules, &rules, &[]);
        }
        assert_eq!((costs.costs.len(), costs.earlier.len()), (1, SETS_KEPT));
        assert!(costs.place(1, 0).is_none() && costs.place(98, 0).is_some());
    }
}
