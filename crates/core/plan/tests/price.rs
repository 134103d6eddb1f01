//! The cost of rules as `predict` gives it.

mod common;

use std::collections::BTreeMap;

use plan::{
    predict, Capabilities, Entry, Plan, Prediction, NULL_CALL_NS, PER_SYSCALL_NS, TP_BTF_NS,
};

const GETPID: u32 = 39;
const OPENAT: u32 = 257;
const EXIT_GROUP: u32 = 231;

/// A thousand calls a second of each number, under these rules.
fn predicted(rules: &[&str], capabilities: &Capabilities, numbers: &[u32]) -> Prediction {
    let rules: Vec<_> = rules.iter().map(|text| common::rule(text)).collect();
    let plan = Plan::new(&rules, capabilities, &Default::default(), 1).expect("a plan");
    predict(&plan, &calls(numbers), NULL_CALL_NS, false)
}

fn calls(numbers: &[u32]) -> BTreeMap<(Entry, u32), f64> {
    let native = |&number| ((Entry::Native, number), 1000.0);
    numbers.iter().map(native).collect()
}

/// Nanoseconds that one call pays.
fn ns(told: &Prediction, name: &str) -> f64 {
    let found = told.calls.iter().find(|call| call.name == name);
    found.expect("the call is listed").ns
}

/// A host whose calls are seen by tracepoints, and which has no 32-bit entry.
fn tracepoints() -> Capabilities {
    Capabilities {
        trampoline: false,
        compat_entry: false,
        ..common::capabilities()
    }
}

/// A host whose calls are seen where their functions end.
fn functions() -> Capabilities {
    Capabilities {
        trampoline: true,
        ..common::capabilities()
    }
}

#[test]
fn calls_that_no_rule_names_pay_what_the_hook_costs_them() {
    let one = ["-a always,exit -F arch=b64 -S openat -k k"];
    let told = predicted(&one, &tracepoints(), &[GETPID, OPENAT]);
    assert_eq!(ns(&told, "getpid"), f64::from(PER_SYSCALL_NS));
    let all = ["-a always,exit -S openat -k k"];
    let compat = Capabilities {
        compat_entry: true,
        ..tracepoints()
    };
    let told = predicted(&all, &compat, &[GETPID, OPENAT]);
    assert_eq!(ns(&told, "getpid"), f64::from(TP_BTF_NS));
    let told = predicted(&one, &functions(), &[GETPID, OPENAT]);
    assert_eq!(ns(&told, "getpid"), 0.0);
}

#[test]
fn watched_calls_pay_more_and_those_with_names_most() {
    for capabilities in [tracepoints(), functions()] {
        let rules = ["-a always,exit -F arch=b64 -S openat,getpid -F auid=1000 -k k"];
        let told = predicted(&rules, &capabilities, &[GETPID, OPENAT, 1]);
        assert!(ns(&told, "write") < ns(&told, "getpid"), "{told:?}");
        assert!(ns(&told, "getpid") < ns(&told, "openat"), "{told:?}");
        assert_eq!(told.calls[0].name, "openat");
        assert_eq!(told.watched_per_s, 2000.0);
        assert_eq!(told.calls_per_s, 3000.0);
    }
}

#[test]
fn the_sum_is_that_of_the_calls_and_grows_with_a_slower_host() {
    let rules = [common::rule("-a always,exit -F arch=b64 -S openat -k k")];
    let plan = Plan::new(&rules, &tracepoints(), &Default::default(), 1).expect("a plan");
    let calls = calls(&[GETPID, OPENAT, EXIT_GROUP]);
    let told = predict(&plan, &calls, NULL_CALL_NS, false);
    let sum: f64 = told.calls.iter().map(|call| call.percent).sum();
    assert!((told.percent() - sum).abs() < 1e-9, "{told:?}");
    let slow = predict(&plan, &calls, 2.0 * NULL_CALL_NS, false);
    assert!((slow.percent() - 2.0 * sum).abs() < 1e-9, "{slow:?}");
}

#[test]
fn rules_that_select_no_call_cost_nothing() {
    let told = predicted(&[], &tracepoints(), &[GETPID, OPENAT]);
    assert_eq!(told.percent(), 0.0);
}

#[test]
fn under_the_kernels_audit_every_call_pays_for_every_rule() {
    let few = [common::rule("-a always,exit -F arch=b64 -S openat -k k")];
    let many: Vec<_> = (0..100).map(|_| few[0].clone()).collect();
    let told = |rules: &[rules::Rule]| {
        let plan = Plan::for_kernel(rules, &tracepoints(), 1);
        predict(&plan, &calls(&[GETPID]), NULL_CALL_NS, true)
    };
    assert_eq!(ns(&told(&few), "getpid"), 204.0);
    assert_eq!(ns(&told(&many), "getpid"), 606.0);
}
