//! `tarsier report --compat` and aureport 4.0.2: the same output, messages and exit status; and what
//! `tarsier report` does without `--compat`.
//!
//! docs/reference/report.md lists the differences.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use testkit::{corpus, corpus_lines, damage_seeds, of_two_nodes, AuditPackage, Numbers};

/// Reports besides the main summary that are made of every log, each in all [`FORMS`].
const REPORTS: &str =
    "-a -au -c --comm -cr -e -f -h --integrity -k -l -m -ma -n -p -r -s -t -tm --tty -u --virt -x";

/// [`REPORTS`] with the main summary, which has no option.
fn reports() -> impl Iterator<Item = &'static str> {
    REPORTS.split_whitespace().chain([""])
}

const FORMS: &[&str] = &["", "--summary", "-i", "--summary -i", "--failed"];

/// Options that are tried on every log once.
const OPTIONS: &[&str] = &[
    "--success",
    "--success -e --summary",
    "--node one",
    "--node one --node two -k --summary -i",
    "-ts 11/21/26 02:53:50",
    "-ts 02:53 11/21/26 -te 11/21/26 02:53:50 -f",
    "-ts 11/21/26 -te today -f",
    "-c --add",
    "-c --delete --summary",
    "-nc",
    "-f --summary --escape shell",
    "-f --escape shell_quote",
    "--eoe-timeout 1",
];

/// Wrong options, and others that need no log.
const WRONG: &[&str] = &[
    "-x -f",
    "-f word",
    "-i word",
    "-zz",
    "word",
    "-t --summary",
    "--tty --summary --failed",
    "--escape",
    "--escape shellfish",
    "--eoe-timeout",
    "--eoe-timeout x",
    "--eoe-timeout 0",
    "--eoe-timeout 99999999999999999999",
    "-ts",
    "-te",
    "-ts x",
    "-ts checkpoint",
    "-te 11/24/26 9",
    "-ts 11/24/99",
    "-v",
    "-if",
    "-if /nonexistent",
];

fn tarsier(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.arg("report").args(words);
    command
}

/// Time zone and locale of a program.
#[derive(Clone, Copy, Debug)]
struct Place<'p> {
    zone: &'p str,
    locale: &'p str,
    /// Directory of locales made for the test.
    locales: &'p Path,
}

fn zone(zone: &str) -> Place<'_> {
    Place {
        zone,
        locale: "C",
        locales: Path::new("/nonexistent"),
    }
}

const UTC: &str = "UTC";

