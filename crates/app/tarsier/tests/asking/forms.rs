//! Logs as people have them: compressed, rotated in every way, of several hosts, behind prefixes. What is no log is said.

use crate::made::{output, printed, report, search};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn login(serial: u32) -> String {
    format!(
        "type=USER_LOGIN msg=audit(17000{serial:05}.100:{serial}): pid=5 uid=0 auid=1000 ses=4 subj=unconfined msg='op=x \
         acct=\"a\" exe=\"/usr/sbin/sshd\" hostname=? addr=192.0.2.9 terminal=ssh res=success'\n"
    )
}

/// The bytes that a program makes of `text`; `None` if it is not there.
fn piped(program: &str, text: &[u8]) -> Option<Vec<u8>> {
    let mut child = Command::new(program)
        .arg("-c")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    child.stdin.take()?.write_all(text).ok()?;
    Some(child.wait_with_output().ok()?.stdout)
}

/// Serial numbers of raw output.
fn serials(raw: &str) -> Vec<u32> {
    let serial = |line: &str| line.split_once("):")?.0.rsplit_once(':')?.1.parse().ok();
    raw.lines().filter_map(serial).collect()
}

fn events_of(path: &Path) -> Vec<u32> {
    serials(&printed(&["-if", path.to_str().expect("text"), "-r"]))
}

#[test]
fn compressed_files_are_read_by_their_content() {
    let dir = TempDir::new().expect("a directory");
    for program in ["gzip", "xz", "bzip2", "zstd", "lz4"] {
        let (Some(first), Some(second)) = (
            piped(program, login(1).as_bytes()),
            piped(program, login(2).as_bytes()),
        ) else {
            println!("skipped: files of {program}: no {program}(1)");
            continue;
        };
        // The name says nothing.
        let path = dir.path().join("some.log");
        fs::write(&path, [first, second].concat()).expect("written");
        let input = path.to_str().expect("text");
        assert_eq!(events_of(&path), [1, 2], "{program}");
        assert_eq!(
            serials(&printed(&["-if", input, "-r", "-x", "sshd"])),
            [1, 2],
            "{program}"
        );
        let counted = output(&mut report(&["-if", input, "-x", "--summary"]));
        assert!(
            counted.stdout.ends_with(b"2  /usr/sbin/sshd\n"),
            "{program}"
        );
        let mut child = search(&["-r"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let bytes = fs::read(&path).expect("read");
        child
            .stdin
            .take()
            .expect("a pipe")
            .write_all(&bytes)
            .expect("written");
        let read = child.wait_with_output().expect("it ends");
        assert_eq!(
            serials(&String::from_utf8_lossy(&read.stdout)),
            [1, 2],
            "{program}"
        );
    }
}

#[test]
fn rotated_files_are_found_by_numbers_and_dates() {
    let dir = TempDir::new().expect("a directory");
    let put =
        |name: &str, serial| fs::write(dir.path().join(name), login(serial)).expect("written");
    let gzip = |name: &str, serial| match piped("gzip", login(serial).as_bytes()) {
        Some(bytes) => fs::write(dir.path().join(name), bytes).expect("written"),
        None => put(name, serial),
    };
    put("audit.log", 9);
    put("audit.log.1", 8);
    gzip("audit.log.2.gz", 7);
    gzip("audit.log.10.gz", 6);
    assert_eq!(events_of(dir.path()), [6, 7, 8, 9]);

    // Somebody has changed the way of rotation: the contents tell the order.
    put("audit.log-20231112", 4);
    gzip("audit.log-20231113.gz", 5);
    assert_eq!(events_of(dir.path()), [4, 5, 6, 7, 8, 9]);

    put("audit.log.bak", 3);
    gzip("audit.log.1.gz", 8);
    let asked = output(&mut search(&[
        "-if",
        dir.path().to_str().expect("text"),
        "-r",
    ]));
    assert_eq!(
        serials(&String::from_utf8_lossy(&asked.stdout)),
        [4, 5, 6, 7, 8, 9]
    );
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    for (name, why) in [
        ("audit.log.bak", "not that of a rotated file"),
        ("audit.log.1.gz", "another form"),
    ] {
        assert!(
            said.lines()
                .any(|line| line.contains(name) && line.contains(why)),
            "{said}"
        );
    }
}

#[test]
fn directories_of_hosts_give_each_its_name() {
    let dir = TempDir::new().expect("a directory");
    for (host, below, serial) in [("db1", "", 1), ("web1", "var/log/audit", 2)] {
        let directory = dir.path().join(host).join(below);
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join("audit.log"), login(serial)).expect("written");
    }
    fs::write(dir.path().join("notes.txt"), "nothing of interest\n").expect("written");
    let input = dir.path().to_str().expect("text");
    let asked = output(&mut search(&["-if", input, "-r"]));
    let raw = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert!(
        raw.starts_with("node=db1 type=USER_LOGIN") && raw.contains("\nnode=web1 type="),
        "{raw}"
    );
    assert!(String::from_utf8_lossy(&asked.stderr).contains("notes.txt: no audit records"));
    assert_eq!(serials(&printed(&["-if", input, "-r", "-n", "web1"])), [2]);
    let top = String::from_utf8(
        report(&["-if", input, "--top", "node"])
            .output()
            .expect("runs")
            .stdout,
    );
    assert!(top.expect("text").contains("  web1\n"));
}

#[test]
fn hosts_are_told_apart_by_where_their_directories_differ() {
    let dir = TempDir::new().expect("a directory");
    for (host, serial) in [("backup/db1", 1), ("backup/web1/var/log/audit", 2)] {
        let directory = dir.path().join(host);
        fs::create_dir_all(&directory).expect("made");
        fs::write(directory.join("audit.log"), login(serial)).expect("written");
    }
    fs::write(dir.path().join("backup/db1/old.log"), login(3)).expect("written");
    let archive = dir.path().join("all.tar");
    let made = Command::new("tar")
        .args(["-cf", archive.to_str().expect("text"), "./backup"])
        .current_dir(dir.path())
        .status();
    assert!(made.is_ok_and(|status| status.success()), "tar(1)");

    let directory = dir.path().join("backup");
    let directory = directory.to_str().expect("text");
    for input in [directory, archive.to_str().expect("text")] {
        let raw = printed(&["-if", input, "-r"]);
        let nodes: Vec<_> = raw
            .lines()
            .map(|line| &line[..line.find(' ').unwrap_or(0)])
            .collect();
        assert_eq!(nodes, ["node=db1", "node=web1"], "{input}");
    }
    let asked = output(&mut search(&["-if", directory, "-r"]));
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(said.contains("old.log: it has audit records"), "{said}");
}

#[test]
fn a_mark_of_utf_8_does_not_hide_the_first_record() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("audit.log");
    for node in ["", "node=web1 "] {
        let text = ["\u{feff}", node, &login(1), node, &login(2)].concat();
        fs::write(&path, text).expect("written");
        assert_eq!(events_of(&path), [1, 2]);
    }
}

