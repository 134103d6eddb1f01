//! For any rules and calls, the tables decide as a plain loop over the rules does.

mod common;

use common::{any_rule, entries, event, exit_rule, identities, plan, Event};
use proptest::collection::vec;
use proptest::prelude::*;
use rules::Rule;

fn check(rules: &[Rule], events: &[Event]) -> Result<(), TestCaseError> {
    let plan = plan(rules);
    let identities = identities();
    for event in events {
        let facts = event.facts();
        let expected = plan::decide(rules, entries(), &facts, &identities);
        prop_assert_eq!(plan.decide(&facts, &identities), expected, "{:?}", facts);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..Default::default() })]

    #[test]
    fn tables_decide_as_the_loop_over_rules(
        rules in vec(exit_rule(), 0..10),
        events in vec(event(), 24),
    ) {
        check(&rules, &events)?;
    }

    #[test]
    fn marks_at_what_a_call_reached_change_no_decision(
        rules in vec(exit_rule(), 0..10),
        events in vec(event(), 24),
    ) {
        let plan = plan(&rules);
        let identities = identities();
        for event in &events {
            let facts = event.facts();
            let Some(seen) = common::marks_at(&facts, &plan.marks) else {
                continue;
            };
            let expected = plan::decide(&rules, entries(), &facts, &identities);
            let decision = plan.decide_with(Some(seen), &facts, &identities);
            prop_assert_eq!(decision, expected, "{:?}", facts);
        }
    }

    #[test]
    fn an_event_of_which_less_is_known_is_not_dropped(
        rules in vec(exit_rule(), 1..10),
        events in vec((event(), 0..4usize, 0..6usize), 64),
    ) {
        let identities = identities();
        let decide = |event: &Event| plan::decide(&rules, entries(), &event.facts(), &identities);
        for (event, which, how) in events {
            let known = event.known();
            if decide(&known) != plan::Decision::Drop {
                let less = known.clone().degraded(which, how);
                prop_assert_ne!(decide(&less), plan::Decision::Drop, "{:?} {:?}", known, less);
            }
        }
    }

    #[test]
    fn a_new_task_is_audited_exactly_when_the_task_list_says_so(
        rules in vec(any_rule(), 0..6),
        events in vec(event(), 16),
    ) {
        let plan = plan(&rules);
        for event in &events {
            let facts = event.facts();
            let expected = plan::audits_task(&rules, &facts, &identities());
            prop_assert_eq!(plan.audits_task(&facts), expected, "{:?}", facts);
        }
    }

    #[test]
    fn removing_a_shadowed_rule_changes_no_decision(
        rules in vec(exit_rule(), 1..6),
        copies in vec((any::<prop::sample::Index>(), exit_rule(), any::<bool>()), 1..6),
        events in vec(event(), 24),
    ) {
        // Copies of other rules with more conditions are often shadowed.
        let mut rules = rules;
        for (index, mut rule, replaces) in copies {
            let original = index.get(&rules).clone();
            rule.conditions.retain(|condition| !original.conditions.contains(condition));
            rule.conditions.extend(original.conditions);
            if replaces {
                rule.syscalls = original.syscalls;
            }
            rules.push(rule);
        }
        let plan = plan(&rules);
        let identities = identities();
        for shadowed in (0..rules.len()).filter(|&i| plan.notes[i].shadowed_by.is_some()) {
            let mut fewer = rules.clone();
            fewer[shadowed].list = rules::List::Filesystem;
            for event in &events {
                let facts = event.facts();
                prop_assert_eq!(
                    plan::decide(&fewer, entries(), &facts, &identities),
                    plan::decide(&rules, entries(), &facts, &identities),
                    "without rule {}: {:?}", shadowed, facts
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 200, ..Default::default() })]

    #[test]
    fn tables_of_thousands_of_rules_decide_as_the_loop(
        rules in prop_oneof![vec(exit_rule(), 60..200), vec(exit_rule(), 1000..2000)],
        never_certain in any::<bool>(),
        events in vec(event(), 64),
    ) {
        // A rule that matches everything would hide all rules after it.
        let mut rules = rules;
        if never_certain {
            rules.retain(|rule| rule.conditions.len() > 1);
        }
        check(&rules, &events)?;
    }
}
