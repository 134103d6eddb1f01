//! io_uring operations are decided as by a plain loop over the rules that apply to them, and a rule on
//! system calls applies to the operations that do the same.

mod common;

use common::{entries, event, exit_rule, identities, rule, ruleset};
use plan::{uring, CallNames, Capabilities, Decision, Entry, Facts, IoUring, Plan};
use proptest::collection::vec;
use proptest::prelude::*;
use rules::{List, Rule, SyscallSet};

fn plan_of(rules: &[Rule], io_uring: IoUring) -> Plan {
    let capabilities = Capabilities {
        io_uring,
        ..Capabilities::assumed(common::HOST)
    };
    Plan::new(rules, &capabilities, &identities(), 7).expect("the rules fit")
}

#[test]
fn operations_without_a_name_are_told_and_selected_by_number() {
    let known = abi::uring_ops().count() as u32;
    let rules = [rule(&format!("-a always,io_uring -S {known} -k new"))];
    for (operations, is_told) in [(0, false), (known, false), (known + 2, true)] {
        let capabilities = Capabilities {
            io_uring: IoUring::Twins,
            uring_operations: operations,
            ..Capabilities::assumed(common::HOST)
        };
        let plan = Plan::new(&rules, &capabilities, &identities(), 7).expect("the rules fit");
        let notes = plan::explain(&plan).notes;
        let numbers = format!(" {known} to {}:", known + 1);
        let is_found = notes.iter().any(|note| note.contains(&numbers));
        assert_eq!(is_found, is_told, "{notes:?}");
        assert!(plan.calls.contains_key(&(Entry::Uring, known)));
    }
}

fn op(name: &str) -> u32 {
    abi::uring_op_number(name).expect("an operation")
}

/// Operations that open, remove, connect, send, do nothing, and one that no kernel has yet.
const OPERATIONS: [u32; 9] = [0, 9, 16, 18, 26, 28, 35, 36, 200];

/// A rule of the exit list, or one with the same conditions on the io_uring list.
fn any_rule() -> impl Strategy<Value = Rule> {
    let operations = vec(prop::sample::select(&OPERATIONS[..]), 1..4);
    (exit_rule(), any::<bool>(), operations).prop_map(|(mut rule, is_operation, operations)| {
        if is_operation {
            rule.list = List::IoUring;
            rule.syscalls = SyscallSet([0; 64]);
            for op in operations {
                rule.syscalls.insert(op);
            }
        }
        rule
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testkit::times(50, 400), ..Default::default() })]

    #[test]
    fn tables_decide_operations_as_the_loop_over_rules(
        rules in vec(any_rule(), 0..10),
        events in vec((event(), prop::sample::select(&OPERATIONS[..])), 24),
        twins in any::<bool>(),
    ) {
        let plan = plan_of(&rules, if twins { IoUring::Twins } else { IoUring::List });
        for (event, op) in &events {
            let shape = uring::shape_of_op(*op);
            let call = event.facts();
            let flag_arg = (shape.open_flags != plan::NONE).then_some(call.args[2] as u32);
            let facts = Facts {
                entry: Entry::Uring,
                nr: *op,
                result: Some(call.result.unwrap_or(0)),
                open_flags: flag_arg,
                saddr_fam: if shape.sockaddr == plan::NONE { None } else { call.saddr_fam },
                names: match shape.names() {
                    CallNames::Always => call.names,
                    CallNames::OfSocket if call.saddr_fam == Some(1) => call.names,
                    _ => &[],
                },
                ..call
            };
            let above = if facts.names.is_empty() { &[] } else { facts.above };
            let facts = Facts { above, ..facts };
            let expected =
                plan::decide_operation(&rules, entries(), twins, &facts, &identities());
            prop_assert_eq!(plan.decide(&facts, &identities()), expected, "{:?}", facts);
        }
    }
}

#[test]
fn a_rule_on_openat_also_watches_the_operation_and_no_other() {
    let rules = ruleset(&["-a always,exit -F arch=b64 -S openat -F uid=0 -k opens"]);
    let plan = plan_of(&rules, IoUring::Twins);
    let watched: Vec<u32> = plan
        .calls
        .keys()
        .filter(|(e, _)| *e == Entry::Uring)
        .map(|k| k.1)
        .collect();
    assert_eq!(watched, [op("openat")]);
    assert!(plan.hooks.uring.is_some());
    let facts = Facts {
        entry: Entry::Uring,
        nr: op("openat"),
        ..common::plain_call()
    };
    assert_eq!(plan.decide(&facts, &identities()), Decision::Record(0));
}

