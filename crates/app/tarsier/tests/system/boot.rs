//! Whatever is wrong with rules files when the daemon starts, it records by those that were last in force without an
//! error, or by the lines that are right, and says what is not in force: auditd.conf's rules_error.

use crate::calls::{call, Caller};
use crate::daemon::{Daemon, Run, Setup};
use crate::{log, machine};
use rustix::process::Signal;
use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// The files of a host on which all is well.
const FILES: [(&str, &str); 3] = [
    (
        "10-base.rules",
        "-D\n-b 8192\n-a always,exit -F arch=b64 -S getppid -F gid=61238 -k base\n",
    ),
    (
        "20-more.rules",
        "# more\n-a always,exit -F arch=b64 -S getppid -F gid=61239 -k more-of-them\n",
    ),
    // Not -e 2: that would lock the audit of the machine that runs this.
    ("90-end.rules", "-r 0\n"),
];
const NOBODY: u32 = 65534;

/// A way to break the directory of rules.
enum Break {
    /// A file with this text is added.
    Text(&'static str, &'static [u8]),
    /// Something else is done to the directory.
    By(fn(&Path)),
}

use Break::{By, Text};

const BAD: &str = "30-bad.rules";

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode is set");
}

fn write(path: PathBuf, text: &[u8]) {
    fs::write(path, text).expect("the file is written");
}

