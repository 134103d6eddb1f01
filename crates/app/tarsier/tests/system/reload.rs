//! SIGHUP puts new rules in force, and no event falls between the old and the new.

use crate::calls::{call, Caller};
use crate::{log, machine, programs};
use rustix::process::Signal;
use std::process::{Command, Stdio};

fn rules(key: &str) -> String {
    format!("-a always,exit -F arch=b64 -S getppid -F gid=61236 -k {key}\n")
}

#[test]
fn no_event_of_a_busy_process_is_lost_or_doubled_while_rules_are_exchanged() {
    machine::test("reload under load", |setup| {
        const CALLS: u64 = 400_000;
        let daemon = setup
            .tarsier(&rules("old"))
            .format("raw")
            .ring_kib(65536)
            .start();
        let mut busy = Command::new(programs::workload())
            .args(["--count", &CALLS.to_string(), "--mark", "61236", "getppid"])
            .stdout(Stdio::null())
            .spawn()
            .expect("the workload runs");
        for key in ["new", "old", "new"] {
            setup.write("test.rules", &rules(key));
            daemon.reload();
        }
        assert!(busy.wait().expect("its status").success());
        let ended = daemon.stop();
        assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
        let count = |key| log::count_calls(&ended.log, libc::SYS_getppid, key);
        let (old, new) = (count("old"), count("new"));
        assert!(
            old > 0 && new > 0,
            "old {old}, new {new}: no reload under load"
        );
        assert_eq!(old + new, CALLS, "old {old}, new {new}");
        let text = setup.read("audit.log");
        let reloads = text.lines().filter(|line| {
            line.starts_with("type=DAEMON_CONFIG ") && line.contains("op=reconfigure")
        });
        assert_eq!(reloads.count(), 3);
    });
}

#[test]
fn broken_rules_at_a_reload_are_said_and_the_old_ones_stay() {
    machine::test("reload of broken rules", |setup| {
        let daemon = setup.tarsier(&rules("old")).format("raw").start();
        setup.write(
            "test.rules",
            "-a always,exit -F arch=b64 -S getpppid -k new\n",
        );
        daemon.signal(Signal::HUP);
        daemon.wait_for("reload failed, what was in force stays");
        let made = Caller::gid(61236).make(&[call!(getppid)]);
        setup.write("test.rules", &rules("new"));
        daemon.reload();
        let later = Caller::gid(61236).make(&[call!(getppid)]);
        let ended = daemon.stop();
        assert!(ended.said.contains("getppid"), "{}", ended.said);
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, made.pid), ["getppid old"]);
        assert_eq!(log::calls_of(&events, later.pid), ["getppid new"]);
        let said = log::records(&events, "DAEMON_CONFIG");
        let results: Vec<_> = said.iter().map(|record| record.field("res")).collect();
        assert_eq!(results, [Some("failed"), Some("success")]);
    });
}

#[test]
fn a_broken_configuration_at_a_reload_is_said_and_the_old_one_stays() {
    machine::test("reload of a broken configuration", |setup| {
        let daemon = setup.tarsier(&rules("old")).format("raw").start();
        setup.write("auditd.conf", "flush = PERHAPS\n");
        daemon.signal(Signal::HUP);
        daemon.wait_for("reload failed, what was in force stays");
        let made = Caller::gid(61236).make(&[call!(getppid)]);
        let ended = daemon.stop();
        assert!(ended.said.contains("auditd.conf"), "{}", ended.said);
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, made.pid), ["getppid old"]);
    });
}

#[test]
fn a_reload_may_change_which_hooks_are_needed() {
    machine::test("reload to other hooks", |setup| {
        let daemon = setup.tarsier(&rules("one")).format("raw").start();
        let caller = Caller::gid(61236);
        let one = caller.make(&[call!(getppid)]);
        let all = "-a always,exit -F arch=b64 -S all -F gid=61236 -k all\n";
        setup.write("test.rules", all);
        daemon.reload();
        let many = caller.make(&[call!(getppid), call!(getuid)]);
        setup.write("test.rules", &rules("one"));
        daemon.reload();
        let again = caller.make(&[call!(getppid), call!(getuid)]);
        let events = log::events(&daemon.stop().log);
        assert_eq!(log::calls_of(&events, one.pid), ["getppid one"]);
        assert_eq!(
            log::calls_of(&events, many.pid),
            [
                "setresgid all",
                "getppid all",
                "getuid all",
                "exit_group all"
            ]
        );
        assert_eq!(log::calls_of(&events, again.pid), ["getppid one"]);
    });
}

#[test]
fn another_pin_dir_is_said_to_wait_for_the_next_start() {
    machine::test("reload of pin_dir", |setup| {
        let daemon = setup.tarsier(&rules("k")).start();
        setup.configure("flush = NONE\npin_dir = /sys/fs/bpf/tarsier-another\n");
        daemon.reload();
        daemon.wait_for("pin_dir");
        assert!(daemon.stop().status.success());
    });
}
