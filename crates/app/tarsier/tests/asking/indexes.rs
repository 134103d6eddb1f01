//! Indexes change no answer, and only valid ones are used.

use crate::made::{call, found, output, search, task, write};
use query::index::Index;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

fn verify(log: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    let output = output(command.args(["verify", "--index"]).arg(log));
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

/// A log of `count` events. Event 700 and every late event have the key `rare`.
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
    let compressed = zstd::encode_all(&log.as_bytes()[..parts[0]], 3).expect("compressed");
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

/// A forged index can hide events. Only those who can write the log can forge it, and `verify --index` finds it.
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
fn events_in_json_are_found_behind_text_and_have_no_index() {
    let dir = TempDir::new().expect("a directory");
    let event = call(9000, 900_000, 59, 0, &task(7, 1, "late"), &[]);
    let event = event.replace("watched", "in-json");
    let plain = write(&dir, "plain", &event);
    let json = found(&["-if", plain.to_str().expect("text"), "--format", "jsonl"]);
    assert!(json.starts_with('{') && json.ends_with("}\n"), "{json}");
    let text = long_log(6000);
    let log = write(&dir, "audit.log.1", &format!("{text}{json}"));
    write(&dir, "audit.log", "");
    let input = log.to_str().expect("text");
    for question in [
        "-k in-json",
        "-c late -sv yes",
        "-k in-json -ts 11/15/23 00:00:00",
    ] {
        let words = ["-if", input, "--format", "raw"].into_iter();
        let words: Vec<&str> = words.chain(question.split_whitespace()).collect();
        assert_eq!(
            found(&words).matches("key=\"in-json\"").count(),
            1,
            "{question}"
        );
    }
    let built = output(&mut search(&["-if", input, "--build-index"]));
    assert!(!built.status.success(), "{built:?}");
    assert!(
        String::from_utf8_lossy(&built.stderr).contains("JSON"),
        "{built:?}"
    );
    assert!(!dir.path().join("audit.log.1.idx").exists());
}
