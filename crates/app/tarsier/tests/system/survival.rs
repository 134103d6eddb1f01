//! Capture that outlives the daemon: what is recorded without a daemon, and what stays behind.

use crate::daemon::{Daemon, Ended, Run, Setup};
use crate::log::{self, Event};
use crate::numbered::{self, Caller, RULE};
use crate::{machine, programs};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(600);

/// A directory on the BPF file system, which the daemon mounts if necessary.
pub(crate) fn pin_dir() -> PathBuf {
    PathBuf::from(format!("/sys/fs/bpf/tarsier-test-{}", std::process::id()))
}

pub(crate) fn pinned(setup: &Setup, rules: &str) -> Run {
    let run = setup.tarsier(rules).format("raw");
    let run = run.option("--no-kernel-records").ring_kib(65536);
    run.option("--pin-dir").option(pin_dir())
}

pub(crate) fn kill(daemon: Daemon) {
    daemon.signal(Signal::KILL);
    assert_eq!(daemon.wait().status.signal(), Some(9));
}

pub(crate) fn stop(setup: &Setup, options: &[&str]) -> Output {
    let mut command = Command::new(programs::tarsier());
    command.arg("stop").args(options).arg("--run-dir");
    let output = command.arg(setup.path("run")).output();
    output.expect("tarsier stop runs")
}

/// Waits until the log has more than `count` of the numbered calls. Returns the number.
pub(crate) fn more_than(daemon: &Daemon, count: u64) -> u64 {
    let end = Instant::now() + PATIENCE;
    loop {
        let recorded = daemon.status()["events_recorded"].as_u64();
        match recorded.expect("a number") {
            now if now > count => return now,
            now => assert!(Instant::now() < end, "{now} of more than {count} recorded"),
        }
    }
}

/// Content of the records about times without a daemon: milliseconds, and events lost.
fn alone(events: &[Event]) -> Vec<(i64, i64)> {
    let records = log::records(events, "DAEMON_RESUME");
    let of = records
        .iter()
        .filter(|record| record.field("op") == Some("capture-resumed"));
    of.map(|record| {
        let number = |name| record.number(name).expect("a number");
        (number("alone-ms"), number("lost"))
    })
    .collect()
}

fn ended_well(ended: &Ended) {
    assert!(ended.status.success(), "{}", ended.said);
    assert!(!pin_dir().exists());
}

#[test]
fn kill_9_under_load_loses_no_event_and_doubles_none() {
    machine::test("kill -9 of a daemon whose capture is pinned", |setup| {
        let kills = 5;
        let mut daemon = pinned(setup, RULE).start();
        let caller = Caller::start(true);
        for _ in 0..kills {
            more_than(&daemon, 0);
            kill(daemon);
            assert!(pin_dir().exists());
            daemon = pinned(setup, RULE).start();
        }
        more_than(&daemon, 0);
        let made = caller.stop();
        let ended = daemon.stop();
        ended_well(&ended);
        assert_eq!(numbered::count_once(&ended.log, made), made);
        let alone = alone(&log::events(&ended.log));
        assert_eq!(alone.len(), kills);
        assert!(alone.iter().all(|(_, lost)| *lost == 0), "{alone:?}");
    });
}

#[test]
fn kill_9_of_an_overrun_daemon_doubles_no_event_and_counts_every_lost_one() {
    machine::test("kill -9 of an overrun daemon", |setup| {
        let small = || pinned(setup, RULE).ring_kib(128);
        let mut daemon = small().start();
        let caller = Caller::start(false);
        for _ in 0..5 {
            more_than(&daemon, 0);
            kill(daemon);
            // Many times what the rings hold.
            caller.work(10);
            daemon = small().start();
        }
        let made = caller.stop();
        let ended = daemon.stop();
        ended_well(&ended);
        let recorded = numbered::count_once(&ended.log, made);
        let lines = ended.said.lines();
        let lost = lines.filter_map(|line| line.strip_prefix("tarsier: lost ")?.split_once(':'));
        let lost: u64 = lost.map(|(n, _)| n.parse::<u64>().expect("a number")).sum();
        assert_eq!(recorded + lost, made, "{recorded} recorded; {}", ended.said);
        assert!(
            lost > 0,
            "rings of 128 KiB hold what comes in a tenth of a second"
        );
        let told: i64 = alone(&log::events(&ended.log)).iter().map(|(_, n)| n).sum();
        let events = log::events(&ended.log);
        let said = log::records(&events, "DAEMON_ERR");
        let said = said
            .iter()
            .filter(|record| record.field("op") == Some("events-lost"));
        let said: i64 = said.filter_map(|record| record.number("lost")).sum();
        assert!(
            told > 0 && told + said <= lost as i64,
            "{told} and {said} told of {lost}"
        );
    });
}

#[test]
fn events_of_the_time_without_a_daemon_are_of_the_rules_that_were_in_force() {
    machine::test("rules while nobody is there", |setup| {
        let daemon = pinned(setup, &RULE.replace("numbered", "before")).start();
        kill(daemon);
        let made = {
            let caller = Caller::start(true);
            std::thread::yield_now();
            caller.stop()
        };
        let daemon = pinned(setup, &RULE.replace("numbered", "after")).start();
        let caller = Caller::start(true);
        more_than(&daemon, made);
        let later = caller.stop();
        let ended = daemon.stop();
        ended_well(&ended);
        let recorded = numbered::recorded(&ended.log);
        let of = |key: &str| recorded.keys().filter(|(_, of)| of == key).count() as u64;
        assert_eq!((of("before"), of("after")), (made, later));
    });
}