fn output(command: &mut Command, place: Place<'_>) -> Output {
    command
        .env("LC_ALL", place.locale)
        .env("TZ", place.zone)
        .env("LOCPATH", place.locales)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Both programs print the same for the same words.
fn compare(peer: &AuditPackage, words: &[&str], place: Place<'_>) {
    let expected = output(peer.command("aureport").args(words), place);
    let found = output(tarsier(&["--compat"]).args(words), place);
    let status = (found.status.code(), expected.status.code());
    assert_eq!(status.0, status.1, "{words:?} {place:?}");
    // Complaints of addresses are a difference that the page lists.
    let errors = |output: &Output| -> Vec<String> {
        let text = shown(&output.stderr);
        let lines = text.lines().filter(|line| !line.contains("len too short"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(errors(&found), errors(&expected), "{words:?} {place:?}");
    if found.stdout != expected.stdout {
        let (found, expected) = (shown(&found.stdout), shown(&expected.stdout));
        let different = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("{words:?} {place:?}: found and expected: {different:?}");
    }
}

fn words_of<'w>(log: &'w str, options: &[&'w str]) -> Vec<&'w str> {
    let options = options.iter().flat_map(|words| words.split_whitespace());
    ["-if", log].into_iter().chain(options).collect()
}

fn compare_all(peer: &AuditPackage, log: &Path, zone_name: &str) {
    let place = zone(zone_name);
    let log = log.to_str().expect("paths are text");
    for report in reports() {
        for form in FORMS {
            // aureport prints memory that nobody has written for calls of an unknown architecture.
            let is_unknown = report == "-s" && *form == "--summary -i" && log.contains("flipped");
            if !is_unknown {
                compare(peer, &words_of(log, &[report, form]), place);
            }
        }
    }
    for options in OPTIONS {
        compare(peer, &words_of(log, &[options]), place);
    }
}

/// Lines of logs: calls with many records, messages of user space in ENRICHED, addresses, changes of
/// configuration, and what calls do not have.
fn mixed() -> Vec<Vec<u8>> {
    corpus_lines(&[
        "06-exec.raw.log",
        "20-norules-hardwired.enriched.log",
        "10-net-saddrfam.raw.log",
        "other-kinds.raw.log",
        "19-bpf-seccomp-abend.enriched.log",
        "56-config-change.raw.log",
    ])
}

fn write(dir: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}

#[test]
fn logs_of_the_kernel_have_the_reports_of_aureport() {
    if let Some(peer) = AuditPackage::find("reports beside aureport") {
        kernel_logs(&peer);
    }
}

fn kernel_logs(peer: &AuditPackage) {
    for name in [
        "01-file-mod.raw.log",
        "06-exec.enriched.log",
        "10-net-saddrfam.raw.log",
        "27-compat32.raw.log",
        "28-x32-badnr.raw.log",
    ] {
        compare_all(peer, &corpus().join(name), UTC);
    }
    let log = corpus().join("16-ids.enriched.log");
    compare_all(peer, &log, "America/St_Johns");
}

#[test]
fn messages_of_user_space_have_the_reports_of_aureport() {
    if let Some(peer) = AuditPackage::find("reports beside aureport") {
        messages(&peer);
    }
}

fn messages(peer: &AuditPackage) {
    compare_all(peer, &corpus().join("other-kinds.raw.log"), UTC);
    compare_all(
        peer,
        &corpus().join("20-norules-hardwired.enriched.log"),
        UTC,
    );
    let dir = TempDir::new().expect("a directory");
    compare_all(peer, &write(&dir, "messages", MESSAGES.as_bytes()), UTC);
}

/// Records that the corpus does not have.
const MESSAGES: &str = include_str!("report/messages.log");

#[test]
fn disordered_and_damaged_logs_have_the_reports_of_aureport() {
    if let Some(peer) = AuditPackage::find("reports beside aureport") {
        damaged_logs(&peer);
    }
}

fn damaged_logs(peer: &AuditPackage) {
    let rounds = match std::env::var_os("TARSIER_LONG_TESTS") {
        Some(_) => 20,
        None => 1,
    };
    for seed in damage_seeds(9, rounds) {
        let dir = TempDir::new().expect("a directory");
        for (name, log) in damaged(&mixed(), &mut Numbers(seed)) {
            compare_all(peer, &write(&dir, name, &log), UTC);
        }
    }
}

/// The lines in another order, from two nodes, with changed bits, and cut.
fn damaged(lines: &[Vec<u8>], numbers: &mut Numbers) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("shuffled", numbers.shuffled(lines)),
        ("nodes", of_two_nodes(lines)),
        ("flipped", numbers.flipped(lines)),
        ("cut", numbers.cut(lines)),
    ]
}

#[test]
fn wrong_options_have_the_messages_of_aureport() {
    if let Some(peer) = AuditPackage::find("messages beside aureport") {
        wrong_options(&peer);
    }
}

fn wrong_options(peer: &AuditPackage) {
    for words in WRONG {
        let words: Vec<&str> = words.split_whitespace().collect();
        let expected = output(peer.command("aureport").args(&words), zone(UTC));
        let found = output(tarsier(&["--compat"]).args(&words), zone(UTC));
        let said = |output: &Output| (output.status.code(), shown(&output.stderr));
        let trimmed = |output: &Output| {
            let (status, text) = said(output);
            // Where aureport does not end its line.
            (status, text.trim_end().to_owned())
        };
        assert_eq!(trimmed(&found), trimmed(&expected), "{words:?}");
        // The help is not aureport's text.
        if !shown(&expected.stdout).contains("usage:") {
            assert_eq!(shown(&found.stdout), shown(&expected.stdout), "{words:?}");
        }
    }
}

#[test]
fn rotated_sets_and_pipes_are_read_as_by_aureport() {
    if let Some(peer) = AuditPackage::find("reports beside aureport") {
        rotated_sets(&peer);
    }
}

fn rotated_sets(peer: &AuditPackage) {
    let dir = TempDir::new().expect("a directory");
    let lines = mixed();
    for (number, part) in lines.chunks(lines.len() / 3 + 1).rev().enumerate() {
        let name = match number {
            0 => "audit.log".to_owned(),
            _ => format!("audit.log.{number}"),
        };
        write(&dir, &name, &part.concat());
    }
    compare_all(peer, dir.path(), UTC);

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
        shown(&output.stdout)
    };
    for words in [&["-t"][..], &["-x", "--summary"], &[]] {
        let mut expected = peer.command("aureport");
        expected.args(words);
        let found = piped(tarsier(&[&["--compat"], words].concat()));
        assert_eq!(found, piped(expected), "{words:?}");
    }
}

#[test]
fn dates_of_other_locales_are_those_of_aureport() {
    if let Some(peer) = AuditPackage::find("reports beside aureport") {
        other_locales(&peer);
    }
}

fn other_locales(peer: &AuditPackage) {
    let dir = TempDir::new().expect("a directory");
    for name in ["de_DE", "en_US"] {
        let locale = format!("{name}.UTF-8");
        let made = Command::new("localedef")
            .args(["-i", name, "-f", "UTF-8"])
            .arg(dir.path().join(&locale))
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            println!("skipped: dates of {locale}: localedef(1) cannot make it");
            continue;
        }
        let place = Place {
            zone: "Europe/Berlin",
            locale: &locale,
            locales: dir.path(),
        };
        let log = corpus().join("06-exec.raw.log");
        let log = log.to_str().expect("paths are text");
        let date = if name == "de_DE" {
            "21.11.2026"
        } else {
            "11/21/2026"
        };
        for report in reports() {
            compare(peer, &words_of(log, &[report]), place);
        }
        let since = ["-x", "-ts", date, "03:53:51"];
        compare(peer, &words_of(log, &since), place);
        let found = output(tarsier(&["--compat"]).args(words_of(log, &["-x"])), place);
        assert!(
            shown(&found.stdout).contains(date),
            "{locale}: another date"
        );
    }
}

fn own(words: &[&str]) -> String {
    let output = output(&mut tarsier(words), zone(UTC));
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output.stderr));
    shown(&output.stdout)
}

