//! Cost of each rule in force since it was loaded: `tarsier status --rules`.

use crate::protocol::RuleCost;
use capture::RuleCount;
use rules::Rule;
use std::collections::{HashMap, VecDeque};

/// Number of earlier rule sets whose events may still come.
const SETS_KEPT: usize = 8;
/// Bytes that a dropped event counts as when time is divided by bytes: it is read and looked up,
/// but not encoded. About a quarter of the bytes of an event with a path.
const DROPPED_BYTES: u64 = 256;

/// Counts of one rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Number of this rule's events in the log.
    pub(crate) events: u64,
    /// Number of events with this rule as a candidate that were not recorded: the second stage
    /// dropped them, or an exclude rule did.
    pub(crate) dropped: u64,
    /// Number of events that are recorded because the rule may select them.
    pub(crate) unsure: u64,
    /// Bytes of log lines of its events.
    pub(crate) bytes: u64,
    /// The rule's share of the time that the daemon spent on events, in nanoseconds.
    pub(crate) spent_ns: u64,
    /// The rule's share of the current batch, in bytes.
    weight: u64,
    /// Events over the rule's budget that the second stage had decided.
    suppressed: u64,
    /// A second of the monotonic clock, and the events in it that the budget has admitted.
    window: (u64, u32),
    /// Events that did not come to the daemon while the rule was at earlier places in the rule set.
    before: Missing,
    /// Events that the programs had counted at this place before the rule came there.
    elsewhere: Missing,
}

/// Events that did not come to the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) lost: u64,
    /// Events over the rule's budget.
    pub(crate) suppressed: u64,
}

impl Missing {
    fn at(counts: &[RuleCount], place: usize) -> Missing {
        let count = counts.get(place).copied().unwrap_or_default();
        Missing {
            lost: count.lost,
            suppressed: count.suppressed,
        }
    }
}

impl Cost {
    /// Events that did not come to the daemon, if the programs now count `now` at this rule's place.
    fn missing(&self, now: Missing) -> Missing {
        let (before, elsewhere) = (self.before, self.elsewhere);
        Missing {
            lost: before.lost + now.lost.saturating_sub(elsewhere.lost),
            suppressed: before.suppressed + now.suppressed.saturating_sub(elsewhere.suppressed),
        }
    }
}

/// Counts of the rules in force. A rule that stays keeps its counts when the rule set changes.
#[derive(Debug, Default)]
pub(crate) struct RuleCosts {
    /// Events over a budget, of all rules there have been, that the second stage had decided.
    pub(crate) suppressed: u64,
    generation: u64,
    costs: Vec<Cost>,
    /// Rules that have a share in the current batch.
    charged: Vec<usize>,
    /// Sum of all shares in the current batch, including those of rules that are gone.
    weight: u64,
    /// The rule set that is about to be in force: its number, and the index of its first rule's counts, which are the
    /// last ones of `costs`. Events that its rules select come before the daemon knows that it is in force.
    coming: Option<(u64, usize)>,
    /// Earlier generations, with the current place of each of their rules that is still in force.
    earlier: VecDeque<(u64, Vec<Option<usize>>)>,
}

