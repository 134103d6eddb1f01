//! Workload, process and executed files of an event, in each format. The distribution's tools read the rest as
//! before.

use record::record::{Cwd, Proctitle, Syscall};
use record::wire::ProcessId;
use record::{
    Ancestor, AncestorsText, ContainerNames, Digests, Encoder, FileHash, Format, HashedFile,
    NameTable, NoDigest, ProcessText, Program, RecordType, Stamp, Verity, WorkloadText,
    SHA256_BYTES,
};
use serde_json::{json, Value};
use std::path::{Path, PathBuf};
use std::process::Command;

const ID: &str = "679f3691f7f1b20198548be43b86f265f9fff9be0ac4c973638f5ee89decbca9";

fn syscall(pid: u32) -> Syscall<'static> {
    Syscall {
        arch: 0xc000_003e,
        nr: 257,
        personality: 0,
        exit: Some(3),
        a: [0xffff_ff9c, 1, 2, 3],
        items: 0,
        is_cut: false,
        ppid: 1,
        pid,
        auid: 1000,
        uid: 0,
        gid: 0,
        euid: 0,
        suid: 0,
        fsuid: 0,
        egid: 0,
        sgid: 0,
        fsgid: 0,
        tty: b"",
        ses: 4,
        comm: b"two words",
        exe: Some(b"/usr/bin/cat"),
        subj: None,
        key: Some(b"watched"),
    }
}

/// Paths of cgroups, among them some whose makers want to be taken for others.
fn paths() -> Vec<Vec<u8>> {
    let texts = [
        "/".to_owned(),
        "/system.slice/ssh.service".to_owned(),
        format!("/system.slice/docker-{ID}.scope"),
        "/user.slice/user-7.slice/user@7.service/app.slice/x.service".to_owned(),
        format!("/kubepods/burstable/podb6a16766-05ee-446a-8ee5-ff96a817f47c/{ID}"),
        "/lxc.payload.a\" UNIT=\"ssh.service".to_owned(),
        "/lxc.payload.a\n type=SYSCALL msg=audit(1.000:1): pid=1".to_owned(),
        "/lxc.payload.\u{fc}ber".to_owned(),
    ];
    let mut paths = texts.map(String::into_bytes).to_vec();
    paths.push(b"/lxc.payload.\xff\x1d".to_vec());
    paths
}

fn log(format: Format, is_told: bool) -> Vec<u8> {
    log_of(format, is_told, false)
}

/// Digests of a program and a script, of which one is missing.
fn hashes() -> [FileHash; 2] {
    let found = Digests {
        sha256: Ok([0xab; SHA256_BYTES]),
        verity: Some(Verity::Sha512([0xcd; 64])),
    };
    let hash = |file, digests| FileHash {
        file,
        path: b"/usr/bin/cat".to_vec(),
        ino: Some(7),
        digests,
    };
    [
        hash(HashedFile::Exe, found),
        hash(HashedFile::Script, Digests::none(NoDigest::Recent)),
    ]
}

/// Programs, among them one that wants to be taken for another ancestor.
fn programs() -> [Program; 3] {
    let program = |exe: Option<&[u8]>, title: &[u8]| Program {
        exe: exe.map(Box::from),
        title: title.into(),
        is_title_cut: title.len() > 10,
        script: None,
    };
    [
        program(Some(b"/usr/sbin/sshd"), b"sshd: alice [priv]\0"),
        program(
            Some(b"/tmp/x,1:/usr/lib/systemd/systemd\" UID=\"root"),
            b"x\0-y",
        ),
        program(None, b""),
    ]
}

fn process(pid: u32) -> ProcessId {
    ProcessId {
        start_ns: u64::from(pid) * 10,
        pid,
    }
}

/// The text for these programs, and a process whose program is not known, if `is_open`.
fn ancestors(is_open: bool) -> AncestorsText {
    let programs = programs();
    let known = programs.iter().zip(4..).map(|(program, pid)| Ancestor {
        process: process(pid),
        program: Some(program),
    });
    let unknown = is_open.then(|| Ancestor {
        process: process(2),
        program: None,
    });
    AncestorsText::of(known.chain(unknown), is_open)
}

fn process_text(ancestors: &AncestorsText) -> ProcessText<'_> {
    ProcessText {
        process: process(42),
        boot: b"53d1a22c",
        exe: Some(b"/usr/bin/cat"),
        script: Some(b"/opt/run me"),
        cwd: Some(b"/"),
        ancestors,
    }
}

