//! Checks the prover against the interpreter, and on deliberate changes.
//!
//! TARSIER_SECCOMP_ROUNDS sets the number of calls in the search for a false "equal", and the
//! number of deliberate changes, which is at most 1000 (CONTRIBUTING.md).

mod support;

use seccomp::{code, differences, prove_equal, Chain, Filter, Insn, Proof, SeccompData};
use support::{random_call, random_filter, Rng};

/// Number of repetitions; the environment can ask for long runs.
fn rounds(default: usize) -> usize {
    match std::env::var("TARSIER_SECCOMP_ROUNDS") {
        Ok(text) => text.parse().expect("TARSIER_SECCOMP_ROUNDS is a number"),
        Err(_) => default,
    }
}

fn random_chain(rng: &mut Rng, wild: bool) -> Chain {
    let count = 1 + rng.below(3);
    let filters: Vec<Filter> = (0..count).map(|_| random_filter(rng, 40, wild)).collect();
    Chain::new(filters)
}

/// The filter with one bit changed, if the result is a valid filter.
fn mutated(rng: &mut Rng, filter: &Filter) -> Option<Filter> {
    let mut insns = filter.insns().to_vec();
    let at = rng.below(insns.len());
    let insn: &mut Insn = &mut insns[at];
    match rng.below(4) {
        0 if insn.is_conditional() => insn.jt ^= 1 << rng.below(8),
        1 if insn.is_conditional() => insn.jf ^= 1 << rng.below(8),
        2 => insn.code ^= 1 << rng.below(8),
        _ => insn.k ^= 1 << rng.below(32),
    }
    Filter::new(insns).ok()
}

fn is_decided_differently(left: &Chain, right: &Chain, data: &SeccompData) -> bool {
    left.run(data).verdict != right.run(data).verdict
}

#[test]
fn no_call_is_decided_differently_by_chains_that_were_proven_equal() {
    let mut rng = Rng(7);
    let (mut equal, mut differ, mut unknown, mut calls) = (0, 0, 0, 0);
    let wanted = rounds(100_000);
    while calls < wanted {
        let wild = rng.chance(30);
        let left = random_chain(&mut rng, wild);
        let mut filters = left.filters().to_vec();
        let place = rng.below(filters.len());
        // The change often has no effect, so that both answers occur.
        let Some(changed) = mutated(&mut rng, &filters[place]) else {
            continue;
        };
        filters[place] = changed;
        let right = Chain::new(filters);
        match prove_equal(&left, &right) {
            Ok(Proof::Equal) => {
                equal += 1;
                let all = [left.filters(), right.filters()].concat();
                for _ in 0..1000 {
                    let data = random_call(&mut rng, &all);
                    calls += 1;
                    assert!(
                        !is_decided_differently(&left, &right, &data),
                        "{data:x?}\n{left:x?}\n{right:x?}"
                    );
                }
            }
            Ok(Proof::Differ(example)) => {
                differ += 1;
                assert_eq!(left.run(&example.data).verdict, example.left);
                assert_eq!(right.run(&example.data).verdict, example.right);
                assert_ne!(example.left, example.right);
            }
            Err(_) => unknown += 1,
        }
    }
    println!("{calls} calls of {equal} equal pairs; {differ} differ, {unknown} unknown");
    assert!(equal > 0 && differ > 0 && unknown * 20 < equal + differ);
}