impl RuleCosts {
    /// Switches from the rules `old` to the rules `new` of `generation`. `counts` is what the
    /// programs have counted by place so far; they go on counting, whichever rule is at a place.
    /// Call this between batches.
    pub(crate) fn replace(
        &mut self,
        generation: u64,
        old: &[Rule],
        new: &[Rule],
        counts: &[RuleCount],
    ) {
        let moves = places(old, new);

        // Events of the new rules may have been counted before the programs told that these are in force.
        let is_expected = |(number, _): &(u64, usize)| *number == generation;
        let came = match self.coming.filter(is_expected) {
            Some((_, start)) => self.costs.split_off(start),
            None => Vec::new(),
        };
        self.forget_coming();

        let mut costs: Vec<Cost> = (0..new.len())
            .map(|place| Cost {
                elsewhere: Missing::at(counts, place),
                ..came.get(place).copied().unwrap_or_default()
            })
            .collect();

        // A rule that stays keeps its counts, wherever it stands now.
        for (place, (cost, to)) in self.costs.iter().zip(&moves).enumerate() {
            if let Some(kept) = to.and_then(|to| costs.get_mut(to)) {
                *kept = Cost {
                    events: cost.events + kept.events,
                    dropped: cost.dropped + kept.dropped,
                    unsure: cost.unsure + kept.unsure,
                    bytes: cost.bytes + kept.bytes,
                    spent_ns: cost.spent_ns + kept.spent_ns,
                    weight: 0,
                    suppressed: cost.suppressed + kept.suppressed,
                    window: cost.window.max(kept.window),
                    before: cost.missing(Missing::at(counts, place)),
                    elsewhere: kept.elsewhere,
                };
            }
        }

        // Events of earlier sets may still come: their places lead to those of the new set.
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

    /// Counts events of `rules` rules of `generation` from now on, for [`replace`](Self::replace). Call this between
    /// batches.
    pub(crate) fn expect(&mut self, generation: u64, rules: usize) {
        self.forget_coming();
        let start = self.costs.len();
        self.coming = Some((generation, start));
        self.costs.resize(start + rules, Cost::default());
    }

    /// The expected rule set was refused. Call this between batches.
    pub(crate) fn forget_coming(&mut self) {
        if let Some((_, start)) = self.coming.take() {
            self.costs.truncate(start);
        }
    }

    /// Counts an event of the rule at `place` of `generation`, with `bytes` bytes in the log.
    pub(crate) fn recorded(&mut self, generation: u64, place: u32, bytes: usize) {
        let bytes = bytes as u64;
        if let Some(cost) = self.charge(generation, place, bytes) {
            cost.events += 1;
            cost.bytes += bytes;
        }
    }

    /// Counts an event that is recorded because the rule at `place` of `generation` may select it.
    pub(crate) fn unsure(&mut self, generation: u64, place: u32) {
        if let Some(cost) = self.charge(generation, place, 0) {
            cost.unsure += 1;
        }
    }

    /// Counts an event for the rule at `place` of `generation` that is not in the log.
    pub(crate) fn dropped(&mut self, generation: u64, place: u32) {
        if let Some(cost) = self.charge(generation, place, DROPPED_BYTES) {
            cost.dropped += 1;
        }
    }

    /// Whether the budget of the rule at `place` of `generation`, `rate` events per second, has one left for this
    /// second. If not, the event is counted.
    pub(crate) fn admits(&mut self, generation: u64, place: u32, second: u64, rate: u32) -> bool {
        let Some(place) = self.place(generation, place) else {
            return true;
        };
        let Some(cost) = self.costs.get_mut(place) else {
            return true;
        };

        if second > cost.window.0 {
            cost.window = (second, 0);
        }

        if cost.window.1 < rate {
            cost.window.1 += 1;
            return true;
        }

        cost.suppressed += 1;
        self.suppressed += 1;
        false
    }

    /// Ends a batch that took `spent_ns`, and adds each rule's share. Returns the number of bytes among which the time
    /// was divided.
    pub(crate) fn share(&mut self, spent_ns: u64) -> u64 {
        let bytes = self.weight.max(1);
        let whole = bytes as f64;
        for place in self.charged.drain(..) {
            let cost = &mut self.costs[place];
            cost.spent_ns += (spent_ns as f64 * cost.weight as f64 / whole) as u64;
            cost.weight = 0;
        }
        self.weight = 0;
        bytes
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

    /// The current place of the rule at `place` of `generation`; `None` if it is no longer in
    /// force.
    fn place(&self, generation: u64, place: u32) -> Option<usize> {
        let place = place as usize;
        if generation == self.generation {
            return Some(place);
        }
        if let Some((_, start)) = self.coming.filter(|(number, _)| *number == generation) {
            return Some(start + place);
        }
        let (_, places) = self.earlier.iter().find(|(of, _)| *of == generation)?;
        *places.get(place)?
    }

    /// Events of each rule in force that were lost on the way to the daemon, and those over its budget.
    pub(crate) fn missing<'a>(
        &'a self,
        counts: &'a [RuleCount],
    ) -> impl Iterator<Item = Missing> + 'a {
        let in_force = self.coming.map_or(self.costs.len(), |(_, start)| start);
        let costs = self.costs[..in_force].iter().enumerate();
        costs.map(move |(place, cost)| {
            let missing = cost.missing(Missing::at(counts, place));
            Missing {
                suppressed: missing.suppressed + cost.suppressed,
                ..missing
            }
        })
    }

