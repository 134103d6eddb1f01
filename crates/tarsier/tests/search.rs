//! `tarsier search --dialect 3` beside ausearch 3.0.9: the same output, messages and exit status; and what
//! `tarsier search` does without the dialect.
//!
//! docs/reference/search.md lists the differences.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Options that are tried on every log.
const OPTIONS: &[&str] = &[
    "",
    "--format default",
    "-r",
    "-k opens",
    "-k e -w",
    "-x bin",
    "-x /bin/touch -w",
    "-c a",
    "-f tmp",
    "-f /etc",
    "-p 138",
    "-pp 1",
    "-sv no",
    "-sv yes",
    "-e -13",
    "-e EACCES",
    "-e -EACCES",
    "-ua root",
    "-ua 0",
    "-ui root",
    "-ue root",
    "-ul -1",
    "-ul root",
    "-ga 0",
    "-gi 0",
    "-ge 0",
    "-hn 127",
    "-tm none",
    "-su unconfined",
    "-o unconfined",
    "-se unconfined",
    "-m SYSCALL",
    "-m LOGIN,PATH",
    "-m 1305",
    "-m all",
    "-sc openat",
    "--arch b32",
    "--arch x86_64 -sc 2",
    "--session 4294967295",
    "--session -1",
    "-vm x",
    "-uu x",
    "-n one",
    "-n one -n two -sv yes",
    "-a 9",
    "--just-one",
    "-l -k opens",
    "-ts 11/21/26 02:53:50",
    "-ts 02:53 11/21/26 -te 11/21/26 02:53:50",
    "-ts 11/21/26 -te today",
    "-sv no -r",
    "--eoe-timeout 1",
];

/// Options that are wrong, and what else needs no log.
const WRONG: &[&str] = &[
    "-k",
    "-k -r",
    "-r -r",
    "-r x",
    "-a x",
    "-p x",
    "-pp x",
    "-e EBAD",
    "-e",
    "-e 99999999999999999999",
    "-sv maybe",
    "-m NOSUCH",
    "-m SYSCALL,NOSUCH",
    "-m 99999999999999999999",
    "-m",
    "-sc nosuch",
    "-sc 99999999999999999999",
    "--arch vax",
    "--arch b64 --arch b32",
    "-sc open --arch b32",
    "-ui nosuch",
    "-ue nosuch",
    "-ua nosuch",
    "-ul nosuch",
    "-gi nosuch",
    "-ge nosuch",
    "-ga nosuch",
    "-ui 99999999999999999999",
    "-gi 99999999999999999999",
    "--session x",
    "--session",
    "-ul 99999999999999999999",
    "--eoe-timeout x",
    "--eoe-timeout 0",
    "--format xml",
    "--format",
    "--format raw -r",
    "-r --format raw",
    "-zz",
    "plain",
    "-ts",
    "-te",
    "-ts x",
    "-te x",
    "-ts 11/24/2026",
    "-ts 25:00",
    "-ts 11/24/26 9",
    "-ts 11/24/99",
    "-v",
    "-if",
    "-if /nonexistent",
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../event/tests/corpus")
}

fn read(name: &str) -> Vec<u8> {
    fs::read(corpus().join(name)).expect("a log of the corpus")
}

fn ausearch(root: &Path) -> Command {
    let mut command = Command::new(root.join("sbin/ausearch"));
    let libraries: Vec<String> = ["usr/lib", "lib"]
        .iter()
        .map(|dir| {
            format!(
                "{}/{dir}/{}-linux-gnu",
                root.display(),
                std::env::consts::ARCH
            )
        })
        .collect();
    command.env("LD_LIBRARY_PATH", libraries.join(":"));
    command
}

fn tarsier(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.arg("search").args(words);
    command
}

