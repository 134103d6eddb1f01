//! Many reloads and many kills of a daemon whose capture is pinned, while numbered calls are made:
//! nothing is lost or recorded twice, and nothing grows.
//!
//! `TARSIER_ENDURANCE_KILLS` and `TARSIER_ENDURANCE_RELOADS` set the numbers.

use crate::daemon::{Daemon, Setup};
use crate::log;
use crate::machine;
use crate::numbered::{self, Caller, RULE};
use crate::survival::{kill, pin_dir, pinned};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// This rule needs other hooks than the numbered calls do.
const OTHER: &str = "-a always,exit -F arch=b64 -S rmdir -F gid=61242 -k other\n";
/// Kernel memory that other causes may use.
const MEMORY_KIB_MAX: i64 = 16 * 1024;
/// Kernel memory that they may use for each kill, since they use more in a longer time: in one run of 26 minutes, 33 MiB. The smallest
/// ring alone, if it were left, would be more.
const MEMORY_KIB_PER_KILL: i64 = 32;
const PATIENCE: Duration = Duration::from_secs(600);

fn number_in(variable: &str, default: u64) -> u64 {
    let text = std::env::var(variable).ok();
    text.map_or(default, |text| text.parse().expect("a number"))
}

/// Number of programs, maps, links and pins.
fn objects() -> [usize; 4] {
    [
        machine::bpf_programs().len(),
        machine::bpf_maps().len(),
        machine::bpf_links().len(),
        std::fs::read_dir(pin_dir()).expect("pins").count(),
    ]
}

/// Kernel memory of the kinds that BPF objects are made of, in KiB.
fn kernel_memory_kib() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").expect("meminfo");
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.split_whitespace().nth(1));
        value.expect("a value").parse::<i64>().expect("KiB")
    };
    of("Percpu:") + of("VmallocUsed:") + of("SUnreclaim:")
}

/// Memory of each of the kernel's caches, in KiB.
fn caches_kib() -> BTreeMap<String, i64> {
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    let cache = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse::<i64>().ok();
        let name = (*words.first()?).to_owned();
        Some((name, number(2)? * number(3)? / 1024))
    };
    text.lines().filter_map(cache).collect()
}

/// Prints the caches that have grown by more than a MiB.
fn show_grown(before: &BTreeMap<String, i64>) {
    for (name, kib) in caches_kib() {
        let grown = kib - before.get(&name).copied().unwrap_or(0);
        if grown > 1024 {
            println!("cache {name}: {grown} KiB more");
        }
    }
}

/// Lines of the kernel's log that report problems.
fn complaints() -> BTreeSet<String> {
    let mut buffer = vec![0u8; 1 << 20];
    const READ_ALL: libc::c_int = 3;
    // SAFETY: the kernel writes at most the length of the buffer.
    let len = unsafe { libc::klogctl(READ_ALL, buffer.as_mut_ptr().cast(), buffer.len() as _) };
    buffer.truncate(usize::try_from(len).expect("the kernel's log"));
    let text = String::from_utf8_lossy(&buffer).into_owned();
    let marks = [
        "WARNING:",
        "BUG:",
        "Oops",
        "Call Trace",
        "rcu: INFO",
        "hung task",
    ];
    let lines = text.lines();
    let found = lines.filter(|line| marks.iter().any(|mark| line.contains(mark)));
    found.map(str::to_owned).collect()
}

/// Exchanges the rules and waits until the new ones are in force. Returns the number of their
/// generation.
fn reload(setup: &Setup, daemon: &Daemon, number: u64) -> u64 {
    let rules = match number % 2 {
        0 => RULE.to_owned(),
        _ => format!("{RULE}{OTHER}"),
    };
    setup.write("test.rules", &rules);
    daemon.reload()
}

#[test]
fn after_many_reloads_and_kills_every_call_is_recorded_once_and_nothing_has_grown() {
    machine::test("endurance", |setup| {
        let kills = number_in("TARSIER_ENDURANCE_KILLS", 4);
        let reloads = number_in("TARSIER_ENDURANCE_RELOADS", 20);
        let complaints_before = complaints();
        let mut daemon = pinned(setup, RULE).start();
        let caller = Caller::start(true);
        let mut number = daemon.generation();
        let mut first = None;
        for round in 0..kills {
            for _ in 0..(reloads / kills.max(1)) {
                number = reload(setup, &daemon, number);
            }
            kill(daemon);
            daemon = pinned(setup, RULE).start();
            number = daemon.generation();
            if round == 0 {
                first = Some((objects(), kernel_memory_kib(), caches_kib()));
            }
        }
        let (objects_before, memory_before, caches_before) = first.expect("one round");
        let end = Instant::now() + PATIENCE;
        // The kernel frees removed objects some time later.
        while objects()
            .iter()
            .zip(objects_before)
            .any(|(now, before)| *now > before + 8)
        {
            assert!(
                Instant::now() < end,
                "{:?}, were {objects_before:?}",
                objects()
            );
        }
        let grown = kernel_memory_kib() - memory_before;
        println!(
            "{kills} kills, {reloads} reloads: objects {:?}, were {objects_before:?}; {grown} KiB",
            objects()
        );
        show_grown(&caches_before);
        let made = caller.stop();
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let recorded = numbered::count_once(&ended.log, made);
        println!("{made} calls made, {recorded} recorded");
        let events = log::events(&ended.log);
        let lost: i64 = log::records(&events, "DAEMON_RESUME")
            .iter()
            .filter_map(|record| record.number("lost"))
            .sum();
        assert_eq!((recorded, lost), (made, 0), "{}", ended.said);
        let grown_max = MEMORY_KIB_MAX + MEMORY_KIB_PER_KILL * kills as i64;
        assert!(grown < grown_max, "{grown} KiB of kernel memory");
        let new: Vec<_> = complaints()
            .difference(&complaints_before)
            .cloned()
            .collect();
        assert!(new.is_empty(), "the kernel's log: {new:?}");
    });
}
