//! One `never` rule in front, on the calls that no rule can match.
//!
//! Kernel audit tries all rules for each call. The `never` rule ends that at the first one. What the rules select stays the
//! same. But where another part of the kernel makes a record during such a call (AVC, SECCOMP, …), the kernel then leaves
//! out the SYSCALL record that would accompany it.

use super::price::Price;
use super::working::Work;
use super::{proof, works, Change, Effort, Optimised, Optimiser, Placed, StepKind};
use crate::entries::Entries;
use crate::facts::Entry;
use abi::{Arch, Field};
use rules::{Action, Condition, List, Op, Rule, Source, SyscallSet, Value};
use std::rc::Rc;

/// Puts one `never` rule on the native calls that no rule can match before the others, if that selects the same, and if
/// by both models of [`Price`] these calls gain more from it than others lose.
pub fn lead_with_never(optimised: Optimised, entries: Entries, effort: Effort) -> Optimised {
    let Optimised {
        rules,
        steps,
        refused,
    } = optimised;
    let mut optimiser = Optimiser::new(&rules, entries, effort);
    optimiser.steps = steps;
    optimiser.refused = refused;
    lead(&mut optimiser);
    optimiser.finish(&rules)
}

fn lead(optimiser: &mut Optimiser) {
    let Some(arch) = optimiser.memory.entries.arch(Entry::Native) else {
        return;
    };
    let [unnamed, named] = optimiser.memory.by_naming(&works(&optimiser.exit), arch);
    if unnamed.is_empty() || optimiser.exit.is_empty() {
        return;
    }
    let rule = never(arch, unnamed.clone());
    let first = Placed {
        work: Rc::new(optimiser.memory.work(rule.clone())),
        home: 0,
    };
    let mut exit = optimiser.exit.clone();
    exit.insert(0, first);
    if !pays(
        &works(&optimiser.exit),
        &works(&exit),
        arch,
        [&unnamed, &named],
    ) {
        return;
    }
    let first = Rc::clone(&exit[0].work);
    let proof = proof::prove_apart(
        &optimiser.memory,
        &works(&optimiser.exit),
        &first,
        &mut optimiser.sampler,
        optimiser.samples,
    );
    let Some(proof) = proof else {
        optimiser.refused += 1;
        return;
    };
    let count = unnamed.iter().count();
    let change = Change {
        kind: StepKind::LeadingNever,
        description: format!(
            "kernel audit tries no other rule for {count} calls that none can match; \
             records of SELinux, AppArmor and seccomp on them have no SYSCALL record then"
        ),
        exit,
        gone: Vec::new(),
        come: vec![rule],
        touched: unnamed,
    };
    optimiser.make(change, proof);
}

/// Whether each of the `unnamed` calls gains more than any of the `named` ones loses, by both models.
fn pays(
    before: &[Rc<Work>],
    after: &[Rc<Work>],
    arch: Arch,
    [unnamed, named]: [&SyscallSet; 2],
) -> bool {
    let price = |works: &[Rc<Work>], nr| Price::of(works, arch, nr);
    let lost = named
        .iter()
        .map(|nr| price(after, nr).minus(price(before, nr)))
        .reduce(Price::max);
    let lost = lost.unwrap_or(Price::NOTHING);
    unnamed.iter().all(|nr| {
        let gained = price(before, nr).minus(price(after, nr));
        lost.is_less(gained)
    })
}

fn never(arch: Arch, syscalls: SyscallSet) -> Rule {
    Rule {
        list: List::Exit,
        action: Action::Never,
        syscalls,
        conditions: vec![Condition {
            field: Field::Arch,
            op: Op::Eq,
            value: Value::Number(arch.audit_arch()),
        }],
        source: Source::default(),
    }
}
