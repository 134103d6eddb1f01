//! `tarsier status --by`: who fills the log, compared with the log.

use crate::daemon::{Daemon, Run, Setup};
use crate::identity::{wait, Top};
use crate::machine;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const GID: libc::gid_t = 61338;
const RULE: &str = "-a always,exit -F arch=b64 -S fchmodat -F gid=61338 -k makers\n";
/// Limit of the names in a table.
const NAMES_MAX: usize = 1024;

/// Runs a process that moves to a cgroup, takes this uid, makes `calls` calls, and ends.
fn run(procs: &File, uid: libc::uid_t, calls: u32) {
    // SAFETY: after fork, the child makes system calls only.
    let pid = unsafe {
        match libc::fork() {
            0 => {
                let moved = libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) == 1;
                let is_ready = moved
                    && libc::syscall(libc::SYS_setresgid, GID, GID, GID) == 0
                    && libc::syscall(libc::SYS_setresuid, uid, uid, uid) == 0;
                for _ in 0..calls {
                    libc::syscall(
                        libc::SYS_fchmodat,
                        libc::AT_FDCWD,
                        c"/no/such/file".as_ptr(),
                        0o600,
                    );
                }
                libc::_exit(i32::from(!is_ready))
            }
            pid => pid,
        }
    };
    wait(pid);
}

fn tarsier(setup: &Setup) -> Run {
    let run = setup.tarsier(RULE).format("json").ring_kib(65536);
    run.option("--no-kernel-records")
}

/// The answer to `status --by`, once it counts this number of events.
fn table(daemon: &Daemon, options: &[&str], events: u64) -> Value {
    let end = Instant::now() + Duration::from_secs(300);
    loop {
        let output = daemon.asked(&[options, &["--json"]].concat());
        assert!(output.status.success(), "{output:?}");
        let table: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if table["total"]["events"] == events {
            return table;
        }
        assert!(Instant::now() < end, "{events} events: {table}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Events and bytes of each row.
fn rows(table: &Value) -> BTreeMap<String, (u64, u64)> {
    let rows = table["rows"].as_array().expect("rows");
    let number = |row: &Value, name: &str| row[name].as_u64().expect("a number");
    let row = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, (number(row, "events"), number(row, "bytes")))
    };
    rows.iter().map(row).collect()
}

/// Events of the test's processes in the log, and the bytes of their lines, by what `name` finds in an event.
fn logged(log: &Path, name: impl Fn(&Value) -> String) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for line in std::fs::read_to_string(log).expect("the log").lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        if event["records"][0]["type"] != "SYSCALL" {
            continue;
        }
        let (events, bytes) = sums.entry(name(&event)).or_default();
        *events += 1;
        *bytes += line.len() as u64 + 1;
    }
    sums
}

/// A text in an event; `(none)` if it is not there.
fn text(value: &Value) -> String {
    value.as_str().unwrap_or("(none)").to_owned()
}

fn scraped(socket: &Path) -> String {
    let mut client = UnixStream::connect(socket).expect("the metrics");
    let request = b"GET /metrics HTTP/1.1\r\n\r\n";
    client.write_all(request).expect("a request");
    let mut text = String::new();
    client.read_to_string(&mut text).expect("the answer");
    text
}

