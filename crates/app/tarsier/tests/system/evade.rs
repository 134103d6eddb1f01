//! No call of an attacker who knows how calls are recorded goes unrecorded.

use crate::daemon::Setup;
use crate::{machine, programs};
use std::path::Path;
use std::process::{Command, Stdio};
use testkit::evade::{EvasionHost, EvasionVerdict};

/// Uses a set of techniques while their rules are armed.
fn attack(setup: &Setup, set: &str) -> EvasionVerdict {
    let bin = setup.path("bin");
    std::fs::create_dir(&bin).expect("a directory");
    for (program, name) in [
        (programs::evade(), "evade"),
        (programs::tarsier(), "tarsier"),
    ] {
        std::os::unix::fs::symlink(program, bin.join(name)).expect("a link");
    }
    let suite = programs::checkout().join("tests/evade");
    let path = std::env::var("PATH").expect("a path");
    let output = Command::new(suite.join("run"))
        .arg(suite.join("rules"))
        .arg(setup.path("mnt"))
        .args(["tracepoint", set])
        .env("PATH", format!("{}:{path}", bin.display()))
        .current_dir(setup.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("tests/evade/run starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    let name = format!("tracepoint.{set}");
    EvasionVerdict::of_run(&setup.path(""), &name, EvasionHost::Host).expect("results")
}

fn nothing_evades(name: &str, set: &str, hook: Option<&str>) {
    machine::test(name, |setup| {
        let verdict = attack(setup, set);
        for skipped in &verdict.skipped {
            println!("skipped: {name}: {skipped}");
        }
        if let Some(hook) = hook {
            assert_eq!(
                status(&setup.path(&format!("tracepoint.{set}.status")))["hook"],
                hook
            );
        }
        assert!(verdict.is_right(), "{}", verdict.text());
        println!("{name}: {}", verdict.text());
    });
}

fn status(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).expect("the daemon's status");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn nothing_evades_the_hook_of_every_call() {
    nothing_evades("evasion, every call hooked", "all", Some("tp_btf/sys_exit"));
}

#[test]
fn nothing_evades_per_syscall_hooks() {
    let hook = "tracepoint/syscalls/sys_exit_*";
    nothing_evades("evasion, per-syscall hooks", "b64", Some(hook));
}

#[test]
fn a_daemon_that_may_not_use_32_bit_entry_records_the_calls_of_those_who_may() {
    nothing_evades("evasion, 32-bit entry refused", "refused32", None);
}

#[test]
fn what_floods_the_rings_is_recorded_or_counted_against_its_rule() {
    nothing_evades("evasion, floods", "flood", None);
}