#[test]
fn a_page_about_nothing_is_no_success() {
    let dir = TempDir::new().expect("a directory");
    let (log, page) = (dir.path().join("audit.log"), dir.path().join("page.html"));
    fs::write(&log, "").expect("written");
    let args = [
        "--html",
        page.to_str().expect("text"),
        "-if",
        log.to_str().expect("text"),
    ];
    let made = output(&mut report(&args));
    assert_eq!(made.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&made.stderr).contains("no events"));
}

#[test]
fn archives_of_a_report_are_read_oldest_first() {
    let dir = TempDir::new().expect("a directory");
    let root = dir.path().join("sosreport-web1/var/log/audit");
    fs::create_dir_all(&root).expect("made");
    for (name, serial) in [("audit.log", 3), ("audit.log.1", 2), ("audit.log.2", 1)] {
        fs::write(root.join(name), login(serial)).expect("written");
    }
    fs::write(root.join("../messages"), "a line\n").expect("written");
    for options in ["-cf", "-czf", "-cJf", "-cjf"] {
        let archive = dir.path().join("report.tar.any");
        let made = Command::new("tar")
            .args([options, archive.to_str().expect("text"), "sosreport-web1"])
            .current_dir(dir.path())
            .status();
        if !made.is_ok_and(|status| status.success()) {
            println!("skipped: an archive of tar {options}: no tar(1), or no compressor");
            continue;
        }
        assert_eq!(events_of(&archive), [1, 2, 3], "{options}");
        let input = archive.to_str().expect("text");
        let counted = output(&mut report(&["-if", input, "-x", "--summary"]));
        assert!(
            counted.stdout.ends_with(b"3  /usr/sbin/sshd\n"),
            "{options}"
        );
    }
}

#[test]
fn several_inputs_are_one_log() {
    let dir = TempDir::new().expect("a directory");
    let path = |name: &str, serial| {
        let path = dir.path().join(name);
        fs::write(&path, login(serial)).expect("written");
        path.display().to_string()
    };
    let (a, b) = (path("a.log", 1), path("b.log", 2));
    assert_eq!(serials(&printed(&["-if", &a, "-if", &b, "-r"])), [1, 2]);
    assert_eq!(
        serials(&printed(&["-if", &a, "-if", &b, "-r", "-k", "nothing"])),
        [0; 0]
    );
    let both = output(&mut report(&["-if", &a, "-if", &b]));
    assert!(String::from_utf8_lossy(&both.stdout).contains("Number of events: 2\n"));
    // ausearch takes the last.
    assert_eq!(
        serials(&printed(&["--compat", "-if", &a, "-if", &b, "-r"])),
        [2]
    );
}