fn log_of(format: Format, is_told: bool, has_hashes: bool) -> Vec<u8> {
    whole_log(format, is_told, has_hashes, false)
}

fn whole_log(format: Format, is_told: bool, has_hashes: bool, has_process: bool) -> Vec<u8> {
    let names = NameTable::parse("alice:x:1000:1000::/:", "");
    let (mut encoder, mut log) = (Encoder::new(format, Box::new(names)), Vec::new());
    encoder.set_workload(is_told);
    encoder.set_hashes(has_hashes);
    for (path, number) in paths().iter().zip(1..) {
        let stamp = Stamp {
            sec: 1_795_229_646,
            msec: 7,
            serial: number,
        };
        let mut event = encoder.begin(&mut log, stamp);
        event.workload(&WorkloadText::of(path, false, None));
        if has_process {
            event.process(&process_text(&ancestors(true)));
        }
        event.hashes(&hashes());
        event.syscall(&syscall(number));
        event.put(&Cwd { cwd: b"/" });
        event.put(&Proctitle {
            title: Some(b"cat\0x"),
        });
    }
    log
}

#[test]
fn enriched_has_it_behind_the_call_and_raw_never() {
    assert_eq!(log(Format::Raw, true), log(Format::Raw, false));
    let (with, without) = (log(Format::Enriched, true), log(Format::Enriched, false));
    let (with, without) = (String::from_utf8(with), String::from_utf8(without));
    let (with, without) = (with.expect("UTF-8"), without.expect("UTF-8"));
    let container = format!("CONTAINER=\"{ID}\"");
    let expected = [
        String::new(),
        " UNIT=\"ssh.service\"".to_owned(),
        format!(" UNIT=\"docker-{ID}.scope\" {container}"),
        " UNIT=\"user@7.service\" USER_UNIT=\"x.service\"".to_owned(),
        format!(" {container} POD=\"b6a16766-05ee-446a-8ee5-ff96a817f47c\""),
        " CONTAINER=612220554E49543D227373682E73657276696365".to_owned(),
        " CONTAINER=610A20747970653D53595343414C4C206D73673D617564697428312E3030303A31293A207069643D31"
            .to_owned(),
        " CONTAINER=C3BC626572".to_owned(),
        " CONTAINER=FF1D".to_owned(),
    ];
    let mut expected = expected.iter();
    assert_eq!(with.lines().count(), without.lines().count());
    for (line, plain) in with.lines().zip(without.lines()) {
        let added = line.strip_prefix(plain).expect("the same line, and more");
        if line.starts_with("type=SYSCALL") {
            assert_eq!(Some(added), expected.next().map(String::as_str))
        } else {
            assert_eq!(added, "")
        }
    }
    assert_eq!(expected.next(), None);
}

#[test]
fn digests_are_behind_the_workload_and_never_in_raw() {
    assert_eq!(log_of(Format::Raw, true, true), log(Format::Raw, false));
    let with = String::from_utf8(log_of(Format::Enriched, true, true)).expect("UTF-8");
    let without = String::from_utf8(log(Format::Enriched, true)).expect("UTF-8");
    let expected = format!(
        " EXE_SHA256=\"{}\" EXE_VERITY=\"sha512:{}\" SCRIPT_SHA256=? SCRIPT_SHA256_WHY=\"recent\"",
        "ab".repeat(32),
        "cd".repeat(64)
    );
    for (line, plain) in with.lines().zip(without.lines()) {
        let added = line.strip_prefix(plain).expect("the same line, and more");
        if line.starts_with("type=SYSCALL") {
            assert_eq!(added, expected)
        } else {
            assert_eq!(added, "")
        }
    }
    let text = String::from_utf8(log_of(Format::Json, false, true)).expect("UTF-8");
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(event["hashes"][0]["sha256"], "ab".repeat(32));
        assert_eq!(event["hashes"][1]["why"], "recent");
    }
    let without = String::from_utf8(log(Format::Json, true)).expect("UTF-8");
    assert!(!without.contains("hashes"), "{without}");
}

