//! Nothing is lost silently.

use crate::daemon::Setup;
use crate::{log, machine, programs};
use rustix::process::Signal;
use std::os::unix::ffi::OsStrExt;

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

/// Number of calls in each of two runs of the workload.
const CALLS: u64 = 300_000;

/// Creates a FIFO: opening either end waits for the other.
fn fifo(setup: &Setup, name: &str) {
    let path = std::ffi::CString::new(setup.path(name).as_os_str().as_bytes()).expect("no NUL");
    // SAFETY: a path that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Writes a script that runs the workload twice with 4 threads, each time when it is told to, and
/// reports when it has ended.
fn write_script(setup: &Setup) {
    let mut script = String::new();
    for round in 1..=2 {
        let (go, done) = (format!("go-{round}"), format!("done-{round}"));
        fifo(setup, &go);
        fifo(setup, &done);
        script += &format!(
            "read x <'{}' && '{}' --count {CALLS} --threads 4 --mark {GROUP} getppid && echo >'{}'\n",
            setup.path(&go).display(),
            programs::workload().display(),
            setup.path(&done).display(),
        );
    }
    // The daemon reports that it is armed before it starts its command.
    fifo(setup, "ready");
    script.insert_str(0, &format!("echo >'{}'\n", setup.path("ready").display()));
    fifo(setup, "end");
    script += &format!("read x <'{}'\n", setup.path("end").display());
    setup.write("script", &script);
}

/// Starts one run of the workload, and waits until it has ended.
fn run_workload(setup: &Setup, round: u32) {
    setup.write(&format!("go-{round}"), "\n");
    assert_eq!(setup.read(&format!("done-{round}")), "\n");
}

/// The number after ` NAME=`.
fn number(line: &str, name: &str) -> u64 {
    let start = line.split(&format!(" {name}=")).nth(1);
    let word = start.and_then(|rest| rest.split(' ').next());
    word.and_then(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("{name} in {line}"))
}

#[test]
fn what_does_not_fit_the_rings_is_counted_by_cause_cpu_and_rule_and_the_log_says_so() {
    machine::test("lost events", |setup| {
        write_script(setup);
        let daemon = setup
            .tarsier(RULE)
            .format("raw")
            .ring_kib(128)
            .command(&[&"sh", &setup.path("script")])
            .start();
        assert_eq!(setup.read("ready"), "\n");
        // A stopped reader loses events and reports it; then it reads while others write.
        daemon.signal(Signal::STOP);
        run_workload(setup, 1);
        daemon.signal(Signal::CONT);
        daemon.wait_for_record(" op=events-lost ");
        run_workload(setup, 2);
        let status = daemon.status();
        setup.write("end", "\n");
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
        assert_eq!(recorded + lost, 2 * CALLS, "{status}");
        // A user who has used up his share loses events before the ring is full.
        let count = |cause: &str| status["lost"][cause].as_u64().expect("a count");
        assert!(count("over_share") > 0, "{status}");
        assert_eq!(count("ring_full") + count("over_share"), lost, "{status}");
        assert_eq!(sum(&status["lost_by_cpu"]), lost, "{status}");
        assert_eq!(sum(&status["lost_by_rule"]), lost, "{status}");
        assert_eq!(status["lost_by_uid"]["0"], lost, "{status}");
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
            // A stopped daemon says of itself that it was stopped, too.
            .filter(|line| line.starts_with("type=DAEMON_ERR ") && line.contains(" op=events-lost"))
            .collect();
        let (last, before) = said.split_last().expect("the log says so");
        let is_last = last.contains(" op=events-lost-in-all ");
        assert!(is_last && number(last, "lost") == lost, "{said:?}");
        // Reports while recording: each has the losses since the one before.
        let mut sum = 0;
        for line in before {
            sum += number(line, "lost");
            assert!(line.contains(" op=events-lost "), "{line}");
            assert_eq!(number(line, "total"), sum, "{said:?}");
        }
        assert!(!before.is_empty() && sum <= lost, "{said:?}");
        assert!(
            ended.said.contains(&format!(" {lost} lost;")) && ended.said.contains(": over_share"),
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
