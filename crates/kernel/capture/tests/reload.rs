//! Replacing the rules of a running engine: atomic, fast, and within its memory limits.

use capture::{map_ids, CaptureOptions, EbpfEngine};
use libbpf_rs::MapHandle;
use plan::{Capabilities, Identities, Plan};
use rules::{Command, Rule, Source, StaticHost};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const HOST: abi::Arch = abi::Arch::X86_64;
const RELOADS: usize = 1000;
/// First argument of a marked call; getppid(2) has no arguments, so it is free.
const MARK: u64 = 0x7a51;

fn plan(lines: impl IntoIterator<Item = String>, generation: u64) -> Plan {
    let host = StaticHost::new(HOST);
    let rules: Vec<Rule> = lines
        .into_iter()
        .map(
            |line| match rules::parse_line(&line, &Source::default(), &host) {
                Ok(Some(Command::Append(rule))) => rule,
                other => panic!("{line}: {other:?}"),
            },
        )
        .collect();
    let capabilities = Capabilities::assumed(HOST);
    Plan::new(&rules, &capabilities, &Identities::default(), generation).expect("the rules fit")
}

/// Two rule sets that select the marked calls with different rules: position 0 of the first set, and position 2 of
/// the second.
fn rule_sets() -> [Plan; 2] {
    let marked = |key| format!("-a always,exit -F arch=b64 -S getppid -F a0={MARK} -k {key}");
    let other =
        |i: u32| format!("-a always,exit -F arch=b64 -S getppid -F a0={MARK} -F a1={i} -k x");
    [
        plan([marked("one"), other(1), other(2)], 1),
        plan([other(1), other(2), marked("two")], 2),
    ]
}

/// A process that makes marked calls until its input ends, and then prints their number.
fn workload() -> Child {
    std::process::Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", "marked_calls", "--nocapture"])
        .env("TARSIER_TEST_WORKLOAD", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test runs again")
}

/// The body of [`workload`]. Without its variable in the environment this test does nothing.
#[test]
fn marked_calls() {
    if std::env::var_os("TARSIER_TEST_WORKLOAD").is_none() {
        return;
    }
    let ended = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let reader = ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        reader.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    println!();
    println!("ready");
    std::io::stdout().flush().expect("the parent reads");
    let mut made = 0u64;
    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
        for _ in 0..20 {
            // SAFETY: getppid(2) looks at none of its arguments.
            unsafe { libc::syscall(libc::SYS_getppid, MARK, 0, 0, 0) };
            made += 1;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    println!("made {made}");
}

fn wait_for(lines: &mut impl Iterator<Item = std::io::Result<String>>, word: &str) -> String {
    lines
        .map_while(Result::ok)
        .find(|line| line.starts_with(word))
        .unwrap_or_else(|| panic!("the workload ended without {word}"))
}

/// Number of selected events, by rule set and by the rule that selected them.
#[derive(Default)]
struct Seen {
    whole: [u64; 2],
    mixed: u64,
}

impl Seen {
    fn take(&mut self, frame: &[u8]) {
        let event = record::wire::Event::parse(frame).expect("a whole event");
        let header = event.header();
        match (header.generation, header.rule) {
            (1, 0) => self.whole[0] += 1,
            (2, 2) => self.whole[1] += 1,
            _ => self.mixed += 1,
        }
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn a_thousand_reloads_lose_no_event_and_mix_no_rule_sets() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let sets = rule_sets();
    let options = CaptureOptions::with_ring_bytes(64 << 20);
    let mut engine = EbpfEngine::start(&sets[0], &options, std::process::id()).expect("it starts");
    let mut seen = Seen::default();
    let mut children: Vec<Child> = (0..2).map(|_| workload()).collect();
    let mut outputs: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stdout.take().expect("a pipe")).lines())
        .collect();
    for output in &mut outputs {
        wait_for(output, "ready");
    }
    let start = Instant::now();
    for reload in 1..=RELOADS {
        engine
            .replace(&sets[reload % 2])
            .expect("the rules are replaced");
        engine.drain(now_ns(), |_, frame| {
            seen.take(frame);
            true
        });
    }
    let took = start.elapsed();
    children
        .iter_mut()
        .for_each(|child| drop(child.stdin.take()));
    let made: u64 = outputs
        .iter_mut()
        .map(|output| wait_for(output, "made "))
        .map(|line| line["made ".len()..].parse::<u64>().expect("a number"))
        .sum();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    engine.stream().drain(u64::MAX, |_, frame| {
        seen.take(frame);
        true
    });
    println!(
        "{RELOADS} reloads in {took:?} under {made} calls: {:?}",
        seen.whole
    );
    let lost = engine.counters().lost_total();
    assert_eq!(lost, 0);
    assert_eq!(seen.mixed, 0, "events of neither rule set");
    assert_eq!(seen.whole[0] + seen.whole[1], made);
    assert!(
        seen.whole.iter().all(|&n| n > 0),
        "both sets were in force: {:?}",
        seen.whole
    );
}

/// Memory of these BPF maps in bytes. Rings are left out, since their size does not depend on rules. Maps without a
/// descriptor, such as tables in force, are included.
fn map_bytes<'a>(ids: impl Iterator<Item = &'a u32>) -> u64 {
    const BPF_MAP_TYPE_RINGBUF: u64 = 27;
    let sizes = ids.filter_map(|&id| {
        let handle = MapHandle::from_map_id(id).ok()?;
        let path = format!("/proc/self/fdinfo/{}", handle.as_fd().as_raw_fd());
        let info = std::fs::read_to_string(path).ok()?;
        let number = |name: &str| -> Option<u64> {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        let ring = number("map_type:")? == BPF_MAP_TYPE_RINGBUF;
        (!ring).then_some(number("memlock:")?)
    });
    sizes.sum()
}

#[test]
fn two_thousand_rules_fit_sixteen_mebibytes() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let rule = |i: u32| {
        format!("-a always,exit -F arch=b64 -S openat,unlinkat -F uid={i} -F exit=-13 -k k{i}")
    };
    let plan = plan((0..2000).map(|i| rule(4_000_000 + i)), 1);
    let before = map_ids();
    let engine = EbpfEngine::start(&plan, &CaptureOptions::for_this_host(), std::process::id());
    let engine = engine.expect("it starts");
    let bytes = map_bytes(map_ids().difference(&before));
    drop(engine);
    assert!((2 << 20..16 << 20).contains(&bytes), "{bytes} bytes");
}