#[test]
fn stop_keep_leaves_capture_to_the_next_daemon_and_stop_ends_it() {
    machine::test("stop --keep", |setup| {
        let daemon = pinned(setup, RULE).start();
        let caller = Caller::start(true);
        more_than(&daemon, 0);
        let stopped = stop(setup, &["--keep"]);
        assert!(stopped.status.success(), "{stopped:?}");
        assert!(daemon.wait().status.success());
        assert!(pin_dir().exists());
        let again = stop(setup, &[]);
        assert_eq!(again.status.code(), Some(1), "{again:?}");
        let daemon = pinned(setup, RULE).start();
        more_than(&daemon, 0);
        let made = caller.stop();
        let stopped = stop(setup, &[]);
        assert!(stopped.status.success(), "{stopped:?}");
        let ended = daemon.wait();
        ended_well(&ended);
        assert_eq!(numbered::count_once(&ended.log, made), made);
        let events = log::events(&ended.log);
        assert_eq!(log::records(&events, "DAEMON_END").len(), 2);
        assert_eq!(alone(&events).len(), 1);
    });
}

#[test]
fn stop_keep_is_refused_where_nothing_is_pinned() {
    machine::test("stop --keep of a daemon without pins", |setup| {
        let daemon = setup.tarsier(RULE).start();
        let refused = stop(setup, &["--keep"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(
            !refused.status.success() && said.contains("pin_dir"),
            "{said}"
        );
        assert_eq!(daemon.status()["pin_dir"], serde_json::Value::Null);
        assert!(daemon.stop().status.success());
    });
}

#[test]
fn stop_disarm_removes_what_a_killed_daemon_left_and_restores_audit() {
    machine::test("stop --disarm", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        let daemon = run.option("--pin-dir").option(pin_dir()).start();
        kill(daemon);
        let before = machine::bpf_programs();
        assert!(pin_dir().join("handover").exists());
        let stopped = stop(setup, &["--disarm"]);
        assert!(stopped.status.success(), "{stopped:?}");
        assert!(!pin_dir().exists());
        machine::await_fewer_programs(&before);
        let again = stop(setup, &["--disarm"]);
        assert!(again.status.success(), "{again:?}");
    });
}

/// Makes the pinned capture one of other programs: changes their hash in the page.
pub(crate) fn make_foreign(dir: &Path) {
    let page = MapHandle::from_pinned_path(dir.join("handover")).expect("the page");
    let key = 0u32.to_ne_bytes();
    let value = page.lookup(&key, MapFlags::ANY).expect("a value");
    let mut value = value.expect("a value");
    // The first byte of the hash of the programs.
    value[8] ^= 1;
    page.update(&key, &value, MapFlags::ANY).expect("an update");
}

#[test]
fn a_capture_of_another_version_is_read_to_its_end_and_replaced() {
    machine::test("another version", |setup| {
        let daemon = pinned(setup, &RULE.replace("numbered", "before")).start();
        let caller = Caller::start(true);
        more_than(&daemon, 0);
        kill(daemon);
        let made = caller.stop();
        make_foreign(&pin_dir());
        let daemon = pinned(setup, &RULE.replace("numbered", "after")).start();
        let caller = Caller::start(true);
        more_than(&daemon, made / 2);
        let later = caller.stop();
        let ended = daemon.stop();
        ended_well(&ended);
        let recorded = numbered::recorded(&ended.log);
        let count = |key: &str| {
            let of = recorded.iter().filter(|((_, of), _)| of == key);
            of.map(|(_, count)| u64::from(*count)).sum::<u64>()
        };
        assert_eq!((count("before"), count("after")), (made, later));
        assert_eq!(alone(&log::events(&ended.log)).len(), 1);
    });
}

#[test]
fn a_daemon_without_pins_ends_the_capture_that_its_predecessor_left() {
    machine::test("from pinned to not pinned", |setup| {
        let daemon = pinned(setup, RULE).start();
        kill(daemon);
        let made = Caller::start(true).stop();
        let run = setup.tarsier(RULE).format("raw");
        let daemon = run.option("--no-kernel-records").start();
        assert!(!pin_dir().exists());
        let ended = daemon.stop();
        ended_well(&ended);
        assert_eq!(numbered::count_once(&ended.log, made), made);
    });
}

#[test]
fn what_was_pinned_in_part_is_removed_and_made_anew() {
    machine::test("half of a capture", |setup| {
        let daemon = pinned(setup, RULE).start();
        kill(daemon);
        std::fs::remove_file(pin_dir().join("handover")).expect("the pin goes");
        let before = machine::bpf_programs();
        let daemon = pinned(setup, RULE).start();
        machine::await_fewer_programs(&before);
        let made = Caller::start(true).stop();
        more_than(&daemon, made - 1);
        let ended = daemon.stop();
        ended_well(&ended);
        assert_eq!(numbered::count_once(&ended.log, made), made);
        assert!(alone(&log::events(&ended.log)).is_empty());
    });
}

#[test]
fn a_pin_dir_is_one_daemon_s_and_on_a_bpf_file_system() {
    machine::test("pin_dir", |setup| {
        let daemon = pinned(setup, RULE).start();
        let mode = std::fs::metadata(pin_dir()).expect("the directory");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&mode) & 0o7777, 0o700);
        assert_eq!(daemon.status()["pin_dir"], pin_dir().display().to_string());
        let other = pinned(setup, RULE).run_dir(setup.path("other"));
        let refused = other.log(setup.path("other.log")).finish();
        assert!(
            refused.said.contains("another tarsier has it"),
            "{}",
            refused.said
        );
        assert!(!refused.status.success());
        ended_well(&daemon.stop());
        let run = setup
            .tarsier(RULE)
            .option("--pin-dir")
            .option(setup.path("pins"));
        let refused = run.finish();
        let said = "is not on a BPF file system: mount one there";
        assert!(refused.said.contains(said), "{}", refused.said);
    });
}
