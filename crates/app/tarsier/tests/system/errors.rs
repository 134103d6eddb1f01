//! Errors are reported with place and remedy, and the previous state is kept.

use crate::calls::{call, Caller};
use crate::daemon::{Ended, Setup};
use crate::{log, machine, programs};
use rustix::mount::{mount, unmount, MountFlags, UnmountFlags};
use std::ffi::CString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61238 -k mine\n";

/// Checks that it did not start, armed nothing, and printed all of `texts`.
fn refused(ended: &Ended, texts: &[&str]) {
    assert!(!ended.status.success(), "{}", ended.said);
    assert!(ended.status.code().is_some(), "{}", ended.status);
    assert!(!ended.said.contains(" rules armed on "), "{}", ended.said);
    assert!(!ended.said.contains("panicked"), "{}", ended.said);
    for text in texts {
        assert!(ended.said.contains(text), "{text:?} in:\n{}", ended.said);
    }
}

#[test]
fn broken_rules_name_place_expectation_and_nearest_name_and_arm_nothing() {
    machine::test("broken rules", |setup| {
        let rules = "## a comment\n\
                     -a always,exit -F arch=b64 -S opennat -k x\n\
                     -a always,exit -F arch=b64 -S getppid -F uidd=0 -k x\n\
                     -w relative/path -p wa\n";
        let ended = setup.tarsier(rules).refusing_wrong_rules().finish();
        refused(
            &ended,
            &[
                "test.rules:2:31",
                "openat",
                "test.rules:3:",
                "uid",
                "test.rules:4:",
                "3 error(s) in the rules: nothing was loaded",
            ],
        );
        assert!(!setup.path("audit.log").exists());
    });
}

/// Limit of rules on one call: the tables hold 64 pages of 64.
const RULES_MAX: usize = 4096;

#[test]
fn the_rule_beyond_a_limit_is_named_with_its_file_and_line() {
    machine::test("too many rules", |setup| {
        let line = |i| format!("-a always,exit -F arch=b64 -S getppid -F gid=61238 -F a0={i}\n");
        let rules: String = (0..=RULES_MAX).map(line).collect();
        let rules = "## the first rule is in line 2\n".to_owned() + &rules;
        // One rule more than fits, and one line for the comment.
        let place = format!("test.rules:{}: ", RULES_MAX + 2);
        let run = setup.tarsier(&rules).refusing_wrong_rules();
        let path = setup.path("test.rules");
        let mut plan = Command::new(programs::tarsier());
        let planned = plan.arg("plan").arg("--rules").arg(&path).output();
        let planned = planned.expect("tarsier runs");
        let said = String::from_utf8_lossy(&planned.stderr).into_owned();
        assert!(!planned.status.success() && said.contains(&place), "{said}");
        refused(&run.finish(), &[&place]);
    });
}

#[test]
fn a_broken_configuration_names_file_line_and_what_was_expected() {
    machine::test("broken configuration", |setup| {
        let run = setup.tarsier(RULE);
        let refuse = "rules_error = refuse\n";
        let text = format!("log_format = RAW\nflush = PERHAPS\n{refuse}");
        setup.write("auditd.conf", &text);
        refused(
            &run.finish(),
            &["auditd.conf:2", "PERHAPS", "incremental_async"],
        );
        let run = setup.tarsier(RULE);
        setup.write("auditd.conf", &format!("num_log = 5\n{refuse}"));
        refused(&run.finish(), &["auditd.conf:1", "num_logs"]);
    });
}

#[test]
fn rules_that_are_not_there_are_an_error() {
    machine::test("no rules", |setup| {
        let missing = setup.path("missing.rules");
        let run = setup.tarsier(RULE).refusing_wrong_rules();
        let ended = run.rules(missing.clone()).finish();
        refused(&ended, &[&missing.display().to_string(), "No such file"]);
    });
}