fn output(command: &mut Command, zone: &str) -> Output {
    command
        .env("LC_ALL", "C")
        .env("TZ", zone)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

/// Both programs with the same words say the same.
fn compare(root: &Path, words: &[&str], zone: &str) {
    let expected = output(ausearch(root).args(words), zone);
    let found = output(tarsier(&["--dialect", "3"]).args(words), zone);
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(
        shown(&found.stderr),
        shown(&expected.stderr),
        "{words:?} {zone}"
    );
    assert_eq!(
        found.status.code(),
        expected.status.code(),
        "{words:?} {zone}"
    );
    // Not shown whole if it differs: it may be long.
    assert!(
        found.stdout == expected.stdout,
        "{words:?} {zone}: the output differs"
    );
}

fn compare_all(root: &Path, log: &Path, zone: &str) {
    let log = log.to_str().expect("paths are text");
    for options in OPTIONS {
        let words: Vec<&str> = ["-if", log]
            .into_iter()
            .chain(options.split_whitespace())
            .collect();
        compare(root, &words, zone);
    }
}

/// Lines of three logs: calls with many records, messages of user space in ENRICHED, addresses.
fn mixed() -> Vec<Vec<u8>> {
    [
        "06-exec.raw.log",
        "20-norules-hardwired.enriched.log",
        "10-net-saddrfam.raw.log",
    ]
    .iter()
    .flat_map(|name| {
        let lines: Vec<_> = read(name)
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines
    })
    .collect()
}

/// A generator of numbers that are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

fn write(dir: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}

#[test]
fn logs_of_the_kernel_are_searched_as_by_ausearch() {
    let Some(root) = testkit::peers("searches beside ausearch") else {
        return;
    };
    for name in [
        "01-file-mod.raw.log",
        "06-exec.enriched.log",
        "10-net-saddrfam.raw.log",
        "20-norules-hardwired.raw.log",
        "20-norules-hardwired.enriched.log",
        "27-compat32.enriched.log",
    ] {
        compare_all(&root, &corpus().join(name), "UTC");
    }
    compare_all(&root, &corpus().join("06-exec.raw.log"), "America/St_Johns");
}

#[test]
fn disordered_and_damaged_logs_are_searched_as_by_ausearch() {
    let Some(root) = testkit::peers("searches beside ausearch") else {
        return;
    };
    let dir = TempDir::new().expect("a directory");
    let lines = mixed();
    let mut numbers = Numbers(7);

    let mut shuffled = lines.clone();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, numbers.below(at + 1));
    }
    compare_all(&root, &write(&dir, "shuffled", &shuffled.concat()), "UTC");

    let mut near = lines.clone();
    for at in 0..near.len() - 5 {
        near.swap(at, at + numbers.below(5));
    }
    compare_all(&root, &write(&dir, "near", &near.concat()), "UTC");

    let half = lines.len() / 2;
    let nodes: Vec<u8> = (0..half)
        .flat_map(|at| {
            [
                &b"node=one "[..],
                &lines[at],
                b"node=two ",
                &lines[half + at],
            ]
            .concat()
        })
        .collect();
    compare_all(&root, &write(&dir, "nodes", &nodes), "UTC");

    let mut flipped = lines.concat();
    for _ in 0..flipped.len() / 150 {
        let at = numbers.below(flipped.len());
        let changed = flipped[at] ^ 1 << numbers.below(7);
        if changed != 0 {
            flipped[at] = changed;
        }
    }
    compare_all(&root, &write(&dir, "flipped", &flipped), "UTC");

    // ausearch complains of addresses that are too short; see the page.
    let mut cut = Vec::new();
    for line in lines
        .iter()
        .filter(|line| !line.starts_with(b"type=SOCKADDR"))
    {
        cut.extend_from_slice(&line[..numbers.below(line.len())]);
        cut.push(b'\n');
    }
    compare_all(&root, &write(&dir, "cut", &cut), "UTC");
}

#[test]
fn wrong_options_have_the_messages_of_ausearch() {
    let Some(root) = testkit::peers("messages beside ausearch") else {
        return;
    };
    for words in WRONG {
        let words: Vec<&str> = words.split_whitespace().collect();
        compare(&root, &words, "UTC");
    }
}

#[test]
fn rotated_sets_long_lines_and_pipes_are_read_as_by_ausearch() {
    let Some(root) = testkit::peers("searches beside ausearch") else {
        return;
    };
    let dir = TempDir::new().expect("a directory");
    let lines = mixed();
    for (number, part) in lines.chunks(lines.len() / 3 + 1).rev().enumerate() {
        let name = match number {
            0 => "audit.log".to_owned(),
            _ => format!("audit.log.{number}"),
        };
        write(&dir, &name, &part.concat());
    }
    compare_all(&root, dir.path(), "UTC");

    let mut long = lines[..9].concat();
    let text = "y".repeat(9500);
    let line =
        format!("type=USER msg=audit(1795229630.000:7777): pid=1 uid=0 msg='{text} res=success'\n");
    long.extend_from_slice(line.as_bytes());
    long.extend_from_slice(&lines[9..30].concat());
    compare_all(&root, &write(&dir, "long", &long), "UTC");

    let piped = |mut command: Command| {
        let mut child = command
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut input = child.stdin.take().expect("a pipe");
        let text = lines.concat();
        let writer = std::thread::spawn(move || input.write_all(&text));
        let output = child.wait_with_output().expect("an end");
        writer.join().expect("no panic").expect("all is read");
        output.stdout
    };
    let mut expected = ausearch(&root);
    expected.args(["-sv", "yes"]);
    let found = piped(tarsier(&["--dialect", "3", "-sv", "yes"]));
    assert!(!found.is_empty());
    assert!(found == piped(expected), "the output differs");
}

fn found(words: &[&str]) -> (Vec<u8>, Option<i32>) {
    let output = output(&mut tarsier(words), "UTC");
    (output.stdout, output.status.code())
}

#[test]
fn lines_are_whole_and_compressed_files_are_read_without_a_dialect() {
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
    let dialect = ["--dialect", "3", "-if", log, "-p", "77", "-r"];
    assert_eq!(found(&dialect), (Vec::new(), Some(1)));
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
fn options_that_are_not_built_are_refused() {
    for option in [
        "-i",
        "--format csv",
        "--format interpret",
        "--checkpoint x",
        "-ts checkpoint",
    ] {
        let words: Vec<&str> = option.split_whitespace().collect();
        let output = output(&mut tarsier(&words), "UTC");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{option}");
        assert!(
            message.contains("tarsier search does not have"),
            "{message}"
        );
    }
    let dialect = output(&mut tarsier(&["--dialect", "4", "-r"]), "UTC");
    assert_eq!(dialect.status.code(), Some(1));
}