/// The BPF programs that this process has descriptors of, with their numbers of verified instructions.
fn own_programs() -> BTreeMap<String, u32> {
    let descriptors = std::fs::read_dir("/proc/self/fdinfo").expect("it is there");
    let infos = descriptors.filter_map(|found| std::fs::read_to_string(found.ok()?.path()).ok());
    let id = |info: String| {
        let id = info.lines().find_map(|line| line.strip_prefix("prog_id:"));
        id.and_then(|id| id.trim().parse().ok())
    };
    let own: BTreeSet<u32> = infos.filter_map(id).collect();
    let all = libbpf_rs::query::ProgInfoIter::default();
    let own = all.filter(|program| own.contains(&program.id));
    own.map(|program| {
        let name = program.name.to_string_lossy().into_owned();
        (name, program.verified_insns)
    })
    .collect()
}

#[test]
fn a_later_plan_gets_programs_that_the_first_did_not_need_and_each_is_verified_soon() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let plan =
        |lines: &[&str], generation| plan(lines.iter().map(|line| (*line).to_owned()), generation);
    let few = plan(&["-a always,exit -F arch=b64 -S getppid -k k"], 1);
    let native = "-a always,exit -F arch=b64 -S execve,exit_group,clone,vfork -k k";
    let more = plan(&[native, "-a never,task -F uid=4000000"], 2);
    let compat = "-a always,exit -F arch=b32 -S mkdir -F uid=4000000 -k k";
    let both = plan(&[native, compat], 3);
    let engine = EbpfEngine::start(&few, &CaptureOptions::for_this_host(), std::process::id());
    let mut engine = engine.expect("it starts");
    let first = own_programs();
    let late = [
        "exec_entry",
        "exec_done",
        "exit_call",
        "task_made",
        "fork_done",
    ];
    assert!(first.contains_key("sys_exit_one"), "{first:?}");
    assert!(
        !late.iter().any(|name| first.contains_key(*name)),
        "{first:?}"
    );
    engine.replace(&more).expect("the rules are replaced");
    engine.replace(&both).expect("the rules are replaced again");
    let all = own_programs();
    for name in late.iter().chain(&["sys_exit", "sys_exit_one"]) {
        let verified = all[*name];
        println!("{name}: {verified} instructions verified");
        assert!(verified < 64_000, "{name}");
    }
    let status = std::process::Command::new("true").status();
    assert!(status.expect("it runs").success());
    let mut calls = Vec::new();
    engine.stream().drain(u64::MAX, |_, frame| {
        // Frames of other kinds tell of processes.
        if let Ok(event) = record::wire::Event::parse(frame) {
            calls.push((event.header().generation, i64::from(event.header().nr)));
        }
        true
    });
    for nr in [libc::SYS_execve, libc::SYS_exit_group] {
        assert!(calls.contains(&(3, nr)), "{nr}: {calls:?}");
    }
}

#[test]
fn programs_that_only_later_rules_need_are_loaded_from_wherever_they_are_unpacked() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let options = CaptureOptions::with_ring_bytes(1 << 20);
    let few = plan(
        [format!(
            "-a always,exit -F arch=b64 -S getppid -F a0={MARK}"
        )],
        1,
    );
    let mut engine = EbpfEngine::start(&few, &options, std::process::id()).expect("it starts");

    // What the programs were unpacked to is free now, and something else takes its place.
    let elsewhere = [(); 3].map(|()| {
        bpf::forget_tarsier();
        bpf::tarsier()
    });
    bpf::forget_tarsier();

    let watch = "-w /nonexistent-of-this-test -p wa".to_owned();
    let uring = "-a always,io_uring -S openat -F uid=4000001".to_owned();
    engine
        .replace(&plan([watch, uring], 2))
        .expect("the programs of the watch are loaded");
    drop(elsewhere);
}
