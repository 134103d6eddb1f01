//! Rules whose events give labels (`label_keys`) that other rules ask about.

use crate::plan::Plan;
use crate::tables;
use abi::Field;
use std::collections::BTreeMap;

/// The plan with the labels that events of rules give, by place of the rule. Labels that no rule asks about are only for
/// the log.
pub fn with_labels(mut plan: Plan, given: &BTreeMap<u32, Vec<String>>) -> Plan {
    let past = &plan.workloads.past;
    let bits = |labels: &Vec<String>| {
        let bits = labels
            .iter()
            .filter_map(|label| past.bit(Field::Label, label.as_bytes()));
        bits.fold(0, |all, bit| all | bit)
    };
    let rules = given.iter().map(|(&rule, labels)| (rule, bits(labels)));
    plan.labellings = rules.filter(|(_, bits)| *bits != 0).collect();
    for row in labelling_pages(&plan) {
        plan.rows[row].b |= tables::PAGE_LABELS;
    }
    plan
}

/// The second rows of the pages that have a rule which gives labels.
fn labelling_pages(plan: &Plan) -> Vec<usize> {
    let mut found = Vec::new();
    for (&(entry, nr), call) in &plan.calls {
        let pages = plan.call_row(entry, nr).pages as usize;
        let lists = plan.lists[call.list].chunks(tables::PAGE);
        for (page, candidates) in lists.enumerate() {
            let gives = |rule: u32| plan.labellings.contains_key(&rule);
            if candidates.iter().any(|candidate| gives(candidate.rule)) {
                found.push(plan.rows[pages + page].a as usize + 1);
            }
        }
    }
    found
}
