//! Whatever is wrong with auditd.conf when the daemon starts, it records by the settings that were last in force without
//! an error, or by the lines that are right, and says what is not in force.

use crate::calls::{call, Caller};
use crate::daemon::{Daemon, Run, Setup};
use crate::{log, machine};
use std::fs::{self, Permissions};
use std::os::unix::fs::{chown, symlink, PermissionsExt};
use std::path::Path;

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61241 -k base\n";
/// Settings of a host on which all is well. Records of them begin with `node=kept`.
const GOOD: &str = "flush = NONE\nmax_log_file_action = IGNORE\nname_format = USER\nname = kept\n";

/// A way to break the file.
enum Break {
    /// This line is added.
    Line(&'static str),
    /// The file has this text.
    Text(&'static [u8]),
    /// Something else is done to the file.
    By(fn(&Path)),
}

use Break::{By, Line, Text};

/// Each way, and whether the lines that are right still name the node.
#[rustfmt::skip]
const WAYS: &[(&str, Break, bool)] = &[
    ("unknown key", Line("log_fle = /x"), true),
    ("key of no version", Line("flush_tomorrow = yes"), true),
    ("no equals sign", Line("freq 50"), true),
    ("no blanks", Line("freq=50"), true),
    ("a tab", Line("freq\t=\t50"), true),
    ("no value", Line("freq ="), true),
    ("two values", Line("freq = 50 60"), true),
    ("a comment behind a value", Line("freq = 50 # records"), true),
    ("not a number", Line("num_logs = five"), true),
    ("a number that is too large", Line("num_logs = 5000"), true),
    ("unknown action", Line("disk_full_action = PANIC"), true),
    ("unknown format", Line("log_format = XML"), true),
    ("unknown flush", Line("flush = SOMETIMES"), true),
    ("relative log", Line("log_file = audit.log"), true),
    ("program that is gone", Line("disk_error_action = EXEC /opt/gone/act"), true),
    ("no such group", Line("log_group = no-such-group"), true),
    ("settings that contradict each other", Line("space_left = 10\nadmin_space_left = 20"), false),
    ("no name for the node", Text(b"name_format = USER\nmax_log_file_action = IGNORE\n"), false),
    ("bytes of a program", Text(b"\x7fELF\x02\x01\xff\xfe\x80\n\x90\n"), false),
    ("UTF-16", Text(b"\xff\xfef\0r\0e\0q\0 \0=\0 \x005\0\n\0"), false),
    ("zero bytes", Text(&[0; 100]), false),
    ("cut within a line", Text(b"flush = NONE\nmax_log_file_action = IGN"), false),
    ("a file that others can write", By(|file| {
        fs::set_permissions(file, Permissions::from_mode(0o666)).expect("chmod");
    }), false),
    ("a file of somebody else", By(|file| chown(file, Some(65534), None).expect("chown")), false),
    ("a link", By(|file| {
        let other = file.with_extension("other");
        fs::rename(file, &other).expect("rename");
        symlink(other, file).expect("a link");
    }), false),
    ("a link that leads nowhere", By(|file| {
        fs::remove_file(file).expect("rm");
        symlink("/opt/gone/auditd.conf", file).expect("a link");
    }), false),
    ("a directory", By(|file| {
        fs::remove_file(file).expect("rm");
        fs::create_dir(file).expect("a directory");
    }), false),
    ("a file that is too large", By(|file| {
        let file = fs::File::options().write(true).open(file).expect("the file");
        file.set_len(2 << 20).expect("its size");
    }), false),
];

/// A run whose configuration file is whole.
fn whole(setup: &Setup) -> Run {
    let file = setup.path("auditd.conf");
    let _ = fs::remove_dir(&file);
    let run = setup.tarsier(RULE);
    setup.configure(GOOD);
    run.option("--no-kernel-records").format("raw")
}

fn broken(setup: &Setup, way: &Break) -> Run {
    let run = whole(setup);
    match way {
        Line(line) => setup.configure(&format!("{GOOD}{line}\n")),
        Text(text) => fs::write(setup.path("auditd.conf"), text).expect("it is written"),
        By(act) => act(&setup.path("auditd.conf")),
    }
    run
}

/// Makes a call, stops the daemon, and returns the log and what was said. The call has been recorded.
fn recorded(way: &str, setup: &Setup, daemon: Daemon) -> (String, String) {
    let caller = Caller::gid(61241).make(&[call!(getppid)]);
    let ended = daemon.stop();
    assert!(ended.status.success(), "{way}: {}", ended.said);
    let file = setup.path("audit.log");
    let text = fs::read_to_string(&file).expect("the log");
    let bare = text.replace("node=kept ", "");
    fs::write(&file, bare).expect("the log is written");
    let calls = log::calls_of(&log::events(&file), caller.pid);
    assert_eq!(calls, ["getppid base"], "{way}: {}", ended.said);
    fs::remove_file(&file).expect("rm");
    (text, ended.said)
}

/// Checks what is said of settings that are not in force, everywhere.
fn is_said(way: &str, status: &serde_json::Value, log: &str, said: &str) {
    let rules = &status["rules_in_force"];
    let left_out = rules["left_out"].as_array().expect("a list");
    assert!(!left_out.is_empty(), "{way}: {rules}");
    for one in left_out {
        assert_eq!(one["is_setting"], true, "{way}: {rules}");
        let file = one["file"].as_str().expect("a file");
        assert!(file.ends_with("/auditd.conf"), "{way}: {rules}");
    }
    let start = log.lines().find(|line| line.contains("type=DAEMON_START "));
    let start = start.unwrap_or_else(|| panic!("{way}: {log}"));
    let count = format!(" left_out={} lines=\"", left_out.len());
    assert!(start.contains(&count), "{way}: {start}");
    let records = log
        .lines()
        .filter(|line| line.contains(": op=setting-not-in-force "));
    assert_eq!(records.count(), left_out.len().min(20), "{way}: {log}");
    assert!(said.contains(" NOT in force"), "{way}: {said}");
}

#[test]
fn no_way_to_break_settings_leaves_a_host_without_audit_or_is_kept_quiet() {
    machine::test("broken settings at boot", |setup| {
        let (text, said) = recorded("whole", setup, whole(setup).start());
        assert!(text.starts_with("node=kept "), "{text}");
        assert!(!said.contains("NOT in force"), "{said}");
        let state = fs::read_dir(setup.path("run")).expect("the state");
        let mut state = state.map(|entry| entry.expect("an entry").path());
        let state = state.find(|path| path.extension().is_some_and(|end| end == "auditd-conf"));
        let (state, elsewhere) = (state.expect("what was kept"), setup.path("elsewhere"));
        for (way, act, names_node) in WAYS {
            let daemon = broken(setup, act).start();
            let status = daemon.status();
            let (text, said) = recorded(way, setup, daemon);
            is_said(way, &status, &text, &said);
            assert!(text.starts_with("node=kept "), "{way}: {text}");

            // The same on a host whose settings have never been right.
            fs::rename(&state, &elsewhere).expect("rename");
            let daemon = broken(setup, act).start();
            let status = daemon.status();
            let (text, said) = recorded(way, setup, daemon);
            is_said(way, &status, &text, &said);
            assert_eq!(text.starts_with("node=kept "), *names_node, "{way}: {text}");
            assert!(
                !state.exists(),
                "{way}: wrong settings are not kept as good ones"
            );
            fs::rename(&elsewhere, &state).expect("rename");
        }
    });
}

#[test]
fn mended_settings_come_in_force_by_a_reload_and_broken_ones_do_not() {
    machine::test("settings mended", |setup| {
        let daemon = broken(setup, &Line("log_fle = /x")).start();
        daemon.signal(rustix::process::Signal::HUP);
        daemon.wait_for("reload failed, what was in force stays");
        assert_eq!(daemon.status()["rules_in_force"]["left_out_count"], 1);
        setup.configure(GOOD);
        daemon.reload();
        assert_eq!(daemon.status()["rules_in_force"]["left_out_count"], 0);
        recorded("mended", setup, daemon);

        // What a reload has put in force is what the next start takes.
        let daemon = broken(setup, &Text(&[0; 10])).start();
        let (text, _) = recorded("after a reload", setup, daemon);
        assert!(text.starts_with("node=kept "), "{text}");
    });
}

#[test]
fn settings_that_want_no_others_are_refused() {
    machine::test("settings refused", |setup| {
        let refused = broken(setup, &Line("log_fle = /x\nrules_error = refuse")).finish();
        assert!(!refused.status.success());
        assert!(refused.said.contains("unknown keyword"), "{}", refused.said);
        let typed = broken(setup, &Line("log_fle = /x"))
            .command(&[&"true"])
            .finish();
        assert!(!typed.status.success(), "{}", typed.said);
    });
}
