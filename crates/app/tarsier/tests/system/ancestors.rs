//! Ancestors and labels of processes, however they were made, ended and numbered.

use crate::daemon::{Daemon, Run, Setup};
use crate::machine;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::ancestors::{judge, Judged, LABEL_KEYS, LABEL_RULES};

/// Sets the number of processes, which takes about 1 ms for each, and 4 KiB of log: 1000000, for example.
const COUNT: &str = "TARSIER_ANCESTORS";
/// Processes that run at a time.
const LIVE: &str = "100";
const RULE: &str = "-a always,exit -F arch=b64 -S fchmodat -F gid=61334 -k ancestors\n";

/// Starts a program below this many shells. They are made while the daemon runs, so that all ancestors that it names are
/// known. In a container, those from before may not be: the first process often has no path there.
const NEST: &str = r#"left=$1
shift
if [ "$left" -gt 0 ]; then
    sh "$0" $((left - 1)) "$@"
    exit $?
fi
exec setpriv --regid 61334 --keep-groups -- "$@"
"#;

fn tarsier(setup: &Setup) -> Run {
    let labels = LABEL_RULES.replace(" -k", " -F gid=61334 -k");
    let run = setup.tarsier(&(labels + RULE)).format("json");
    setup.configure(&format!(
        "flush = NONE\nmax_log_file_action = IGNORE\n{LABEL_KEYS}"
    ));
    run.option("--no-kernel-records")
}

/// The program of `tests/vm/ancestors.c`; `None`, which is printed, if there is no compiler.
fn workload(setup: &Setup) -> Option<PathBuf> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/vm/ancestors.c");
    let program = setup.path("workload");
    let mut compiler = Command::new("cc");
    let compiler = compiler.args(["-O2", "-o"]).arg(&program).arg(source);
    match compiler.status() {
        Ok(status) => {
            assert!(status.success(), "{source} is compiled");
            Some(program)
        }
        Err(error) => {
            println!("skipped: ancestors: no C compiler: {error}");
            None
        }
    }
}

/// Has `count` processes made, whose programs are in the directory that is returned.
fn make(setup: &Setup, workload: &Path, count: &str) -> PathBuf {
    let programs = setup.path("programs");
    std::fs::create_dir(&programs).expect("a directory");
    // It writes there.
    std::os::unix::fs::chown(&programs, None, Some(61334)).expect("the directory's group");
    let nest = setup.write("nest", NEST);
    let mut command = Command::new("sh");
    command.arg(&nest).arg("8").arg(workload);
    command.args([count, LIVE]).arg(&programs);
    let status = command
        .stdout(Stdio::null())
        .status()
        .expect("the workload");
    assert!(status.success(), "the workload: {status}");
    programs
}

fn judged(daemon: Daemon, programs: &Path) -> Judged {
    let ended = daemon.stop();
    let judged = judge(&ended.log, programs);
    judged.unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn each_process_has_the_ancestors_and_labels_that_it_knows() {
    machine::test("ancestors", |setup| {
        let Some(workload) = workload(setup) else {
            return;
        };
        let count = std::env::var(COUNT).unwrap_or_else(|_| "10000".to_owned());
        let daemon = tarsier(setup).ring_kib(65536).start();
        let programs = make(setup, &workload, &count);
        let status = daemon.status();
        assert_eq!(status["processes_lost"], 0);
        let judged = judged(daemon, &programs);
        println!(
            "{judged}; {} KiB",
            status["processes_bytes"].as_u64().unwrap_or(0) / 1024
        );
        let lacking = (judged.partial, judged.untitled, judged.unlabelled);
        assert_eq!(lacking, (0, 0, 0));
        assert!(judged.labels > 0, "{judged}");
        let count: u64 = count.parse().expect("a number");
        assert!(judged.processes >= count * 9 / 10, "{judged}");
    });
}

#[test]
fn lost_word_of_processes_makes_ancestors_partial_never_wrong() {
    machine::test("lost frames of processes", |setup| {
        let Some(workload) = workload(setup) else {
            return;
        };
        // Small rings, and a daemon that reads nothing for half of the time.
        let daemon = tarsier(setup).ring_kib(128).start();
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let programs = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    daemon.signal(Signal::STOP);
                    std::thread::sleep(std::time::Duration::from_millis(1500));
                    daemon.signal(Signal::CONT);
                    std::thread::sleep(std::time::Duration::from_millis(100));
                }
            });
            let programs = make(setup, &workload, "10000");
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            programs
        });
        let lost = daemon.status()["processes_lost"]
            .as_u64()
            .expect("a number");
        assert!(lost > 0, "the rings had room for everything");
        let judged = judged(daemon, &programs);
        println!("{judged}; {lost} changes lost");
        assert!(judged.partial > 0, "{judged}");
    });
}

#[test]
fn scripts_are_told_beside_their_interpreters() {
    use std::os::unix::fs::PermissionsExt;
    machine::test("scripts", |setup| {
        let daemon = tarsier(setup).start();
        // Relative, by a path, and found in PATH.
        let script = setup.write("script", "#!/bin/sh\nchmod 600 \"$1\"; true\n");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&script, executable).expect("a script");
        let dir = script.parent().expect("a directory").to_owned();
        for (place, given) in ["./script", script.to_str().expect("a path"), "script"]
            .iter()
            .enumerate()
        {
            let file = setup.write(&format!("file-{place}"), "");
            let mut command = Command::new("setpriv");
            command.args(["--regid", "61334", "--keep-groups", "--", given]);
            command.arg(&file).current_dir(&dir).env(
                "PATH",
                format!("{}:{}", dir.display(), std::env::var("PATH").expect("PATH")),
            );
            assert!(command.status().expect("the script").success(), "{given}");
        }
        let ended = daemon.stop();
        let text = std::fs::read_to_string(&ended.log).expect("the log");
        let events = text.lines().filter(|line| line.contains("file-"));
        let scripts: Vec<String> = events
            .map(|line| {
                let event: serde_json::Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(event["process"]["script"], serde_json::Value::Null);
                let maker = &event["process"]["ancestors"][0];
                assert_ne!(maker["exe"], maker["script"], "{maker}");
                maker["script"].as_str().expect("a script").to_owned()
            })
            .collect();
        let expected = script.to_str().expect("a path").to_owned();
        assert_eq!(scripts, [expected.clone(), expected.clone(), expected]);
    });
}
