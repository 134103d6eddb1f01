//! Compares policies with the filters made from them.

mod support;

use proptest::prelude::*;
use seccomp::compile::{compile, CompileError, Frequencies};
use seccomp::policy::{Abi, AbiRules, Compare, Condition, Layer, Policy, Rule, RuleId};
use seccomp::profile::{self, Context};
use seccomp::text::from_hex;
use seccomp::{code, prove_equal, Action, Chain, Filter, Proof, SeccompData, Verdict};
use std::collections::HashMap;

const DOCKER: &str = profile::DOCKER_DEFAULT;

fn docker(archs: bool) -> Policy {
    let context = Context {
        enosys: false,
        ..Context::docker(Abi::X86_64, (6, 18))
    };
    let mut policy = profile::parse(DOCKER, &context).expect("docker's profile");
    if !archs {
        policy.layers[0].abis.retain(|&abi, _| abi == Abi::X86_64);
    }
    policy
}

fn libseccomp(name: &str) -> Filter {
    let path = format!(
        "{}/tests/data/libseccomp-{name}.bpf.hex",
        env!("CARGO_MANIFEST_DIR")
    );
    let text = std::fs::read_to_string(&path).expect(&path);
    from_hex(&text).expect("a valid filter")
}

/// Numbers on both sides of every boundary that an ABI can have.
fn numbers() -> Vec<u32> {
    let mut all: Vec<u32> = (0..600).chain(0x4000_0000..0x4000_0258).collect();
    all.extend([
        0x3fff_ffff,
        0x7fff_ffff,
        0x8000_0000,
        0xc000_0000,
        u32::MAX - 1,
        u32::MAX,
    ]);
    all
}

const ARCHS: [u32; 4] = [support::X86_64, support::I386, 0xc000_00b7, 0x1234_5678];

/// Values at which the conditions in docker's profile change, and their neighbours with other upper
/// halves.
fn values() -> Vec<u64> {
    let edges = [
        0u64,
        1,
        8,
        16,
        38,
        39,
        40,
        41,
        0x20000,
        0x20008,
        0x7e02_0000,
        0xffff_ffff,
    ];
    let near = edges
        .iter()
        .flat_map(|&edge| [edge.wrapping_sub(1), edge, edge + 1]);
    near.flat_map(|low| [low, low | 1 << 32, low | 0xffff_ffff << 32, low ^ 1 << 63])
        .collect()
}

/// Whether the profile decides on call `nr` by its arguments.
fn has_conditions(policy: &Policy, arch: u32, nr: u32) -> bool {
    let rules = Abi::of(arch, nr)
        .and_then(|abi| policy.layers[0].abis.get(&abi))
        .and_then(|rules| rules.calls.get(&nr));
    rules.is_some_and(|rules| rules.iter().any(|rule| !rule.conditions.is_empty()))
}

#[test]
fn dockers_profile_answers_as_libseccomp_wherever_libseccomp_looks_at_whole_arguments() {
    for (archs, name) in [
        (false, "x86_64-tree"),
        (true, "3arch-tree"),
        (true, "3arch-linear"),
    ] {
        let policy = docker(archs);
        let ours = compile(&policy, &Frequencies::usual()).expect("compiles");
        let theirs = libseccomp(name);
        // libseccomp treats 32-bit x86 and x32 as machines with 32-bit arguments. For 32-bit x86
        // the kernel uses the lower halves, whatever the upper ones are; for x32 it uses whole
        // registers, all of which this filter compares.
        let mut stricter = 0;
        let mut compared = 0u32;
        let all = values();
        for arch in ARCHS {
            for nr in numbers() {
                // Where no rule has a condition, a few values for each number, other ones for the next.
                let step = if has_conditions(&policy, arch, nr) {
                    1
                } else {
                    testkit::times(13, 1)
                };
                for &value in all.iter().skip(nr as usize % step).step_by(step) {
                    let args = [value, value ^ 1, 0, 0, 0, 0];
                    let data = SeccompData {
                        nr,
                        arch,
                        args,
                        ..SeccompData::default()
                    };
                    let (a, b) = (ours.run(&data).verdict, theirs.run(&data).verdict);
                    compared += 1;
                    if a != b {
                        assert_eq!(
                            Abi::of(arch, nr),
                            Some(Abi::X32),
                            "{name} {data:x?} {a} {b}"
                        );
                        assert!(
                            value > 0xffff_ffff && a.order() < b.order(),
                            "{data:x?} {a} {b}"
                        );
                        stricter += 1;
                    }
                }
            }
        }
        assert!(compared > testkit::times(40_000, 400_000));
        assert_eq!(stricter > 0, archs, "{name}: {stricter}");
    }
}