#[test]
fn what_others_can_change_is_not_obeyed_and_the_remedy_is_named() {
    machine::test("files of others", |setup| {
        for name in ["test.rules", "auditd.conf"] {
            // Nothing is read of a file that others can change, not even `rules_error`; whoever gives a command is there.
            let run = setup.tarsier(RULE).refusing_wrong_rules();
            let run = run.command(&[&"true"]);
            let path = setup.path(name);
            let mode = |mode| {
                let mode = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(&path, mode).expect("permissions");
            };
            mode(0o660);
            let remedy = format!("chmod go-w {}", path.display());
            refused(&run.finish(), &["mode 0660", &remedy]);
            mode(0o640);
        }
        let run = setup.tarsier(RULE).refusing_wrong_rules();
        let above = setup.path("test.rules");
        let above = above.parent().expect("its directory");
        std::os::unix::fs::chown(above, Some(65534), None).expect("chown");
        let remedy = format!("chown -h root {}", above.display());
        refused(&run.finish(), &["on the way to it is owned by", &remedy]);
    });
}

#[test]
fn without_root_it_says_so() {
    machine::test("not root", |setup| {
        let copy = setup.path("tarsier");
        std::fs::copy(programs::tarsier(), &copy).expect("a copy for everybody");
        for path in [setup.path("."), copy.clone()] {
            let everybody = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, everybody).expect("permissions");
        }
        let rules = setup.write("test.rules", RULE);
        let output = Command::new(&copy)
            .args(["run", "--rules"])
            .arg(&rules)
            .current_dir("/")
            .uid(65534)
            .gid(65534)
            .output()
            .expect("tarsier runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("must be root"), "{said}");
        // Commands that do not need root work without it.
        let output = Command::new(&copy)
            .args(["plan", "--rules"])
            .arg(&rules)
            .current_dir("/")
            .uid(65534)
            .gid(65534)
            .output()
            .expect("tarsier runs");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    });
}

/// A small file system, unmounted when dropped.
struct Tmpfs {
    path: PathBuf,
}

impl Tmpfs {
    fn new(setup: &Setup, options: &str) -> Tmpfs {
        let path = setup.path("tmpfs");
        std::fs::create_dir(&path).expect("a directory");
        let options = CString::new(options).expect("no NUL");
        let flags = MountFlags::empty();
        mount("tmpfs", &path, "tmpfs", flags, Some(options.as_c_str())).expect("a tmpfs");
        Tmpfs { path }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = unmount(&self.path, UnmountFlags::DETACH);
    }
}

#[test]
fn a_read_only_log_directory_is_an_error() {
    machine::test("read-only log directory", |setup| {
        let tmpfs = Tmpfs::new(setup, "size=64k,ro");
        let run = setup.tarsier(RULE).log(tmpfs.path.join("audit.log"));
        refused(&run.finish(), &["audit.log", "read-only"]);
    });
}

#[test]
fn a_full_disk_is_said_suspends_and_every_event_is_recorded_or_counted() {
    machine::test("full disk", |setup| {
        const CALLS: u64 = 100_000;
        let tmpfs = Tmpfs::new(setup, "size=2m");
        let path = tmpfs.path.join("audit.log");
        let run = setup.tarsier(RULE).format("raw").ring_kib(65536);
        setup.write(
            "auditd.conf",
            "flush = NONE\nmax_log_file_action = IGNORE\ndisk_full_action = SUSPEND\n",
        );
        let count = CALLS.to_string();
        let began = std::time::Instant::now();
        let ended = run
            .log(path)
            .option("--no-kernel-records")
            .command(&[
                &programs::workload(),
                &"--count",
                &count,
                &"--mark",
                &"61238",
                &"getppid",
            ])
            .finish();
        for text in ["no space left for logging", "logging is suspended"] {
            assert!(ended.said.contains(text), "{text:?} in:\n{}", ended.said);
        }
        let recorded = log::count_calls(&ended.log, libc::SYS_getppid, "mine");
        assert!(recorded > 0 && recorded < CALLS, "{recorded}");
        // DAEMON_END, and one DAEMON_ERR per second, did not fit either.
        let own_lost = (recorded + number_before(&ended, " lost;")).checked_sub(CALLS);
        let own_lost = own_lost.expect(&ended.said);
        assert!(
            own_lost <= 2 + began.elapsed().as_secs(),
            "{own_lost}: {}",
            ended.said
        );
        let said = number_before(&ended, " events recorded,");
        assert!(
            (recorded - own_lost..=recorded).contains(&said),
            "{recorded} are in the log:\n{}",
            ended.said
        );
    });
}

/// The number before a text in the lines that a run prints at its end.
fn number_before(ended: &Ended, text: &str) -> u64 {
    let mut numbers = ended.said.lines().rev().filter_map(|line| {
        let (before, _) = line.split_once(text)?;
        before.rsplit(' ').next()?.parse().ok()
    });
    numbers
        .next()
        .unwrap_or_else(|| panic!("no {text:?} in:\n{}", ended.said))
}

