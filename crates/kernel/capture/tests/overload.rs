//! Events that come faster than they are read.

use capture::{CaptureOptions, EbpfEngine, Overload};
use plan::{Capabilities, Identities, Plan};
use rules::{Command, Source, StaticHost};
use std::collections::BTreeMap;
use std::process::Child;

const HOST: abi::Arch = abi::Arch::X86_64;
/// First argument of a marked call; getppid(2) has no arguments, so it is free.
const MARK: u64 = 0x7a52;
/// The same for a second rule.
const SECOND_MARK: u64 = 0x7a53;
const FLOODING_UID: u32 = 61233;
const QUIET_UID: u32 = 61234;
/// Index of `over_share` among the causes.
const OVER_SHARE: usize = record::wire::TARSIER_LOSS_OVER_SHARE as usize;

fn engine(ring_bytes: usize) -> EbpfEngine {
    let rule = |mark: u64| {
        let line = format!("-a always,exit -F arch=b64 -S getppid -F a0={mark}");
        match rules::parse_line(&line, &Source::default(), &StaticHost::new(HOST)) {
            Ok(Some(Command::Append(rule))) => rule,
            other => panic!("{line}: {other:?}"),
        }
    };
    let rules = [rule(MARK), rule(SECOND_MARK)];
    let capabilities = Capabilities::assumed(HOST);
    let plan = Plan::new(&rules, &capabilities, &Identities::default(), 1).expect("it fits");
    let options = CaptureOptions::with_ring_bytes(ring_bytes);
    EbpfEngine::start(&plan, &options, std::process::id()).expect("it starts")
}

/// A process of user `uid` that makes marked calls on the first CPU and ends.
fn caller(calls: u64, uid: u32) -> Child {
    caller_on(0, calls, uid)
}

/// Starts a process as [`caller`] does, on another CPU.
fn caller_on(cpu: usize, calls: u64, uid: u32) -> Child {
    marked_caller_on(cpu, MARK, calls, uid)
}

/// Starts a process as [`caller_on`] does, whose calls have this mark.
fn marked_caller_on(cpu: usize, mark: u64, calls: u64, uid: u32) -> Child {
    std::process::Command::new(std::env::current_exe().expect("our own path"))
        .args(["--exact", "marked_calls", "--nocapture"])
        .env("TARSIER_TEST_CPU", cpu.to_string())
        .env("TARSIER_TEST_MARK", mark.to_string())
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
    let (Some(mark), Some(calls), Some(uid), Some(cpu)) = (
        number("TARSIER_TEST_MARK"),
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
            libc::syscall(libc::SYS_getppid, mark, 0, 0, 0);
        }
    }
}

