//! Processes, their parents and older ancestors, as logs with `identity = yes` name them.

use super::ecs_facts::EcsFacts;
use super::events::Sample;
use super::ocsf_facts::OcsfFacts;
use serde_json::{json, Value};

const BOOT: &str = "53d1a22c-0000-4000-8000-000000000000";

/// The head of SYSCALL, with `call` in it.
fn syscall(call: &str) -> String {
    format!(
        "type=SYSCALL msg=audit(1795229630.644:45): arch=c000003e {call} a0=0 a1=0 a2=0 a3=0 items=0 ppid=41 pid=42 \
         auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses=3 comm=\"id\" exe=\"/usr/bin/id\""
    )
}

/// The event of a JSON log: process 42, its parent 41, and a thread of the kernel.
fn json_log(call: &str) -> Sample {
    let raw = Sample::new(syscall(call).into_bytes());
    let mut event = raw.map("json");
    event["process"] = json!({
        "pid": 42, "start": 700, "boot": BOOT, "exe": "/usr/bin/id", "script": "/srv/run",
        "ancestors": [
            {"pid": 41, "start": 600, "exe": "/usr/bin/bash", "argv": ["bash", "-c", "a b"]},
            {"pid": 2, "start": 1, "kernel": true},
        ],
    });
    event["hashes"] = json!([
        {"file": "exe", "path": "/usr/bin/id", "inode": 7, "sha256": "ab".repeat(32)},
        {"file": "script", "path": "/srv/run", "sha256": null, "why": "changed"},
    ]);
    Sample::new(event.to_string().into_bytes())
}

fn checked(sample: &Sample, format: &str) -> Value {
    let document = sample.map(format);
    let errors = match format {
        "ocsf" => OcsfFacts::read().errors(&document),
        _ => EcsFacts::read().errors(&document),
    };
    assert_eq!(errors, Vec::<String>::new(), "{format}");
    document
}

#[test]
fn a_json_log_names_process_and_parent_as_sequences_of_rules_join_them() {
    let document = checked(&json_log("syscall=59 success=yes exit=0"), "ecs");
    let process = &document["process"];
    assert_eq!(process["entity_id"], format!("{BOOT}/42/700"));
    let parent = &process["parent"];
    assert_eq!(parent["entity_id"], format!("{BOOT}/41/600"));
    assert_eq!(parent["pid"], 41);
    assert_eq!(parent["executable"], "/usr/bin/bash");
    assert_eq!(parent["name"], "bash");
    assert_eq!(parent["args"], json!(["bash", "-c", "a b"]));
    assert_eq!(parent["args_count"], 3);
    assert_eq!(parent["command_line"], "bash -c a b");
    let ancestors = json!(["41:/usr/bin/bash", "2:kernel"]);
    assert_eq!(document["auditd"]["ancestors"], ancestors);
    assert_eq!(document["auditd"]["script"], "/srv/run");
    assert_eq!(document["host"]["id"], document["host"]["name"]);
    assert_eq!(document["process"]["hash"]["sha256"], "ab".repeat(32));
    let script = json!({"file": "script", "path": "/srv/run", "why": "changed"});
    assert_eq!(document["auditd"]["hashes"][1], script);

    let document = checked(&json_log("syscall=59 success=yes exit=0"), "ocsf");
    assert_eq!(document["process"]["uid"], format!("{BOOT}/42/700"));
    let actor = &document["actor"]["process"];
    assert_eq!(actor["uid"], format!("{BOOT}/41/600"));
    assert_eq!(actor["cmd_line"], "bash -c a b");
    assert_eq!(document["unmapped"]["ancestors"], ancestors);
    assert_eq!(document["unmapped"]["hashes"][1], script);
}

#[test]
fn arguments_that_are_cut_have_no_number() {
    let text = String::from_utf8(json_log("syscall=59 success=yes exit=0").lines).expect("JSON");
    let cut = text.replace("\"a b\"]", "\"a b\"],\"argv_cut\":true");
    assert_ne!(text, cut);
    let parent = &checked(&Sample::new(cut.into_bytes()), "ecs")["process"]["parent"];
    assert_eq!(parent["args"][2], "a b");
    assert_eq!(parent.get("args_count"), None);
}

#[test]
fn the_parent_of_a_forks_child_is_the_process_that_forks() {
    let document = checked(&json_log("syscall=57 success=yes exit=43"), "ecs");
    let process = &document["process"];
    assert_eq!(process["pid"], 43);
    assert_eq!(process.get("entity_id"), None, "nobody has named it yet");
    let parent = &process["parent"];
    assert_eq!(parent["pid"], 42);
    assert_eq!(parent["entity_id"], format!("{BOOT}/42/700"));
    assert_eq!(parent["executable"], "/usr/bin/id");
    assert_eq!(parent.get("command_line"), None, "that is the shell's");
}

#[test]
fn an_enriched_log_names_ancestors_and_script() {
    // Who chooses a path cannot add an ancestor: special bytes are in hex.
    let names = "ANCESTORS=\"41:/usr/bin/bash,40:2F6F70742F612C62,2:kernel,?\" SCRIPT=\"/srv/run\"";
    let line = format!("{}\u{1d}{names}", syscall("syscall=59 success=yes exit=0"));
    let document = checked(&Sample::new(line.clone().into_bytes()), "ecs");
    let parent = &document["process"]["parent"];
    assert_eq!(parent["executable"], "/usr/bin/bash");
    assert_eq!(parent["name"], "bash");
    assert_eq!(
        parent.get("entity_id"),
        None,
        "without a time, it is only a number"
    );
    let ancestors = json!(["41:/usr/bin/bash", "40:/opt/a,b", "2:kernel"]);
    assert_eq!(document["auditd"]["ancestors"], ancestors);
    assert_eq!(document["auditd"]["script"], "/srv/run");
    let document = checked(&Sample::new(line.into_bytes()), "ocsf");
    assert_eq!(document["actor"]["process"]["path"], "/usr/bin/bash");

    for odd in ["", "?", "x:/bin/sh", "41", "99999999999:/bin/sh"] {
        let line = format!(
            "{}\u{1d}ANCESTORS=\"{odd}\"",
            syscall("syscall=59 success=yes exit=0")
        );
        let document = checked(&Sample::new(line.into_bytes()), "ecs");
        assert_eq!(
            document["process"]["parent"].get("executable"),
            None,
            "{odd}"
        );
    }
}

#[test]
fn a_file_made_by_open_is_a_new_file_for_rules_too() {
    let head = syscall("syscall=257 success=yes exit=3").replace("items=0", "items=2");
    for (nametype, types) in [
        ("CREATE", json!(["info", "creation"])),
        ("NORMAL", json!(["info"])),
    ] {
        let lines = format!(
            "{head}\ntype=CWD msg=audit(1795229630.644:45): cwd=\"/srv\"\n\
             type=PATH msg=audit(1795229630.644:45): item=1 name=\"/srv/x.so\" inode=7 dev=08:01 mode=0100644 \
             ouid=0 ogid=0 rdev=00:00 nametype={nametype}"
        );
        let document = Sample::new(lines.into_bytes()).map("ecs-auditbeat");
        assert_eq!(document["event"]["action"], "opened-file");
        assert_eq!(document["event"]["type"], types);
    }
}