#[test]
fn json_has_an_object_for_it() {
    let text = String::from_utf8(log(Format::Json, true)).expect("UTF-8");
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let told = |at: usize| events[at]["workload"].clone();
    assert_eq!(told(0), json!({"cgroup": "/"}));
    assert_eq!(
        told(2),
        json!({
            "unit": format!("docker-{ID}.scope"),
            "slice": "system.slice",
            "container": {"id": ID, "runtime": "docker"},
            "cgroup": format!("/system.slice/docker-{ID}.scope"),
        })
    );
    assert_eq!(
        told(4)["pod"]["uid"],
        "b6a16766-05ee-446a-8ee5-ff96a817f47c"
    );
    assert_eq!(
        told(6)["container"]["id"],
        "a\n type=SYSCALL msg=audit(1.000:1): pid=1"
    );
    assert_eq!(told(8)["container"]["id"]["hex"], "FF1D");
    let without = String::from_utf8(log(Format::Json, false)).expect("UTF-8");
    assert!(!without.contains("workload"), "{without}");
}

#[test]
fn names_of_container_and_pod_are_told_as_far_as_they_are_known() {
    const UID: &str = "b6a16766-05ee-446a-8ee5-ff96a817f47c";
    let path = format!("/kubepods/burstable/pod{UID}/{ID}");
    let told = |format, names: &ContainerNames| {
        let mut encoder = Encoder::new(format, Box::new(record::NoNames));
        encoder.set_workload(true);
        let (mut out, stamp) = (Vec::new(), Stamp::from_unix_ns(0, 1));
        let mut event = encoder.begin(&mut out, stamp);
        event.workload(&WorkloadText::of(path.as_bytes(), false, Some(names)));
        event.syscall(&syscall(42));
        event.end();
        String::from_utf8(out).expect("UTF-8")
    };
    let names = ContainerNames {
        container: Some("web".to_owned()),
        image: Some("nginx\" UID=\"root".to_owned()),
        pod: None,
        namespace: Some("shop".to_owned()),
    };
    let line = told(Format::Enriched, &names);
    let image = "6E67696E7822205549443D22726F6F74";
    let expected = format!(" CONTAINER_NAME=\"web\" CONTAINER_IMAGE={image} POD=");
    assert!(line.contains(&expected), "{line}");
    assert!(line.contains(" POD_NAMESPACE=\"shop\""), "{line}");
    assert!(!line.contains("POD_NAME="), "{line}");
    let event: Value = serde_json::from_str(&told(Format::Json, &names)).expect("JSON");
    let workload = &event["workload"];
    assert_eq!(workload["container"]["name"], "web");
    assert_eq!(workload["container"]["image"], "nginx\" UID=\"root");
    let pod = json!({"uid": UID, "name": null, "namespace": "shop"});
    assert_eq!(workload["pod"], pod);
}

#[test]
fn what_is_unknown_is_said_to_be() {
    let mut encoder = Encoder::new(Format::Json, Box::new(record::NoNames));
    encoder.set_workload(true);
    let mut out = Vec::new();
    let stamp = Stamp {
        sec: 1,
        msec: 0,
        serial: 1,
    };
    let mut event = encoder.begin(&mut out, stamp);
    event.workload(&WorkloadText::unknown());
    event.put(&Cwd { cwd: b"/" });
    event.end();
    // The next event does not have it.
    encoder.begin(&mut out, stamp).put(&Cwd { cwd: b"/" });
    let text = String::from_utf8(out).expect("UTF-8");
    let mut lines = text.lines();
    let mut line =
        || -> Value { serde_json::from_str(lines.next().expect("a line")).expect("JSON") };
    assert_eq!(line()["workload"], json!({"cgroup": null}));
    assert_eq!(line()["workload"], Value::Null);
    let cut = WorkloadText::of(b"/system.slice/a.service/b", true, None);
    let mut cut_out = Vec::new();
    let mut event = encoder.begin(&mut cut_out, stamp);
    event.workload(&cut);
    event.raw(RecordType::CWD.netlink(), b"cwd=\"/\"");
    event.end();
    let event: Value = serde_json::from_slice(&cut_out).expect("JSON");
    assert_eq!(event["workload"]["unit"], "a.service");
    assert_eq!(event["workload"]["cgroup_cut"], true);
}