fn events_of(engine: &mut EbpfEngine, mut take: impl FnMut(u32)) {
    engine.drain(u64::MAX, |_, frame| {
        let event = record::wire::Event::parse(frame).expect("a whole event");
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

/// Makes `calls` marked calls in the first place, and waits for the process.
fn make(mark: u64, calls: u64, uid: u32) {
    let mut child = marked_caller_on(0, mark, calls, uid);
    assert!(child.wait().expect("it ends").success());
}

/// Number of events in the rings, by uid.
fn events_by_uid(engine: &mut EbpfEngine) -> BTreeMap<u32, u64> {
    let mut seen = BTreeMap::new();
    events_of(engine, |uid| *seen.entry(uid).or_default() += 1);
    seen
}

#[test]
fn only_who_has_used_up_his_share_waits() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut engine = engine(2 << 20);
    let mut made = 0;
    while engine.counters().waits == 0 {
        make(MARK, 200, FLOODING_UID);
        made += 200;
        assert!(made < 20_000);
    }
    let flooded = engine.counters().waits;
    make(MARK, 20, QUIET_UID);
    assert_eq!(engine.counters().waits, flooded);
    make(MARK, 20, FLOODING_UID);
    assert_eq!(engine.counters().waits, flooded + 20);
    let seen = events_by_uid(&mut engine);
    assert_eq!((seen[&FLOODING_UID], seen[&QUIET_UID]), (made + 20, 20));
}

#[test]
fn urgent_events_have_room_when_others_are_dropped() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut engine = engine(2 << 20);
    engine.set_overload(Overload::Drop);
    engine.set_urgent(&[1]);
    make(MARK, 20_000, FLOODING_UID);
    // Those of the flooder himself; then he floods the reserve, of which others have their part.
    make(SECOND_MARK, 20, FLOODING_UID);
    let counts = |engine: &EbpfEngine| engine.rule_counts(2).expect("counts").0;
    assert_eq!(
        (counts(&engine)[1].selected, counts(&engine)[1].lost),
        (20, 0)
    );
    make(SECOND_MARK, 20_000, FLOODING_UID);
    let flooded = counts(&engine)[1].lost;
    assert!(flooded > 0);
    make(SECOND_MARK, 20, QUIET_UID);
    assert_eq!(counts(&engine)[1].lost, flooded);
    make(MARK, 20, QUIET_UID);
    let seen = events_by_uid(&mut engine);
    assert_eq!(seen[&QUIET_UID], 40, "{:?}", engine.counters());
}

#[test]
fn a_budget_is_what_is_recorded_and_the_rest_is_counted() {
    const CALLS: u64 = 3_000;
    const RATE: u32 = 100;
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let mut engine = engine(4 << 20);
    let budgets = BTreeMap::from([(0, RATE)]);
    engine.set_budgets(&budgets).expect("the kernel takes them");
    let begin = std::time::Instant::now();
    make(MARK, CALLS, 0);
    let seconds = begin.elapsed().as_secs() + 2;
    make(SECOND_MARK, CALLS, 0);
    let (rules, _) = engine.rule_counts(2).expect("counts");
    assert_eq!(rules[0].selected + rules[0].suppressed, CALLS);
    let at_most = u64::from(RATE) * seconds;
    assert!(
        (u64::from(RATE)..=at_most).contains(&rules[0].selected),
        "{rules:?}"
    );
    assert_eq!((rules[1].selected, rules[1].suppressed), (CALLS, 0));
    assert_eq!(engine.counters().suppressed, rules[0].suppressed);
    assert_eq!(events_by_uid(&mut engine)[&0], rules[0].selected + CALLS);
    // Without budgets, all is recorded again.
    engine.set_budgets(&BTreeMap::new()).expect("none");
    make(MARK, CALLS, 0);
    assert_eq!(
        engine.rule_counts(1).expect("counts").0[0].suppressed,
        rules[0].suppressed
    );
}

/// Starts a process in a user namespace made by user `owner`, with `uids` uids. It makes `calls` marked calls on the first
/// CPU as each of them, and ends. `None` if the system does not let this user make one.
fn caller_in_namespace(owner: u32, uids: u32, calls: u64) -> Option<Child> {
    const FIRST_UID: u32 = 3_000_000;
    let (ready_read, ready_write) = rustix::pipe::pipe().expect("a pipe");
    let (go_read, go_write) = rustix::pipe::pipe().expect("a pipe");
    let mut command = std::process::Command::new("/bin/true");
    let body = move || {
        let mut only = rustix::thread::CpuSet::new();
        only.set(0);
        rustix::thread::sched_setaffinity(None, &only)?;
        // SAFETY: these calls take no pointers, and the process has one thread.
        unsafe {
            let is_made = libc::syscall(libc::SYS_setresuid, -1, owner, -1) == 0
                && libc::unshare(libc::CLONE_NEWUSER) == 0;
            if !is_made {
                return Err(std::io::Error::last_os_error());
            }
        }
        rustix::io::write(&ready_write, &std::process::id().to_ne_bytes())?;
        rustix::io::read(&go_read, &mut [0; 1])?;
        // SAFETY: as above; the process ends without a destructor.
        unsafe {
            for uid in 1..=uids {
                if libc::syscall(libc::SYS_setresuid, uid, 0, 0) != 0 {
                    return Err(std::io::Error::last_os_error());
                }
                for _ in 0..calls {
                    libc::syscall(libc::SYS_getppid, MARK, 0, 0, 0);
                }
            }
            libc::_exit(0)
        }
    };
    // SAFETY: the closure makes system calls only.
    unsafe { std::os::unix::process::CommandExt::pre_exec(&mut command, body) };
    let mapper = std::thread::spawn(move || {
        let mut pid = [0; 4];
        if rustix::io::read(&ready_read, &mut pid) != Ok(pid.len()) {
            return;
        }
        let path = format!("/proc/{}/uid_map", u32::from_ne_bytes(pid));
        let map = format!("0 {FIRST_UID} {}\n", uids + 1);
        std::fs::write(path, map).expect("root may map uids");
        rustix::io::write(&go_write, &[1]).expect("the child waits");
    });
    let child = command.spawn();
    // The child's ends, so that the thread sees that it has failed.
    drop(command);
    mapper.join().expect("it maps");
    match child {
        Ok(child) => Some(child),
        Err(error) => {
            eprintln!("skipped: uid {owner} cannot make a user namespace: {error}");
            None
        }
    }
}

#[test]
fn all_uids_of_a_user_namespace_have_one_share() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    for owner in [0, FLOODING_UID] {
        let mut engine = engine(2 << 20);
        engine.set_overload(Overload::Drop);
        let Some(mut child) = caller_in_namespace(owner, 60, 500) else {
            continue;
        };
        assert!(child.wait().expect("it ends").success());
        // If each had its own, there would be no room left.
        make(MARK, 100, QUIET_UID);
        let seen = events_by_uid(&mut engine);
        assert_eq!(
            seen[&QUIET_UID],
            100,
            "owner {owner}: {:?}",
            engine.counters()
        );
        let of_owner = engine
            .counters()
            .lost
            .iter()
            .map(|lost| lost[OVER_SHARE])
            .sum::<u64>();
        assert!(of_owner > 20_000, "owner {owner}: {of_owner}");
    }
}
