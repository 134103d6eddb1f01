//! Events that come faster than they are read.

use capture::{EbpfEngine, Options, Overload};
use plan::{Capabilities, Identities, Plan};
use rules::{Command, Source, StaticHost};
use std::process::Child;

const HOST: abi::Arch = abi::Arch::X86_64;
/// First argument of a marked call; getppid(2) has no arguments, so it is free.
const MARK: u64 = 0x7a52;
const QUIET_UID: u32 = 61234;
/// Index of `over_share` among the causes.
const OVER_SHARE: usize = event::wire::TARSIER_LOSS_OVER_SHARE as usize;

fn engine(ring_bytes: usize) -> EbpfEngine {
    let line = format!("-a always,exit -F arch=b64 -S getppid -F a0={MARK}");
    let rule = match rules::parse_line(&line, &Source::default(), &StaticHost::new(HOST)) {
        Ok(Some(Command::Append(rule))) => rule,
        other => panic!("{line}: {other:?}"),
    };
    let capabilities = Capabilities::assumed(HOST);
    let plan = Plan::new(&[rule], &capabilities, &Identities::default(), 1).expect("it fits");
    let options = Options::with_ring_bytes(ring_bytes);
    EbpfEngine::start(&plan, &options, std::process::id()).expect("it starts")
}

/// A process of user `uid` that makes marked calls on the first CPU and ends.
fn caller(calls: u64, uid: u32) -> Child {
    caller_on(0, calls, uid)
}

/// Starts a process as [`caller`] does, on another CPU.
fn caller_on(cpu: usize, calls: u64, uid: u32) -> Child {
    std::process::Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", "marked_calls", "--nocapture"])
        .env("TARSIER_TEST_CPU", cpu.to_string())
        .env("TARSIER_TEST_CALLS", calls.to_string())
        .env("TARSIER_TEST_UID", uid.to_string())
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("this test runs again")
}

/// The body of [`caller`]. Without its variables in the environment this test does nothing.
#[test]
fn marked_calls() {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let (Some(calls), Some(uid), Some(cpu)) = (
        number("TARSIER_TEST_CALLS"),
        number("TARSIER_TEST_UID"),
        number("TARSIER_TEST_CPU"),
    ) else {
        return;
    };
    let mut only = rustix::thread::CpuSet::new();
    only.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &only).expect("the CPU is there");
    // SAFETY: neither call takes a pointer; getppid(2) looks at none of its arguments.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_setresuid, uid, uid, uid), 0);
        for _ in 0..calls {
            libc::syscall(libc::SYS_getppid, MARK, 0, 0, 0);
        }
    }
}

fn events_of(engine: &mut EbpfEngine, mut take: impl FnMut(u32)) {
    engine.drain(u64::MAX, |_, frame| {
        let event = event::wire::Event::parse(frame).expect("a whole event");
        take(event.header().uid);
        true
    });
}

#[test]
fn calls_wait_for_a_reader_that_is_slower_and_none_is_lost() {
    const CALLS: u64 = 20_000;
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    // Space for a sixth of the events. Waits get longer as the ring fills: half a second in total before it is
    // full, so that other tasks on the machine may stop this test for a while.
    let mut engine = engine(2 << 20);
    let mut child = caller(CALLS, 0);
    let (mut seen, mut waits) = (0, 0);
    loop {
        let ended = child.try_wait().expect("our child").is_some();
        // Always late: reads only when calls have waited for it again.
        let waited = waits < engine.counters().waits;
        if waited || ended {
            events_of(&mut engine, |_| seen += 1);
            waits = engine.counters().waits;
        }
        if ended {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().expect("it has ended").success());
    let counters = engine.counters();
    assert_eq!((seen, counters.lost_total()), (CALLS, 0), "{counters:?}");
    assert!(counters.waits > 0, "{counters:?}");
}

#[test]
fn a_reader_that_reads_nothing_is_given_up_and_every_loss_counted() {
    const CALLS: u64 = 50_000;
    // A second in waits of a millisecond, plus the shorter waits before.
    const WAITS_MAX: u64 = 3_000;
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut engine = engine(128 << 10);
    assert!(caller(CALLS, 0).wait().expect("it ends").success());
    let counters = engine.counters();
    let mut seen = 0;
    events_of(&mut engine, |_| seen += 1);
    assert_eq!(seen + counters.lost_total(), CALLS, "{counters:?}");
    assert!((1..WAITS_MAX).contains(&counters.waits), "{counters:?}");
    let (rules, _) = engine.rule_counts(1).expect("counts");
    assert_eq!((rules[0].selected, rules[0].lost), (seen, CALLS - seen));
}

#[test]
fn a_reader_that_is_busy_with_the_ring_of_another_cpu_is_waited_for() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("skipped: this takes two CPUs");
        return;
    }
    let mut engine = engine(128 << 10);
    assert!(caller_on(1, 20, 0).wait().expect("it ends").success());
    // Until no call waits for the reader any more.
    assert!(caller(10_000, 0).wait().expect("it ends").success());
    let given_up = engine.counters();
    assert!(given_up.lost_total() > 0, "{given_up:?}");
    assert!(caller(1, 0).wait().expect("it ends").success());
    assert_eq!(engine.counters().waits, given_up.waits);
    let mut from = None;
    engine.drain(u64::MAX, |cpu, _| {
        from = Some(cpu);
        false
    });
    assert_eq!(from, Some(1));
    assert!(caller(1, 0).wait().expect("it ends").success());
    assert!(engine.counters().waits > given_up.waits);
}

#[test]
fn a_user_with_few_events_finds_room_where_another_drops_many() {
    const QUIET: u64 = 20;
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut engine = engine(256 << 10);
    engine.set_overload(Overload::Drop);
    assert!(caller(5_000, 0).wait().expect("it ends").success());
    assert!(caller(QUIET, QUIET_UID).wait().expect("it ends").success());
    let counters = engine.counters();
    let (mut loud, mut quiet) = (0, 0);
    events_of(&mut engine, |uid| match uid {
        QUIET_UID => quiet += 1,
        _ => loud += 1,
    });
    assert_eq!(quiet, QUIET);
    assert_eq!(loud + counters.lost_total(), 5_000);
    assert_eq!(counters.lost[0][OVER_SHARE], counters.lost_total());
    assert_eq!(counters.waits, 0);
}
