//! Filters in use: a learnt profile suffices, and denials reach the log.

use crate::{log, machine, programs};
use std::process::Command;

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61239 -k mine\n";

fn seccomp(words: &[&str]) -> std::process::Output {
    let mut command = Command::new(programs::tarsier());
    command
        .arg("seccomp")
        .args(words)
        .output()
        .expect("tarsier runs")
}

#[test]
fn a_denial_is_in_the_daemons_log_as_a_seccomp_record() {
    machine::test("SECCOMP record of a denial", |setup| {
        let profile = setup.write("deny.list", "errno:EACCES mkdir\n");
        let profile = profile.to_str().expect("paths are text").to_owned();
        let target = setup.path("never-made");
        let target = target.to_str().expect("paths are text");
        let daemon = setup.tarsier(RULE).format("raw").start();
        let make = ["--profile", &profile, "--", "mkdir", target];
        let denied = seccomp(&[&["run"], &make[..]].concat());
        assert_eq!(denied.status.code(), Some(1), "{denied:?}");
        let supervised = seccomp(&[&["run", "--log"], &make[..]].concat());
        assert_eq!(supervised.status.code(), Some(1), "{supervised:?}");
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        let records = log::records(&events, "SECCOMP");
        let of_mkdir: Vec<_> = records
            .iter()
            .filter(|record| record.field("comm") == Some("mkdir"))
            .collect();
        let codes: Vec<_> = of_mkdir
            .iter()
            .filter_map(|record| record.field("code"))
            .collect();
        assert_eq!(codes, ["0x50000", "0x50000"]);
        assert!(of_mkdir
            .iter()
            .all(|record| record.number("syscall") == Some(83)));
        assert!(!std::path::Path::new(target).exists());
    });
}

#[test]
fn a_learnt_profile_lets_the_program_run_and_nothing_else() {
    machine::test("seccomp learn", |setup| {
        let old = setup.path("old.json");
        let (old, new) = (old.to_str().expect("text"), setup.path("new.json"));
        let new = new.to_str().expect("text");
        let learnt = seccomp(&["learn", "-o", old, "--", "cat", "/etc/hostname"]);
        assert!(learnt.status.success(), "{learnt:?}");
        let script = "read line < /etc/hostname; (exit 3)";
        let learnt = seccomp(&[
            "learn", "--merge", old, "-o", new, "--report", "--", "sh", "-c", script,
        ]);
        // The program's own exit status; then what Docker's profile allows and the shell did not
        // use.
        assert_eq!(learnt.status.code(), Some(3), "{learnt:?}");
        let report = String::from_utf8_lossy(&learnt.stderr).into_owned();
        assert!(
            report.contains("docker allows") && report.contains(" ptrace "),
            "{report}"
        );
        for (words, code) in [
            (&["cat", "/etc/hostname"][..], 0),
            (&["sh", "-c", script][..], 3),
            (&["mkdir", "/tmp/never-made-by-tarsier"][..], 1),
        ] {
            let command = [&["run", "--log", "--profile", new, "--"], words].concat();
            let ran = seccomp(&command);
            assert_eq!(ran.status.code(), Some(code), "{ran:?}");
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(said.contains("denied"), code == 1, "{said}");
        }
        // Calls of grandchildren are counted, too, and an end by a signal is reported.
        let counts = seccomp(&[
            "learn",
            "--counts",
            "--",
            "sh",
            "-c",
            "(cat /etc/hostname; kill -9 $$)",
        ]);
        assert_eq!(counts.status.code(), Some(137), "{counts:?}");
        let text = String::from_utf8_lossy(&counts.stdout).into_owned();
        let count = |name: &str| {
            let row = text
                .lines()
                .find(|line| line.trim().ends_with(&format!(" {name}")));
            row.and_then(|row| row.split_whitespace().next()?.parse::<u64>().ok())
        };
        assert_eq!(count("execve"), Some(2), "{text}");
        assert_eq!(count("kill"), Some(1), "{text}");
    });
}
