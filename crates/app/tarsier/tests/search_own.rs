//! Tests of `tarsier search` without `--compat`: nothing is cut, split or left in hex.

use record::{text, Encoder, Format, NoNames};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../log/record/tests/corpus")
}

fn read(name: &str) -> Vec<u8> {
    fs::read(corpus().join(name)).expect("a log of the corpus")
}

fn write(dir: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}

fn output(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tarsier"))
        .arg("search")
        .args(words)
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

fn found(words: &[&str]) -> (Vec<u8>, Option<i32>) {
    let output = output(words);
    (output.stdout, output.status.code())
}

#[test]
fn lines_are_whole_and_compressed_files_are_read_without_compat() {
    let dir = TempDir::new().expect("a directory");
    let text = "y".repeat(9500);
    let line = format!("type=USER_CMD msg=audit(1795229630.000:7): pid=1 uid=0 msg='{text} exe=\"/bin/late\" res=success'\n");
    let old = write(&dir, "audit.log.1", line.as_bytes());
    write(&dir, "audit.log", &read("06-exec.raw.log"));
    let log = dir.path().to_str().expect("paths are text").to_owned();
    let words = ["-if", &log, "-x", "/bin/late", "-r"];
    assert_eq!(found(&words), (line.clone().into_bytes(), Some(0)));

    let status = Command::new("zstd")
        .arg("-q")
        .arg("--rm")
        .arg(&old)
        .status();
    if status.is_ok_and(|status| status.success()) {
        assert_eq!(found(&words), (line.into_bytes(), Some(0)));
    } else {
        println!("skipped: a compressed log: no zstd(1)");
    }
}

#[test]
fn an_event_that_cannot_be_read_wholly_is_found_by_what_can_be_read() {
    let dir = TempDir::new().expect("a directory");
    // ausearch requires tclass=, which AppArmor does not write.
    let line = "type=AVC msg=audit(1795229630.000:7): apparmor=\"DENIED\" operation=\"open\" pid=77 comm=\"cat\"\n";
    let log = write(&dir, "log", line.as_bytes());
    let log = log.to_str().expect("paths are text");
    assert_eq!(
        found(&["-if", log, "-p", "77", "-r"]),
        (line.into(), Some(0))
    );
    let compat = ["--compat", "-if", log, "-p", "77", "-r"];
    assert_eq!(found(&compat), (Vec::new(), Some(1)));
}

#[test]
fn records_of_a_call_join_the_login_before_them() {
    let dir = TempDir::new().expect("a directory");
    let stamp = "msg=audit(1795229630.000:7):";
    let text = format!(
        "type=LOGIN {stamp} pid=5 uid=0 old-auid=1 auid=2 tty=(none) old-ses=1 ses=2 res=1\n\
         type=SYSCALL {stamp} arch=c000003e syscall=1 a0=1 a1=2 pid=5 exe=\"/bin/login\"\n"
    );
    let log = write(&dir, "log", text.as_bytes());
    let log = log.to_str().expect("paths are text");
    let words = ["-if", log, "-m", "LOGIN", "-r"];
    assert_eq!(found(&words), (text.into_bytes(), Some(0)));
}

#[test]
fn a_text_in_hex_is_found_as_its_plain_form() {
    let dir = TempDir::new().expect("a directory");
    let line = "type=SYSCALL msg=audit(1795229630.000:7): arch=c000003e syscall=1 a0=1 a1=2 pid=5 comm=612062 key=6B6579616263016f6e65\n";
    let log = write(&dir, "log", line.as_bytes());
    let log = log.to_str().expect("paths are text");
    for (words, is_found) in [
        (["-k", "one"], true),
        (["-k", "keyabc"], true),
        (["-k", "abco"], false),
        (["-c", "a b"], true),
    ] {
        let status = found(&["-if", log, words[0], words[1]]).1;
        assert_eq!(status, Some(if is_found { 0 } else { 1 }), "{words:?}");
    }
}

#[test]
fn texts_in_hex_are_shown_whole_without_compat() {
    let dir = TempDir::new().expect("a directory");
    let stamp = "msg=audit(1795229630.000:7):";
    let text = format!(
        "type=SYSCALL {stamp} arch=c000003e syscall=92 success=yes exit=0 a0=1 a1=0 a2=0 a3=0 \
         items=1 ppid=1 pid=5 auid=0 uid=0 gid=0 comm=612062 exe=\"/bin/chown\" key=\"own\"\n\
         type=CWD {stamp} cwd=\"/a\"\n\
         type=PATH {stamp} item=0 name=\"../etc/x\" inode=7 mode=0100644 nametype=NORMAL\n\
         type=PROCTITLE {stamp} proctitle=63686F776E0061006200\n"
    );
    let log = write(&dir, "log", text.as_bytes());
    let log = log.to_str().expect("paths are text");
    let shown = |words: &[&str]| {
        let words = [&["-if", log], words].concat();
        String::from_utf8(found(&words).0).expect("text")
    };
    let interpreted = shown(&["-i"]);
    for part in [
        "proctitle=chown a b \n",
        "arch=x86_64 syscall=chown",
        "a1=root a2=root",
        "comm=a b exe=/bin/chown key=own",
    ] {
        assert!(interpreted.contains(part), "{part}: {interpreted}");
    }
    assert!(shown(&["--format", "text"]).contains("changed-file-ownership-of /etc/x to root using"));
    assert!(shown(&["--format", "csv"]).contains(",success,/etc/x,7,file,/bin/chown\n"));
}

#[test]
fn a_name_with_commas_and_quotes_is_one_value_of_a_line() {
    let dir = TempDir::new().expect("a directory");
    let stamp = "msg=audit(1795229630.000:7):";
    let text = format!(
        "type=SYSCALL {stamp} arch=c000003e syscall=92 success=yes exit=0 a0=1 a1=0 a2=0 a3=0 \
         items=1 ppid=1 pid=5 auid=0 uid=0 gid=0 comm=612062 exe=\"/bin/chown\" key=\"own\"\n\
         type=CWD {stamp} cwd=\"/a\"\n\
         type=PATH {stamp} item=0 name=2F612C2262 inode=7 mode=0100644 nametype=NORMAL\n"
    );
    let log = write(&dir, "log", text.as_bytes());
    let log = log.to_str().expect("paths are text");
    let shown = |words: &[&str]| {
        let words = [words, &["-if", log, "--format", "csv"]].concat();
        String::from_utf8(found(&words).0).expect("text")
    };
    assert!(shown(&[]).contains(",success,\"/a,\"\"b\",7,file,/bin/chown\n"));
    // ausearch does not quote.
    let theirs = shown(&["--compat"]);
    assert!(theirs.contains(",success,/a,\"b,7,"), "{theirs}");
}

#[test]
fn logs_in_json_are_searched_as_those_in_raw() {
    let dir = TempDir::new().expect("a directory");
    for name in ["06-exec", "10-net-saddrfam", "01-file-mod"] {
        let raw = corpus().join(format!("{name}.raw.log"));
        let json = dir.path().join(format!("{name}.json"));
        fs::write(&json, in_json(&read(&format!("{name}.raw.log")))).expect("a log in JSON");
        for options in [
            "-r -sv no",
            "-i",
            "--format csv",
            "--format text",
            "-x bin --format csv",
        ] {
            let search = |log: &Path| {
                let log = log.to_str().expect("paths are text");
                let words: Vec<&str> = ["-if", log]
                    .into_iter()
                    .chain(options.split_whitespace())
                    .collect();
                found(&words)
            };
            let (expected, found) = (search(&raw), search(&json));
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert_eq!(shown(&found.0), shown(&expected.0), "{name} {options}");
            assert_eq!(found.1, expected.1, "{name} {options}");
        }
    }
}

/// The log as the daemon writes it with `log_format = JSON`.
fn in_json(log: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(Format::Json, Box::new(NoNames));
    let mut out = Vec::new();
    let records: Vec<_> = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| text::parse_line(line).expect("a record"))
        .collect();
    for event in records.chunk_by(|one, next| one.stamp == next.stamp) {
        let mut writer = encoder.begin(&mut out, event[0].stamp);
        for record in event {
            writer.raw(record.kind.expect("a known type").0, record.body);
        }
    }
    out
}

#[test]
fn what_a_filter_did_is_told_by_all_bits_of_its_action() {
    let dir = TempDir::new().expect("a directory");
    let codes = [
        ("0x80000000", "kill-process"),
        ("0x0", "kill-thread"),
        ("0x30000", "trap"),
        ("0x50001", "errno"),
        ("0x7fc00000", "user-notify"),
        ("0x7ffc0000", "log"),
    ];
    let lines = codes.iter().enumerate().map(|(at, (code, _))| {
        format!(
            "type=SECCOMP msg=audit(1780000000.123:{at}): auid=1 uid=0 gid=0 ses=1 pid=1 \
             comm=\"a\" exe=\"/a\" sig=31 arch=c000003e syscall=1 compat=0 ip=0x1 code={code}\n"
        )
    });
    let log = write(&dir, "audit.log", lines.collect::<String>().as_bytes());
    let (text, status) = found(&["-i", "-if", log.to_str().expect("a name")]);
    assert_eq!(status, Some(0));
    let text = String::from_utf8_lossy(&text);
    for (_, name) in codes {
        assert!(text.contains(&format!("code={name}")), "{name}: {text}");
    }
}
