//! A program's io_uring operations are in the log like its system calls.

use crate::log::{self, Event};
use crate::{machine, programs};
use std::process::Command;

const MODES: [&str; 3] = ["inline", "worker", "sqpoll"];

/// An operation, as printed by the workload or as recorded in an event.
#[derive(Debug, PartialEq, Eq)]
struct Operation {
    pid: u32,
    name: String,
    result: i64,
    /// Paths that it names, or the address that it uses; empty if it has none.
    objects: Vec<String>,
}

/// The operations that `workload --rings` printed whose names are among `names`.
fn made(truth: &str, names: &[&str]) -> Vec<Operation> {
    let lines = truth.lines().map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [_, pid, name, result, objects] = columns[..] else {
            panic!("five columns: {line:?}")
        };
        Operation {
            pid: pid.parse().expect("a process"),
            name: name.to_owned(),
            result: result.parse().expect("a result"),
            objects: match objects {
                "-" => Vec::new(),
                _ => objects.split(' ').map(str::to_owned).collect(),
            },
        }
    });
    lines
        .filter(|op| names.contains(&op.name.as_str()))
        .collect()
}

/// The operations in the log that belong to the processes of `made`.
fn logged(events: &[Event], made: &[Operation]) -> Vec<Operation> {
    let pids: Vec<u32> = made.iter().map(|op| op.pid).collect();
    let operation = |event: &Event| {
        let record = event.record("URINGOP")?;
        let number = record.number("uring_op")? as u32;
        Some(Operation {
            pid: record.number("pid")? as u32,
            name: abi::uring_op_name(number)?.to_owned(),
            result: record.number("exit")?,
            objects: objects(event, abi::uring_op_name(number)?),
        })
    };
    let all = events.iter().filter_map(operation);
    all.filter(|op| pids.contains(&op.pid)).collect()
}

fn objects(event: &Event, name: &str) -> Vec<String> {
    if name == "connect" {
        let address = event.record("SOCKADDR").and_then(|r| r.field("saddr"));
        return address.into_iter().map(str::to_owned).collect();
    }
    // PARENT directories have the same names as the paths.
    let paths = event.records.iter().filter(|record| record.kind == "PATH");
    let mut names: Vec<String> = paths
        .filter(|record| record.field("nametype") != Some("PARENT"))
        .filter_map(|record| record.field("name"))
        .filter(|name| *name != "(null)")
        .map(str::to_owned)
        .collect();
    names.dedup();
    // If the name to remove was not found, the kernel records only its directory.
    if names.is_empty() && name == "unlinkat" {
        names.push("missing".to_owned());
    }
    names
}

const RULES: &str = "-a always,io_uring -S openat,openat2,read,write,close,linkat,renameat,\
                     symlinkat,mkdirat,unlinkat,socket,bind,connect,accept,send,sendmsg,recv,splice \
                     -F gid=61234 -k ring\n";
const NAMES: [&str; 18] = [
    "openat",
    "openat2",
    "read",
    "write",
    "close",
    "linkat",
    "renameat",
    "symlinkat",
    "mkdirat",
    "unlinkat",
    "socket",
    "bind",
    "connect",
    "accept",
    "send",
    "sendmsg",
    "recv",
    "splice",
];

fn same_but_for_missing(made: Vec<Operation>) -> Vec<Operation> {
    made.into_iter()
        .map(|mut op| {
            if op.name == "unlinkat" && op.result < 0 {
                op.objects = vec!["missing".to_owned()];
            }
            op
        })
        .collect()
}

#[test]
fn every_operation_is_in_the_log_once_whoever_carries_it_out() {
    machine::test("io_uring operations", |setup| {
        for mode in MODES {
            let directory = setup.path(mode);
            std::fs::create_dir(&directory).expect("a directory");
            let log = setup.path(&format!("{mode}.log"));
            let truth = setup.path(&format!("{mode}.truth"));
            let ended = setup
                .tarsier(RULES)
                .format("raw")
                .log(log.clone())
                .stdout(&truth)
                .command(&[&programs::workload(), &"--rings", &mode, &directory])
                .finish();
            assert!(ended.status.success(), "{}", ended.said);
            assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
            let truth = std::fs::read_to_string(&truth).expect("what was made");
            let made = same_but_for_missing(made(&truth, &NAMES));
            let logged = logged(&log::events(&log), &made);
            assert_eq!(logged.len(), made.len(), "{mode}: {logged:#?}");
            for (logged, made) in logged.iter().zip(&made) {
                assert_eq!(logged, made, "{mode}");
            }
        }
    });
}

#[test]
fn a_rule_on_openat_alone_sees_the_files_opened_through_rings() {
    machine::test("twins", |setup| {
        let directory = setup.path("work");
        std::fs::create_dir(&directory).expect("a directory");
        let rules = "-a always,exit -F arch=b64 -S openat -F gid=61234 -k opened\n";
        let ended = setup
            .tarsier(rules)
            .format("raw")
            .stdout(&setup.path("truth"))
            .command(&[&programs::workload(), &"--rings", &"inline", &directory])
            .finish();
        let made = made(&setup.read("truth"), &["openat"]);
        let events = log::events(&ended.log);
        assert_eq!(logged(&events, &made), made);
        let keys = log::records(&events, "URINGOP");
        assert!(keys
            .iter()
            .all(|record| record.field("key") == Some("opened")));
    });
}