/// Each way, with the key of the rules whose lines are still right: all of them, the base, or none.
#[rustfmt::skip]
const WAYS: &[(&str, Break, &[&str])] = &[
    ("unknown option", Text(BAD, b"-Z x\n"), ALL),
    ("unknown long option", Text(BAD, b"--reset-tomorrow\n"), ALL),
    ("no option", Text(BAD, b"always,exit -S open\n"), ALL),
    ("unknown field", Text(BAD, b"-a always,exit -F arch=b64 -S open -F uod=0 -k x\n"), ALL),
    ("field of a later version", Text(BAD, b"-a always,exit -S all -F pidns=4026531836 -k x\n"), ALL),
    ("Tarsier's field for auditctl", Text(BAD, b"-a never,exit -F unit=a.service\n"), ALL),
    ("unknown call", Text(BAD, b"-a always,exit -F arch=b64 -S opennat -k x\n"), ALL),
    ("call of a later version", Text(BAD, b"-a always,exit -F arch=b64 -S open_tomorrow -k x\n"), ALL),
    ("unknown list", Text(BAD, b"-a always,exits -S open -k x\n"), ALL),
    ("unknown action", Text(BAD, b"-a often,exit -S open -k x\n"), ALL),
    ("two actions", Text(BAD, b"-a always,never -S open -k x\n"), ALL),
    ("unknown architecture", Text(BAD, b"-a always,exit -F arch=b128 -S open -k x\n"), ALL),
    ("field without value", Text(BAD, b"-a always,exit -S open -F auid -k x\n"), ALL),
    ("option without value", Text(BAD, b"-a always,exit -F arch=b64 -S open -k\n"), ALL),
    ("unknown user", Text(BAD, b"-a always,exit -F arch=b64 -S open -F auid=no-such-user -k x\n"), ALL),
    ("unknown group", Text(BAD, b"-a always,exit -F arch=b64 -S open -F gid=no-such-group -k x\n"), ALL),
    ("comment after a rule", Text(BAD, b"-w /etc/passwd -p wa # accounts\n"), ALL),
    ("relative watch", Text(BAD, b"-w etc/passwd -p wa\n"), ALL),
    ("unknown access", Text(BAD, b"-w /etc/passwd -p wz\n"), ALL),
    ("long name", Text(BAD, &LONG_NAME), ALL),
    ("key without calls", Text(BAD, b"-a always,exit -k x\n"), ALL),
    ("field of another list", Text(BAD, b"-a always,exclude -F path=/etc/passwd\n"), ALL),
    ("operator", Text(BAD, b"-a always,exit -F arch=b64 -S open -F path>/etc -k x\n"), ALL),
    ("no backlog", Text(BAD, b"-b many\n"), ALL),
    ("no failure mode", Text(BAD, b"-f 9\n"), ALL),
    ("no rate", Text(BAD, b"-r x\n"), ALL),
    ("long line", Text(BAD, &LONG_LINE), ALL),
    ("zero bytes", Text(BAD, &[0; 512]), ALL),
    ("bytes of a program", Text(BAD, b"\x7fELF\x02\x01\x01\0\xff\xfe\x80\n\x90\x90\n"), ALL),
    ("UTF-16", Text(BAD, b"\xff\xfe-\0w\0 \0/\0a\0\n\0"), ALL),
    ("carriage returns for lines", Text(BAD, b"-w /etc/passwd -k x\r-w /etc/group -k x\r"), ALL),
    ("the same rule again", Text(BAD, b"-a always,exit -F arch=b64 -S getppid -F gid=61238 -k base\n"), ALL),
    ("a rule twice", Text(BAD, b"-w /etc/passwd -k x\n-w /etc/passwd -k x\n"), ALL),
    ("deletes what is not there", Text(BAD, b"-d always,exit -F arch=b64 -S open -k x\n"), ALL),
    ("directory of an agent that is gone", Text(BAD, b"-a always,exit -F arch=b64 -S open -F dir=/opt/gone -k x\n"), ALL),
    ("watch below what is gone", Text(BAD, b"-w /opt/gone/etc/agent.conf -p wa -k x\n"), ALL),
    ("program of what is gone", Text(BAD, b"-a always,exit -F arch=b64 -S open -F exe=/opt/gone/bin/agent -k x\n"), ALL),
    ("Tarsier's file", Text("30-bad.tarsier", b"-a never,exit -F unit=\n"), ALL),
    ("many lines", By(|dir| write(dir.join(BAD), "-Z x\n".repeat(3000).as_bytes())), ALL),
    ("65 fields", By(|dir| {
        let fields = "-F a0=1 ".repeat(70);
        write(dir.join(BAD), format!("-a always,exit -F arch=b64 -S open {fields}\n").as_bytes());
    }), ALL),
    ("one rule more than there is room for", By(|dir| {
        let line = |i| format!("-a always,exit -F arch=b64 -S getppid -F gid=61240 -F a0={i} -k x\n");
        let rules: String = (0..4100).map(line).collect();
        write(dir.join(BAD), rules.as_bytes());
    }), ALL),
    ("dangling link", By(|dir| symlink("/opt/gone/a.rules", dir.join(BAD)).expect("a link")), ALL),
    ("link to itself", By(|dir| symlink(BAD, dir.join(BAD)).expect("a link")), ALL),
    ("link to a device", By(|dir| symlink("/dev/null", dir.join(BAD)).expect("a link")), ALL),
    ("directory in place of a file", By(|dir| fs::create_dir(dir.join(BAD)).expect("a directory")), ALL),
    ("socket in place of a file", By(|dir| drop(UnixDatagram::bind(dir.join(BAD)).expect("a socket"))), ALL),
    ("file that is too large", By(|dir| {
        let file = fs::File::create(dir.join(BAD)).expect("a file");
        file.set_len(65 << 20).expect("its size");
    }), ALL),
    ("file that others can write", By(|dir| mode(&dir.join("20-more.rules"), 0o666)), BASE),
    ("file of somebody else", By(|dir| {
        chown(dir.join("20-more.rules"), Some(NOBODY), None).expect("chown");
    }), BASE),
    ("link to a file of somebody else", By(|dir| {
        let other = dir.join("other");
        fs::rename(dir.join("20-more.rules"), &other).expect("rename");
        chown(&other, Some(NOBODY), None).expect("chown");
        symlink(&other, dir.join("20-more.rules")).expect("a link");
    }), BASE),
    ("empty file", By(|dir| write(dir.join("20-more.rules"), b"")), BASE),
    ("file cut within a line", By(|dir| write(dir.join("20-more.rules"), &FILES[1].1.as_bytes()[..70])), BASE),
    ("file cut within a word", By(|dir| write(dir.join("20-more.rules"), &FILES[1].1.as_bytes()[..40])), BASE),
    ("file of zeros of the same size", By(|dir| {
        write(dir.join("20-more.rules"), &vec![0; FILES[1].1.len()]);
    }), BASE),
    ("no directory", By(|dir| fs::remove_dir_all(dir).expect("rm -r")), NONE),
    ("empty directory", By(|dir| {
        FILES.iter().for_each(|file| fs::remove_file(dir.join(file.0)).expect("rm"));
    }), NONE),
    ("directory that others can write", By(|dir| mode(dir, 0o777)), NONE),
    ("directory of somebody else", By(|dir| chown(dir, Some(NOBODY), None).expect("chown")), NONE),
    ("dangling link in place of the directory", By(|dir| {
        fs::remove_dir_all(dir).expect("rm -r");
        symlink("/opt/gone/rules.d", dir).expect("a link");
    }), NONE),
    ("file in place of the directory", By(|dir| {
        fs::remove_dir_all(dir).expect("rm -r");
        write(dir.to_owned(), b"junk\n");
    }), NONE),
];

