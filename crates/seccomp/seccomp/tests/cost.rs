//! The longest path through a filter is an upper bound, and that of known filters is known.

mod support;

use seccomp::{CacheTable, ConstantAllow, CostModel};
use support::{data, random_call, random_filter, Rng};

#[test]
fn no_call_runs_more_instructions_than_the_worst_path() {
    let mut rng = Rng(5);
    for round in 0..300 {
        let filter = random_filter(&mut rng, 40, round % 2 == 0);
        for _ in 0..100 {
            let data = random_call(&mut rng, std::slice::from_ref(&filter));
            let worst = seccomp::filter_worst_path(&filter, data.arch, data.nr);
            assert!(filter.run(&data).insns <= worst, "{data:x?} {filter:x?}");
        }
    }
}

#[test]
fn the_worst_path_of_the_hardened_unit_is_what_its_filters_add_up_to() {
    let chain = data("systemd-hardened");
    let table = CacheTable::newest(abi::Arch::X86_64, true);
    let allow = ConstantAllow::of(&chain, &table);
    let openat = seccomp::worst_path(&chain, 0xc000_003e, 257);
    let model = CostModel::default();
    let expected = 34.0 + 33.0 * 15.0 + 0.13 * openat as f64;
    assert!((300..500).contains(&openat), "{openat}");
    assert!((model.worst_ns(&chain, &allow, 257) - expected).abs() < 1e-9);
    assert!((model.worst_ns(&chain, &allow, 39) - 18.0).abs() < 1e-9);
}

#[test]
fn measuring_gives_costs_and_leaves_this_process_without_filter() {
    let model = CostModel::measure().expect("a machine with filters");
    let costs = [
        model.bitmap_ns,
        model.first_filter_ns,
        model.further_filter_ns,
        model.insn_ns,
    ];
    println!("{model:?}");
    assert!(costs.iter().all(|ns| ns.is_finite() && *ns >= 0.0));
    let status = std::fs::read_to_string("/proc/thread-self/status").expect("own status");
    assert!(
        status.contains("Seccomp:\t0\n") && status.contains("NoNewPrivs:\t0\n"),
        "{status}"
    );
}
