//! `tarsier seccomp run --log` and `learn` with running programs.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn seccomp() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.arg("seccomp");
    command
}

/// `tarsier seccomp` without capabilities: it may not load BPF programs, and traces.
fn unprivileged() -> Command {
    let mut command = Command::new("setpriv");
    let nothing = ["--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"];
    command.args(nothing).arg(env!("CARGO_BIN_EXE_tarsier"));
    command.arg("seccomp");
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// This program, which then is the child of a test instead of all tests.
const CHILD: &str = "TARSIER_SECCOMP_CHILD";

fn child(kind: &str) -> Vec<String> {
    let own = std::env::current_exe().expect("a path");
    let own = own.to_str().expect("text").to_owned();
    let child = format!("{CHILD}={kind}");
    let words = [
        "env",
        &child,
        &own,
        "it_is_a_child",
        "--exact",
        "--nocapture",
    ];
    words.map(str::to_owned).into()
}

/// Makes 20,000 calls of uname under a timer of 0.2 ms, and prints how often each errno came.
fn calls_under_timer() {
    extern "C" fn nothing(_: libc::c_int) {}
    let mut errnos = [0u32; 200];
    // SAFETY: a handler that does nothing, and memory of the right kinds that lives long enough.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as *const () as usize;
        for signal in [libc::SIGALRM, libc::SIGURG] {
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
        let often = libc::timeval {
            tv_sec: 0,
            tv_usec: 200,
        };
        let timer = libc::itimerval {
            it_interval: often,
            it_value: often,
        };
        libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &raw const timer, 0);
        for round in 0..20_000 {
            if round % 1000 == 0 {
                libc::kill(libc::getpid(), libc::SIGURG);
            }
            let mut name: libc::utsname = std::mem::zeroed();
            let errno = match libc::uname(&raw mut name) {
                0 => 0,
                _ => std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
            };
            errnos[errno as usize % 200] += 1;
        }
    }
    let counts = errnos.iter().enumerate().filter(|row| *row.1 > 0);
    let counts: Vec<String> = counts
        .map(|(errno, count)| format!("{errno}:{count}"))
        .collect();
    println!("errnos {}", counts.join(" "));
}

/// Waits in epoll_wait(2) while signals come that it ignores, and prints what it returns.
fn wait_among_ignored_signals() {
    // SAFETY: descriptors and memory of the right kinds that live long enough; the child makes
    // system calls only.
    unsafe {
        libc::signal(libc::SIGUSR1, libc::SIG_IGN);
        let epoll = libc::epoll_create1(0);
        let (parent, thread) = (libc::getpid(), libc::gettid());
        if libc::fork() == 0 {
            for signal in [libc::SIGUSR1, libc::SIGWINCH].repeat(5) {
                libc::usleep(10_000);
                libc::syscall(libc::SYS_tgkill, parent, thread, signal);
            }
            libc::_exit(0);
        }
        let mut event: libc::epoll_event = std::mem::zeroed();
        let result = libc::epoll_wait(epoll, &raw mut event, 1, 300);
        println!("epoll_wait {result}");
    }
}

#[test]
fn it_is_a_child() {
    match std::env::var(CHILD).as_deref() {
        Ok("timer") => calls_under_timer(),
        Ok("ignored") => wait_among_ignored_signals(),
        _ => {}
    }
}

#[test]
fn denied_calls_under_signals_have_the_errno_of_the_profile_and_are_counted_once() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    deny_under_signals(seccomp);
}

#[test]
fn traced_calls_under_signals_have_the_errno_of_the_profile_and_are_counted_once() {
    if can_trace() {
        deny_under_signals(unprivileged);
    }
}

/// Whether programs can be traced here; otherwise says why not.
fn can_trace() -> bool {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    let is_allowed = matches!(scope.trim(), "" | "0" | "1");
    if !cfg!(target_arch = "x86_64") || !is_allowed {
        println!("skipped: traced programs: this is not x86-64, or Yama forbids tracing");
        return false;
    }
    true
}

fn deny_under_signals(start: fn() -> Command) {
    let directory = TempDir::new().expect("a directory");
    for (rule, wanted, verdict) in [
        ("deny uname", "errnos 1:20000", "ERRNO(1 EPERM)"),
        ("errno:ENOSYS uname", "errnos 38:20000", "ERRNO(38 ENOSYS)"),
        ("log uname", "errnos 0:20000", "logged: LOG"),
    ] {
        let profile = directory.path().join("p.list");
        std::fs::write(&profile, format!("default allow\n{rule}\n")).expect("written");
        for log in [false, true] {
            let mut command = start();
            command
                .arg("run")
                .args(log.then_some("--log"))
                .arg("--profile")
                .arg(&profile);
            let output = command
                .arg("--")
                .args(child("timer"))
                .output()
                .expect("it runs");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(text.contains(wanted), "{rule}: {output:?}");
            let said = stderr(&output);
            if log {
                assert!(said.contains(verdict), "{rule}: {said}");
                assert!(
                    said.contains("in all, 20000 calls were denied or logged"),
                    "{said}"
                );
            }
        }
    }
}