const ALL: &[&str] = &["base", "more-of-them"];
const BASE: &[&str] = &["base"];
const NONE: &[&str] = &[];

const LONG_NAME: [u8; 300] = long(*b"-w /", *b" -p wa\n");
const LONG_LINE: [u8; 7000] = long(*b"-w /", *b" -p wa\n");

/// Bytes with this beginning and end, and letters between them.
const fn long<const LEN: usize>(begin: [u8; 4], end: [u8; 7]) -> [u8; LEN] {
    let mut text = [b'x'; LEN];
    let mut at = 0;
    while at < 4 {
        text[at] = begin[at];
        at += 1;
    }
    while at < 11 {
        text[LEN - 11 + at] = end[at - 4];
        at += 1;
    }
    text
}

/// Puts the directory of rules back to what is right.
fn restore(dir: &Path) {
    if dir.is_symlink() || dir.is_file() {
        fs::remove_file(dir).expect("rm");
    }
    let _ = fs::remove_dir_all(dir);
    fs::create_dir(dir).expect("a directory");
    for (name, text) in FILES {
        write(dir.join(name), text.as_bytes());
        mode(&dir.join(name), 0o640);
    }
}

fn run(setup: &Setup, dir: &Path) -> Run {
    let run = setup.tarsier("").rules(dir.to_owned());
    run.option("--no-kernel-records").format("raw")
}

fn broken(dir: &Path, way: &Break) {
    restore(dir);
    match way {
        Text(name, text) => write(dir.join(name), text),
        By(act) => act(dir),
    }
}

/// Makes a call for each rule, stops the daemon and returns the keys of what was recorded.
fn keys(daemon: Daemon, log_file: &Path) -> (Vec<String>, String, String) {
    let base = Caller::gid(61238).make(&[call!(getppid)]);
    let more = Caller::gid(61239).make(&[call!(getppid)]);
    let ended = daemon.stop();
    assert!(ended.status.success(), "{}", ended.said);
    assert!(!ended.said.contains("panicked"), "{}", ended.said);
    let events = log::events(log_file);
    let calls = [base.pid, more.pid].into_iter();
    let calls = calls.flat_map(|pid| log::calls_of(&events, pid));
    let keys = calls.map(|call| call.trim_start_matches("getppid ").to_owned());
    let text = fs::read_to_string(log_file).expect("the log");
    fs::remove_file(log_file).expect("rm");
    (keys.collect(), text, ended.said)
}

/// Checks what is said of rules that are not in force, everywhere.
fn is_said(way: &str, status: &serde_json::Value, origin: &str, log: &str, said: &str) {
    let rules = &status["rules_in_force"];
    assert_eq!(rules["origin"], origin, "{way}: {rules}");
    let count = rules["left_out_count"].as_u64().expect("a number");
    let left_out = rules["left_out"].as_array().expect("a list");
    assert!(count > 0 && !left_out.is_empty(), "{way}: {rules}");
    let first = &left_out[0];
    let (file, why) = (first["file"].as_str(), first["why"].as_str());
    let (file, why) = (file.expect("a file"), why.expect("a reason"));
    assert!(
        file.contains("rules.d") && !why.is_empty(),
        "{way}: {first}"
    );
    let start = log
        .lines()
        .find(|line| line.starts_with("type=DAEMON_START "));
    let start = start.unwrap_or_else(|| panic!("{way}: {log}"));
    let fields = format!(" rules={origin} rules_digest=");
    let left_out = format!(" left_out={count} lines=\"");
    assert!(
        start.contains(&fields) && start.contains(&left_out),
        "{way}: {start}"
    );
    assert!(start.contains(file), "{way}: {start}");
    let is_record = |line: &&str| {
        line.starts_with("type=DAEMON_ERR ") && line.contains(": op=rule-not-in-force ")
    };
    let records = log.lines().filter(is_record);
    assert_eq!(records.count() as u64, count.min(20), "{way}");
    assert!(said.contains(" NOT in force"), "{way}: {said}");
}

