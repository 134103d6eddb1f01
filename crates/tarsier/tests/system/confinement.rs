//! What a running daemon can no longer do, and that it does everything else.

use crate::calls::{call, Caller};
use crate::{log, machine};
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(600);
const GROUP: u32 = 61238;
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61238 -k mine\n";

/// A field of /proc/PID/status of each thread, which all have the same.
fn of_all_threads(pid: u32, name: &str) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let mut values: Vec<String> = tasks
        .map(|task| {
            let path = task.expect("a thread").path().join("status");
            let status = std::fs::read_to_string(path).expect("its status");
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.expect("the field").trim().to_owned()
        })
        .collect();
    values.dedup();
    assert_eq!(values.len(), 1, "{name} {values:?}");
    values.remove(0)
}

fn texts(value: &Value) -> Vec<&str> {
    let texts = value.as_array().expect("a list").iter();
    texts.map(|text| text.as_str().expect("a text")).collect()
}

#[test]
fn every_thread_keeps_only_what_it_uses_and_status_says_so() {
    machine::test("confinement", |setup| {
        let run = setup.tarsier(RULE);
        // A thread that syncs, and one that compresses.
        setup.configure("flush = SYNC\ncompress_rotated = yes\nnum_logs = 3\n");
        let daemon = run.start();
        daemon.signal(Signal::USR1);
        daemon.wait_for("audit.log.1");
        let pid = daemon.pid();
        let bits = |name: &str| {
            u64::from_str_radix(&of_all_threads(pid, name), 16).expect("a set of capabilities")
        };
        let status = daemon.status();
        let all = &status["confinement"];
        let capabilities = texts(&all["capabilities"]);
        assert_eq!(bits("CapEff:"), bits("CapPrm:"));
        assert_eq!(bits("CapBnd:") & !bits("CapEff:"), 0);
        assert_eq!((bits("CapInh:"), bits("CapAmb:")), (0, 0));
        assert_eq!(bits("CapEff:").count_ones() as usize, capabilities.len());
        // CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SETUID, CAP_DAC_OVERRIDE (linux/capability.h).
        for absent in [19, 16, 7, 1] {
            assert_eq!(bits("CapBnd:") >> absent & 1, 0, "{absent}");
        }
        // CAP_BPF, CAP_PERFMON, CAP_AUDIT_CONTROL.
        for kept in [39, 38, 30] {
            assert_eq!(bits("CapEff:") >> kept & 1, 1, "{kept}");
        }
        assert_eq!(of_all_threads(pid, "NoNewPrivs:"), "1");
        assert_eq!(of_all_threads(pid, "Seccomp:"), "2");
        assert_eq!(all["no_new_privs"], true);
        assert_eq!(all["dumpable"], false);
        assert_eq!(all["strict"], false);
        assert!(all["calls"].as_u64() > Some(100), "{all}");
        if !all["landlock_abi"].is_null() {
            let run_dir = setup.path("run").display().to_string();
            assert!(texts(&all["writable"]).contains(&run_dir.as_str()), "{all}");
        }
        assert_eq!(status["spawner"]["running"], true);
        let ended = daemon.stop();
        assert!(
            ended.said.contains("tarsier: confined to "),
            "{}",
            ended.said
        );
        let parts = ["oom_score_adj", "Landlock"];
        for line in ended.said.lines() {
            if let Some(lack) = line.strip_prefix("tarsier: confinement lacks ") {
                println!("skipped: part of confinement: {lack}");
                assert!(parts.iter().any(|part| lack.starts_with(part)), "{line}");
            }
        }
    });
}

#[test]
fn without_confinement_the_daemon_keeps_its_rights_and_says_so() {
    machine::test("confinement = no", |setup| {
        let run = setup.tarsier(RULE);
        setup.configure("confinement = no\n");
        let daemon = run.start();
        assert_eq!(of_all_threads(daemon.pid(), "Seccomp:"), "0");
        assert!(daemon.status()["confinement"].is_null());
        let own = of_all_threads(std::process::id(), "CapEff:");
        assert_eq!(of_all_threads(daemon.pid(), "CapEff:"), own);
        let ended = daemon.stop();
        let said = "tarsier: not confined (confinement = no)";
        assert!(ended.said.contains(said), "{}", ended.said);
    });
}

