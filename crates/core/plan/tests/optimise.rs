//! Optimised rules select the same events with the same keys.

mod common;

use common::{capabilities, entries, event, exit_rule, identities, rule, ruleset, Event};
use plan::{decide, lead_with_never, optimise, Cost, Decision, Effort, Facts, Optimised, StepKind};
use proptest::collection::vec;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rules::{Condition, Op, Rule, Value};
use std::collections::BTreeMap;

/// The visible outcome of a decision: the key that is recorded, if there is a record.
fn selected(rules: &[Rule], facts: &Facts<'_>) -> Option<Vec<u8>> {
    match decide(rules, entries(), facts, &identities()) {
        Decision::Drop => None,
        Decision::Record(rule) | Decision::Unsure(rule) => {
            let key = rules[rule as usize].key().unwrap_or_default();
            Some(key.to_vec())
        }
    }
}

fn optimised(rules: &[Rule]) -> Optimised {
    optimise(rules, entries(), Effort::default())
}

fn kinds(optimised: &Optimised) -> Vec<StepKind> {
    optimised.steps.iter().map(|step| step.kind).collect()
}

fn text(rules: &[Rule]) -> String {
    rules.iter().map(|rule| format!("{rule}\n")).collect()
}

/// A source of reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        // Xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn key(rule: &mut Rule, dice: &mut Dice) {
    rule.conditions.retain(|c| c.field != abi::Field::FilterKey);
    let key = [None, Some("one"), Some("one"), Some("two")][dice.below(4)];
    rule.conditions.extend(key.map(|key| Condition {
        field: abi::Field::FilterKey,
        op: Op::Eq,
        value: Value::Text(key.into()),
    }));
}

/// Rules many of which are similar: copies with other calls, or with fewer or more conditions.
fn rule_set(pool: &[Rule], dice: &mut Dice) -> Vec<Rule> {
    let count =
        1 + [3, 6, 12, 40][[0, 0, 1, 1, 1, 1, 2, 3][dice.below(8)]] * (dice.below(100)) / 100;
    let mut rules: Vec<Rule> = Vec::with_capacity(count);
    while rules.len() < count {
        let mut rule = pool[dice.below(pool.len())].clone();
        key(&mut rule, dice);
        if !rules.is_empty() && dice.below(3) > 0 {
            let mut copy = rules[dice.below(rules.len())].clone();
            match dice.below(5) {
                0 | 1 => copy.syscalls = rule.syscalls,
                2 => {
                    copy.conditions.pop();
                }
                3 => copy
                    .conditions
                    .splice(0..0, rule.conditions.into_iter().take(1))
                    .for_each(drop),
                _ => copy.action = rule.action,
            }
            rule = copy;
        }
        // As in the kernel, at most one of these per rule.
        let is_inode = |c: &Condition| matches!(c.field, abi::Field::Watch | abi::Field::Inode);
        if rule.conditions.iter().filter(|c| is_inode(c)).count() < 2 {
            rules.push(rule);
        }
    }
    rules
}

fn pools() -> (Vec<Rule>, Vec<Event>) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut some = |count: usize| {
        vec(exit_rule(), count)
            .new_tree(&mut runner)
            .unwrap()
            .current()
    };
    let rules = some(1500);
    let events = vec(event(), 4000).new_tree(&mut runner).unwrap().current();
    let events: Vec<_> = events.into_iter().map(common::Event::known).collect();
    (rules, events)
}

const THREADS: u64 = 4;

type Made = BTreeMap<StepKind, usize>;

/// Optimises and checks every fourth of `sets` rule sets. Returns how many steps of each kind were made.
fn try_sets(pool: &[Rule], events: &[Event], thread: u64, sets: u64) -> Made {
    let mut dice = Dice(0x5EED + thread);
    let mut made = Made::new();
    for number in (thread..sets).step_by(THREADS as usize) {
        let rules = rule_set(pool, &mut dice);
        let effort = Effort {
            samples: 2,
            seed: number,
        };
        let optimised = optimise(&rules, entries(), effort);
        let optimised = lead_with_never(optimised, entries(), effort);
        for step in &optimised.steps {
            *made.entry(step.kind).or_default() += 1;
        }
        for _ in 0..20 {
            let event = &events[dice.below(events.len())];
            assert_eq!(
                selected(&rules, &event.facts()),
                selected(&optimised.rules, &event.facts()),
                "set {number}:\n{}became\n{}{event:?}",
                text(&rules),
                text(&optimised.rules)
            );
        }
    }
    made
}