#[test]
fn a_second_instance_with_the_same_directory_is_refused_and_the_first_goes_on() {
    machine::test("second instance", |setup| {
        let first = setup.tarsier(RULE).format("raw").start();
        let second = setup.tarsier(RULE).log(setup.path("second.log")).finish();
        let pid = format!("another tarsier (pid {})", first.pid());
        refused(&second, &[&pid, "--run-dir"]);
        assert_eq!(first.status()["pid"], first.pid());
        let made = Caller::gid(61238).make(&[call!(getppid)]);
        let ended = first.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert_eq!(
            log::calls_of(&log::events(&ended.log), made.pid),
            ["getppid mine"]
        );
    });
}

#[test]
fn a_log_that_another_instance_writes_is_refused() {
    machine::test("one log, two daemons", |setup| {
        let first = setup.tarsier(RULE).format("raw").start();
        let second = setup.tarsier(RULE).run_dir(setup.path("run2")).finish();
        refused(&second, &["audit.log", "another process holds the lock"]);
        assert!(first.stop().status.success());
    });
}

#[test]
fn a_second_tarsier_says_that_the_audit_socket_is_taken_and_records_all_the_same() {
    machine::test("two daemons", |setup| {
        let first = setup.tarsier(RULE).format("raw").start();
        let second = setup
            .tarsier(RULE)
            .format("raw")
            .run_dir(setup.path("run2"))
            .log(setup.path("second.log"))
            .start();
        second.wait_for(&format!("another audit daemon (pid {})", first.pid()));
        assert_eq!(second.status()["kernel_records"], false);
        let made = Caller::gid(61238).make(&[call!(getppid)]);
        let (second, first) = (second.stop(), first.stop());
        for ended in [first, second] {
            assert!(ended.status.success(), "{}", ended.said);
            let events = log::events(&ended.log);
            assert_eq!(log::calls_of(&events, made.pid), ["getppid mine"]);
        }
    });
}

#[test]
fn another_audit_daemon_keeps_its_socket_and_state() {
    machine::test("another audit daemon", |setup| {
        let mut other = netlink::take_over(&setup.path("other-state"), false).expect("the socket");
        let before = other.socket().status().expect("the audit status");
        let daemon = setup.tarsier(RULE).format("raw").start();
        daemon.wait_for(&format!(
            "another audit daemon (pid {})",
            std::process::id()
        ));
        let made = Caller::gid(61238).make(&[call!(getppid)]);
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        assert_eq!(
            log::calls_of(&log::events(&ended.log), made.pid),
            ["getppid mine"]
        );
        let after = other.socket().status().expect("the audit status");
        assert_eq!((after.enabled, after.pid), (before.enabled, before.pid));
        assert_eq!(other.socket().list_rules().expect("rules").len(), 1);
        other.release().expect("all is put back");
    });
}

#[test]
fn a_command_that_is_not_there_is_an_error_and_everything_is_put_back() {
    machine::test("unknown command", |setup| {
        let run = setup.tarsier(RULE).command(&[&"/no/such/program"]);
        let ended = run.finish();
        assert!(!ended.status.success());
        for text in ["cannot run /no/such/program", "No such file"] {
            assert!(ended.said.contains(text), "{text:?} in:\n{}", ended.said);
        }
        assert!(!Path::new(&setup.path("run/tarsier.sock")).exists());
    });
}

#[test]
fn a_standard_error_that_nobody_reads_ends_nothing() {
    machine::test("standard error without a reader", |setup| {
        let daemon = setup.tarsier(RULE).format("raw").start_unheard();
        // Each of these makes it print something.
        setup.write("auditd.conf", "num_log = 5\n");
        daemon.signal(rustix::process::Signal::HUP);
        daemon.wait_for_record("op=reconfigure");
        let mut workload = Command::new(programs::workload());
        workload.args(["--mark", "61238", "--count", "10", "--threads", "1"]);
        programs::output_of(workload.arg("getppid"));
        let ended = daemon.stop();
        assert!(ended.status.success(), "{}", ended.status);
        let text = std::fs::read_to_string(ended.log).expect("the log");
        let recorded = text.matches("key=\"mine\"").count();
        assert_eq!(recorded, 10, "{text}");
    });
}
