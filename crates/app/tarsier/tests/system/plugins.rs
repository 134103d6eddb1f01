//! Plugins of a running daemon.

use crate::daemon::{Daemon, Setup};
use crate::{log, machine, programs};
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const GROUP: u32 = 61236;
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61236 -k mine\n";
const CONF: &str = "max_log_file_action = IGNORE\n";
const PATIENCE: Duration = Duration::from_secs(600);

/// A plugin whose program is this shell script.
fn plugin(setup: &Setup, name: &str, script: &str) {
    let script = setup.write(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o750)).expect("its mode");
    let text = format!("active = yes\npath = {}\n", script.display());
    configure(setup, name, &text);
}

fn configure(setup: &Setup, name: &str, text: &str) {
    std::fs::create_dir_all(setup.path("plugins.d")).expect("a directory");
    let conf = setup.write(&format!("plugins.d/{name}.conf"), text);
    std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o640)).expect("its mode");
}

fn call(count: u32) {
    let mut command = std::process::Command::new(programs::workload());
    command.args(["--mark", &GROUP.to_string(), "--count", &count.to_string()]);
    programs::output_of(command.arg("getppid"));
}

/// Polls until `is_so` returns true; nothing signals it.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn status_of(daemon: &Daemon, name: &str) -> serde_json::Value {
    let status = daemon.status();
    let plugins = status["plugins"].as_array().expect("plugins");
    let of_name = plugins.iter().find(|plugin| plugin["name"] == *name);
    of_name.cloned().unwrap_or_default()
}

/// The text without EOE lines, which the log does not have.
fn without_eoe(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("type=EOE "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_plugin_gets_the_log_and_a_stuck_one_delays_nothing() {
    machine::test("plugins", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        let conf = format!("{CONF}flush = SYNC\nq_depth = 90000\n");
        setup.configure(&conf);
        let out = setup.path("all.out");
        plugin(setup, "all", &format!("exec cat >'{}'", out.display()));
        plugin(setup, "stuck", "exec sleep 1000");
        let daemon = run.start();
        call(5000);
        until("passing on", || {
            status_of(&daemon, "all.conf")["passed"].as_u64() >= Some(15_000)
        });
        let stuck = status_of(&daemon, "stuck.conf");
        assert_eq!(stuck["running"], true, "{stuck}");
        let ended = daemon.stop();
        assert_eq!(
            log::count_calls(&ended.log, libc::SYS_getppid, "mine"),
            5000
        );
        assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
        let passed = std::fs::read_to_string(&out).expect("its output");
        assert!(
            without_eoe(&passed) == setup.read("audit.log"),
            "not the log"
        );
        assert!(passed.contains("type=EOE msg=audit("));
        // The plugins' programs ended with the daemon: machine::test checks that.
    });
}

#[test]
fn a_reload_follows_the_directory_of_plugins_and_a_wrong_file_changes_nothing() {
    machine::test("reload of plugins", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        plugin(setup, "one", "exec cat >/dev/null");
        let daemon = run.start();
        assert_eq!(status_of(&daemon, "one.conf")["running"], true);
        plugin(setup, "two", "exec cat >/dev/null");
        configure(setup, "three", "active = perhaps\n");
        daemon.signal(Signal::HUP);
        daemon.wait_for("three.conf:1: active = perhaps; expected yes or no");
        assert!(status_of(&daemon, "two.conf").is_null());
        configure(setup, "three", "active = no\n");
        configure(setup, "one", "active = no\n");
        daemon.signal(Signal::HUP);
        until("the reload", || {
            status_of(&daemon, "two.conf")["running"] == true
        });
        assert!(status_of(&daemon, "one.conf").is_null());
        daemon.stop();
    });
}

#[test]
fn programs_end_with_a_daemon_that_is_killed() {
    machine::test("plugins of a killed daemon", |setup| {
        let run = setup.tarsier(RULE);
        let pid = setup.path("pid");
        // This program does not notice the end of its input.
        plugin(
            setup,
            "deaf",
            &format!("echo $$ >'{}'; exec sleep 1000", pid.display()),
        );
        let daemon = run.start();
        let mut number = 0;
        until("the start", || {
            let text = std::fs::read_to_string(&pid).unwrap_or_default();
            text.trim().parse().map(|found: i32| number = found).is_ok()
        });
        daemon.signal(Signal::KILL);
        daemon.wait();
        let state = || std::fs::read_to_string(format!("/proc/{number}/stat"));
        until("its end", || {
            state().map_or(true, |stat| stat.contains(") Z "))
        });
        // The next daemon restores what a killed one has left.
        setup.tarsier(RULE).start().stop();
    });
}