#[test]
fn a_log_elsewhere_needs_a_restart_and_what_was_in_force_stays() {
    machine::test("log_file at a reload", |setup| {
        let run = setup.tarsier(RULE).log_of_configuration();
        let logs = |name: &str| {
            let dir = setup.path(name);
            std::fs::create_dir(&dir).expect("a directory");
            format!("log_file = {}\n", dir.join("audit.log").display())
        };
        let (first, second) = (logs("first"), logs("second"));
        setup.configure(&first);
        let daemon = run.start();
        if daemon.status()["confinement"]["landlock_abi"].is_null() {
            println!("skipped: log_file at a reload: no Landlock here");
            daemon.stop();
            return;
        }
        setup.configure(&second);
        daemon.signal(Signal::HUP);
        daemon.wait_for("reload failed, what was in force stays: log_file = ");
        Caller::gid(GROUP).make(&[call!(getppid)]);
        let other = first.replace("audit.log", "other.log");
        setup.configure(&other);
        daemon.signal(Signal::HUP);
        let end = Instant::now() + PATIENCE;
        while !setup.path("first/other.log").exists() {
            assert!(Instant::now() < end, "no other log");
            std::thread::sleep(Duration::from_millis(20));
        }
        daemon.stop();
        let log = setup.path("first/audit.log");
        assert_eq!(log::count_calls(&log, libc::SYS_getppid, "mine"), 1);
        assert!(!setup.path("second/audit.log").exists());
    });
}

#[test]
fn a_dead_spawner_is_told_and_recording_goes_on() {
    machine::test("a dead spawner", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let spawner = daemon.status()["spawner"]["pid"].as_u64().expect("a pid");
        let spawner = Pid::from_raw(spawner as i32).expect("a pid");
        kill_process(spawner, Signal::TERM).expect("it is ignored");
        kill_process(spawner, Signal::KILL).expect("a signal");
        daemon.wait_for("the process that starts programs (pid ");
        assert_eq!(daemon.status()["spawner"]["running"], false);
        let pid = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
        let errors = log::records(&events, "DAEMON_ERR");
        assert_eq!(errors[0].field("op"), Some("spawner-ended"));
    });
}

/// Each planted call, with its number if the filter refuses it: others are refused by Landlock.
const PLANTED: [(&str, Option<i64>); 6] = [
    ("execve", Some(libc::SYS_execve)),
    ("process", Some(libc::SYS_clone)),
    ("network", Some(libc::SYS_socket)),
    ("ptrace", Some(libc::SYS_ptrace)),
    ("mount", Some(libc::SYS_mount)),
    ("shadow", None),
];

#[test]
fn planted_code_is_refused_and_recorded() {
    machine::test("planted calls", |setup| {
        let names = PLANTED.map(|row| row.0).join(",");
        let daemon = setup.tarsier(RULE).format("raw").planted(&names).start();
        let has_landlock = !daemon.status()["confinement"]["landlock_abi"].is_null();
        for (name, number) in PLANTED {
            if number.is_none() && !has_landlock {
                println!("skipped: planted {name}: no Landlock here");
                continue;
            }
            let how = match number {
                Some(_) => "Operation not permitted",
                None => "Permission denied",
            };
            daemon.wait_for(&format!("planted {name}: {how} "));
        }
        // It is none the worse for it.
        let caller = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        let pid = daemon.pid();
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, caller), ["getppid mine"]);
        let records = log::records(&events, "SECCOMP");
        for (name, number) in PLANTED {
            let Some(number) = number else {
                continue;
            };
            let mut own = records.iter().filter(|record| {
                record.number("pid") == Some(pid.into()) && record.number("syscall") == Some(number)
            });
            let record = own.next().unwrap_or_else(|| panic!("no record of {name}"));
            // Nobody was killed: no signal.
            assert_eq!(record.number("sig"), Some(0), "{name}");
        }
    });
}

#[test]
fn under_strict_planted_code_kills_the_daemon() {
    machine::test("confinement = strict", |setup| {
        let run = setup.tarsier(RULE).format("raw").planted("execve");
        setup.configure("confinement = strict\n");
        let ended = run.finish();
        assert_eq!(ended.status.signal(), Some(libc::SIGSYS), "{}", ended.said);
        // Without planted code it works as otherwise. This one also restores what the other left.
        let run = setup.tarsier(RULE).format("raw");
        setup.configure("confinement = strict\n");
        let daemon = run.start();
        let pid = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        daemon.signal(Signal::HUP);
        daemon.wait_for_record("op=reconfigure");
        assert_eq!(daemon.status()["confinement"]["strict"], true);
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert_eq!(
            log::calls_of(&log::events(&ended.log), pid),
            ["getppid mine"]
        );
    });
}