#[test]
fn every_way_to_deny_is_reported_and_ends_as_without_a_report() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    deny_in_every_way(seccomp);
}

#[test]
fn every_way_to_deny_a_traced_program_is_reported_and_ends_as_without_a_report() {
    if can_trace() {
        deny_in_every_way(unprivileged);
    }
}

#[test]
fn a_traced_program_is_not_interrupted_by_signals_that_it_ignores() {
    if !can_trace() {
        return;
    }
    let directory = TempDir::new().expect("a directory");
    let profile = directory.path().join("p.list");
    std::fs::write(&profile, "default allow\ndeny uname\n").expect("written");
    for log in [None, Some("--log")] {
        let mut command = unprivileged();
        command.arg("run").args(log).arg("--profile").arg(&profile);
        let output = command.arg("--").args(child("ignored")).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("epoll_wait 0"), "{log:?}: {output:?}");
    }
}

fn deny_in_every_way(start: fn() -> Command) {
    let directory = TempDir::new().expect("a directory");
    for (action, verdict) in [
        ("SCMP_ACT_ERRNO", "denied: ERRNO(1 EPERM)"),
        ("SCMP_ACT_TRAP", "denied: TRAP"),
        ("SCMP_ACT_TRACE", "denied: TRACE(1)"),
        ("SCMP_ACT_KILL_PROCESS", "denied: KILL_PROCESS"),
        ("SCMP_ACT_KILL_THREAD", "denied: KILL_THREAD"),
        ("SCMP_ACT_LOG", "logged: LOG"),
    ] {
        let profile = directory.path().join("p.json");
        let text = format!(
            r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
                {{"names": ["mkdir", "mkdirat"], "action": "{action}"}}]}}"#
        );
        std::fs::write(&profile, text).expect("written");
        let run = |log: bool| {
            let made = directory.path().join("made");
            let mut command = start();
            command
                .arg("run")
                .args(log.then_some("--log"))
                .arg("--profile")
                .arg(&profile);
            let output = command
                .args(["--", "mkdir"])
                .arg(&made)
                .output()
                .expect("it runs");
            let is_made = std::fs::remove_dir(&made).is_ok();
            let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
            let status = output.status.code().or(signal.map(|signal| 128 + signal));
            (status, is_made, stderr(&output))
        };
        let (plain, logged) = (run(false), run(true));
        assert_eq!(
            (plain.0, plain.1),
            (logged.0, logged.1),
            "{action}: {plain:?} {logged:?}"
        );
        assert!(logged.2.contains(verdict), "{action}: {}", logged.2);
    }
}

/// Sends a signal to a process of ours.
fn signal(child: &Child, signal: i32) {
    // SAFETY: no pointers; the child was not waited for.
    unsafe { libc::kill(child.id() as i32, signal) };
}

#[test]
fn a_signal_for_the_watcher_reaches_the_program() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let directory = TempDir::new().expect("a directory");
    let profile = directory.path().join("p.list");
    std::fs::write(&profile, "default allow\ndeny uname\n").expect("written");
    let mut command = seccomp();
    command.args(["run", "--log", "--profile"]).arg(&profile);
    command.args([
        "--",
        "sh",
        "-c",
        "trap 'exit 7' TERM; echo up; while :; do sleep 0.05; done",
    ]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(7));
}

/// The names of calls that a profile allows.
fn allowed(path: &PathBuf) -> BTreeSet<String> {
    let profile: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).expect("a profile")).expect("JSON");
    let entries = profile["syscalls"].as_array().expect("a list").clone();
    let names = entries
        .iter()
        .flat_map(|entry| entry["names"].as_array().expect("names").clone());
    names
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

/// `tarsier seccomp learn`, which writes to `profile`.
fn learn(profile: &Path) -> Command {
    let mut command = seccomp();
    command.args(["learn", "-o"]).arg(profile);
    command
}

#[test]
fn learning_goes_on_until_the_last_process_ends_and_signals_do_not_lose_it() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let directory = TempDir::new().expect("a directory");
    let profile = directory.path().join("p.json");
    let made = directory.path().join("made");

    // A daemon: its first process ends before the work begins.
    let script = "setsid sh -c 'sleep 0.3; mkdir $0; rmdir $0' \"$0\" </dev/null >/dev/null 2>&1 &";
    let mut command = learn(&profile);
    command.args(["--", "sh", "-c", script]).arg(&made);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");

    // Of the daemon's shell, its parent and their children, as many are counted as there are then.
    let said = stderr(&output);
    assert!(
        said.contains("that it started run") && said.contains("and learning goes on"),
        "{output:?}"
    );

    let names = allowed(&profile);
    for name in ["mkdir", "rmdir", "setsid", "clock_gettime", "time"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }

    // A server that is ended by a signal for the learner.
    std::fs::remove_file(&profile).expect("it was there");
    let script = "trap 'exit 3' TERM; mkdir $0; rmdir $0; echo up; while :; do sleep 0.05; done";
    let mut command = learn(&profile);
    command.args(["--", "sh", "-c", script]).arg(&made);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let out = child.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    signal(&child, libc::SIGTERM);
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    assert!(allowed(&profile).contains("rmdir"));
    assert!(!directory.path().join("p.json.partial").exists());
}