/// The distribution's `audisp-syslog`, if available, wrapped in a script that runs it with its own
/// /dev/log.
fn audisp_syslog(setup: &Setup) -> Option<PathBuf> {
    let root = testkit::peers("audisp-syslog")?;
    let program = root.join("sbin/audisp-syslog");
    if !program.exists() {
        println!("skipped: audisp-syslog: {} is not there", program.display());
        return None;
    }
    let socket = setup.path("syslog");
    let script = format!(
        "export LD_LIBRARY_PATH='{root}/usr/lib/x86_64-linux-gnu:{root}/lib/x86_64-linux-gnu'\n\
         exec unshare -m -- sh -c \"mount -t tmpfs none /dev && ln -s '{}' /dev/log && exec '{}' LOG_INFO LOG_LOCAL0\"",
        socket.display(),
        program.display(),
        root = root.display(),
    );
    plugin(setup, "syslog", &script);
    Some(socket)
}

#[test]
fn the_distributions_syslog_plugin_runs_unchanged() {
    machine::test("audisp-syslog", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        let Some(path) = audisp_syslog(setup) else {
            return;
        };
        let syslog = std::os::unix::net::UnixDatagram::bind(path).expect("a syslog");
        syslog.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let daemon = run.start();
        call(3);
        let mut calls = 0;
        let mut message = [0; 8192];
        while calls < 3 {
            let count = syslog.recv(&mut message).expect("a message");
            let text = String::from_utf8_lossy(&message[..count]);
            if text.contains("type=SYSCALL ") && text.contains("key=\"mine\"") {
                // LOG_LOCAL0 and LOG_INFO.
                assert!(text.starts_with("<134>"), "{text}");
                calls += 1;
            }
        }
        daemon.stop();
    });
}

#[test]
fn one_program_at_a_time_reads_the_socket() {
    machine::test("builtin af_unix", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        let path = setup.path("events");
        let text = format!(
            "active = yes\ndirection = out\npath = builtin_af_unix\ntype = builtin\n\
             args = 0640 {}\nformat = string\n",
            path.display()
        );
        configure(setup, "af_unix", &text);
        let daemon = run.start();
        let reader = std::os::unix::net::UnixStream::connect(&path).expect("a connection");
        // The answer comes after the daemon has checked its descriptors.
        daemon.status();
        call(2);
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
        let mut next = || lines.next().expect("more").expect("a line");
        let mut calls = 0;
        while calls < 2 {
            calls += usize::from(next().contains("key=\"mine\""));
        }
        daemon.stop();
        let mut rest = lines.map(|line| line.expect("a line"));
        assert!(rest.any(|line| line.contains("type=DAEMON_END ")));
        assert!(!path.exists());
    });
}

#[test]
fn without_a_log_plugins_get_every_event() {
    machine::test("write_logs = no", |setup| {
        let run = setup.tarsier(RULE).format("raw");
        setup.configure(&format!(
            "{CONF}flush = SYNC\nq_depth = 90000\nwrite_logs = no\n"
        ));
        let out = setup.path("all.out");
        // A reload ends this program with SIGHUP, and it is started again.
        plugin(setup, "all", &format!("exec cat >>'{}'", out.display()));
        let daemon = run.start();
        call(1000);
        until("passing on", || {
            status_of(&daemon, "all.conf")["passed"].as_u64() >= Some(3_000)
        });
        let status = daemon.status();
        assert_eq!(
            (&status["log_written"], &status["log_events"]),
            (&false.into(), &0.into())
        );
        assert!(!setup.path("audit.log").exists());
        // A program that SIGHUP ends leaves what it has not read.
        let calls = || {
            let passed = std::fs::read_to_string(&out).unwrap_or_default();
            let calls = passed
                .lines()
                .filter(|line| line.starts_with("type=SYSCALL ") && line.ends_with("key=\"mine\""));
            calls.count()
        };
        until("the program's output", || calls() == 1000);
        // From here on there is a log, and its last record tells why it ends.
        setup.configure(&format!("{CONF}flush = SYNC\nq_depth = 90000\n"));
        daemon.signal(Signal::HUP);
        daemon.wait_for_record("op=reconfigure");
        call(10);
        until("the program's output", || calls() == 1010);
        setup.configure(&format!(
            "{CONF}flush = SYNC\nq_depth = 90000\nwrite_logs = no\n"
        ));
        daemon.signal(Signal::HUP);
        daemon.wait_for_record("write_logs=no");
        let logged = setup.read("audit.log");
        call(10);
        let ended = daemon.stop();
        assert!(
            ended.said.contains(" 0 lost; no log (write_logs = no)"),
            "{}",
            ended.said
        );
        assert_eq!(setup.read("audit.log"), logged);
        assert_eq!(log::count_calls(&ended.log, libc::SYS_getppid, "mine"), 10);
        assert_eq!(calls(), 1020);
    });
}
