//! Nothing is lost silently.

use crate::daemon::Setup;
use crate::{log, machine, programs};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const GROUP: u32 = 61235;
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61235 -k mine\n";

#[test]
fn a_million_events_that_fit_the_rings_are_all_recorded() {
    machine::test("a million events", |setup| {
        let ended = setup
            .tarsier(RULE)
            .format("raw")
            .ring_kib(65536)
            .command(&[
                &programs::workload(),
                &"--count",
                &"1000000",
                &"--mark",
                &GROUP.to_string(),
                &"getppid",
            ])
            .finish();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(
            ended.said.contains("1000000 events recorded") && ended.said.contains(" 0 lost;"),
            "{}",
            ended.said
        );
        assert_eq!(
            log::count_calls(&ended.log, libc::SYS_getppid, "mine"),
            1_000_000
        );
    });
}

/// Runs the workload with 4 threads, then waits until the test has asked for the status.
fn wait_after_workload(setup: &Setup, calls: u64) -> (PathBuf, PathBuf) {
    let (done, go_on) = (setup.path("done"), setup.path("go-on"));
    for fifo in [&done, &go_on] {
        let path = std::ffi::CString::new(fifo.as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: a path that lives through the call.
        assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
    }
    let script = format!(
        "'{}' --count {calls} --threads 4 --mark {GROUP} getppid && echo >'{}' && read x <'{}'\n",
        programs::workload().display(),
        done.display(),
        go_on.display()
    );
    setup.write("script", &script);
    (done, go_on)
}

#[test]
fn what_does_not_fit_the_rings_is_counted_by_cause_cpu_and_rule_and_the_log_says_so() {
    machine::test("lost events", |setup| {
        const CALLS: u64 = 1_000_000;
        let (done, go_on) = wait_after_workload(setup, CALLS);
        let daemon = setup
            .tarsier(RULE)
            .format("raw")
            .ring_kib(64)
            .command(&[&"sh", &setup.path("script")])
            .start();
        // Opens and ends when the workload has ended.
        assert_eq!(setup.read("done"), "\n");
        let _ = done;
        let status = daemon.status();
        std::fs::write(&go_on, "\n").expect("the script reads");
        let ended = daemon.wait();
        assert!(ended.status.success(), "{}", ended.said);

        let recorded = log::count_calls(&ended.log, libc::SYS_getppid, "mine");
        let sum = |value: &serde_json::Value| -> u64 {
            let by_name = value.as_object().into_iter().flat_map(|map| map.values());
            let by_index = value.as_array().into_iter().flatten();
            by_name.chain(by_index).filter_map(|n| n.as_u64()).sum()
        };
        let lost = sum(&status["lost"]);
        assert!(lost > 0, "the rings were not too small: {status}");
        assert_eq!(recorded + lost, CALLS, "{status}");
        assert_eq!(status["lost"]["ring_full"], lost, "{status}");
        assert_eq!(sum(&status["lost_by_cpu"]), lost, "{status}");
        assert_eq!(sum(&status["lost_by_rule"]), lost, "{status}");
        let rule = status["lost_by_rule"].as_object().expect("rules");
        assert!(rule.keys().all(|name| name.contains("mine")), "{status}");
        assert_eq!(
            status["events_selected"].as_u64(),
            Some(recorded),
            "{status}"
        );

        let text = setup.read("audit.log");
        let said: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("type=DAEMON_ERR "))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(&format!(" lost={lost} ")), "{}", said[0]);
        assert!(
            ended.said.contains(&format!("lost {lost}: ring_full")),
            "{}",
            ended.said
        );
    });
}

#[test]
fn the_status_command_shows_losses_to_a_person() {
    machine::test("tarsier status", |setup| {
        let daemon = setup.tarsier(RULE).start();
        let mut status = std::process::Command::new(programs::tarsier());
        status.arg("status").arg("--run-dir").arg(setup.path("run"));
        let (text, _) = programs::output_of(&mut status);
        for line in [
            "engine ",
            "rules ",
            "events recorded ",
            "events lost ",
            "  ring_full ",
        ] {
            assert!(
                text.lines().any(|l| l.starts_with(line)),
                "{line:?}: {text}"
            );
        }
        assert!(text.contains(&daemon.pid().to_string()), "{text}");
        let (json, _) = programs::output_of(status.arg("--json"));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["pid"], daemon.pid());
        daemon.stop();
        let output = status.output().expect("tarsier status runs");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("no daemon answers at"), "{said}");
    });
}