#[test]
fn no_way_to_break_rules_leaves_a_host_without_audit_or_is_kept_quiet() {
    machine::test("broken rules at boot", |setup| {
        assert!(WAYS.len() >= 50);
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        let (found, text, said) = keys(run(setup, &dir).start(), &log_file);
        assert_eq!(found, ALL);
        assert!(text.contains(" rules=files rules_digest="), "{text}");
        assert!(!said.contains("NOT in force"), "{said}");
        let kept = setup.path("run");
        let state = fs::read_dir(&kept).expect("the state");
        let mut state = state.map(|entry| entry.expect("an entry").path());
        let state = state.find(|path| path.extension().is_some_and(|end| end == "rules-set"));
        let (state, elsewhere) = (state.expect("what was kept"), setup.path("elsewhere"));
        for (way, act, right) in WAYS {
            broken(&dir, act);
            let daemon = run(setup, &dir).start();
            let status = daemon.status();
            let shown = daemon.asked(&[]);
            let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
            assert!(shown.contains("\nRULES NOT IN FORCE  "), "{way}: {shown}");
            let (found, text, said) = keys(daemon, &log_file);
            assert_eq!(found, ALL, "{way}: {said}");
            is_said(way, &status, "last-good", &text, &said);

            // The same on a host that has no such rules yet; whether a file was cut is not known there.
            fs::rename(&state, &elsewhere).expect("rename");
            let daemon = run(setup, &dir).start();
            let status = daemon.status();
            let is_known = !matches!(
                *way,
                "empty file" | "file cut within a line" | "empty directory"
            );
            let (found, text, said) = keys(daemon, &log_file);
            assert!(
                right.iter().all(|key| found.iter().any(|one| one == key)),
                "{way}: {said}"
            );
            if is_known {
                is_said(way, &status, "good-lines", &text, &said);
                assert!(
                    !state.exists(),
                    "{way}: wrong rules are not kept as good ones"
                );
            }
            fs::rename(&elsewhere, &state).expect("rename");
        }
    });
}

#[test]
fn damaged_good_rules_are_not_taken_and_that_is_said() {
    machine::test("damaged good rules", |setup| {
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        let state = setup.path("state");
        let run = || run(setup, &dir).option("--state-dir").option(&state);
        keys(run().start(), &log_file);
        let files = fs::read_dir(&state).expect("the state");
        let kept: Vec<PathBuf> = files
            .map(|entry| entry.expect("an entry").path())
            .filter(|file| file.extension().is_some_and(|end| end == "rules-set"))
            .collect();
        let [kept] = &kept[..] else {
            panic!("one set of rules is kept, not {kept:?}");
        };
        let mut text = fs::read(kept).expect("the rules");
        let last = text.len() - 20;
        text[last] ^= 1;
        fs::write(kept, text).expect("the file is written");
        write(
            dir.join(BAD),
            b"-Z x\n-a always,exit -F arch=b64 -S getppid -F gid=61240 -k new\n",
        );
        let daemon = run().start();
        let status = daemon.status();
        let new = Caller::gid(61240).make(&[call!(getppid)]);
        daemon.wait_for("the digest does not fit");
        daemon.wait_for_record("key=\"new\"");
        let events = log::events(&log_file);
        assert_eq!(log::calls_of(&events, new.pid), ["getppid new"]);
        let (found, text, said) = keys(daemon, &log_file);
        assert_eq!(found, ALL);
        is_said("damaged", &status, "good-lines", &text, &said);
    });
}