#[test]
fn ancestors_are_named_in_each_format_and_none_can_be_forged() {
    let told = |is_open| {
        let mut encoder = Encoder::new(Format::Enriched, Box::new(record::NoNames));
        encoder.set_workload(true);
        let (mut out, stamp) = (Vec::new(), Stamp::from_unix_ns(0, 1));
        let mut event = encoder.begin(&mut out, stamp);
        event.process(&process_text(&ancestors(is_open)));
        event.syscall(&syscall(42));
        event.end();
        let line = String::from_utf8(out).expect("UTF-8");
        assert!(line.contains(" SCRIPT=2F6F70742F72756E206D65 "), "{line}");
        let (_, told) = line.split_once(" ANCESTORS=").expect("ancestors");
        told.trim_end().to_owned()
    };
    let forged =
        "2F746D702F782C313A2F7573722F6C69622F73797374656D642F73797374656D6422205549443D22726F6F74";
    let known = format!("4:/usr/sbin/sshd,5:{forged},6:kernel");
    assert_eq!(told(false), format!("\"{known}\""));
    assert_eq!(told(true), format!("\"{known},2:?,?\""));
    let text = whole_log(Format::Json, true, false, true);
    let text = String::from_utf8(text).expect("UTF-8");
    let event: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        event["process"],
        json!({
            "pid": 42, "start": 420, "boot": "53d1a22c", "exe": "/usr/bin/cat", "script": "/opt/run me", "cwd": "/",
            "ancestors": [
                {"pid": 4, "start": 40, "exe": "/usr/sbin/sshd", "argv": ["sshd: alice [priv]"],
                 "argv_cut": true},
                {"pid": 5, "start": 50, "exe": "/tmp/x,1:/usr/lib/systemd/systemd\" UID=\"root",
                 "argv": ["x", "-y"]},
                {"pid": 6, "start": 60, "kernel": true},
                {"pid": 2, "start": 20, "exe": null},
            ],
            "ancestors_partial": true,
        })
    );
    let without = whole_log(Format::Json, false, false, true);
    assert!(!String::from_utf8_lossy(&without).contains("ancestors"));
    let raw = whole_log(Format::Raw, true, false, true);
    assert_eq!(raw, log(Format::Raw, false));
}

fn output(peers: &Path, program: &str, log: &Path, options: &[&str]) -> (String, String) {
    let libraries =
        ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| peers.join(folder));
    let libraries = std::env::join_paths(libraries).expect("paths");
    let mut command = Command::new(peers.join("sbin").join(program));
    let command = command.env("LD_LIBRARY_PATH", libraries);
    let command = command.arg("-if").arg(log).args(options);
    let output = command.output().expect("the program runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn ausearch_and_aureport_say_the_same_with_and_without() {
    let Some(peers) = testkit::peers("ausearch and aureport on identity") else {
        return;
    };
    let written = |name: &str, is_told| -> PathBuf {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("identity-{name}"));
        std::fs::create_dir_all(&dir).expect("a directory");
        // aureport prints the name of the log.
        let path = dir.join("audit.log");
        std::fs::write(
            &path,
            whole_log(Format::Enriched, is_told, is_told, is_told),
        )
        .expect("the log is written");
        path
    };
    let (with, without) = (written("with", true), written("without", false));
    let searches: [&[&str]; 8] = [
        &["-i"],
        &["-k", "watched"],
        &["-k", "watched", "-i"],
        &["-ua", "1000", "-i"],
        &["-p", "6", "-i"],
        &["-p", "1", "-i"],
        &["--format", "csv"],
        &["--format", "text"],
    ];
    for options in searches {
        let same = |path| {
            let (out, complaints) = output(&peers, "ausearch", path, options);
            assert!(!complaints.contains("alformed"), "{complaints}");
            // Without -i, ausearch prints lines as they are.
            let lines = out.lines().map(|line| line.split('\x1d').next());
            let lines: Vec<_> = lines.map(Option::unwrap_or_default).collect();
            lines.join("\n")
        };
        let (with, without) = (same(&with), same(&without));
        // The name of the command, as it is, in hexadecimal digits, or not at all in CSV and text: these name the user.
        let known = ["two words", "74776F20776F726473", "alice"];
        assert!(known.iter().any(|text| without.contains(text)), "{without}");
        assert_eq!(with, without, "{options:?}");
    }
    for report in ["--summary", "-x", "-s", "-p", "-u", "-e", "-k", "-f", "-au"] {
        let reported = |path: &Path| {
            let (out, complaints) = output(&peers, "aureport", path, &[report, "-i"]);
            // A host without auditd has no configuration of its own, which is said.
            let complaints = complaints
                .lines()
                .find(|line| !line.starts_with("Config file "));
            assert_eq!(complaints, None);
            out
        };
        assert_eq!(reported(&with), reported(&without), "{report}");
    }
}
