//! Tests that `tarsier ctl` leaves the same in the log as auditctl does.

use crate::daemon::Setup;
use crate::{machine, programs};
use rustix::process::Signal;
use std::process::Command;

const GROUP: &str = "61247";
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61247 -k mine\n";

/// The words that have `tarsier ctl` ask the daemon of this test.
fn ctl(setup: &Setup) -> String {
    let run_dir = setup.path("run");
    let tarsier = programs::tarsier();
    format!(
        "'{}' ctl --run-dir '{}'",
        tarsier.display(),
        run_dir.display()
    )
}

/// Standard error of `tarsier ctl`.
fn says(setup: &Setup, args: &str) -> String {
    let line = format!("{} {args}", ctl(setup));
    programs::output_of(Command::new("sh").args(["-c", &line])).1
}

/// The text of the log's USER record with this message, from `hostname=` on.
fn ending<'a>(log: &'a str, message: &str) -> &'a str {
    let is_it = |line: &&str| line.contains(&format!("msg='text={message} exe="));
    let line = log.lines().find(is_it).expect(message);
    let (_, ending) = line.split_once(" hostname=").expect("hostname=");
    ending
}

#[test]
fn a_message_names_host_and_terminal_as_auditctl_s() {
    if testkit::peers("message of ctl").is_none() {
        return;
    }
    machine::test("message of ctl", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let peer = programs::checkout().join("scripts/peer");
        let peer = format!("'{}' auditctl", peer.display());
        let script = format!(
            "{peer} -m theirs; {ctl} -m ours;
             {peer} -m theirs-piped </dev/null >/dev/null;
             {ctl} -m ours-piped </dev/null >/dev/null;
             {peer} -m theirs-away </dev/null >/dev/null 2>&1;
             {ctl} -m ours-away </dev/null >/dev/null 2>&1",
            ctl = ctl(setup)
        );
        let mut pty = Command::new("script");
        programs::output_of(pty.args(["-qec", &script, "/dev/null"]));
        daemon.stop();
        let log = setup.read("audit.log");
        for how in ["", "-piped", "-away"] {
            let ours = ending(&log, &format!("ours{how}"));
            assert_eq!(ours, ending(&log, &format!("theirs{how}")), "{how}");
            let is_named = !ours.starts_with("? addr=? terminal=?");
            assert_eq!(is_named, how != "-away", "{ours}");
        }
    });
}

#[test]
fn a_stopped_daemon_is_said() {
    machine::test("ctl and a stopped daemon", |setup| {
        let daemon = setup.tarsier(RULE).start();
        daemon.signal(Signal::STOP);
        let ask = || {
            let line = format!("{} -s", ctl(setup));
            let output = Command::new("sh").args(["-c", &line]).output();
            let output = output.expect("sh runs");
            assert!(!output.status.success());
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let start = std::time::Instant::now();
        let said = ask();
        let waited = start.elapsed();
        daemon.signal(Signal::CONT);
        daemon.stop();
        assert!(said.contains("is stopped: kill -CONT "), "{said}");
        let socket = setup.path("run").join("tarsier.sock");
        assert!(!socket.exists(), "the daemon has ended");
        let absent = ask();
        assert!(absent.contains("start `tarsier run`"), "{absent}");
        assert!(waited.as_secs() < 60, "it waited {waited:?}");
    });
}

#[test]
fn records_of_changes_name_who_asked_whatever_it_is_called() {
    machine::test("who asked", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        // Name and path are the caller's choice.
        let disguise = setup.path("x\" res=0 op=arm");
        std::fs::copy(programs::tarsier(), &disguise).expect("a copy");
        let mut ctl = Command::new(&disguise);
        ctl.args(["ctl", "--run-dir"]).arg(setup.path("run"));
        ctl.args(["-a", "always,exit", "-F", "arch=b64", "-S", "mkdir"]);
        ctl.args(["-F", "uid=61300", "-k", "more"]);
        let asker = ctl.spawn().expect("ctl runs");
        let pid = asker.id();
        let ended = asker.wait_with_output().expect("ctl ends");
        assert!(ended.status.success());
        daemon.stop();
        let log = setup.read("audit.log");
        let hex = |text: &[u8]| {
            text.iter()
                .map(|byte| format!("{byte:02X}"))
                .collect::<String>()
        };
        let comm = hex(b"x\" res=0 op=arm");
        let exe = hex(disguise.as_os_str().as_encoded_bytes());
        let (process, names) = (
            format!(" pid={pid} uid=0 tty="),
            format!(" comm={comm} exe={exe} "),
        );
        let is_asked = |line: &&str| line.contains(&process) && line.contains(&names);
        let asked: Vec<&str> = log.lines().filter(is_asked).collect();
        let [armed, added] = asked[..] else {
            panic!("one record of the hooks and one of the rule: {asked:#?}");
        };
        assert!(armed.contains("op=arm hooks="), "{armed}");
        assert!(
            armed.contains(" removed=0 ") && armed.ends_with(" res=1"),
            "{armed}"
        );
        assert!(
            added.ends_with(" op=add_rule key=\"more\" list=4 res=1"),
            "{added}"
        );
        if testkit::peers("who asked").is_some() {
            let mut ausearch = programs::peer("ausearch");
            ausearch.arg("-if").arg(setup.path("audit.log"));
            let (found, _) = programs::output_of(ausearch.args(["-i", "-m", "CONFIG_CHANGE"]));
            let shown = format!("exe={} ", disguise.display());
            let found = found.lines().filter(|line| line.contains(&shown)).count();
            assert_eq!(found, 2, "records that ausearch -i reads");
        }
    });
}

#[test]
fn reset_lost_tells_and_logs_what_was_lost_and_begins_at_0() {
    machine::test("--reset-lost", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").ring_kib(128).start();
        says(setup, "--reset-lost");
        // A stopped reader loses events.
        daemon.signal(Signal::STOP);
        let mut calls = Command::new(programs::workload());
        programs::output_of(calls.args(["--count", "100000", "--mark", GROUP, "getppid"]));
        daemon.signal(Signal::CONT);
        daemon.wait_for_record(" op=events-lost ");
        let all = || -> u64 {
            let lost = &daemon.status()["lost"];
            let causes = ["ring_full", "over_share"];
            causes.iter().filter_map(|cause| lost[cause].as_u64()).sum()
        };
        let lost = all();
        assert!(lost > 0);
        assert_eq!(says(setup, "--reset-lost"), format!("lost: {lost}\n"));
        assert_eq!(says(setup, "--reset-lost"), "lost: 0\n");
        assert_eq!(all(), lost, "status counts on");
        daemon.stop();
        let log = setup.read("audit.log");
        let of_reset = format!("op=set lost=0 old={lost} auid=");
        assert_eq!(log.matches(&of_reset).count(), 1);
        assert_eq!(
            log.matches("op=set lost=0 ").count(),
            3,
            "one for each reset"
        );
    });
}
