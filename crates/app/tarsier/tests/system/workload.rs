//! Every call that rules select is in the log exactly once, as it was made; no other call is.

use crate::daemon::{Ended, Setup};
use crate::{log, machine, programs};
use std::path::Path;
use std::process::Command;

/// The rules that tests/workload/workload.h describes.
pub(crate) fn rules(workload: &Path) -> String {
    let exe = workload.display();
    format!(
        "-a always,exit -F arch=b64 -S execve,execveat -F gid=61234 -k exec\n\
         -a always,exit -F arch=b64 -S all -F gid=61234 -F exe={exe} -k all\n\
         -a always,exit -F arch=b32 -S all -F gid=61234 -F exe={exe} -k all32\n"
    )
}

/// Runs the workload, which prints what it did to `truth`.
pub(crate) fn record(setup: &Setup, rules: &str, format: &str) -> Ended {
    let directory = setup.path("work");
    std::fs::create_dir(&directory).expect("a directory");
    let ended = setup
        .tarsier(rules)
        .format(format)
        .ring_kib(65536)
        .stdout(&setup.path("truth"))
        .command(&[&programs::workload(), &directory])
        .finish();
    assert!(ended.status.success(), "{}", ended.said);
    assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
    ended
}

fn check(setup: &Setup, ended: &Ended, options: &[&str]) {
    let mut check = Command::new(programs::checkout().join("tests/workload/check"));
    check.arg(setup.path("truth")).arg(&ended.log).args(options);
    let (found, _) = programs::output_of(&mut check);
    assert!(found.trim_end().ends_with(" 0 differences"), "{found}");
}

fn workload_is_recorded(name: &str, format: &str) {
    machine::test(name, |setup| {
        let ended = record(setup, &rules(&programs::workload()), format);
        check(setup, &ended, &[]);
    });
}

#[test]
fn every_call_of_the_workload_is_in_the_raw_log_once_and_as_made() {
    workload_is_recorded("workload, RAW", "raw");
}

#[test]
fn every_call_of_the_workload_is_in_the_enriched_log_once_and_as_made() {
    workload_is_recorded("workload, ENRICHED", "enriched");
}

#[test]
fn the_kernel_engine_records_the_same_workload() {
    machine::test("workload, kernel engine", |setup| {
        // Records that the kernel cannot deliver at once must wait in its queue.
        let settings = "-b 16384\n-f 0\n--backlog_wait_time 1000\n";
        let rules = settings.to_owned() + &rules(&programs::workload());
        let directory = setup.path("work");
        std::fs::create_dir(&directory).expect("a directory");
        let ended = setup
            .tarsier(&rules)
            .format("enriched")
            .option("--engine")
            .option("kernel")
            .stdout(&setup.path("truth"))
            .command(&[&programs::workload(), &directory])
            .finish();
        assert!(ended.status.success(), "{}", ended.said);
        assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
        check(setup, &ended, &["--kernel"]);
        let log = setup.read("audit.log");
        let start = log.lines().find(|line| line.contains("type=DAEMON_START "));
        assert!(start.is_some_and(|line| line.contains(" engine=kernel ")));
    });
}

/// Calls of the workload that rules for the 64-bit entry can name.
const SOME_CALLS: &str = "open,openat,openat2,creat,mkdir,mkdirat,rmdir,unlink,unlinkat,rename,\
                          renameat,renameat2,link,linkat,symlink,symlinkat,chmod,fchmod,fchmodat,\
                          truncate,ftruncate,mknod,setxattr,connect,bind,socketpair,pipe2,kill,\
                          setresuid,chdir,fchdir,exit_group,clone,fork,vfork";

#[test]
fn per_syscall_hooks_record_the_same_as_the_hook_of_every_call() {
    machine::test("workload, per-syscall hooks", |setup| {
        let workload = programs::workload();
        let exe = workload.display();
        let rules = format!(
            "-a always,exit -F arch=b64 -S {SOME_CALLS} -F gid=61234 -F exe={exe} -k some\n\
             -a always,exit -F arch=b64 -S execve,execveat -F gid=61234 -k exec\n"
        );
        setup.write("planned.rules", &rules);
        let mut plan = Command::new(programs::tarsier());
        plan.args(["plan", "--json", "--rules"])
            .arg(setup.path("planned.rules"));
        let (plan, _) = programs::output_of(&mut plan);
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        assert_eq!(
            plan["hooks"]["sys_exit"]["hook"], "per_syscall",
            "{}",
            plan["hooks"]
        );
        let ended = record(setup, &rules, "raw");
        without_b32(setup);
        let named = format!("{SOME_CALLS},execve,execveat");
        check(setup, &ended, &["--syscalls", &named]);
    });
}

