//! Tests that a running daemon can no longer do certain things, and that it does everything else.

use crate::calls::{call, Caller};
use crate::daemon::{Daemon, Setup};
use crate::{log, machine, programs};
use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(600);
const GROUP: u32 = 61238;
/// Number of times that a spawner is killed.
const KILLS: usize = 10;
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

/// The processes that start programs: the one that is asked, and the one that takes its place.
fn spawners(daemon: &Daemon) -> (u64, u64) {
    let mut found = None;
    until("two spawners", || {
        let all = &daemon.status()["spawner"];
        found = all["pid"].as_u64().zip(all["standby"].as_u64());
        found.is_some_and(|(pid, _)| pid != 0)
    });
    found.expect("two")
}

fn kill(pid: u64, signal: Signal) {
    let pid = Pid::from_raw(pid as i32).expect("a pid");
    kill_process(pid, signal).expect("a signal");
}

/// Polls until `is_so` returns true; nothing signals it.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A plugin that writes its process id, then what it gets.
fn plugin(setup: &Setup) -> std::path::PathBuf {
    let out = setup.path("plugin.out");
    let text = format!(
        "#!/bin/sh\necho started $$ >>{0}\nexec cat >>{0}\n",
        out.display()
    );
    let script = setup.write("plugin.sh", &text);
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o750)).expect("its mode");
    std::fs::create_dir_all(setup.path("plugins.d")).expect("a directory");
    let text = format!("active = yes\npath = {}\n", script.display());
    let conf = setup.write("plugins.d/plugin.conf", &text);
    std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o640)).expect("its mode");
    out
}

/// Process ids that [`plugin`] has written.
fn pids_of(out: &std::path::Path) -> Vec<u64> {
    let text = std::fs::read_to_string(out).unwrap_or_default();
    let pids = text.lines();
    let pids = pids.filter_map(|line| line.strip_prefix("started "));
    pids.map(|pid| pid.parse().expect("a pid")).collect()
}

#[test]
fn a_killed_spawner_is_replaced_ten_times_and_nothing_is_doubled() {
    machine::test("killed spawners", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        setup.configure("max_restarts = 100\nmax_log_file_action = IGNORE\n");
        let out = plugin(setup);
        let daemon = run.start();
        let started = || pids_of(&out);
        until("the plugin", || started().len() == 1);
        let mut callers = Vec::new();
        for round in 1..=KILLS {
            let (first, standby) = spawners(&daemon);
            kill(first, Signal::TERM);
            kill(first, Signal::KILL);
            // The plugin and a helper for look-ups have to be started again.
            kill(started()[round - 1], Signal::KILL);
            until("the next plugin", || started().len() == round + 1);
            until("the other spawner", || spawners(&daemon).0 == standby);
            let file = setup.write("looked-up", "");
            callers.push(Caller::gid(GROUP).make(&[call!(getppid)]).pid);
            std::fs::remove_file(file).expect("it goes");
        }
        daemon.wait_for_times("has taken its place", KILLS);
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert_eq!(started().len(), KILLS + 1);
        let events = log::events(&ended.log);
        for pid in callers {
            assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
        }
        let errors = log::records(&events, "DAEMON_ERR");
        let replaced = |record: &&&log::Record| record.field("op") == Some("spawner-replaced");
        assert_eq!(errors.iter().filter(replaced).count(), KILLS);
    });
}

#[test]
fn both_spawners_killed_at_once_are_told_and_recording_goes_on() {
    machine::test("dead spawners", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start();
        let (first, standby) = spawners(&daemon);
        daemon.signal(Signal::STOP);
        kill(first, Signal::KILL);
        kill(standby, Signal::KILL);
        daemon.signal(Signal::CONT);
        daemon.wait_for("no process that starts programs is left");
        assert_eq!(daemon.status()["spawner"]["running"], false);
        let pid = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
        let errors = log::records(&events, "DAEMON_ERR");
        let ended = |record: &&&log::Record| record.field("op") == Some("spawner-ended");
        assert_eq!(errors.iter().filter(ended).count(), 2);
    });
}

