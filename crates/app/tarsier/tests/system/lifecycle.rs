//! Start, end, and what happens between: signals, the command, a killed daemon.

use crate::calls::{call, Caller};
use crate::daemon::{Ended, Setup};
use crate::{log, machine};
use netlink::AuditSocket;
use rustix::process::Signal;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61237 -k mine\n";

fn getppid_pid() -> u32 {
    Caller::gid(61237).make(&[call!(getppid)]).pid
}

fn ended_well(ended: &Ended, pid: u32) {
    assert!(ended.status.success(), "{}", ended.said);
    let events = log::events(&ended.log);
    assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
    let kinds: Vec<_> = events.iter().map(|event| event.kinds()[0]).collect();
    assert_eq!(kinds.first(), Some(&"DAEMON_START"), "{kinds:?}");
    let end = log::records(&events, "DAEMON_END");
    assert_eq!(end.len(), 1);
    assert_eq!(end[0].field("op"), Some("terminate"));
    assert_eq!(end[0].field("res"), Some("success"));
}

#[test]
fn sigterm_ends_it_cleanly_and_the_log_says_who_sent_it() {
    machine::test("SIGTERM", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let pid = getppid_pid();
        let ended = daemon.stop();
        ended_well(&ended, pid);
        let events = log::events(&ended.log);
        let end = log::records(&events, "DAEMON_END")[0];
        assert_eq!(end.number("pid"), Some(std::process::id().into()));
        assert!(!setup.path("run/tarsier.sock").exists());
    });
}

#[test]
fn sigint_ends_it_cleanly() {
    machine::test("SIGINT", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let pid = getppid_pid();
        daemon.signal(Signal::INT);
        ended_well(&daemon.wait(), pid);
    });
}

#[test]
fn audit_is_owned_while_it_runs_with_kernel_auditing_of_calls_off() {
    machine::test("ownership", |setup| {
        let daemon = setup.tarsier(RULE).start();
        let mut socket = AuditSocket::open().expect("an audit socket");
        let status = socket.status().expect("the audit status");
        let rules = socket.list_rules().expect("the kernel's rules");
        let is_never_task = netlink::message::is_never_task_rule;
        assert_eq!((status.enabled, status.pid), (1, daemon.pid()));
        assert!(rules.len() == 1 && is_never_task(&rules[0]), "{rules:?}");
        daemon.stop();
    });
}

#[test]
fn the_commands_exit_status_is_its_own() {
    machine::test("exit status", |setup| {
        for (script, code) in [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)] {
            let run = setup.tarsier(RULE).command(&[&"sh", &"-c", &script]);
            let ended = run.finish();
            assert_eq!(ended.status.code(), Some(code), "{script}: {}", ended.said);
        }
    });
}

#[test]
fn only_the_daemon_itself_does_without_huge_pages() {
    machine::test("huge pages", |setup| {
        let script =
            "grep -h THP_enabled /proc/$PPID/status /proc/self/status | tr -s '\\t\\n' ' ' >";
        let script = format!("{script}{}", setup.path("thp").display());
        let ended = setup
            .tarsier(RULE)
            .command(&[&"sh", &"-c", &script])
            .finish();
        assert!(ended.status.success(), "{}", ended.said);
        let said = std::fs::read_to_string(setup.path("thp")).expect("what the command wrote");
        assert_eq!(said, "THP_enabled: 0 THP_enabled: 1 ");
    });
}

#[test]
fn a_duration_ends_it_and_the_command() {
    machine::test("--duration", |setup| {
        let begun = Instant::now();
        let ended = setup
            .tarsier(RULE)
            .option("--duration")
            .option("300ms")
            .command(&[&"sleep", &"1000"])
            .finish();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(begun.elapsed() >= Duration::from_millis(300));
    });
}

#[test]
fn a_signal_ends_the_command_with_it() {
    machine::test("SIGTERM with a command", |setup| {
        let run = setup.tarsier(RULE).command(&[&"sleep", &"1000"]);
        let ended = run.start().stop();
        assert!(ended.status.success(), "{}", ended.said);
    });
}

#[test]
fn sigusr1_rotates_the_log() {
    machine::test("SIGUSR1", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        setup.write(
            "auditd.conf",
            "num_logs = 3\nmax_log_file_action = ROTATE\nmax_log_file = 100\n",
        );
        let daemon = run.start();
        let before = getppid_pid();
        // It is in the log before the rotation: the answer comes after a turn of the loop.
        while daemon.status()["events_recorded"] != 1 {}
        daemon.signal(Signal::USR1);
        daemon.wait_for("audit.log.1");
        let after = getppid_pid();
        let ended = daemon.stop();
        let old = log::events(&setup.path("audit.log.1"));
        let new = log::events(&ended.log);
        assert_eq!(log::calls_of(&old, before), ["getppid mine"]);
        assert_eq!(log::calls_of(&new, after), ["getppid mine"]);
        let said = log::records(&new, "DAEMON_ROTATE");
        assert_eq!(said.len(), 1);
        assert_eq!(said[0].field("op"), Some("rotate-logs"));
        assert_eq!(said[0].number("pid"), Some(std::process::id().into()));
    });
}

/// Starts a daemon, lets it record a call, and kills it. Returns its process id.
fn killed(setup: &Setup) -> u32 {
    let daemon = setup.tarsier(RULE).format("raw").start();
    let pid = daemon.pid();
    getppid_pid();
    daemon.signal(Signal::KILL);
    let ended = daemon.wait();
    assert_eq!(ended.status.signal(), Some(9));
    pid
}

#[test]
fn after_kill_9_nothing_is_left_loaded_and_a_new_start_works_and_restores_audit() {
    machine::test("kill -9", |setup| {
        let before = machine::bpf_programs();
        let first = killed(setup);
        let second = killed(setup);
        assert_ne!(first, second);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !machine::bpf_programs().is_subset(&before) {
            assert!(Instant::now() < deadline, "BPF programs of a killed daemon");
            std::thread::sleep(Duration::from_millis(20));
        }
        let daemon = setup.tarsier(RULE).format("raw").start();
        daemon.wait_for(&format!("process {second} ended without restoring audit"));
        assert_eq!(daemon.status()["kernel_records"], true);
        let mut socket = AuditSocket::open().expect("an audit socket");
        let rules = socket.list_rules().expect("the kernel's rules");
        assert_eq!(rules.len(), 1, "doubled");
        let pid = getppid_pid();
        ended_well_again(&daemon.stop(), pid);
    });
}

fn ended_well_again(ended: &Ended, pid: u32) {
    assert!(ended.status.success(), "{}", ended.said);
    let events = log::events(&ended.log);
    assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
    assert_eq!(log::records(&events, "DAEMON_START").len(), 3);
    assert_eq!(log::records(&events, "DAEMON_END").len(), 1);
}
