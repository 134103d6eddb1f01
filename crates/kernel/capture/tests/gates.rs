//! Programs for gates on one fact say the same as the code that interprets any gate.

mod match_object;

use bpf::shared::{gate, gate_range, test_gate};
use libbpf_rs::{MapCore, MapFlags, Object, ProgramInput};
use plan::Fact;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

const FACTS: [Fact; 7] = [
    Fact::Auid,
    Fact::Uid,
    Fact::Euid,
    Fact::Suid,
    Fact::Fsuid,
    Fact::Exit,
    Fact::Success,
];

/// The gate and the result, with what the programs say.
fn ask(object: &Object, gate: gate, ret: i64) -> test_gate {
    let mut all = object.maps();
    let gates = all.find(|map| map.name() == "test_gates").expect("the map");
    let test = test_gate {
        gate,
        ret,
        ..test_gate::new_zeroed()
    };
    gates
        .update(&[0; 4], test.as_bytes(), MapFlags::ANY)
        .expect("the gate is set");
    let mut programs = object.progs_mut();
    let program = programs
        .find(|program| program.name() == "gate_one")
        .expect("the program");
    let output = program
        .test_run(ProgramInput::default())
        .expect("the program runs");
    assert_eq!(output.return_value, 0);
    let said = gates.lookup(&[0; 4], MapFlags::ANY).expect("an answer");
    test_gate::read_from_bytes(&said.expect("a value")).expect("an answer of its size")
}

/// Numbers near those that tasks and results have.
fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        -600i32..5,
        Just(-4096),
        Just(-4095),
        990i32..1010,
        Just(i32::MIN),
        any::<i32>()
    ]
    .prop_map(|number| number as u32)
}

fn range() -> impl Strategy<Value = gate_range> {
    let span = prop_oneof![0u32..10, Just(u32::MAX), Just(u32::MAX - 1), any::<u32>()];
    (number(), span).prop_map(|(first, span)| gate_range { first, span })
}

#[test]
fn programs_for_one_fact_decide_as_the_code_for_all() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let object = match_object::load();
    let mut runner = TestRunner::deterministic();
    let fact = (0..FACTS.len()).prop_map(|i| FACTS[i] as u32);
    let mask = prop_oneof![3 => Just(u32::MAX), 1 => any::<u32>()];
    let cases = (fact, mask, range(), range(), any::<bool>(), number());
    let mut decisions = [0; 2];
    for _ in 0..20_000 {
        let case = cases.new_tree(&mut runner).expect("a case").current();
        let (fact, mask, first, second, has_one, ret) = case;
        let gate = gate {
            fact,
            mask,
            range: [first, if has_one { first } else { second }],
            ..gate::new_zeroed()
        };
        let said = ask(&object, gate, i64::from(ret as i32));
        let expected = said.interpreted;
        decisions[expected as usize] += 1;
        assert_eq!(said.own[1], expected, "{case:?}");
        if mask == u32::MAX && has_one {
            assert_eq!(said.own[0], expected, "{case:?}");
        }
    }
    assert!(decisions.iter().all(|count| *count > 2000), "{decisions:?}");
}
