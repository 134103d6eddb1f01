//! `tarsier seal init` and `tarsier verify` as programs: status, text and files.

use conf::Config;
use journal::seal::seal_path;
use journal::Journal;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.args(args);
    command
}

fn output(args: &[&str]) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command(args).output().expect("tarsier runs");
    let said = [stdout, stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (status.code().expect("an exit status"), said)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths are text")
}

fn write(journal: &mut Journal, events: u64) {
    for number in 0..events {
        let line = format!("type=USER msg=audit(1.000:{number}): x\n");
        journal.append(line.as_bytes(), 1);
        journal.commit().expect("written");
    }
}

#[test]
fn the_status_tells_closed_altered_unknown_and_open_ends_apart() {
    let dir = TempDir::new().unwrap();
    let (log, key) = (dir.path().join("audit.log"), dir.path().join("key"));
    let made = output(&[
        "seal",
        "init",
        "--on-disk",
        "--log-file",
        text(&log),
        "--key",
        text(&key),
    ]);
    assert_eq!(made.0, 0, "{}", made.1);
    let config = Config {
        seal: true,
        ..Config::default()
    };
    let open = || Journal::open(&log, &config).expect("a journal").0;
    let verified = |log: &Path, more: &[&str]| {
        output(&[&["verify", "--key", text(&key)], more, &[text(log)]].concat())
    };
    let mut journal = open();
    write(&mut journal, 5);
    // On another host, with what was there at that moment.
    let elsewhere = TempDir::new().unwrap();
    let copy = elsewhere.path().join("audit.log");
    fs::copy(&log, &copy).unwrap();
    fs::copy(seal_path(&log), seal_path(&copy)).unwrap();
    assert_eq!(verified(&log, &[]).0, 0, "it is being written");
    let (status, said) = verified(&copy, &[]);
    assert_eq!(status, 3, "{said}");
    assert!(said.contains("NOT CLOSED"), "{said}");
    let (status, said) = verified(&copy, &["--json"]);
    assert!(status == 3 && said.contains("\"end\": \"open\""), "{said}");
    for more in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let mut verify = command(&["verify", "--key", text(&key), text(&copy)]);
        let status = verify.args(more).stdout(writer).status();
        assert_eq!(status.unwrap().code(), Some(3), "nobody reads it");
    }
    assert_eq!(verified(&copy, &["--max-age", "1h"]).0, 0);
    journal.close();
    let (status, said) = verified(&log, &["--json"]);
    assert!(
        status == 0 && said.contains("\"end\": \"in order\""),
        "{said}"
    );
    fs::write(&copy, "type=USER msg=audit(1.000:0): y\n").unwrap();
    assert_eq!(verified(&copy, &[]).0, 1);
    fs::remove_file(seal_path(&copy)).unwrap();
    assert_eq!(verified(&copy, &[]).0, 2);
}

#[test]
fn a_key_that_nobody_got_leaves_no_keys_behind() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("audit.log");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut init = command(&["seal", "init", "--log-file", text(&log)]);
    let mut child = init
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .expect("tarsier runs");
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(said.contains("no keys were made"), "{said}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_first_key_goes_to_memory_and_to_a_disk_only_if_told() {
    const TMPFS: i64 = 0x0102_1994;
    let is_tmpfs = |path: &Path| rustix::fs::statfs(path).is_ok_and(|found| found.f_type == TMPFS);
    let dir = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (log, key) = (dir.path().join("audit.log"), dir.path().join("key"));
    let init = |key: &Path| output(&["seal", "init", "--log-file", text(&log), "--key", text(key)]);
    if is_tmpfs(dir.path()) {
        println!("skipped: a key on a disk: the build directory is no disk");
    } else {
        let (status, said) = init(&key);
        assert_ne!(status, 0, "{said}");
        assert!(said.contains("--on-disk"), "{said}");
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            0,
            "no file, no keys"
        );
    }
    if !is_tmpfs(Path::new("/dev/shm")) {
        println!("skipped: a key in memory: /dev/shm is no tmpfs");
        return;
    }
    let memory = TempDir::new_in("/dev/shm").unwrap();
    let key = memory.path().join("key");
    let (status, said) = init(&key);
    assert_eq!(status, 0, "{said}");
    assert!(fs::read_to_string(&key).unwrap().contains("secret "));
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "the host's own keys only");
}
