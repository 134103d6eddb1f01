//! Rules whose events give labels (`label_keys`) that other rules ask about.

use crate::plan::Plan;
use crate::tables::{self, Row, TooLarge};
use abi::Field;
use std::collections::BTreeMap;

/// The plan with the labels that events of rules give, by place of the rule. Labels that no rule asks about are only for
/// the log.
///
/// # Errors
/// The rules do not fit the tables.
pub fn with_labels(mut plan: Plan, given: &BTreeMap<u32, Vec<String>>) -> Result<Plan, TooLarge> {
    let past = &plan.workloads.past;
    let bits = |labels: &Vec<String>| {
        let bits = labels
            .iter()
            .filter_map(|label| past.bit(Field::Label, label.as_bytes()));
        bits.fold(0, |all, bit| all | bit)
    };

    let rules = given.iter().map(|(&rule, labels)| (rule, bits(labels)));
    plan.labellings = rules.filter(|(_, bits)| *bits != 0).collect();
    for (entry, mask) in labelling_pages(&plan) {
        let row = plan.rows.len() as u64;
        plan.rows.push(Row { a: mask, b: 0 });
        plan.rows[entry].a |= row << 32;
    }

    if plan.rows.len() > tables::ROWS {
        Err(TooLarge::Rows)
    } else {
        Ok(plan)
    }
}

/// The pages that have rules which give labels: row in the list of pages, and mask of these rules.
fn labelling_pages(plan: &Plan) -> BTreeMap<usize, u64> {
    let gives = |rule: u32| u64::from(plan.labellings.contains_key(&rule));
    let mut found = BTreeMap::new();
    for (&(entry, nr), call) in &plan.calls {
        let pages = plan.call_row(entry, nr).pages as usize;
        let lists = plan.lists[call.list].chunks(tables::PAGE);
        for (page, candidates) in lists.enumerate() {
            let rules = candidates.iter().enumerate();
            let mask = rules.fold(0, |mask, (bit, candidate)| {
                mask | gives(candidate.rule) << bit
            });
            found.insert(pages + page, mask);
        }
    }

    found.retain(|_, mask| *mask != 0);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_rule::rule;
    use crate::{Capabilities, Entry, Identities};

    #[test]
    fn a_page_tells_its_rules_that_give_labels_and_decides_as_before() {
        let lines = [
            "-a always,exit -F arch=b64 -S chmod -F label=web -k labelled",
            "-a always,exit -F arch=b64 -S chmod -F a1=416 -k give",
            "-a always,exit -F arch=b64 -S chmod -F a1=384 -k other",
        ];
        let rules = lines.map(rule);
        let capabilities = Capabilities::assumed(abi::Arch::X86_64);
        let plan = Plan::new(&rules, &capabilities, &Identities::default(), 7).expect("it fits");
        let labels = |label: &str| BTreeMap::from([(1, vec![label.to_owned()])]);
        let chmod = abi::syscall_number(abi::Arch::X86_64, "chmod").expect("a call");
        let entry = plan.call_row(Entry::Native, chmod).pages as usize;
        let unasked = with_labels(plan.clone(), &labels("db")).expect("it fits");
        assert_eq!(unasked.rows, plan.rows);
        let asked = with_labels(plan.clone(), &labels("web")).expect("it fits");
        let (row, page) = (asked.rows[entry].a >> 32, asked.rows[entry].a as u32);
        assert_eq!(asked.rows[row as usize].a, 0b10);
        assert_eq!(u64::from(page), plan.rows[entry].a);
        assert_eq!(asked.labellings, BTreeMap::from([(1, 1)]));
    }
}