#[test]
fn a_service_starts_programs_and_is_asked_again_when_all_of_it_was_killed() {
    machine::test("--spawner", |setup| {
        let socket = setup.path("spawner.sock");
        let run = setup.tarsier(RULE).format("raw").option("--spawner");
        let run = run.option(&socket);
        setup.configure("max_restarts = 100\nmax_log_file_action = IGNORE\n");
        let out = plugin(setup);
        let config = setup.path("auditd.conf");
        let log = setup.path("audit.log");
        let words: [&std::ffi::OsStr; 5] = [
            "spawner".as_ref(),
            "3".as_ref(),
            "service".as_ref(),
            config.as_ref(),
            log.as_ref(),
        ];
        testkit::serve_connections(&socket, &programs::tarsier(), &words);
        let daemon = run.start();
        let started = || pids_of(&out);
        until("the plugin", || started().len() == 1);
        let (first, standby) = spawners(&daemon);
        assert_eq!(parent_of(started()[0]), first);
        // Its end is told by the one that has started it.
        kill(started()[0], Signal::KILL);
        until("the next plugin", || started().len() == 2);
        kill(first, Signal::KILL);
        kill(standby, Signal::KILL);
        kill(started()[1], Signal::KILL);
        until("a plugin of a new one", || started().len() == 3);
        let pid = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let text = std::fs::read_to_string(&out).expect("its output");
        assert!(text.contains(&format!(" pid={pid} ")), "{text}");
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, pid), ["getppid mine"]);
    });
}

fn parent_of(pid: u64) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.expect("a parent").trim().parse().expect("a pid")
}

/// A file system that is unmounted, even if it is in use.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(path: std::path::PathBuf) -> Disk {
        let flags = rustix::mount::MountFlags::empty();
        let size = c"size=8m,mode=0700";
        rustix::mount::mount("none", &path, "tmpfs", flags, size).expect("a tmpfs");
        Disk(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let flags = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(&self.0, flags);
    }
}

#[test]
fn a_log_on_a_file_system_that_is_mounted_anew_is_written_and_rotated() {
    machine::test("a log that is mounted anew", |setup| {
        let place = setup.path("disk");
        std::fs::create_dir(&place).expect("a directory");
        let disk = Disk::mount(place.clone());
        let log = place.join("audit.log");
        let run = setup.tarsier(RULE).format("raw").log(log.clone());
        setup.configure(
            "flush = SYNC\nmax_log_file_action = IGNORE\nnum_logs = 4\ndisk_full_action = SUSPEND\n\
             compress_rotated = yes\nspace_left = 2\nadmin_space_left = 1\n",
        );
        let daemon = run.start();
        if daemon.status()["confinement"]["landlock_abi"].is_null() {
            println!("skipped: a log that is mounted anew, under Landlock: no Landlock here");
        }
        let before = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        daemon.wait_for_record("key=\"mine\"");
        let text = std::fs::read_to_string(&log).expect("the first log");
        // The disk is full, and the administrator puts another in its place.
        let mut filler = std::fs::File::create(place.join("filler")).expect("a file");
        while std::io::Write::write(&mut filler, &[0; 65536]).is_ok_and(|count| count > 0) {}
        Caller::gid(GROUP).make(&[call!(getppid)]);
        daemon.wait_for("suspended");
        drop(filler);
        drop(disk);
        let disk = Disk::mount(place.clone());
        daemon.signal(Signal::USR2);
        daemon.wait_for("resumed");
        let after = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        daemon.wait_for_record(&format!(" pid={after} "));
        daemon.signal(Signal::USR1);
        until("a rotated and compressed log", || {
            place.join("audit.log.1.zst").exists() && !place.join("audit.log.1").exists()
        });
        let last = Caller::gid(GROUP).make(&[call!(getppid)]).pid;
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(text.contains(&format!(" pid={before} ")));
        assert_eq!(log::calls_of(&log::events(&log), last), ["getppid mine"]);
        let packed = std::fs::File::open(place.join("audit.log.1.zst")).expect("a log");
        let rotated = zstd::decode_all(packed).expect("compressed");
        let rotated = String::from_utf8(rotated).expect("text");
        assert!(rotated.contains(&format!(" pid={after} ")), "{rotated}");
        drop(disk);
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