#[test]
fn times_may_be_written_as_by_iso_8601_and_in_seconds() {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("a.log");
    fs::write(&path, [login(1), login(50_000)].concat()).expect("written");
    let input = path.to_str().expect("text");
    for words in [
        &["-ts", "2023-11-14", "22:30:00"][..],
        &["-ts", "2023-11-14T22:30:00"],
        &["-ts", "2023-11-15T00:00:00+01:00"],
        &["-ts", "1700000100"],
        &["-ts", "1700000100.5"],
        &["-ts", "11/15/2023"],
        &["-ts", "11/15/23"],
    ] {
        assert_eq!(
            serials(&printed(&[&["-if", input, "-r"], words].concat())),
            [50_000],
            "{words:?}"
        );
    }
    assert_eq!(
        serials(&printed(&["-if", input, "-r", "-te", "2023-11-14"])),
        [1]
    );
    let wrong = output(&mut search(&[
        "--compat",
        "-if",
        input,
        "-ts",
        "2023-11-14",
    ]));
    assert_eq!(wrong.status.code(), Some(1));
}

#[test]
fn records_behind_a_prefix_are_read_with_its_host() {
    let dir = TempDir::new().expect("a directory");
    let line = login(1);
    let line = line.trim_end();
    let text = format!(
        "Nov 14 22:13:20 web1 systemd[1]: Started x.\n\
         Nov 14 22:13:20 web1 audisp-syslog[812]: {line}\n\
         <13>1 2023-11-14T22:13:20.1Z db1 audisp-syslog 812 - - {}\n\
         Nov 14 22:13:21 mail kernel: [   12.3] audit: type=1400 audit(1700000003.100:3): apparmor=\"DENIED\" \
         operation=\"open\" profile=\"p\" name=\"/etc/shadow\" pid=7 comm=\"x\"\n",
        login(2).trim_end()
    );
    let path = dir.path().join("messages");
    fs::write(&path, text).expect("written");
    let input = path.to_str().expect("text");
    assert_eq!(events_of(&path), [1, 2, 3]);
    assert_eq!(serials(&printed(&["-if", input, "-r", "-n", "db1"])), [2]);
    assert_eq!(
        serials(&printed(&["-if", input, "-r", "-p", "7", "-f", "shadow"])),
        [3]
    );
    assert_eq!(
        serials(&printed(&["-if", input, "-r", "-x", "sshd"])),
        [1, 2]
    );
    let top = String::from_utf8(
        report(&["-if", input, "--top", "node"])
            .output()
            .expect("runs")
            .stdout,
    );
    let top = top.expect("text");
    assert!(
        ["web1", "db1", "mail"]
            .iter()
            .all(|host| top.contains(host)),
        "{top}"
    );
}

#[test]
fn an_export_of_the_journal_is_a_log() {
    let dir = TempDir::new().expect("a directory");
    let entry = "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1700000000200000\n_HOSTNAME=web1\n_TRANSPORT=audit\n\
                 _AUDIT_TYPE=1112\n_AUDIT_TYPE_NAME=USER_LOGIN\n_AUDIT_ID=7\n\
                 _SOURCE_REALTIME_TIMESTAMP=1700000000100000\n\
                 MESSAGE=USER_LOGIN pid=5 uid=0 auid=1000 ses=4 msg='op=login acct=\"a\" exe=\"/usr/sbin/sshd\" \
                 hostname=? addr=192.0.2.9 terminal=ssh res=failed'\n\n";
    let json = r#"{"__CURSOR":"x","_HOSTNAME":"db1","_AUDIT_TYPE_NAME":"USER_LOGIN","_AUDIT_ID":"8","_SOURCE_REALTIME_TIMESTAMP":"1700000001100000","MESSAGE":"USER_LOGIN pid=6 uid=0 msg='op=login res=failed'"}"#;
    for (text, host, serial) in [
        (entry.to_owned(), "web1", 7),
        (format!("{json}\n"), "db1", 8),
    ] {
        let path = dir.path().join("journal");
        fs::write(&path, text).expect("written");
        assert_eq!(events_of(&path), [serial]);
        let input = path.to_str().expect("text");
        assert_eq!(
            serials(&printed(&["-if", input, "-r", "-n", host, "-sv", "no"])),
            [serial]
        );
    }
}

