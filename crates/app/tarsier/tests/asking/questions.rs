//! Files, processes, units, expressions.

use crate::made::{call, found, output, search, task, write, BASE_S};
use std::path::PathBuf;
use tempfile::TempDir;

/// A shell, the processes that it starts, and later processes with the same pids.
fn processes() -> String {
    [
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
    .concat()
}

#[test]
fn a_tree_has_descendants_and_tells_reused_pids_apart() {
    let dir = TempDir::new().expect("a directory");
    let path = write(&dir, "audit.log", &processes());
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
}

#[test]
fn a_tree_is_of_the_process_that_had_the_pid_at_the_time() {
    let dir = TempDir::new().expect("a directory");
    let path = write(&dir, "audit.log", &processes());
    let input = path.to_str().expect("text");
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

/// A file that is created, renamed and linked; its inode number belonged to another file before.
fn renames() -> String {
    let path = |item: u32, name: &str, inode: u32, nametype: &str| {
        format!("PATH item={item} name=\"{name}\" inode={inode} dev=08:01 nametype={nametype}")
    };
    let event = |at: u64, serial: u64, number: u32, items: &[String]| {
        let mut records = vec!["CWD cwd=\"/srv/a\""];
        records.extend(items.iter().map(String::as_str));
        call(at, serial, number, 0, &task(300, 1, "sh"), &records)
    };
    [
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
    .concat()
}

#[test]
fn a_file_is_found_by_all_its_names() {
    let dir = TempDir::new().expect("a directory");
    let log = write(&dir, "audit.log", &renames());
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