#[test]
fn random_rule_sets_select_the_same_events_with_the_same_keys() {
    let (pool, events) = pools();
    let sets = testkit::times(1000, 10_000);
    let mut made = Made::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (pool, events) = (&pool, &events);
                    move || try_sets(pool, events, thread, sets)
                })
            })
            .collect();
        for thread in threads {
            for (kind, count) in thread.join().expect("all sets are equivalent") {
                *made.entry(kind).or_default() += count;
            }
        }
    });
    // Rules whose `never` can go before others are rare among these.
    let is_rare = |kind: &StepKind| *kind == StepKind::HoistNever;
    let usual = made.keys().filter(|kind| !is_rare(kind)).count();
    assert_eq!(usual, 6, "every usual kind of step was made: {made:?}");
    assert!(made.keys().any(is_rare) || sets < 10_000, "{made:?}");
}

fn texts(rules: &[Rule]) -> Vec<String> {
    let style = rules::ListStyle {
        is_reloadable: true,
        host: common::HOST,
        ..rules::ListStyle::default()
    };
    rules
        .iter()
        .map(|rule| rules::list_rule(rule, &style))
        .collect()
}

fn is_rewritten(before: &[&str], after: &[&str], steps: &[StepKind]) {
    let optimised = optimised(&ruleset(before));
    assert_eq!(texts(&optimised.rules), after);
    assert_eq!(kinds(&optimised), steps);
}

#[test]
fn rules_that_differ_only_in_their_calls_become_one() {
    is_rewritten(
        &[
            "-a always,exit -F arch=b64 -S open -F uid=5 -F key=k",
            "-a always,exit -F arch=b64 -S mkdir -F key=other",
            "-a always,exit -F arch=b64 -S openat -F uid=5 -F key=k",
        ],
        &[
            "-a always,exit -F arch=b64 -S open,openat -F uid=5 -F key=k",
            "-a always,exit -F arch=b64 -S mkdir -F key=other",
        ],
        &[StepKind::Merge],
    );
}

#[test]
fn rules_are_not_merged_past_one_that_may_match_first() {
    let rules = [
        "-a always,exit -F arch=b64 -S open,openat -F auid=7 -F key=k",
        "-a never,exit -F arch=b64 -S open,mkdir,openat -F uid=0",
        "-a always,exit -F arch=b64 -S mkdir -F auid=7 -F key=k",
    ];
    let optimised = optimised(&ruleset(&rules));
    assert_eq!(texts(&optimised.rules), rules);
    assert!(optimised.refused > 0);
}

#[test]
fn a_merged_rule_may_stand_where_the_later_one_stood() {
    is_rewritten(
        &[
            "-a always,exit -F arch=b64 -S open -F auid=7 -F key=k",
            "-a never,exit -F arch=b64 -S openat -F uid=0",
            "-a always,exit -F arch=b64 -S openat -F auid=7 -F key=k",
        ],
        &[
            "-a never,exit -F arch=b64 -S openat -F uid=0",
            "-a always,exit -F arch=b64 -S open,openat -F auid=7 -F key=k",
        ],
        &[StepKind::Merge],
    );
}

#[test]
fn what_others_decide_is_dropped_and_never_at_the_end_stays() {
    is_rewritten(
        &[
            "-a always,exit -F arch=b64 -S open -F uid>=1000 -F key=k",
            "-a always,exit -F arch=b64 -S open -F uid>=2000 -F key=more",
            "-a always,exit -F arch=b64 -S open -F uid=3 -F uid=4 -F key=none",
            "-a never,exit -F arch=b64 -S open -F gid=5",
        ],
        &[
            "-a always,exit -F arch=b64 -S open -F uid>=1000 -F key=k",
            "-a never,exit -F arch=b64 -S open -F gid=5",
        ],
        &[StepKind::DropShadowed, StepKind::DropNeverMatching],
    );
}

#[test]
fn never_goes_before_rules_that_it_does_not_compete_with() {
    is_rewritten(
        &[
            "-a always,exit -F arch=b64 -S open -F uid=1 -F key=k",
            "-a always,exit -F arch=b64 -S open -F uid>=1000 -F key=k",
            "-a never,exit -F arch=b64 -S open -F uid=5",
            "-a always,exit -F arch=b64 -S open -F key=rest",
        ],
        &[
            "-a never,exit -F arch=b64 -S open -F uid=5",
            "-a always,exit -F arch=b64 -S open -F uid=1 -F key=k",
            "-a always,exit -F arch=b64 -S open -F uid>=1000 -F key=k",
            "-a always,exit -F arch=b64 -S open -F key=rest",
        ],
        &[StepKind::HoistNever],
    );
}

#[test]
fn calls_without_an_arch_stay_one_rule_since_two_would_cost_every_call_more() {
    let rules = [
        "-a always,exit -S openat2 -F key=same",
        "-a always,exit -S connect -F key=other",
    ];
    assert_eq!(texts(&optimised(&ruleset(&rules)).rules), rules);
}