#[test]
fn readers_of_the_log_know_operations() {
    machine::test("ausearch and operations", |setup| {
        let Some(_) = testkit::peers("ausearch and operations") else {
            return;
        };
        let directory = setup.path("work");
        std::fs::create_dir(&directory).expect("a directory");
        let ended = setup
            .tarsier(RULES)
            .format("enriched")
            .stdout(&setup.path("truth"))
            .command(&[&programs::workload(), &"--rings", &"sqpoll", &directory])
            .finish();
        let made = made(&setup.read("truth"), &NAMES);
        let mut ausearch = programs::peer("ausearch");
        // Debian's ausearch does not find operations by key, not even the kernel's own.
        ausearch
            .args(["--raw", "-m", "URINGOP", "-if"])
            .arg(&ended.log);
        let (found, _) = programs::output_of(&mut ausearch);
        let count = found
            .lines()
            .filter(|l| l.contains("type=URINGOP "))
            .count();
        assert_eq!(count, made.len(), "{found}");
    });
}

/// Operations that are cancelled, linked behind a failure, done by workers, or in flight when the
/// ring is closed.
#[test]
fn under_a_storm_of_rings_what_was_submitted_is_recorded_or_counted_as_lost() {
    machine::test("a storm of rings", |setup| {
        let directory = setup.path("work");
        std::fs::create_dir(&directory).expect("a directory");
        let rules = "-a always,io_uring -S openat -F gid=61234 -k storm\n";
        let daemon = setup.tarsier(rules).format("raw").start();
        let mut storm = Command::new(programs::workload());
        storm.args(["--rings", "--storm", "300"]).arg(&directory);
        let (made, _) = programs::output_of(&mut storm);
        let made: usize = made
            .trim()
            .strip_prefix("openat\t")
            .and_then(|count| count.parse().ok())
            .expect("a count");
        let status = daemon.status();
        let ended = daemon.stop();
        let events = log::events(&ended.log);
        let recorded = log::records(&events, "URINGOP");
        // The result of an operation that was recorded as pending has an event of its own.
        let is_first = |record: &&&log::Record| record.field("result_of").is_none();
        let recorded = recorded.iter().filter(is_first).count();
        let lost = status["lost"].as_object().expect("causes");
        let lost: u64 = lost.values().filter_map(serde_json::Value::as_u64).sum();
        let lost = lost as usize;
        assert_eq!(recorded + lost, made, "{}", ended.said);
    });
}

/// The records of operations.
fn removals(log: &std::path::Path) -> Vec<log::Record> {
    let events = log::events(log);
    let of_event = |event: log::Event| event.records.into_iter().find(|r| r.kind == "URINGOP");
    events.into_iter().filter_map(of_event).collect()
}

#[test]
fn an_operation_whose_result_nobody_fetches_is_in_the_log_within_a_second() {
    machine::test("withheld results", |setup| {
        let evade = programs::evade();
        let on = |words: &[&str]| {
            let mut command = Command::new(&evade);
            command
                .arg(words[0])
                .arg(setup.path("mnt"))
                .args(&words[1..]);
            command
        };
        programs::output_of(&mut on(&["prepare"]));
        let rule = "-a always,exit -F arch=b64 -S unlinkat -F success=1 -k withheld\n";
        let daemon = setup.tarsier(rule).format("raw").start();
        let mut maker = on(&["make", "ring-withheld"])
            .spawn()
            .expect("evade starts");
        let log = setup.path("audit.log");
        let pending = |records: &[log::Record]| {
            let is_pending = |r: &&log::Record| r.field("pending") == Some("yes");
            records.iter().filter(is_pending).count()
        };
        // The technique sleeps for two seconds when it has made its operations.
        while pending(&removals(&log)) < 5 {
            let is_over = maker.try_wait().expect("its state").is_some();
            assert!(
                !is_over,
                "the results came before the operations were in the log"
            );
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(maker.wait().expect("it ends").success());
        drop(daemon.stop());
        let records = removals(&log);
        assert_eq!((records.len(), pending(&records)), (10, 5), "{records:#?}");
        let results = records.iter().filter(|r| r.field("result_of").is_some());
        for record in results {
            assert_eq!(record.field("success"), Some("yes"), "{record:?}");
        }
        programs::output_of(&mut on(&["clean"]));
    });
}

#[test]
fn every_rule_of_the_sample_for_rings_is_honoured() {
    let mut plan = Command::new(programs::tarsier());
    plan.args(["plan", "--json", "--rules"])
        .arg(programs::checkout().join("share/rules/io_uring.rules"));
    let (plan, _) = programs::output_of(&mut plan);
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let rules = plan["rules"].as_array().expect("rules");
    assert!(rules.len() > 8, "{plan}");
    for rule in rules {
        assert_ne!(rule["exactness"]["level"], "not_honoured", "{rule}");
        let operations = rule["operations"].as_array().map_or(0, Vec::len);
        assert!(rule["list"] != "io_uring" || operations > 0, "{rule}");
    }
}