/// Removes calls through the 32-bit entry, which no rule here selects, from the truth.
fn without_b32(setup: &Setup) {
    let truth = setup.read("truth");
    let native = truth
        .split_inclusive('\n')
        .filter(|line| line.split('\t').nth(4) != Some("b32"));
    setup.write("truth", &native.collect::<String>());
}

#[test]
fn the_running_daemon_names_the_hook_that_the_plan_chose() {
    machine::test("hooks in status", |setup| {
        for (width, hook) in [
            ("b64", "tracepoint/syscalls/sys_exit_*"),
            ("b32", "tp_btf/sys_exit"),
        ] {
            if width == "b32" && !crate::calls::int80_is_possible() {
                println!("skipped: hooks in status, b32: no 32-bit entry here");
                continue;
            }
            let rules = format!("-a always,exit -F arch={width} -S getppid -F gid=61299 -k hook\n");
            let daemon = setup.tarsier(&rules).start();
            assert_eq!(daemon.status()["hook"], hook, "{width}");
            let ended = daemon.stop();
            assert!(ended.status.success(), "{}", ended.said);
        }
    });
}

#[test]
fn a_json_log_has_one_object_for_each_event_and_every_argument() {
    machine::test("workload, JSON", |setup| {
        let ended = record(setup, &rules(&programs::workload()), "json");
        let text = std::fs::read_to_string(&ended.log).expect("JSON is UTF-8");
        let objects: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:.300}")))
            .collect();
        let calls = std::fs::read_to_string(setup.path("truth")).expect("the truth");
        let made = calls.lines().skip(1);
        let made = made
            .filter(|line| line.split('\t').nth(4) != Some("x32"))
            .count();
        let keyed = |object: &serde_json::Value| {
            object["records"][0]["key"].as_array().is_some_and(|keys| {
                keys.iter()
                    .any(|key| matches!(key.as_str(), Some("exec" | "all" | "all32")))
            })
        };
        assert_eq!(objects.iter().filter(|object| keyed(object)).count(), made);
        let mut stamps: Vec<String> = objects
            .iter()
            .map(|object| format!("{} {}", object["time"], object["serial"]))
            .collect();
        stamps.sort_unstable();
        let count = stamps.len();
        stamps.dedup();
        assert_eq!(stamps.len(), count, "an event in more than one object");
        let longest = objects
            .iter()
            .flat_map(|object| object["records"].as_array().into_iter().flatten())
            .filter_map(|record| record["argv"].as_array())
            .max_by_key(|argv| argv.len())
            .expect("an EXECVE record");
        let truth = longest_argv(&calls);
        assert!(truth.len() >= 10_000, "{} arguments", truth.len());
        assert_eq!(longest.len(), truth.len());
        let differs = longest
            .iter()
            .zip(&truth)
            .position(|(logged, made)| logged.as_str() != Some(made));
        assert_eq!(differs, None);
    });
}

/// The longest argument list of the workload's output.
fn longest_argv(truth: &str) -> Vec<String> {
    let header = truth.lines().next().expect("a header");
    let column = header.split('\t').position(|name| name.ends_with("argv"));
    let column = column.expect("a column argv");
    truth
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(column))
        .map(|argv| argv.split(',').map(unhex).collect::<Vec<_>>())
        .max_by_key(Vec::len)
        .expect("an exec")
}

fn unhex(text: &str) -> String {
    let digit = |i: usize| u8::from_str_radix(text.get(i..i + 2).unwrap_or("20"), 16);
    let bytes = (0..text.len()).step_by(2).map(|i| digit(i).unwrap_or(b' '));
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

#[test]
fn each_line_of_an_enriched_log_is_the_raw_line_and_names() {
    machine::test("ENRICHED is RAW and names", |setup| {
        let rules = "-a always,exit -F arch=b64 -S getppid -F gid=61298 -k pair\n";
        let daemon = setup.tarsier(rules).format("enriched").start();
        let made = crate::calls::Caller::gid(61298).make(&[crate::calls::call!(getppid)]);
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        assert_eq!(log::calls_of(&events, made.pid), ["getppid pair"]);
        let text = setup.read("audit.log");
        let line = text
            .lines()
            .find(|line| line.contains("key=\"pair\""))
            .expect("the event");
        let (_, names) = line.split_once('\u{1d}').expect("names");
        for name in ["ARCH=x86_64", "SYSCALL=getppid", "AUID=", "UID=\"root\""] {
            assert!(
                names.contains(name) || !cfg!(target_arch = "x86_64"),
                "{line}"
            );
        }
    });
}