#[test]
fn mended_rules_come_in_force_by_a_reload_and_broken_ones_do_not() {
    machine::test("reload after a broken boot", |setup| {
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        keys(run(setup, &dir).start(), &log_file);
        write(dir.join(BAD), b"-Z x\n");
        let path = setup.path("notify");
        let manager = UnixDatagram::bind(&path).expect("a socket");
        let daemon = run(setup, &dir).environment("NOTIFY_SOCKET", &path).start();
        let mut buffer = [0; 4096];
        let len = manager.recv(&mut buffer).expect("the daemon is ready");
        let text = String::from_utf8_lossy(&buffer[..len]).into_owned();
        assert!(
            text.contains("1 line or file of rules and settings is NOT in force"),
            "{text}"
        );
        assert!(text.contains("30-bad.rules:1: "), "{text}");
        daemon.signal(Signal::HUP);
        daemon.wait_for("reload failed, what was in force stays");
        assert_eq!(daemon.status()["rules_in_force"]["origin"], "last-good");
        let added = "-a always,exit -F arch=b64 -S getppid -F gid=61240 -k new\n";
        write(dir.join(BAD), added.as_bytes());
        daemon.reload();
        let status = daemon.status();
        assert_eq!(status["rules_in_force"]["origin"], "files");
        assert_eq!(status["rules_in_force"]["left_out_count"], 0);
        keys(daemon, &log_file);

        // What a reload has put in force is what the next start takes.
        write(dir.join("40-worse.rules"), b"-Z x\n");
        let daemon = run(setup, &dir).start();
        let new = Caller::gid(61240).make(&[call!(getppid)]);
        daemon.wait_for_record("key=\"new\"");
        let events = log::events(&log_file);
        assert_eq!(log::calls_of(&events, new.pid), ["getppid new"]);
        drop(daemon.stop());
    });
}

#[test]
fn what_is_done_with_wrong_rules_is_a_choice() {
    machine::test("rules_error", |setup| {
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        keys(run(setup, &dir).start(), &log_file);
        let added = "-Z x\n-a always,exit -F arch=b64 -S getppid -F gid=61240 -k new\n";
        write(dir.join(BAD), added.as_bytes());
        let refused = run(setup, &dir).refusing_wrong_rules().finish();
        assert!(!refused.status.success());
        assert!(
            refused.said.contains("nothing was loaded"),
            "{}",
            refused.said
        );
        let command = run(setup, &dir).command(&[&"true"]).finish();
        assert!(!command.status.success(), "{}", command.said);
        let run = run(setup, &dir);
        setup.configure("flush = NONE\nrules_error = skip\n");
        let daemon = run.start();
        assert_eq!(daemon.status()["rules_in_force"]["origin"], "good-lines");
        let new = Caller::gid(61240).make(&[call!(getppid)]);
        daemon.wait_for_record("key=\"new\"");
        assert_eq!(
            log::calls_of(&log::events(&log_file), new.pid),
            ["getppid new"]
        );
        drop(daemon.stop());
    });
}

#[test]
fn what_the_files_themselves_leave_out_is_said_too() {
    machine::test("left out by the files", |setup| {
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        write(dir.join("00-tolerant.rules"), b"-c\n");
        write(dir.join(BAD), b"-Z x\n");
        let daemon = run(setup, &dir).start();
        let status = daemon.status();
        let (found, text, said) = keys(daemon, &log_file);
        assert_eq!(found, ALL);
        is_said("-c", &status, "files", &text, &said);

        // In one file, -D deletes what is above it.
        let one = setup.path("rules.d-in-one");
        write(
            one.clone(),
            format!("{}-D\n{}", FILES[0].1, FILES[1].1).as_bytes(),
        );
        let daemon = run(setup, &one).start();
        let status = daemon.status();
        let (found, text, said) = keys(daemon, &log_file);
        assert_eq!(found, ["more-of-them"]);
        is_said("-D", &status, "files", &text, &said);
        assert!(said.contains("-D deletes the 1 rule before it"), "{said}");
    });
}

#[test]
fn the_kernel_s_audit_gets_the_rules_that_it_takes() {
    machine::test("broken rules and the kernel engine", |setup| {
        let dir = setup.path("rules.d");
        let log_file = setup.path("audit.log");
        restore(&dir);
        write(
            dir.join("30-own.tarsier"),
            b"-a never,exit -F unit=other.service\n",
        );
        write(
            dir.join(BAD),
            b"-a always,exit -F arch=b64 -S open -F dir=/opt/gone -k x\n",
        );
        let run = setup.tarsier("").rules(dir.clone()).format("raw");
        let daemon = run.option("--engine").option("kernel").start();
        let status = daemon.status();
        let (found, text, said) = keys(daemon, &log_file);
        assert_eq!(found, ALL, "{said}");
        is_said("kernel", &status, "good-lines", &text, &said);
        let places = &status["rules_in_force"]["left_out"];
        assert!(places.to_string().contains("30-own.tarsier"), "{places}");
    });
}