#[test]
fn dockers_profile_for_x86_64_is_proven_equal_to_libseccomps_filter() {
    let ours = compile(&docker(false), &Frequencies::usual()).expect("compiles");
    for name in ["x86_64-tree", "x86_64-linear"] {
        let theirs = Chain::new([libseccomp(name)]);
        let proof = prove_equal(&Chain::new([ours.clone()]), &theirs);
        assert_eq!(proof, Ok(Proof::Equal), "{name}");
    }
}

/// data/runc-3arch.bpf.hex is the filter that runc 1.5.2 with libseccomp 2.6.0 installed for this
/// profile, read back with PTRACE_SECCOMP_GET_FILTER.
#[test]
fn dockers_profile_answers_as_runc_to_calls_of_every_age() {
    let policy = profile::parse(DOCKER, &Context::docker(Abi::X86_64, (6, 18))).expect("good");
    let ours = compile(&policy, &Frequencies::usual()).expect("compiles");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/runc-3arch.bpf.hex");
    let theirs = from_hex(&std::fs::read_to_string(path).expect(path)).expect("valid");
    assert!(ours.insns().len() * 5 < theirs.insns().len());
    // The profile names calls that libseccomp 2.6.0 does not know yet.
    let newer = ["setxattrat", "getxattrat", "listxattrat", "removexattrat"];
    for arch in ARCHS {
        for nr in numbers() {
            let data = SeccompData {
                nr,
                arch,
                ..SeccompData::default()
            };
            let (a, b) = (ours.run(&data).verdict, theirs.run(&data).verdict);
            let name = Abi::of(arch, nr).and_then(|abi| abi.name_of(nr));
            let is_newer =
                b == Verdict(0x0005_0026) && name.is_some_and(|name| newer.contains(&name));
            assert!(
                a == b || is_newer,
                "{nr:#x} {arch:#x} {name:?}: {a}, runc {b}"
            );
        }
    }
}

/// The largest number of instructions that a call can cost, with any arguments.
fn worst_path(filter: &Filter, arch: u32, nr: u32) -> usize {
    fn from(
        filter: &Filter,
        pc: usize,
        a: Option<u32>,
        call: (u32, u32),
        known: &mut HashMap<(usize, Option<u32>), usize>,
    ) -> usize {
        if let Some(&length) = known.get(&(pc, a)) {
            return length;
        }
        let insn = filter.insns()[pc];
        let target = |skip: u32| pc + 1 + skip as usize;
        let mut go = |pc, a| from(filter, pc, a, call, known);
        let length = 1 + match insn.code {
            code::RET_K => 0,
            code::LD_ABS => {
                let loaded = match insn.k {
                    0 => Some(call.1),
                    4 => Some(call.0),
                    _ => None,
                };
                go(pc + 1, loaded)
            }
            code::AND => go(pc + 1, a.map(|a| a & insn.k)),
            code::JA => go(target(insn.k), a),
            other => {
                let holds = a.map(|a| match other {
                    code::JEQ => a == insn.k,
                    code::JGT => a > insn.k,
                    code::JGE => a >= insn.k,
                    code::JSET => a & insn.k != 0,
                    other => panic!("unexpected code {other:#x}"),
                });
                let (yes, no) = (target(insn.jt.into()), target(insn.jf.into()));
                match holds {
                    Some(true) => go(yes, a),
                    Some(false) => go(no, a),
                    None => go(yes, a).max(go(no, a)),
                }
            }
        };
        known.insert((pc, a), length);
        length
    }
    from(filter, 0, None, (arch, nr), &mut HashMap::new())
}