#[test]
fn every_planted_change_of_a_real_filter_is_found_or_does_not_matter() {
    let mut rng = Rng(11);
    let chains = [
        "systemd-system-service",
        "systemd-hardened",
        "runc-docker",
        "libseccomp-3arch-tree.bpf",
        "libseccomp-x86_64-linear.bpf",
    ];
    let chains = chains.map(support::data);
    let (mut found, mut irrelevant) = (0, 0);
    while found + irrelevant < rounds(100).min(1000) {
        let chain = &chains[rng.below(chains.len())];
        let filter = &chain.filters()[rng.below(chain.filters().len())];
        let Some(changed) = mutated(&mut rng, filter) else {
            continue;
        };
        let (left, right) = (Chain::from(filter.clone()), Chain::from(changed));
        let proof = prove_equal(&left, &right).expect("one or the other");
        match proof {
            Proof::Differ(example) => {
                found += 1;
                assert!(is_decided_differently(&left, &right, &example.data));
            }
            Proof::Equal => {
                irrelevant += 1;
                for _ in 0..1000 {
                    let data = random_call(&mut rng, &[left.filters(), right.filters()].concat());
                    assert!(!is_decided_differently(&left, &right, &data), "{data:x?}");
                }
            }
        }
    }
    println!("{found} changes found, {irrelevant} do not matter");
    assert!(found > 50);
}

#[test]
fn arithmetic_is_followed_exactly() {
    // Both filters of a pair compute the same result with different instructions.
    let filter = |insns: &[Insn]| {
        let mut all = vec![Insn::new(code::LD_ABS, 16)];
        all.extend(insns);
        all.extend([
            Insn::jump(code::JGT, 1000, 0, 1),
            Insn::new(code::RET_K, 0x0005_0001),
            Insn::new(code::RET_K, 0x7fff_0000),
        ]);
        Chain::from(Filter::new(all).unwrap())
    };
    let op = Insn::new;
    let equal: [(Vec<Insn>, Vec<Insn>); 6] = [
        (vec![op(code::MUL, 8)], vec![op(code::LSH, 3)]),
        (vec![op(code::DIV, 16)], vec![op(code::RSH, 4)]),
        (
            vec![op(code::ADD, 5)],
            vec![op(code::SUB, 5u32.wrapping_neg())],
        ),
        (
            vec![op(code::XOR, u32::MAX), op(code::ADD, 1)],
            vec![op(code::NEG, 0)],
        ),
        (
            vec![op(code::LDX_IMM, 35), op(code::LSH | code::X, 0)],
            vec![op(code::LSH, 3)],
        ),
        (
            vec![op(code::ST, 2), op(code::LD_IMM, 9), op(code::LD_MEM, 2)],
            vec![op(code::OR, 0)],
        ),
    ];
    for (left, right) in equal {
        assert_eq!(
            prove_equal(&filter(&left), &filter(&right)),
            Ok(Proof::Equal)
        );
    }
    let (left, right) = (
        filter(&[op(code::DIV, 3)]),
        filter(&[op(code::DIV, 3), op(code::ADD, 1)]),
    );
    let Ok(Proof::Differ(example)) = prove_equal(&left, &right) else {
        panic!("a difference");
    };
    assert_eq!(example.data.args[0] as u32 / 3, 1000);
}

#[test]
fn every_call_that_is_decided_otherwise_is_listed_those_of_x32_too() {
    let filter = |text: &str| Chain::from(seccomp::text::assemble(text).unwrap());
    let left = filter("ret #0x7fff0000");
    let right = filter(
        "ld [4]
         jne #0xc000003e, ok
         ld [0]
         jeq #59, no
         jeq #0x40000208, no
         jeq #0x40000001, some
         jeq #4000, no
         jmp ok
         some: ld [20]
         jeq #7, no, ok
         ok: ret #0x7fff0000
         no: ret #0x50001",
    );
    let found = differences(&left, &right).unwrap();
    let calls: Vec<(u32, bool)> = found
        .iter()
        .map(|difference| (difference.data.nr, difference.always))
        .collect();
    // execve, x32's write and execve, and one entry for calls without a name.
    let expected = [
        (59, true),
        (0x4000_0001, false),
        (0x4000_0208, true),
        (4000, false),
    ];
    assert_eq!(calls, expected);
    assert_eq!(found[1].data.args[0], 7 << 32);
    assert!(found.iter().all(|difference| {
        difference.data.arch == support::X86_64 && difference.right == seccomp::Verdict(0x0005_0001)
    }));
}
