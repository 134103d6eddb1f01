//! `tarsier plan --profile` as a program: calls are counted, events of a log too, and bad logs are refused.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tempfile::TempDir;

/// Runs `tarsier plan` with a rule on openat(2).
fn plan(directory: &TempDir, args: &[&str]) -> Output {
    let rules = directory.path().join("one.rules");
    let text = "-a always,exit -F arch=b64 -S openat -F auid=12345 -k k\n";
    std::fs::write(&rules, text).expect("the rules are written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.args(["plan", "--engine", "tracepoint", "--rules"]);
    command.arg(rules).args(args);
    command.output().expect("tarsier runs")
}

fn said(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&both).into_owned()
}

#[test]
fn calls_of_the_host_are_counted_and_priced() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: counting calls: not root");
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let (made, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = rustix::process::getppid();
                made.fetch_add(1, Ordering::Relaxed);
            }
        });
        let output = plan(
            &directory,
            &["--profile", "live", "--seconds", "1", "--json"],
        );
        is_done.store(true, Ordering::Relaxed);
        output
    });
    let made = made.into_inner();
    assert!(output.status.success(), "{}", said(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let calls = told["calls"].as_array().expect("calls");
    let call = calls.iter().find(|call| call["name"] == "getppid");
    let call = call.unwrap_or_else(|| panic!("no getppid in {told}"));
    let counted =
        call["per_s"].as_f64().expect("a number") * told["seconds"].as_f64().expect("one");
    // Some are made before and after the second, and other processes make it too.
    assert!(counted >= 1000.0, "{counted} of {made} calls, {told}");
    assert_eq!(call["is_watched"], false);
    let sum: f64 = calls
        .iter()
        .map(|call| call["percent"].as_f64().expect("a number"))
        .sum();
    let of = |name: &str| told[name].as_f64().expect("a number");
    assert!(
        (of("unwatched_percent") + of("watched_percent") - sum).abs() < 1e-6,
        "{told}"
    );
}

/// A SYSCALL event of `openat`.
fn event(at_s: u64, serial: u64) -> String {
    let id = format!("msg=audit({at_s}.000:{serial})");
    format!(
        "type=SYSCALL {id}: arch=c000003e syscall=257 success=yes exit=3 pid=1 comm=\"a\" exe=\"/a\" key=\"k\"\n\
         type=PROCTITLE {id}: proctitle=61\n"
    )
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("the log is written");
}

#[test]
fn events_of_a_log_are_counted_over_its_time() {
    let directory = TempDir::new().expect("a directory");
    let log = directory.path().join("audit.log");
    let text: String = (0..=50)
        .map(|number| event(1_700_000_000 + 2 * number, number))
        .collect();
    write(
        &log,
        &(text + "type=LOGIN msg=audit(1700000200.000:99): pid=1 uid=0 res=1\n"),
    );
    let name = log.to_str().expect("UTF-8");
    let output = plan(&directory, &["--profile", name, "--json"]);
    assert!(output.status.success(), "{}", said(&output));
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["events"], 51);
    assert_eq!(told["seconds"], 200.0);
    let text = said(&plan(&directory, &["--profile", name]));
    assert!(
        text.contains("51 events of calls in 200 s, 0.3 per second"),
        "{text}"
    );
}

#[test]
fn a_log_without_time_between_events_and_one_that_is_not_there_are_refused() {
    let directory = TempDir::new().expect("a directory");
    let log = directory.path().join("audit.log");
    write(&log, &event(1_700_000_000, 1));
    let output = plan(&directory, &["--profile", log.to_str().expect("UTF-8")]);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("take a log of some minutes"),
        "{}",
        said(&output)
    );
    let output = plan(&directory, &["--profile", "/nonexistent/audit.log"]);
    assert!(!output.status.success());
    assert!(
        said(&output).contains("/nonexistent/audit.log"),
        "{}",
        said(&output)
    );
    assert!(
        !said(&output).contains("tarsier: tarsier:"),
        "{}",
        said(&output)
    );
    let output = plan(&directory, &["--seconds", "5"]);
    assert!(said(&output).contains("--profile"), "{}", said(&output));
}