#[test]
fn no_call_costs_more_on_its_worst_path_than_in_libseccomps_tree() {
    for (archs, name) in [(false, "x86_64-tree"), (true, "3arch-tree")] {
        let ours = compile(&docker(archs), &Frequencies::usual()).expect("compiles");
        let theirs = libseccomp(name);
        let abis: &[Abi] = if archs {
            Abi::X86_64.family()
        } else {
            &[Abi::X86_64]
        };
        let (mut sum, mut sum_theirs, mut calls) = (0, 0, 0);
        for &abi in abis {
            for (nr, call) in abi.calls() {
                let arch = abi.audit_arch();
                let (a, b) = (worst_path(&ours, arch, nr), worst_path(&theirs, arch, nr));
                assert!(
                    a <= b,
                    "{name}: {call} of {abi:?} costs {a}, with libseccomp {b}"
                );
                (sum, sum_theirs, calls) = (sum + a, sum_theirs + b, calls + 1);
            }
        }
        // Also numbers without a call, except numbers that kill the thread: x32 numbers, which cost
        // one more if the profile does not know x32.
        for arch in ARCHS {
            for nr in numbers() {
                let data = SeccompData {
                    nr,
                    arch,
                    ..SeccompData::default()
                };
                if ours.run(&data).verdict.action() == Action::KillThread {
                    continue;
                }
                let (a, b) = (worst_path(&ours, arch, nr), worst_path(&theirs, arch, nr));
                assert!(
                    a <= b,
                    "{name}: {nr:#x} of {arch:#x} costs {a}, with libseccomp {b}"
                );
            }
        }
        println!(
            "{name}: {} instructions, libseccomp {}; worst path {:.1} on average, libseccomp {:.1}",
            ours.insns().len(),
            theirs.insns().len(),
            sum as f64 / f64::from(calls),
            sum_theirs as f64 / f64::from(calls)
        );
        assert!(ours.insns().len() * 2 < theirs.insns().len());
    }
}

fn compares() -> impl Strategy<Value = Compare> {
    prop_oneof![
        Just(Compare::Ne),
        Just(Compare::Lt),
        Just(Compare::Le),
        Just(Compare::Eq),
        Just(Compare::Ge),
        Just(Compare::Gt),
        edge_values().prop_map(|mask| Compare::MaskedEq { mask }),
    ]
}

/// 64-bit values whose halves are likely to be equal or next to each other.
fn edge_values() -> impl Strategy<Value = u64> {
    let half = prop_oneof![
        Just(0u32),
        Just(1),
        Just(2),
        Just(0x8000_0000),
        Just(u32::MAX - 1),
        Just(u32::MAX),
        any::<u32>(),
    ];
    (half.clone(), half).prop_map(|(high, low)| u64::from(high) << 32 | u64::from(low))
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => Just(Verdict::ALLOW),
        1 => Just(Verdict(0x7ffc_0000)),
        1 => Just(Verdict(0x0005_0001)),
        1 => Just(Verdict(0x0005_0026)),
        1 => Just(Verdict(0x8000_0000)),
        1 => Just(Verdict(0)),
    ]
}

fn rules() -> impl Strategy<Value = Rule> {
    let condition = (0..3u8, compares(), edge_values(), any::<bool>()).prop_map(
        |(arg, compare, value, fits)| {
            let value = match compare {
                Compare::MaskedEq { mask } if fits => value & mask,
                _ => value,
            };
            Condition {
                arg,
                compare,
                value,
            }
        },
    );
    (proptest::collection::vec(condition, 0..4), verdicts()).prop_map(|(conditions, verdict)| {
        Rule {
            conditions,
            verdict,
            id: RuleId(0),
        }
    })
}

fn layers() -> impl Strategy<Value = Layer> {
    let rows = proptest::collection::vec((0..5usize, 0..12u32, rules()), 0..12);
    let enosys = proptest::option::of(3..12u32);
    (rows, verdicts(), verdicts(), enosys, 0..32u32).prop_map(
        |(rows, default, bad_arch, enosys_above, known)| {
            let mut layer = Layer::new("", default, bad_arch);
            for (index, abi) in Abi::EVERY.into_iter().enumerate() {
                if known >> index & 1 != 0 {
                    let rules = AbiRules {
                        enosys_above,
                        ..AbiRules::default()
                    };
                    layer.abis.insert(abi, rules);
                }
            }
            for (abi, nr, rule) in rows {
                let abi = Abi::EVERY[abi];
                let nr = if abi == Abi::X32 {
                    nr | 0x4000_0000
                } else {
                    nr
                };
                if let Some(rules) = layer.abis.get_mut(&abi) {
                    rules.calls.entry(nr).or_default().push(rule);
                }
            }
            layer
        },
    )
}