#[test]
fn what_is_no_log_is_an_error_that_names_it() {
    let dir = TempDir::new().expect("a directory");
    let long = "all work and no play\n".repeat(10_000);
    let cut = piped("gzip", long.as_bytes()).map_or_else(Vec::new, |mut bytes| {
        bytes.truncate(bytes.len() - 9);
        bytes
    });
    let random: Vec<u8> = (0..200_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for (name, bytes) in [
        ("elf", &b"\x7fELF\x02\x01\x01type=x audit( \n more"[..]),
        ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("json", b"{\"a\": 1}\n{\"b\": [2, 3]}\n"),
        ("text", long.as_bytes()),
        (
            "code",
            b"node = call_something_long(12, x)\nmain type = another_thing(1.2:3)\n",
        ),
        ("cut.gz", &cut),
        ("random", &random),
        ("zero", &[0; 5000]),
        ("gzip only", b"\x1f\x8b\x08"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, bytes).expect("written");
        let input = path.to_str().expect("text");
        for mut command in [
            search(&["-if", input]),
            search(&["-if", input, "-k", "something"]),
            search(&["-if", input, "--format", "csv"]),
            report(&["-if", input]),
            report(&["-if", input, "-x", "--summary"]),
            report(&["-if", input, "--top", "exe"]),
            report(&["-if", input, "--html", "-"]),
        ] {
            let asked = output(&mut command);
            let said = String::from_utf8_lossy(&asked.stderr).into_owned();
            assert_eq!(asked.status.code(), Some(1), "{name}: {command:?}");
            assert!(said.contains(input), "{name}: {command:?}: {said}");
            assert!(asked.stdout.is_empty(), "{name}: {command:?}");
        }
    }
    let empty = dir.path().join("empty");
    fs::write(&empty, "").expect("written");
    let nothing = output(&mut report(&["-if", empty.to_str().expect("text")]));
    assert_eq!(nothing.status.code(), Some(1));
    assert!(!String::from_utf8_lossy(&nothing.stdout).contains("1970"));
}

#[test]
fn what_can_be_read_of_a_cut_file_is_found_and_the_rest_is_said() {
    let dir = TempDir::new().expect("a directory");
    let text: String = (0..40_000).map(login).collect();
    let Some(mut bytes) = piped("gzip", text.as_bytes()) else {
        println!("skipped: a cut file: no gzip(1)");
        return;
    };
    bytes.truncate(bytes.len() / 2);
    let path = dir.path().join("audit.log.1.gz");
    fs::write(&path, bytes).expect("written");
    let input = path.to_str().expect("text");
    let cut = output(&mut search(&["-if", input, "-r"]));
    assert!(serials(&String::from_utf8_lossy(&cut.stdout)).len() > 1000);
    assert_eq!(cut.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&cut.stderr).contains(input));
    let counted = output(&mut report(&["-if", input]));
    assert_eq!(counted.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&counted.stderr).contains(input));
}

#[test]
fn a_json_log_is_mapped_with_all_that_its_lines_have() {
    // `process`, `hashes` and the label have no record.
    let line = r#"{"time":1795229646.007,"serial":42,"process":{"pid":7,"start":70,"boot":"53d1a22c-0000-4000-8000-000000000000","ancestors":[{"pid":4,"start":40,"exe":"/usr/bin/bash","argv":["bash","-c","x"]}]},"labels":["l1"],"records":[{"type":"SYSCALL","arch":"x86_64","syscall":"execve","success":"yes","exit":0,"a0":"0x1","items":0,"ppid":4,"pid":7,"auid":1000,"uid":0,"comm":"cat","exe":"/bin/cat","key":["k"]}]}"#;
    let other = line.replace("\"serial\":42", "\"serial\":43");
    let text = format!("{line}\n{other}\n");
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("audit.log");
    fs::write(&path, &text).expect("written");
    let of = |format| printed(&["-if", path.to_str().expect("text"), "--format", format]);

    for (format, words) in [
        ("ecs", "\"command_line\":\"bash -c x\""),
        (
            "ecs-auditbeat",
            "\"entity_id\":\"53d1a22c-0000-4000-8000-000000000000/4/40\"",
        ),
        ("ocsf", "\"labels\":[\"l1\"]"),
    ] {
        let found = of(format);
        assert_eq!(found.matches(words).count(), 2, "{format}: {found}");
    }
    assert_eq!(of("jsonl"), text, "the log's own lines");
    let array = of("json");
    assert_eq!(array.replace("}\n,{", "}\n{"), format!("[{text}]\n"));
}