#[test]
fn what_units_containers_uids_and_programs_cost_is_what_the_log_has_of_them() {
    machine::test("who fills the log", |setup| {
        let Some(top) = Top::new("who fills the log") else {
            return;
        };
        let run_daemon = tarsier(setup);
        let socket = setup.path("metrics.sock");
        let metrics = format!("metrics = unix:{}\n", socket.display());
        setup.configure(&format!("max_log_file_action = IGNORE\n{metrics}"));
        let daemon = run_daemon.start();
        let container = "f".repeat(64);
        let scope = format!("docker-{container}.scope");
        for (unit, uid, calls) in [("web.service", 0, 300), ("db.service", 70_001, 120)] {
            run(&top.make(unit), uid, calls);
        }
        run(&top.make(&scope), 70_001, 30);
        let events = 450;
        let by = |kind: &str| rows(&table(&daemon, &["--by", kind], events));
        let (unit, container_) = (by("unit"), by("container"));
        let (uid, exe) = (by("uid"), by("exe"));
        let first = &table(&daemon, &["--by", "unit", "--sort", "events"], events)["rows"][0];
        assert_eq!(first["name"], "web.service");
        let recent = table(&daemon, &["--by", "unit", "--recent"], events);
        assert_eq!(rows(&recent), unit);
        let cut = table(&daemon, &["--by", "unit", "--top", "1"], events);
        let names: Vec<String> = rows(&cut).into_keys().collect();
        assert_eq!(names, ["(others)", "web.service"]);
        let printed = daemon.asked(&["--by", "unit"]).stdout;
        assert!(String::from_utf8_lossy(&printed).contains("  db.service\n"));
        let metrics = scraped(&socket);
        assert_eq!(daemon.status()["events_recorded"], events);
        let log = daemon.stop().log;
        let workload = |event: &Value, name: &str| text(&event["workload"][name]);
        assert_eq!(unit, logged(&log, |event| workload(event, "unit")));
        assert_eq!(unit["web.service"].0, 300);
        let of_container = |event: &Value| text(&event["workload"]["container"]["id"]);
        assert_eq!(container_, logged(&log, of_container));
        assert_eq!(container_[&container].0, 30);
        let call = |event: &Value, name: &str| event["records"][0][name].clone();
        assert_eq!(uid, logged(&log, |event| call(event, "uid").to_string()));
        assert_eq!(exe, logged(&log, |event| text(&call(event, "exe"))));
        for (name, (events, bytes)) in &unit {
            for (what, count) in [("events", events), ("bytes", bytes)] {
                let line =
                    format!("\ntarsier_log_{what}_by_unit_total{{unit=\"{name}\"}} {count}\n");
                assert!(metrics.contains(&line), "{line}{metrics}");
            }
        }
    });
}

#[test]
fn two_thousand_units_neither_hide_a_flooder_nor_enlarge_the_table() {
    const UNITS: u32 = 2000;
    machine::test("many units and a flooder", |setup| {
        let Some(top) = Top::new("many units and a flooder") else {
            return;
        };
        let daemon = tarsier(setup).start();
        let flooder = top.make("flooder.service");
        for number in 0..UNITS {
            let unit = format!("new-{number}.service");
            run(&top.make(&unit), 0, 1);
            top.remove(&unit);
            if number % 20 == 0 {
                run(&flooder, 0, 10);
            }
        }
        let events = u64::from(UNITS + UNITS / 20 * 10);
        let told = table(&daemon, &["--by", "unit", "--top", "3"], events);
        let log = daemon.stop().log;
        let logged = logged(&log, |event| text(&event["workload"]["unit"]));
        assert_eq!(told["rows"][0]["name"], "flooder.service");
        let (rows, flooder) = (rows(&told), &logged["flooder.service"]);
        assert_eq!(&rows["flooder.service"], flooder);
        assert_eq!(told["names"], NAMES_MAX);
        let all: u64 = rows.values().map(|(events, _)| events).sum();
        let bytes: u64 = rows.values().map(|(_, bytes)| bytes).sum();
        assert_eq!(
            (all, told["total"]["bytes"].as_u64()),
            (events, Some(bytes))
        );
        assert_eq!(logged.values().map(|(_, bytes)| bytes).sum::<u64>(), bytes);
    });
}

#[test]
fn the_kernel_engine_tells_uids_and_programs_and_says_what_it_does_not_know() {
    machine::test("who fills the log of the kernel engine", |setup| {
        let Some(top) = Top::new("who fills the log of the kernel engine") else {
            return;
        };
        let run_daemon = setup.tarsier(RULE).format("raw");
        let daemon = run_daemon.option("--engine").option("kernel").start();
        run(&top.make("web.service"), 70_002, 25);
        let by = |kind: &str| rows(&table(&daemon, &["--by", kind], 25));
        assert_eq!(by("uid")["70002"].0, 25);
        let exe = std::env::current_exe().expect("this program");
        assert_eq!(by("exe")[exe.to_str().expect("text")].0, 25);
        for kind in ["unit", "container"] {
            let refused = daemon.asked(&["--by", kind]);
            let said = String::from_utf8_lossy(&refused.stderr).into_owned();
            assert!(!refused.status.success());
            assert!(said.contains("the kernel engine name no cgroup"), "{said}");
        }
        daemon.stop();
    });
}