#[test]
fn without_twins_only_the_io_uring_list_watches_operations() {
    let rules = ruleset(&[
        "-a always,exit -F arch=b64 -S openat",
        "-a always,io_uring -S send",
    ]);
    let plan = plan_of(&rules, IoUring::List);
    let operations = plan.watched_operations();
    assert_eq!(operations[0], 1 << op("send"));
    assert_eq!(plan_of(&rules[..1], IoUring::List).hooks.uring, None);
    assert_eq!(plan_of(&rules, IoUring::Unseen).hooks.uring, None);
}

#[test]
fn the_result_of_an_operation_is_asked_for_when_it_is_known() {
    let rules = ruleset(&["-a always,exit -F arch=b64 -S connect -F success=0"]);
    let plan = plan_of(&rules, IoUring::Twins);
    let facts = |result| Facts {
        entry: Entry::Uring,
        nr: op("connect"),
        result,
        ..common::plain_call()
    };
    let decide = |plan: &Plan, result| plan.decide(&facts(result), &identities());
    assert_eq!(decide(&plan, Some(-111)), Decision::Record(0));
    assert_eq!(decide(&plan, Some(0)), Decision::Drop);
    // What is not known records, and excludes nothing.
    assert_eq!(decide(&plan, None), Decision::Record(0));
    let rules = ruleset(&[
        "-a never,exit -F arch=b64 -S connect -F success=0",
        "-a always,exit -F arch=b64 -S connect -F uid=0",
    ]);
    let plan = plan_of(&rules, IoUring::Twins);
    assert_eq!(decide(&plan, Some(-111)), Decision::Drop);
    assert_eq!(decide(&plan, None), Decision::Record(1));
}

#[test]
fn a_watch_sees_the_operations_of_its_permissions() {
    let plan = plan_of(&[rule("-w /a -p wa -k w")], IoUring::Twins);
    let is_watched = |name: &str| plan.calls.contains_key(&(Entry::Uring, op(name)));
    for name in [
        "openat", "openat2", "unlinkat", "renameat", "linkat", "setxattr",
    ] {
        assert!(is_watched(name), "{name}");
    }
    assert!(!is_watched("read") && !is_watched("nop") && !is_watched("send"));
}

#[test]
fn objects_of_an_operation_are_seen_where_any_call_that_does_the_same_is_watched() {
    let op = abi::uring_op_number("renameat").unwrap() as usize;
    for call in ["renameat", "renameat2"] {
        let rule = format!("-a always,exit -F arch=b64 -S {call} -F uid=1");
        let classes = plan_of(&ruleset(&[&rule]), IoUring::Twins).operation_classes();
        assert_eq!(classes[op], plan::ObjectClass::Entries as u8, "{call}");
    }
    let alone = "-a always,io_uring -S renameat -F uid=1";
    assert_eq!(
        plan_of(&ruleset(&[alone]), IoUring::Twins).operation_classes()[op],
        0
    );
}

#[test]
fn a_rule_on_a_socket_call_sees_the_commands_that_do_the_same_and_no_others() {
    const COMMAND: u32 = 128;
    let commands = |rule: &str| -> Vec<u32> {
        let plan = plan_of(&ruleset(&[rule]), IoUring::Twins);
        let operations = plan.calls.keys().filter(|key| key.0 == Entry::Uring);
        let found = operations.map(|key| key.1).collect();
        // The hooks are those of the operation.
        for name in ["uring_cmd", "uring_cmd128"] {
            let number = op(name);
            let bits = plan.watched_operations()[number as usize / 64];
            assert_ne!(bits >> (number % 64) & 1, 0, "{name}");
        }
        found
    };
    let call = |name: &str| commands(&format!("-a always,exit -F arch=b64 -S {name} -F uid=0"));
    assert_eq!(call("getsockopt"), [COMMAND + 2]);
    assert_eq!(call("setsockopt"), [COMMAND + 3]);
    assert_eq!(call("getpeername"), [COMMAND + 5]);
    let all = [COMMAND + 2, COMMAND + 3, COMMAND + 5];
    let ioctl = [&[op("uring_cmd"), op("uring_cmd128")][..], &all].concat();
    assert_eq!(call("ioctl"), ioctl);
    let of_list = commands("-a always,io_uring -S uring_cmd -S uring_cmd128");
    assert_eq!(of_list, ioctl);
}