#[test]
fn a_learner_that_is_killed_leaves_what_it_has_learnt() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let directory = TempDir::new().expect("a directory");
    let profile = directory.path().join("p.json");
    let partial = directory.path().join("p.json.partial");
    let mut command = learn(&profile);
    command.args(["--", "sleep", "20"]);
    let mut child = command.spawn().expect("it runs");
    let start = Instant::now();
    while !partial.exists() {
        assert!(
            start.elapsed() < Duration::from_secs(15),
            "nothing is saved"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(&child, libc::SIGKILL);
    child.wait().expect("it ends");
    assert!(allowed(&partial).contains("execve"));
    let merged = learn(&profile)
        .arg("--merge")
        .arg(&partial)
        .args(["--", "true"])
        .output()
        .expect("it runs");
    assert!(merged.status.success(), "{merged:?}");
    assert!(allowed(&profile).contains("clock_nanosleep"));
}

#[test]
fn a_running_process_is_learnt() {
    let Some(_lock) = testkit::may_load_programs() else {
        return;
    };
    let directory = TempDir::new().expect("a directory");
    let profile = directory.path().join("p.json");
    let made = directory.path().join("made");
    let script = "read line; mkdir $0; rmdir $0";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(&made).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("a shell");
    let mut command = seccomp();
    command
        .args(["learn", "--pid", &shell.id().to_string(), "-o"])
        .arg(&profile);
    let mut learner = command.stderr(Stdio::piped()).spawn().expect("it runs");
    let mut line = String::new();
    let err = learner.stderr.take().expect("a pipe");
    let mut err = BufReader::new(err);
    err.read_line(&mut line).expect("a line");
    assert!(line.contains("learning from process"), "{line}");
    drop(shell.stdin.take());
    shell.wait().expect("it ends");
    let rest: Vec<String> = err.lines().map_while(Result::ok).collect();
    assert!(learner.wait().expect("it ends").success(), "{rest:?}");
    assert!(allowed(&profile).contains("rmdir"));
}

#[test]
fn kernel_messages_and_logged_calls_are_learnt_and_denied_ones_where_asked() {
    let directory = TempDir::new().expect("a directory");
    let log = directory.path().join("kernel.log");
    let text = "[  149.402823] audit: type=1326 audit(1780000000.123:35): auid=4294967295 uid=0 gid=0 \
                ses=4294967295 subj=unconfined pid=20853 comm=\"a\" exe=\"/a\" sig=0 arch=c000003e \
                syscall=83 compat=0 ip=0x4c1b3b code=0x7ffc0000\n\
                Mar  7 18:23:04 node kernel: [149402.823736] audit: type=1326 audit(1709806984.100:61): \
                auid=4294967295 uid=0 gid=0 ses=4294967295 pid=19461 comm=\"a\" exe=\"/a\" sig=31 \
                arch=c000003e syscall=84 compat=0 ip=0x455b35 code=0x80000000\n";
    std::fs::write(&log, text).expect("written");
    let learn = |options: &[&str]| {
        let profile = directory.path().join("p.json");
        let mut command = seccomp();
        command
            .args(["learn", "-o"])
            .arg(&profile)
            .arg("--log")
            .arg(&log)
            .args(options);
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        (allowed(&profile), stderr(&output))
    };
    let (names, said) = learn(&[]);
    assert!(
        names.contains("mkdir") && !names.contains("rmdir"),
        "{names:?}"
    );
    assert!(said.contains("a filter denied rmdir"), "{said}");
    let (names, _) = learn(&["--denied"]);
    assert!(names.contains("rmdir"));
    // As the journal has them: its own audit socket, and its entries as JSON.
    let record =
        "auid=4294967295 uid=0 gid=0 ses=4294967295 pid=20853 comm=\"a\" exe=\"/a\" sig=0 \
                  arch=c000003e syscall=83 compat=0 ip=0x4c1b3b code=0x7ffc0000";
    let message = format!("audit: type=1326 audit(1780000000.123:35): {record}");
    let entry = serde_json::json!({"_TRANSPORT": "kernel", "MESSAGE": message});
    for text in [
        format!("Nov 28 10:00:00 node audit[20853]: SECCOMP {record}\n"),
        format!("{entry}\n"),
    ] {
        std::fs::write(&log, &text).expect("written");
        let (names, _) = learn(&["--exe", "/a"]);
        assert!(names.contains("mkdir"), "{text}");
    }
    std::fs::write(&log, text).expect("written");
    // Docker's profile already allows mkdir and rmdir.
    let (names, _) = learn(&["--merge", "docker"]);
    assert!(names.contains("openat") && names.contains("mkdir"));
}
