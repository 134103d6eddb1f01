//! Merged filters decide as their chains do.

mod support;

use seccomp::{merge, optimise, prove_equal, CacheTable, Chain, ConstantAllow, Proof, Weights};
use support::{data, random_call, random_filter, Rng};

/// Calls that the kernel answers from its bitmap, in both x86 tables.
fn allowed(chain: &Chain) -> Vec<usize> {
    CacheTable::newest_pair(abi::Arch::X86_64)
        .iter()
        .map(|table| ConstantAllow::of(chain, table).allowed())
        .collect()
}

/// Checks the proof's result with the interpreter.
fn answers_alike(left: &Chain, right: &Chain) {
    let mut rng = Rng(17);
    let all = [left.filters(), right.filters()].concat();
    for _ in 0..50_000 {
        let data = random_call(&mut rng, &all);
        let (a, b) = (left.run(&data).verdict, right.run(&data).verdict);
        assert_eq!(a, b, "{data:x?}");
    }
}

#[test]
fn the_34_filters_of_a_hardened_unit_become_one_of_a_seventh_of_the_size() {
    let chain = data("systemd-hardened");
    assert_eq!((chain.filters().len(), chain.insns()), (34, 935));
    let merged = merge(&chain, &Weights::default(), 4096).unwrap();
    assert_eq!((merged.parts, merged.too_long), (vec![34], None));
    assert!(
        merged.chain.insns() * 7 < chain.insns(),
        "{}",
        merged.chain.insns()
    );
    assert_eq!(allowed(&merged.chain), allowed(&chain));
    assert_eq!(prove_equal(&merged.chain, &chain), Ok(Proof::Equal));
    answers_alike(&chain, &merged.chain);
}

#[test]
fn the_filter_that_runc_installs_shrinks_to_less_than_a_third() {
    let chain = data("runc-docker");
    assert_eq!((chain.filters().len(), chain.insns()), (1, 1260));
    let shorter = optimise(&chain.filters()[0], &Weights::usual())
        .unwrap()
        .unwrap();
    assert!(
        shorter.insns().len() * 3 < 1260,
        "{}",
        shorter.insns().len()
    );
    let shorter = Chain::from(shorter);
    assert_eq!(allowed(&shorter), allowed(&chain));
    answers_alike(&chain, &shorter);
    assert_eq!(prove_equal(&shorter, &chain), Ok(Proof::Equal));
}

#[test]
fn random_chains_are_merged_into_filters_that_decide_alike() {
    let mut rng = Rng(3);
    let mut whole = 0;
    for round in 0..300 {
        let count = 1 + rng.below(4);
        let filters: Vec<_> = (0..count)
            .map(|_| random_filter(&mut rng, 30, round % 3 == 0))
            .collect();
        let chain = Chain::new(filters);
        let merged = merge(&chain, &Weights::default(), 4096).unwrap();
        assert_eq!(merged.parts.iter().sum::<usize>(), count);
        whole += usize::from(merged.parts.len() == 1);
        let all = [chain.filters(), merged.chain.filters()].concat();
        for _ in 0..300 {
            let data = random_call(&mut rng, &all);
            let (before, after) = (chain.run(&data), merged.chain.run(&data));
            assert_eq!(before.verdict, after.verdict, "{data:x?}");
        }
        for (before, after) in allowed(&chain).iter().zip(allowed(&merged.chain)) {
            assert!(
                after >= *before || merged.parts.len() > 1,
                "{before} {after}"
            );
        }
    }
    assert!(whole > 200, "{whole} of 300 in one filter");
}

#[test]
fn a_chain_that_one_filter_cannot_hold_is_merged_as_far_as_it_fits() {
    let chain = data("systemd-hardened");
    let merged = merge(&chain, &Weights::default(), 60).unwrap();
    let too_long = merged.too_long.unwrap();
    assert!(too_long.insns.unwrap() > 60);
    assert!((2..=5).contains(&merged.parts.len()), "{:?}", merged.parts);
    // No two neighbours fit into one filter.
    let mut start = 0;
    for pair in merged.parts.windows(2) {
        let both = Chain::new(&chain.filters()[start..start + pair[0] + pair[1]]);
        let again = merge(&both, &Weights::default(), 60).unwrap();
        assert!(again.parts.len() > 1, "{:?}", merged.parts);
        start += pair[0];
    }
    let mut filters = merged.chain.filters().iter();
    assert!(filters.all(|filter| filter.insns().len() <= 60));
    assert_eq!(merged.parts.iter().sum::<usize>(), 34);
    assert_eq!(prove_equal(&merged.chain, &chain), Ok(Proof::Equal));
    answers_alike(&chain, &merged.chain);
}

#[test]
fn a_filter_without_a_diagram_stays_and_its_neighbours_are_merged() {
    let filter = |text: &str| seccomp::text::assemble(text).unwrap();
    let deny = |nr: u32| {
        filter(&format!(
            "ld [0]\n jeq #{nr}, no\n ret #0x7fff0000\n no: ret #1"
        ))
    };
    // It returns an argument, so it has as many verdicts as there are numbers.
    let argument = filter("ld [16]\n ret a");
    let chain = Chain::new([
        deny(1),
        deny(2),
        argument.clone(),
        deny(3),
        deny(4),
        deny(5),
    ]);
    let merged = merge(&chain, &Weights::default(), 4096).unwrap();
    assert_eq!(merged.parts, [2, 1, 3]);
    assert_eq!(merged.chain.filters()[1], argument);
    assert_eq!(merged.too_long.map(|too_long| too_long.insns), Some(None));
    answers_alike(&chain, &merged.chain);
}