fn log_with(dir: &TempDir, text: &str) -> String {
    write(dir, "log", text.as_bytes()).display().to_string()
}

#[test]
fn what_makes_most_events_is_counted_with_failures_and_times() {
    let dir = TempDir::new().expect("a directory");
    let log = log_with(&dir, MESSAGES);
    let rows = own(&[
        "--top", "exe", "--by", "type", "--format", "csv", "-if", &log,
    ]);
    let mut rows = rows.lines();
    assert_eq!(rows.next(), Some("hits,failures,first,last,exe,type"));
    assert_eq!(
        rows.next(),
        Some("2,1,1795229630.005,1795229630.006,/usr/sbin/sshd,USER_LOGIN")
    );
    let cut = own(&[
        "--top", "exe", "--rows", "1", "--format", "json", "-if", &log,
    ]);
    let cut: serde_json::Value = serde_json::from_str(&cut).expect("JSON");
    assert_eq!(cut["top"][0]["exe"], "/usr/sbin/sshd");
    assert_eq!(cut["top"][0]["hits"], 3);
    assert_eq!(cut["top"].as_array().map(Vec::len), Some(1));
    assert!(cut["other_hits"].as_u64() > Some(5), "{cut}");
    let wrong = output(&mut tarsier(&["--top", "colour"]), zone(UTC));
    assert_eq!(wrong.status.code(), Some(1));
    assert!(shown(&wrong.stderr).contains("no such field; there are exe, comm"));
}

#[test]
fn changes_are_what_was_not_there_before() {
    let dir = TempDir::new().expect("a directory");
    let line = |day: u64, exe: &str| {
        let sec = 1_795_000_000 + day * 86_400;
        format!(
            "type=USER_CMD msg=audit({sec}.000:{day}): pid=1 uid=0 auid=0 ses=1 \
             msg='exe=\"{exe}\" hostname=? addr=? terminal=? res=failed'\n"
        )
    };
    let text = [
        line(1, "/bin/old"),
        line(20, "/bin/new"),
        line(21, "/bin/old"),
    ]
    .concat();
    let log = log_with(&dir, &text);
    let found = own(&["--changes", "--format", "jsonl", "-if", &log]);
    let found: serde_json::Value = serde_json::from_str(&found).expect("one line");
    assert_eq!(found["value"], "/bin/new");
    assert_eq!(found["failures"], 1);
    let text = own(&["--changes", "--since", "01/01/20", "-if", &log]);
    assert!(text.contains("everything in it is new"), "{text}");
}

#[test]
fn reports_without_compat_keep_what_aureport_drops() {
    let dir = TempDir::new().expect("a directory");
    // aureport requires tclass=, which AppArmor does not write.
    let line = "type=AVC msg=audit(1795229630.000:7): apparmor=\"DENIED\" operation=\"open\" pid=77 comm=\"cat\"\n";
    let log = log_with(&dir, line);
    assert!(own(&["-p", "--summary", "-if", &log]).ends_with("\n1  77\n"));
    let dropped = own(&["--compat", "-p", "--summary", "-if", &log]);
    assert!(dropped.ends_with("<no events of interest were found>\n\n"));
}