/// An argument near a value that a rule compares with, or with a different upper half.
fn argument(policy: &Policy, pick: u64, twist: u8) -> u64 {
    let conditions: Vec<&Condition> = policy
        .layers
        .iter()
        .flat_map(|layer| layer.abis.values())
        .flat_map(|rules| rules.calls.values().flatten())
        .flat_map(|rule| &rule.conditions)
        .collect();
    let value = match conditions.as_slice() {
        [] => pick,
        some => some[(pick % some.len() as u64) as usize].value,
    };
    match twist % 6 {
        0 => value,
        1 => value.wrapping_add(1),
        2 => value.wrapping_sub(1),
        3 => value ^ 1 << 32,
        4 => value & 0xffff_ffff,
        _ => pick,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testkit::times(150, 1500), failure_persistence: None, ..ProptestConfig::default() })]

    /// Includes 64-bit comparisons: the filter is neither weaker nor stricter than the rules.
    #[test]
    fn a_filter_answers_exactly_as_its_policy(
        layers in proptest::collection::vec(layers(), 1..4),
        calls in proptest::collection::vec(
            (0..5usize, 0..14u32, any::<[u64; 3]>(), any::<[u8; 3]>(), 0..20u8), 40),
    ) {
        let policy = Policy { layers, ..Policy::default() };
        let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
        for (abi, nr, picks, twists, odd) in calls {
            let abi = Abi::EVERY[abi];
            let mut nr = if abi == Abi::X32 { nr | 0x4000_0000 } else { nr };
            if odd == 0 {
                nr |= 0x8000_0000;
            }
            let mut args = [0; 6];
            for i in 0..3 {
                args[i] = argument(&policy, picks[i], twists[i]);
            }
            let arch = if odd == 1 { 0x1234 } else { abi.audit_arch() };
            let data = SeccompData { nr, arch, args, ..SeccompData::default() };
            let asked = policy.decide(&data).expect("has layers").verdict;
            prop_assert_eq!(filter.run(&data).verdict, asked, "{:x?}", data);
        }
    }
}

#[test]
fn weights_shorten_the_way_of_frequent_calls() {
    let policy = docker(false);
    let even = compile(&policy, &Frequencies::default()).expect("compiles");
    let heavy: Frequencies = [("personality", 1_000_000u64)].into_iter().collect();
    let weighted = compile(&policy, &heavy).expect("compiles");
    let nr = Abi::X86_64.number("personality").expect("known");
    let cost = |filter| worst_path(filter, support::X86_64, nr);
    assert!(
        cost(&weighted) < cost(&even),
        "{} {}",
        cost(&weighted),
        cost(&even)
    );
}

#[test]
fn a_filter_that_would_be_too_long_is_refused_with_a_remedy() {
    let mut layer = Layer::new("", Verdict(0x0005_0001), Verdict(0));
    let mut rules = AbiRules::default();
    for nr in 0..3000u32 {
        let condition = Condition {
            arg: 0,
            compare: Compare::Eq,
            value: u64::from(nr) << 31,
        };
        let rule = Rule {
            conditions: vec![condition],
            verdict: Verdict::ALLOW,
            id: RuleId(0),
        };
        rules.calls.insert(nr, vec![rule]);
    }
    layer.abis.insert(Abi::X86_64, rules);
    let policy = Policy {
        layers: vec![layer],
        ..Policy::default()
    };
    let error = compile(&policy, &Frequencies::usual()).expect_err("too long");
    assert!(matches!(error, CompileError::TooLong { insns } if insns > 4096));
    assert!(
        error.to_string().contains("use fewer argument values"),
        "{error}"
    );
    assert_eq!(
        compile(&Policy::default(), &Frequencies::usual()),
        Err(CompileError::Empty)
    );
}

