//! What `tarsier search` answers beyond ausearch, and its indexes.

use query::index::Index;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

const BASE_S: u64 = 1_700_000_000;

fn search(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command
        .arg("search")
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(Stdio::null());
    command
}

fn output(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

/// Standard output of a search that finds something.
fn found(words: &[&str]) -> String {
    let output = output(&mut search(words));
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{words:?}: {error}{out}");
    out.into_owned()
}

fn verify(log: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    let output = output(command.args(["verify", "--index"]).arg(log));
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// A SYSCALL record of second `at` with further records.
fn call(at: u64, serial: u64, call: u32, exit: i64, task: &str, others: &[&str]) -> String {
    let stamp = format!("msg=audit({}.000:{serial}):", BASE_S + at);
    let success = if exit < 0 { "no" } else { "yes" };
    let (task, names) = task.split_once('\x1d').unwrap_or((task, ""));
    let mut text = format!(
        "type=SYSCALL {stamp} arch=c000003e syscall={call} success={success} exit={exit} a0=7ffd1 a1=2 a2=0 a3=0 \
         items={} {task} exe=\"/usr/bin/x\" key=\"watched\"",
        others.len()
    );
    if !names.is_empty() {
        let _ = write!(text, "\x1d{names}");
    }
    text.push('\n');
    for other in others {
        let (kind, rest) = other.split_once(' ').expect("type and fields");
        let _ = writeln!(text, "type={kind} {stamp} {rest}");
    }
    text
}

fn task(pid: u32, ppid: u32, comm: &str) -> String {
    format!(
        "ppid={ppid} pid={pid} auid=0 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=pts0 ses={} \
         comm=\"{comm}\"",
        pid / 100
    )
}

fn write(dir: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}

/// A log of `count` events, of which event 700 has the key `rare`, as does every one that is late.
fn long_log(count: u64) -> String {
    let mut log = String::new();
    for number in 0..count {
        let at = if number % 997 == 500 {
            number / 200 - 1
        } else {
            number / 200
        };
        let pid = 100 + number as u32 % 400;
        let cwd = "CWD cwd=\"/srv/data\"";
        let path = format!(
            "PATH item=0 name=\"/srv/data/file{number}\" inode={number} dev=08:01 nametype=NORMAL"
        );
        let text = call(
            at + 10,
            number + 1,
            257,
            3,
            &task(pid, 1, "worker"),
            &[cwd, &path],
        );
        let is_rare = number == 700 || number % 997 == 500;
        log += &if is_rare {
            text.replace("watched", "rare")
        } else {
            text
        };
    }
    log
}

const QUESTIONS: &[&str] = &[
    "-k rare",
    "-k nothing",
    "-k rare -sv yes -f file700",
    "-f file1234",
    "-p 177 -k watched",
    "-x nobody",
    "-c worker -a 5",
    "-ts 11/14/23 22:13:40 -te 11/14/23 22:13:42",
    "-ul 1001",
    "-m CWD -k rare",
    "-sc 257 -f data/file77",
    "-e -13",
    "-k rare --just-one",
];

/// Every question has the same answer with and without indexes.
fn compare_answers(input: &str) {
    for question in QUESTIONS {
        let words: Vec<&str> = ["-if", input]
            .into_iter()
            .chain(question.split_whitespace())
            .collect();
        let without = output(search(&words).arg("--no-index"));
        let with = output(&mut search(&words));
        assert_eq!(with.status.code(), without.status.code(), "{question}");
        assert!(
            with.stdout == without.stdout,
            "{question}: the output differs"
        );
        assert_eq!(
            String::from_utf8_lossy(&with.stderr),
            String::from_utf8_lossy(&without.stderr),
            "{question}"
        );
    }
}

#[test]
fn indexes_change_no_answer_and_are_small_and_private() {
    let dir = TempDir::new().expect("a directory");
    let log = long_log(6000);
    let parts: Vec<usize> = [4, 8]
        .iter()
        .map(|part| log.len() * part / 10)
        .map(|at| at + log[at..].find("type=PATH").expect("a record"))
        .collect();
    let older = write(&dir, "audit.log.2", &log[..parts[0]]);
    write(&dir, "audit.log.1", &log[parts[0]..parts[1]]);
    write(&dir, "audit.log", &log[parts[1]..]);
    let input = dir.path().to_str().expect("text");
    let built = output(&mut search(&["-if", input, "--build-index"]));
    assert!(built.status.success(), "{built:?}");
    let index = dir.path().join("audit.log.2.idx");
    let metadata = fs::metadata(&index).expect("an index");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let share = metadata.len() as f64 / parts[0] as f64;
    assert!(share <= 0.03, "{share}");
    assert!(
        !dir.path().join("audit.log.idx").exists(),
        "the live log has no index"
    );
    compare_answers(input);
    assert_eq!(verify(&dir.path().join("audit.log")).0, Some(0));

    // A compressed file has one, too.
    let compressed = zstd::encode_all(log[..parts[0]].as_bytes(), 3).expect("compressed");
    fs::remove_file(&older).expect("removed");
    fs::write(dir.path().join("audit.log.2.zst"), compressed).expect("written");
    compare_answers(input);
    assert!(output(&mut search(&["-if", input, "--build-index"]))
        .status
        .success());
    compare_answers(input);
    assert_eq!(verify(&dir.path().join("audit.log")).0, Some(0));
}

#[test]
fn an_index_of_another_file_is_not_used() {
    let dir = TempDir::new().expect("a directory");
    let text = long_log(3000);
    let log = write(&dir, "audit.log.1", &text);
    let input = log.to_str().expect("text");
    assert!(output(&mut search(&["-if", input, "--build-index"]))
        .status
        .success());
    let index = dir.path().join("audit.log.1.idx");

    // Others may write it.
    fs::set_permissions(&index, Permissions::from_mode(0o666)).expect("chmod");
    assert_eq!(verify(&log).0, Some(1));
    fs::set_permissions(&index, Permissions::from_mode(0o600)).expect("chmod");
    assert_eq!(verify(&log).0, Some(0));

    // The log has changed, in the middle and at the same length.
    let at = text.find("file2000").expect("the event");
    fs::write(&log, format!("{}evil2000{}", &text[..at], &text[at + 8..])).expect("written");
    let (status, said) = verify(&log);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("not used"), "{said}");
    assert!(found(&["-if", input, "-f", "evil2000"]).contains("evil2000"));
}

#[test]
fn indexes_follow_their_files_over_a_rotation() {
    if !is_root() {
        println!("skipped: indexes over a rotation: only root makes them unasked");
        return;
    }
    let dir = TempDir::new().expect("a directory");
    let log = long_log(5000);
    let half = log.len() / 2 + log[log.len() / 2..].find("type=SYSCALL").expect("a record");
    let name = |name: &str| dir.path().join(name);
    write(&dir, "audit.log.1", &log[..half]);
    write(&dir, "audit.log", "");
    let input = dir.path().to_str().expect("text");
    assert!(
        found(&["-if", input, "-k", "rare"]).contains("rare"),
        "the first search makes the index"
    );
    let first = fs::read(name("audit.log.1.idx")).expect("an index");
    fs::rename(name("audit.log.1"), name("audit.log.2")).expect("rotated");
    write(&dir, "audit.log.1", &log[half..]);
    assert!(found(&["-if", input, "-k", "rare", "-r"]).contains("rare"));
    assert_eq!(fs::read(name("audit.log.2.idx")).expect("an index"), first);
    assert_eq!(verify(&name("audit.log")).0, Some(0));
}

fn is_root() -> bool {
    fs::metadata("/proc/self")
        .is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}

/// What a forged index can do: hide events. Only whoever may write the log could write it, and `verify --index` tells.
#[test]
fn a_forged_index_hides_events_until_it_is_verified() {
    let dir = TempDir::new().expect("a directory");
    let log = write(&dir, "audit.log.1", &long_log(3000));
    let input = log.to_str().expect("text");
    assert!(output(&mut search(&["-if", input, "--build-index"]))
        .status
        .success());
    let path = dir.path().join("audit.log.1.idx");
    let honest = fs::read(&path).expect("an index");
    let mut forged = Index::from_bytes(&honest).expect("an index");
    forged
        .terms
        .iter_mut()
        .for_each(|terms| *terms = Default::default());
    fs::write(&path, forged.to_bytes()).expect("written");
    assert_eq!(
        output(&mut search(&["-if", input, "-k", "rare"]))
            .status
            .code(),
        Some(1)
    );
    assert!(found(&["-if", input, "-k", "rare", "--no-index"]).contains("rare"));
    let (status, said) = verify(&log);
    assert_eq!(status, Some(1));
    assert!(said.contains("WRONG"), "{said}");

    // Places outside the file are refused, or give less text.
    let mut outside = Index::from_bytes(&honest).expect("an index");
    outside.blocks.last_mut().expect("a block").end += 1 << 40;
    fs::write(&path, outside.to_bytes()).expect("written");
    assert!(found(&["-if", input, "-k", "rare"]).contains("rare"));
    // A bit that changed.
    let mut damaged = honest.clone();
    damaged[honest.len() / 2] ^= 1;
    fs::write(&path, damaged).expect("written");
    assert!(found(&["-if", input, "-k", "rare"]).contains("rare"));
}

#[test]
fn a_tree_has_descendants_and_tells_reused_pids_apart() {
    let dir = TempDir::new().expect("a directory");
    let log = [
        call(0, 1, 57, 201, &task(200, 1, "sh"), &[]),
        call(
            1,
            2,
            59,
            0,
            &task(201, 200, "make"),
            &["EXECVE argc=2 a0=\"make\" a1=\"all\""],
        ),
        call(
            2,
            3,
            257,
            -13,
            &task(201, 200, "make"),
            &[
                "CWD cwd=\"/srv\"",
                "PATH item=0 name=\"Makefile\" inode=7 dev=08:01 nametype=NORMAL",
            ],
        ),
        call(3, 4, 56, 202, &task(201, 200, "make"), &[]),
        call(4, 5, 59, 0, &task(202, 201, "cc"), &[]),
        // Not of the tree.
        call(4, 6, 59, 0, &task(900, 1, "cron"), &[]),
        // Its parent has died.
        call(9, 7, 231, 0, &task(202, 1, "cc"), &[]),
        call(50, 8, 59, 0, &task(202, 900, "other"), &[]),
        call(60, 9, 59, 0, &task(201, 900, "another"), &[]),
    ]
    .concat();
    let path = write(&dir, "audit.log", &log);
    let input = path.to_str().expect("text");
    let tree = found(&["-if", input, "--tree", "200"]);
    assert_eq!(
        tree,
        "root sh[200] seen from 11/14/23 22:13:20.000\n\
         ├─ 11/14/23 22:13:20.000 fork -> 201\n\
         └─ root make[201] from 11/14/23 22:13:20.000\n   \
         ├─ 11/14/23 22:13:21.000 execve make all -> 0\n   \
         ├─ 11/14/23 22:13:22.000 openat /srv/Makefile -> EACCES\n   \
         ├─ 11/14/23 22:13:23.000 clone -> 202\n   \
         └─ root cc[202] from 11/14/23 22:13:23.000\n      \
         ├─ 11/14/23 22:13:24.000 execve -> 0\n      \
         └─ 11/14/23 22:13:29.000 exit_group -> 0\n"
    );
    let late = found(&["-if", input, "--tree", &format!("201@{}", BASE_S + 60)]);
    assert!(
        late.contains("another[201]") && !late.contains("make"),
        "{late}"
    );
    let early = found(&["-if", input, "--tree", "201@11/14/23 22:13:30"]);
    assert!(
        early.contains("make[201]") && early.contains("cc[202]") && !early.contains("another"),
        "{early}"
    );
    assert!(found(&["-if", input, "--tree", "201", "-sv", "no"]).contains("EACCES"));
    assert_eq!(
        output(&mut search(&["-if", input, "--tree", "77"]))
            .status
            .code(),
        Some(1)
    );
    assert_eq!(
        output(&mut search(&["-if", input, "--tree", "x"]))
            .status
            .code(),
        Some(1)
    );
}

/// Serial numbers of the events of raw output.
fn serials(raw: &str) -> Vec<u64> {
    let mut serials: Vec<u64> = raw
        .lines()
        .filter_map(|line| {
            line.split_once("audit(")?
                .1
                .split_once("):")?
                .0
                .split_once(':')?
                .1
                .parse()
                .ok()
        })
        .collect();
    serials.dedup();
    serials
}

#[test]
fn a_file_is_found_by_all_its_names() {
    let dir = TempDir::new().expect("a directory");
    let path = |item: u32, name: &str, inode: u32, nametype: &str| {
        format!("PATH item={item} name=\"{name}\" inode={inode} dev=08:01 nametype={nametype}")
    };
    let event = |at: u64, serial: u64, number: u32, items: &[String]| {
        let mut records = vec!["CWD cwd=\"/srv/a\""];
        records.extend(items.iter().map(String::as_str));
        call(at, serial, number, 0, &task(300, 1, "sh"), &records)
    };
    let log = [
        // Inode 7 was another file before.
        event(0, 1, 257, &[path(0, "/tmp/old", 7, "CREATE")]),
        event(1, 2, 87, &[path(0, "/tmp/old", 7, "DELETE")]),
        event(
            2,
            3,
            257,
            &[path(0, ".", 5, "PARENT"), path(1, "draft", 7, "CREATE")],
        ),
        event(
            3,
            4,
            82,
            &[
                path(0, ".", 5, "PARENT"),
                path(1, "draft", 7, "DELETE"),
                path(2, "../b/final", 7, "CREATE"),
            ],
        ),
        event(
            4,
            5,
            86,
            &[
                path(0, "../b/final", 7, "NORMAL"),
                path(1, "/home/link", 7, "CREATE"),
            ],
        ),
        event(5, 6, 90, &[path(0, "/home/link", 7, "NORMAL")]),
        event(6, 7, 257, &[path(0, "unrelated", 8, "NORMAL")]),
        event(7, 8, 257, &[path(0, "final", 9, "NORMAL")]),
    ]
    .concat();
    let log = write(&dir, "audit.log", &log);
    let input = log.to_str().expect("text");
    let touched = |name: &str| {
        serials(&found(&[
            "-if",
            input,
            "--touched",
            name,
            "--format",
            "raw",
        ]))
    };
    assert_eq!(touched("/srv/b/final"), [3, 4, 5, 6]);
    assert_eq!(touched("/home/link"), [3, 4, 5, 6]);
    assert_eq!(touched("/srv/a/../a/draft"), [3, 4, 5, 6]);
    assert_eq!(touched("/tmp/old"), [1, 2]);
    // The last part of a name: also another file.
    assert_eq!(touched("final"), [3, 4, 5, 6, 8]);
    assert_eq!(
        serials(&found(&[
            "-if",
            input,
            "--touched",
            "/home/link",
            "-sc",
            "rename",
            "-r"
        ])),
        [4]
    );
}

fn workload_log(dir: &TempDir) -> PathBuf {
    let names = |unit: &str, container: &str| {
        format!("\x1dARCH=x86_64 AUID=\"alice\" UID=\"root\" UNIT=\"{unit}\"{container}")
    };
    let id = "ab".repeat(32);
    let of = |pid: u32, comm: &str, names: String| format!("{}{names}", task(pid, 1, comm));
    let log = [
        call(0, 1, 59, 0, &of(500, "sshd", names("ssh.service", "")), &[]),
        call(1, 2, 257, -2, &of(601, "nginx", names("docker-x.scope", &format!(" CONTAINER=\"{id}\""))), &[]),
        format!("type=SERVICE_START msg=audit({}.000:3): pid=1 uid=0 auid=4294967295 ses=4294967295 msg='unit=ssh comm=\"systemd\" exe=\"/usr/lib/systemd/systemd\" hostname=? addr=? terminal=? res=success'\n", BASE_S + 2),
        call(3, 4, 59, 0, &task(502, 1, "plain"), &[]),
    ]
    .concat();
    write(dir, "audit.log", &log)
}

#[test]
fn units_containers_and_timelines_are_found() {
    let dir = TempDir::new().expect("a directory");
    let log = workload_log(&dir);
    let input = log.to_str().expect("text");
    let raw = |words: &[&str]| serials(&found(&[&["-if", input, "-r"], words].concat()));
    assert_eq!(raw(&["--unit", "ssh"]), [1, 3]);
    assert_eq!(raw(&["--unit", "ssh.service"]), [1]);
    assert_eq!(raw(&["--container", "abababab"]), [2]);
    assert_eq!(
        found(&["-if", input, "--timeline", "ses:5"]),
        "11/14/23 22:13:20.000 alice sshd[500] execve -> 0\n11/14/23 22:13:23.000 root plain[502] execve -> 0\n"
    );
    assert_eq!(
        found(&["-if", input, "--timeline", "unit:ssh"]),
        "11/14/23 22:13:20.000 alice sshd[500] execve -> 0\n\
         11/14/23 22:13:22.000 root systemd[1] SERVICE_START ssh -> success\n"
    );
    assert!(
        found(&["-if", input, "--timeline", "pid:601"]).ends_with("nginx[601] openat -> ENOENT\n")
    );
}

#[test]
fn expressions_and_json_are_as_documented() {
    let dir = TempDir::new().expect("a directory");
    let log = workload_log(&dir);
    let input = log.to_str().expect("text");
    let raw = |expr: &str| serials(&found(&["-if", input, "-r", "--where", expr]));
    assert_eq!(raw(r#"syscall i= openat && success r= no"#), [2]);
    assert_eq!(raw(r#"auid i= alice && !(comm i= nginx)"#), [1]);
    assert_eq!(
        raw(r#"\record_type == SERVICE_START || pid r= 502"#),
        [3, 4]
    );
    assert_eq!(
        raw(&format!(r#"\timestamp > "ts:{}.000""#, BASE_S + 1)),
        [3, 4]
    );
    let wrong = output(&mut search(&["-if", input, "--where", "pid < 2"]));
    assert_eq!(wrong.status.code(), Some(1));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(
        said.starts_with("tarsier: search: --where: character 5: expected r="),
        "{said}"
    );

    let lines = found(&["-if", input, "--format", "jsonl"]);
    let objects: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    assert_eq!(objects.len(), 4);
    assert_eq!(objects[1]["serial"], 2);
    assert_eq!(objects[1]["records"][0]["syscall"], "openat");
    assert_eq!(objects[2]["records"][0]["type"], "SERVICE_START");
    let array: Vec<serde_json::Value> =
        serde_json::from_str(&found(&["-if", input, "--format", "json"])).expect("an array");
    assert_eq!(array, objects);
}

#[test]
fn follow_goes_on_over_a_rotation() {
    let dir = TempDir::new().expect("a directory");
    let log = write(
        &dir,
        "audit.log",
        &call(0, 1, 59, 0, &task(500, 1, "before"), &[]),
    );
    let mut child = search(&[
        "-if",
        log.to_str().expect("text"),
        "--follow",
        "-r",
        "-k",
        "watched",
        "--eoe-timeout",
        "1",
    ])
    .stdout(Stdio::piped())
    .spawn()
    .expect("it starts");
    let out = BufReader::new(child.stdout.take().expect("its output"));
    let (send, receive) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .for_each(|line| drop(send.send(line)));
    });
    let add = |text: &str| {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .expect("the log");
        file.write_all(text.as_bytes()).expect("written");
    };
    let wait = |what: &str| {
        let line = receive
            .recv_timeout(Duration::from_secs(60))
            .unwrap_or_else(|_| panic!("no line of {what} in 60 s"));
        assert!(line.contains(what), "{line}");
    };
    // Nothing says when it has begun: events are added until one comes.
    let mut first = None;
    for serial in 10..600 {
        add(&call(serial, serial, 59, 0, &task(500, 1, "first"), &[]));
        first = receive.recv_timeout(Duration::from_millis(100)).ok();
        if first.is_some() {
            break;
        }
    }
    assert!(
        first.expect("an event within 60 s").contains("first"),
        "not from the end of the log"
    );
    add(&call(1000, 1000, 59, 0, &task(500, 1, "last"), &[]));
    fs::rename(&log, dir.path().join("audit.log.1")).expect("rotated");
    add(&call(1001, 1001, 59, 0, &task(500, 1, "rotated"), &[]));
    let mut line = String::new();
    while !line.contains("last") {
        line = receive
            .recv_timeout(Duration::from_secs(60))
            .expect("a line within 60 s");
    }
    wait("rotated");
    child.kill().expect("killed");
    child.wait().expect("its end");
    reader.join().expect("the reader");
}