    /// The table, most bytes first.
    pub(crate) fn table(&self, rules: &[Rule], counts: &[RuleCount]) -> Vec<RuleCost> {
        let costs = rules.iter().zip(&self.costs).zip(self.missing(counts));
        let mut table: Vec<RuleCost> = costs
            .enumerate()
            .map(|(place, ((rule, cost), missing))| RuleCost {
                position: place + 1,
                key: rule
                    .key()
                    .map(|key| String::from_utf8_lossy(key).replace('\u{1}', ",")),
                rule: rule.to_string(),
                events: cost.events,
                dropped: cost.dropped,
                unsure: cost.unsure,
                bytes: cost.bytes,
                lost: missing.lost,
                suppressed: missing.suppressed,
                spent_ns: cost.spent_ns,
            })
            .collect();

        table.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.dropped)));
        table
    }
}

/// The place in `new` of each rule of `old`. Each place of `new` is used once.
fn places(old: &[Rule], new: &[Rule]) -> Vec<Option<usize>> {
    if old.len() == new.len() && old.iter().zip(new).all(|(old, new)| old.same(new)) {
        return (0..old.len()).map(Some).collect();
    }

    // Equal rules may stand several times: each old one takes the next new one.
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
        lost.map(|lost| RuleCount {
            lost,
            ..RuleCount::default()
        })
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
        // Late events of the first set, and what the programs have lost at each place since.
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
        // A rule that is gone still takes its share of the time.
        costs.dropped(1, 0);
        costs.recorded(1, 1, 256);
        costs.share(100);
        let table = costs.table(&first[1..], &[]);
        assert_eq!((table[0].bytes, table[0].spent_ns), (1024, 550));
    }

    #[test]
    fn events_of_rules_that_come_into_force_are_counted_once() {
        let (first, second) = (parse(&["a", "b"]), parse(&["b", "c"]));
        let mut costs = RuleCosts::default();
        costs.replace(1, &[], &first, &[]);
        costs.recorded(1, 1, 100);
        costs.share(10);
        costs.expect(2, second.len());
        costs.recorded(2, 0, 100);
        costs.recorded(2, 1, 100);
        costs.recorded(1, 0, 100);
        costs.share(30);
        let keys = |table: &[RuleCost]| -> Vec<(Option<String>, u64, u64)> {
            let row = |row: &RuleCost| (row.key.clone(), row.events, row.spent_ns);
            table.iter().map(row).collect()
        };
        let key = |key: &str| Some(key.to_owned());
        let table = costs.table(&first, &[]);
        assert_eq!(keys(&table), [(key("a"), 1, 10), (key("b"), 1, 10)]);
        costs.replace(2, &first, &second, &[]);
        let table = costs.table(&second, &[]);
        assert_eq!(keys(&table), [(key("b"), 2, 20), (key("c"), 1, 10)]);
        // A rule set that is refused leaves nothing.
        costs.expect(3, 5);
        costs.recorded(3, 4, 100);
        costs.share(10);
        costs.forget_coming();
        assert_eq!(keys(&costs.table(&second, &[])), keys(&table));
        assert_eq!((costs.costs.len(), costs.place(3, 4)), (2, None));
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