#[test]
fn conditions_that_combine_to_many_cases_are_tested_one_rule_after_the_other() {
    // Each rule looks at a bit of its own in each of three arguments: 2^72 cases.
    let rule = |bit: u32| {
        let arg = |index: u32, bit: u32| {
            let mask = 1u64 << (bit % 24);
            format!(
                r#"{{"index": {index}, "op": "SCMP_CMP_MASKED_EQ", "value": {mask}, "valueTwo": {mask}}}"#
            )
        };
        let args = [arg(1, bit), arg(2, bit * 7), arg(3, bit * 5)].join(",");
        format!(r#"{{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{args}]}}"#)
    };
    let rules: Vec<String> = (0..24).map(rule).collect();
    let profile = format!(
        r#"{{"defaultAction": "SCMP_ACT_ERRNO", "architectures": ["SCMP_ARCH_X32", "SCMP_ARCH_X86"],
            "syscalls": [{}]}}"#,
        rules.join(",")
    );
    let context = Context::docker(Abi::X86_64, (6, 18));
    let policy = seccomp::profile::parse(&profile, &context).expect("good");
    let filter = compile(&policy, &Frequencies::usual()).expect("compiles");
    // libseccomp 2.5.4 needs 375 for x86-64 alone.
    assert!(filter.insns().len() < 700, "{}", filter.insns().len());

    let mut rng = support::Rng(52);
    let mut allowed = 0;
    for _ in 0..20_000 {
        let abi = rng.pick(&[Abi::X86_64, Abi::X32, Abi::I386]);
        let bit = rng.below(24) as u32;
        let mut data = SeccompData {
            nr: abi.number("ioctl").expect("a call"),
            arch: abi.audit_arch(),
            ..SeccompData::default()
        };
        for (arg, factor) in [(1, 1), (2, 7), (3, 5)] {
            data.args[arg] = 1 << (bit * factor % 24) | rng.next() & rng.next() & rng.next();
        }
        data.args[rng.below(6)] ^= rng.pick(&[0, 0, 1 << 32, 1 << bit]);
        let verdict = filter.run(&data).verdict;
        allowed += u32::from(verdict == Verdict::ALLOW);
        assert_eq!(
            Some(verdict),
            policy.decide(&data).map(|ruling| ruling.verdict)
        );
    }
    assert!((2_000..20_000).contains(&allowed), "{allowed}");
}

#[test]
fn thousands_of_rules_are_refused_at_once_if_they_do_not_fit() {
    let rules: Vec<String> = (0u64..5000)
        .map(|at| {
            let args: Vec<String> = (0..3)
                .map(|arg| {
                    let value = at.wrapping_mul(2654435761 + arg) & 0xffff;
                    format!(r#"{{"index": {arg}, "op": "SCMP_CMP_EQ", "value": {value}}}"#)
                })
                .collect();
            let args = args.join(",");
            format!(r#"{{"names": ["ioctl"], "action": "SCMP_ACT_ALLOW", "args": [{args}]}}"#)
        })
        .collect();
    let profile = format!(
        r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{}]}}"#,
        rules.join(",")
    );
    let context = Context::docker(Abi::X86_64, (6, 18));
    let policy = seccomp::profile::parse(&profile, &context).expect("good");
    let error = compile(&policy, &Frequencies::usual()).expect_err("too long");
    assert!(error.to_string().contains("4096 at most"), "{error}");
}

/// Processor time of this thread.
fn processor_time() -> std::time::Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec, which lives long enough.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn five_thousand_rules_of_three_conditions_that_fit_compile_within_two_seconds() {
    let calls: Vec<&str> = Abi::X86_64.calls().map(|row| row.1).take(300).collect();
    let rules: Vec<String> = (0..5000)
        .map(|at| {
            let first = at / calls.len() * 16;
            format!(
                r#"{{"names": ["{}"], "action": "SCMP_ACT_ALLOW", "args": [
                    {{"index": 0, "op": "SCMP_CMP_GE", "value": {first}}},
                    {{"index": 1, "op": "SCMP_CMP_LE", "value": {}}},
                    {{"index": 2, "op": "SCMP_CMP_MASKED_EQ", "value": 1, "valueTwo": 1}}]}}"#,
                calls[at % calls.len()],
                at % 5 + first,
            )
        })
        .collect();
    let profile = format!(
        r#"{{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{}]}}"#,
        rules.join(",")
    );

    let start = processor_time();
    let context = Context::docker(Abi::X86_64, (6, 18));
    let policy = seccomp::profile::parse(&profile, &context).expect("good");
    let filter = compile(&policy, &Frequencies::usual()).expect("it fits");
    let taken = processor_time() - start;
    println!("{} instructions in {taken:?}", filter.insns().len());
    assert!(taken.as_secs() < 2, "{taken:?}");

    let mut rng = support::Rng(5000);
    let mut allowed = 0;
    for _ in 0..10_000 {
        let data = SeccompData {
            nr: Abi::X86_64.number(rng.pick(&calls)).expect("a call"),
            arch: Abi::X86_64.audit_arch(),
            args: std::array::from_fn(|_| rng.below(300) as u64),
            ..SeccompData::default()
        };
        let verdict = filter.run(&data).verdict;
        allowed += u32::from(verdict == Verdict::ALLOW);
        assert_eq!(
            Some(verdict),
            policy.decide(&data).map(|ruling| ruling.verdict)
        );
    }
    assert!((1_000..9_000).contains(&allowed), "{allowed}");
}