#[test]
fn watches_of_directories_name_the_calls_of_their_access_on_either_architecture() {
    let path = "-a always,exit -S all -F path=/a -F perm=x -F key=k";
    assert_eq!(texts(&optimised(&ruleset(&[path])).rules), [path]);
    let rules = ruleset(&["-a always,exit -F dir=/a -F perm=x -k k"]);
    let optimised = optimised(&rules);
    // The 32-bit execve is 11, which is munmap by its 64-bit name; the 32-bit execveat is 358.
    assert_eq!(
        texts(&optimised.rules),
        ["-a always,exit -S munmap,execve,execveat,358 -F dir=/a -F perm=x -F key=k"]
    );
    assert_eq!(kinds(&optimised), [StepKind::NarrowWatch]);
    let cost = |rules: &[Rule]| Cost::of(rules, &capabilities()).unwrap();
    let (before, after) = (cost(&rules), cost(&optimised.rules));
    assert!(after.kernel_instructions < before.kernel_instructions);
    assert!(after.kernel_ns < before.kernel_ns);
    assert!(after.table_rows <= before.table_rows);
}

/// Rules on `count` users' mkdir, and one on open.
fn many(count: usize) -> Vec<Rule> {
    let users = (0..count).map(|uid| format!("-a always,exit -F arch=b64 -S mkdir -F uid={uid}"));
    users
        .chain(["-a always,exit -F arch=b32 -S open -F key=k".to_owned()])
        .map(|line| rule(&line))
        .collect()
}

#[test]
fn calls_that_no_rule_can_match_are_ended_by_one_rule_if_that_pays() {
    let led = |rules: &[Rule]| lead_with_never(optimised(rules), entries(), Effort::default());
    // So few rules are passed sooner than one is evaluated.
    assert_eq!(texts(&led(&many(5)).rules), texts(&many(5)));

    let rules = many(60);
    let led = led(&rules);
    assert_eq!(kinds(&led), [StepKind::LeadingNever]);
    assert_eq!(texts(&led.rules)[1..], texts(&rules));
    let first = &texts(&led.rules)[0];
    assert!(
        first.starts_with("-a never,exit -F arch=b64 -S read,write,open,close,"),
        "{first}"
    );
    // mkdir is 83; 5 is fstat here, though open for 32-bit programs.
    assert!(!led.rules[0].syscalls.contains(83) && led.rules[0].syscalls.contains(5));
    // Versions of auditctl that do not know newer calls can load the rule.
    let is_known = |nr| rules::Dialect::V3.knows_call(common::HOST, nr);
    assert!(led.rules[0].syscalls.iter().all(is_known));
    let cost = |rules: &[Rule]| Cost::of(rules, &capabilities()).unwrap();
    assert!(cost(&led.rules).kernel_instructions < cost(&rules).kernel_instructions / 2);
    // It is not put there twice.
    assert_eq!(
        texts(&lead_with_never(optimised(&led.rules), entries(), Effort::default()).rules),
        texts(&led.rules)
    );
}

#[test]
fn the_cheapest_call_has_a_price_where_every_call_is_named() {
    let rules = ruleset(&[
        "-a always,exit -F arch=b64 -S all -F auid=5 -F key=k",
        "-a always,exit -F arch=b32 -S mkdir -F key=k",
    ]);
    let cost = Cost::of(&rules, &capabilities()).unwrap();
    // Two rules are passed, one is evaluated up to its second condition.
    assert_eq!(cost.kernel_instructions, 2 * 8 + 43 + 2 * 52);
}

#[test]
fn other_lists_stay_as_they_are_and_where_they_are() {
    let rules = [
        "-a never,task -F uid=5",
        "-a always,exit -F arch=b64 -S open -F key=k",
        "-a never,task -F uid=5 -F gid=5",
        "-a always,exclude -F msgtype=CWD",
    ];
    let optimised = optimised(&ruleset(&rules));
    assert_eq!(texts(&optimised.rules), rules);
    assert!(optimised.steps.is_empty());
}

#[test]
fn labels_and_executables_are_taken_at_their_word() {
    // It cannot be known whether two labels or files are the same, or whether a label is read.
    let rules = [
        "-a always,exit -F arch=b64 -S open -F subj_user=a -F key=k",
        "-a never,exit -F arch=b64 -S open -F subj_user=a",
        "-a always,exit -F arch=b64 -S open -F exe=/a -F key=k",
        "-a never,exit -F arch=b64 -S open -F exe=/link/b",
        "-a always,exit -F arch=b64 -S open -F key=k",
    ];
    assert_eq!(texts(&optimised(&ruleset(&rules)).rules), rules);
}

#[test]
fn steps_say_what_they_save_and_how_that_was_shown() {
    let optimised = optimised(&[
        rule("-a always,exit -F arch=b64 -S open -F key=k"),
        rule("-a always,exit -F arch=b64 -S openat -F key=k"),
    ]);
    let step = &optimised.steps[0];
    assert_eq!((step.saving.rules, step.saving.kernel_passed), (1, 1));
    assert_eq!(step.proof.samples, Effort::default().samples);
    assert!(step.proof.calls > 0);
    let cost = Cost::of(&optimised.rules, &capabilities()).unwrap();
    assert_eq!((cost.rules, cost.calls_watched), (1, 2));
}
