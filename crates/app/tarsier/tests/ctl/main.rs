//! `tarsier ctl`, compared with the distribution's auditctl, and against a running daemon.
//!
//! Tests that touch the kernel's audit hold the machine's lock, and leave audit off and without
//! rules. Kernel audit stays off while rules are loaded into it.

mod machine;

use machine::claim;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const TARSIER: &str = env!("CARGO_BIN_EXE_tarsier");
/// A user id that no process has.
const UID: u32 = 54321;

fn run(program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    command.output().unwrap()
}

fn kernel(args: &[&str]) -> Output {
    run(Path::new(TARSIER), &[&["ctl", "--kernel"], args].concat())
}

fn text(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{}{out}", String::from_utf8_lossy(&output.stderr))
}

/// The distribution's auditctl, and the directory it was extracted to.
struct Peer {
    root: PathBuf,
}

impl Peer {
    fn find() -> Option<Peer> {
        testkit::peers("auditctl").map(|root| Peer { root })
    }

    fn auditctl(&self, args: &[&str]) -> Output {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let root = self.root.display();
        Command::new(self.root.join("sbin/auditctl"))
            .env(
                "LD_LIBRARY_PATH",
                format!("{root}/usr/lib/{triplet}:{root}/lib/{triplet}"),
            )
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// The sample rules files by name, with the part of each that may be loaded on a machine in
    /// use.
    fn samples(&self) -> BTreeMap<String, String> {
        let directory = self.root.join("usr/share/doc/auditd/examples/rules");
        let mut samples = BTreeMap::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = String::from_utf8(fs::read(&path).unwrap()).unwrap();
            let is_harmless = |line: &&str| {
                let line = line.trim_start();
                ["-e", "-f", "-b", "-r", "--"]
                    .iter()
                    .all(|option| !line.starts_with(option))
            };
            let lines: Vec<&str> = text.lines().filter(is_harmless).collect();
            samples.insert(name, lines.join("\n") + "\n");
        }
        samples
    }
}

/// Calls of auditctl that change nothing, or only for the duration of the call.
const CALLS: &[&str] = &[
    "-s",
    "-s -i",
    "-l",
    "-l -i",
    "-l -k x",
    "-l -x",
    "-D",
    "-D -k",
    "-D -k none",
    "-x",
    "-i",
    "-c",
    "-e",
    "-e 0",
    "-e 3",
    "-f 9",
    "-b abc",
    "-r abc",
    "--backlog_wait_time abc",
    "--backlog_wait_time 999999999",
    "-m one two",
    "--signal BOGUS",
    "--signal HUP",
    "-q /tmp",
    "-q /tmp,/nodir",
    "-t",
    "-a always",
    "-a always,exit -S 9999",
    "-a always,exit -S nosuchcall",
    "-a always,exit -F arch=b64 -S openat -F uid=54321 -k one",
    "-a always,exit -F arch=b64 -S openat -F uid=54321 -k one",
    "-A always,exit -F arch=b64 -S openat -F uid=54321 -k two",
    "-a always,exit -F arch=b64 -S openat -F exe=/nodir/x",
    "-w /nodir/f -p wa",
    "-w /etc/passwd -p wa -k watch",
    "-w /etc/passwd -p wa -k watch",
    "-l",
    "-l -i",
    "-l -k wat",
    "-W /etc/passwd -p wa -k other",
    "-W /etc/passwd -p wa -k watch",
    "-d always,exit -F arch=b64 -S openat -F uid=54321 -k one",
    "-d always,exit -F arch=b64 -S openat -F uid=54321 -k one",
    "-D -k tw",
    "-l",
];

/// The calls of the recording that `crates/core/rules` is tested with, except those whose text is
/// Tarsier's own, those that only write to syslog, and those that watch the whole machine.
fn recorded_calls() -> Vec<&'static str> {
    let golden = include_str!("../../../../core/rules/tests/data/cli.golden");
    let calls = golden
        .lines()
        .filter_map(|line| line.strip_prefix("$ auditctl "));
    calls
        .filter(|call| !["-h", "-v", "foo", "-m \"ok text\""].contains(call))
        .filter(|call| !call.starts_with("-R") && !call.starts_with("-w / ") && *call != "-w /")
        .filter(|call| !call.contains("dir=/ "))
        // If /watch is missing, these are wrong in two ways, and the two programs report different
        // ones first.
        .filter(|call| !call.contains("path=/watch/f1 -F"))
        .collect()
}

/// Splits a text into words, and resolves double quotes.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            _ => words.last_mut().unwrap().push(letter),
        }
    }
    words
}

/// The rules in the kernel, byte by byte.
fn rule_bytes() -> Vec<Vec<u8>> {
    let mut socket = netlink::AuditSocket::open().unwrap();
    socket.list_rules().unwrap()
}

/// Makes every call twice, in two passes that start from the same state.
#[test]
fn calls_have_auditctl_s_output_and_status() {
    let Some(peer) = Peer::find() else { return };
    let Some(_lock) = claim("calls") else { return };
    let recorded = recorded_calls();
    assert!(recorded.len() > 170, "only {} calls", recorded.len());
    let pass = |call: &dyn Fn(&[&str]) -> Output| -> Vec<String> {
        let calls = CALLS.iter().copied().chain(recorded.iter().copied());
        let outcomes = calls.map(|line| {
            let words = shell_words(line);
            let args: Vec<&str> = words.iter().map(String::as_str).collect();
            let output = call(&args);
            format!("$ {line}\n{}{:?}", text(&output), output.status.code())
        });
        let outcomes = outcomes.collect();
        kernel(&["-D"]);
        outcomes
    };
    let expected = pass(&|args| peer.auditctl(args));
    let found = pass(&|args| kernel(&[&["--dialect", "3"], args].concat()));
    let differing = found.iter().zip(&expected).filter(|(a, b)| a != b);
    let differing: Vec<String> = differing
        .map(|(found, expected)| format!("auditctl: {expected}\nhere: {found}"))
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[test]
fn sample_rules_are_loaded_and_listed_as_by_auditctl() {
    let Some(peer) = Peer::find() else { return };
    let Some(_lock) = claim("samples") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut loaded = 0;
    for (name, rules) in peer.samples() {
        let path = directory.path().join(&name);
        fs::write(&path, rules).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let path = path.to_str().unwrap();
        let expected_status = peer.auditctl(&["-R", path]).status;
        let expected = text(&peer.auditctl(&["-l"]));
        let expected_bytes = rule_bytes();
        kernel(&["-D"]);
        let status = kernel(&["-R", path]).status;
        let found = text(&peer.auditctl(&["-l"]));
        let listed = text(&kernel(&["-l"]));
        let bytes = rule_bytes();
        kernel(&["-D"]);
        assert_eq!(found, expected, "{name}");
        assert_eq!(listed, expected, "{name}");
        assert!(bytes == expected_bytes, "{name}: other bytes");
        assert_eq!(status, expected_status, "{name}");
        loaded += usize::from(expected != "No rules\n");
    }
    assert!(loaded > 20, "only {loaded} samples had rules");
}

/// A daemon with a run directory of its own.
struct Daemon {
    directory: tempfile::TempDir,
    child: Child,
}

impl Daemon {
    fn start() -> Daemon {
        Daemon::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Daemon {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let rules = format!("-a always,exit -F arch=b64 -S mkdir -F uid={UID} -k file\n");
        fs::write(path("a.rules"), rules).unwrap();
        let mut child = Command::new(TARSIER)
            .args(["run", "--log-format", "raw"])
            .args(options)
            .arg("--rules")
            .arg(path("a.rules"))
            .arg("--log-file")
            .arg(path("audit.log"))
            .arg("--run-dir")
            .arg(directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It prints this when everything is armed, and prints more later: its output must still be
        // read.
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let armed = lines.find_map(|line| line.ok().filter(|line| line.contains("rules armed")));
        assert!(armed.is_some(), "the daemon did not start");
        std::thread::spawn(move || lines.for_each(drop));
        Daemon { directory, child }
    }

    fn ctl(&self, line: &str) -> Output {
        let mut args = vec!["ctl", "--run-dir", self.directory.path().to_str().unwrap()];
        args.extend(line.split(' '));
        run(Path::new(TARSIER), &args)
    }

    fn says(&self, line: &str) -> (String, Option<i32>) {
        let output = self.ctl(line);
        (text(&output), output.status.code())
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("tarsier.sock")
    }

    fn rules_file(&self, text: &str) -> String {
        let path = self.directory.path().join("more.rules");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Stops the daemon and returns its log.
    fn stop(mut self) -> String {
        assert_eq!(self.says("--signal TERM").1, Some(0));
        assert!(self.child.wait().unwrap().success());
        fs::read_to_string(self.directory.path().join("audit.log")).unwrap()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // If a test has failed, the daemon still runs; SIGTERM lets it restore everything.
        let pid = rustix::process::Pid::from_child(&self.child);
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let _ = self.child.wait();
        }
    }
}

/// Creates and removes a directory as user [`UID`].
fn make_directory() {
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
    use std::os::unix::process::CommandExt;
    let status = Command::new("mkdir")
        .arg(place.path().join("made"))
        .uid(UID)
        .status()
        .unwrap();
    assert!(status.success());
}

fn rule(key: &str) -> String {
    format!("-a always,exit -F arch=b64 -S mkdir -F uid={UID} -k {key}")
}

fn listed(key: &str) -> String {
    format!("-a always,exit -F arch=b64 -S mkdir -F uid={UID} -F key={key}\n")
}

const OK: Option<i32> = Some(0);

#[test]
fn rules_change_while_recording_and_the_log_says_who_did_it() {
    let Some(_lock) = claim("daemon") else { return };
    let daemon = Daemon::start();
    assert_eq!(daemon.says("-l"), (listed("file"), OK));
    let first = rule("first").replace("-a ", "-A ");
    assert_eq!(daemon.says(&first), (String::new(), OK));
    let exists = "Error sending add rule data request (Rule exists)\n".to_owned();
    assert_eq!(daemon.says(&rule("file")), (exists, Some(255)));
    assert_eq!(daemon.says("-l").0, listed("first") + &listed("file"));
    make_directory();
    assert_eq!(daemon.says("-D -k fir"), (String::new(), OK));
    assert_eq!(daemon.says("-l").0, listed("file"));
    assert_eq!(daemon.says("-m said"), (String::new(), OK));
    let log = daemon.stop();
    let ids = "auid=4294967295 ses=4294967295";
    let own = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap();
    let ids = ids.replace(
        "auid=4294967295",
        &format!("auid={}", own("loginuid").trim()),
    );
    let ids = ids.replace(
        "ses=4294967295",
        &format!("ses={}", own("sessionid").trim()),
    );
    for expected in [
        " op=add_rule key=\"first\" list=4 res=1",
        " op=add_rule key=\"file\" list=4 res=0",
        " op=remove_rule key=\"first\" list=4 res=1",
    ] {
        let said: Vec<&str> = log
            .lines()
            .filter(|line| line.ends_with(expected))
            .collect();
        let is_told = |line: &&str| {
            line.contains(&format!("): {ids} ")) && line.contains(" comm=\"tarsier\" exe=")
        };
        assert!(
            said.len() == 1 && said.iter().all(is_told),
            "{expected}: {log}"
        );
    }
    assert_eq!(log.matches(" msg='text=said exe=").count(), 1, "{log}");
    assert_eq!(log.matches("key=\"first\"\n").count(), 1, "{log}");
}

/// A number from `status --rules` for the rule with `key`.
fn cost(daemon: &Daemon, key: &str, member: &str) -> Option<u64> {
    let run_dir = daemon.directory.path().to_str().unwrap();
    let args = ["status", "--rules", "--json", "--run-dir", run_dir];
    let answer: serde_json::Value =
        serde_json::from_slice(&run(Path::new(TARSIER), &args).stdout).unwrap();
    let rules = answer.as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["key"] == key)?;
    rule[member].as_u64()
}

#[test]
fn what_a_rule_costs_is_counted_and_goes_on_counting_when_others_come_and_go() {
    let Some(_lock) = claim("costs") else { return };
    let daemon = Daemon::start();
    assert_eq!(cost(&daemon, "file", "events"), Some(0));
    make_directory();
    let until = |events: u64| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while cost(&daemon, "file", "events") != Some(events) {
            assert!(Instant::now() < deadline, "{events} events did not come");
        }
    };
    until(1);
    let (bytes, spent_ns) = (
        cost(&daemon, "file", "bytes"),
        cost(&daemon, "file", "spent_ns"),
    );
    assert!(spent_ns > Some(0));
    let rmdir = rule("before")
        .replace("-a ", "-A ")
        .replace("mkdir", "rmdir");
    assert_eq!(daemon.says(&rmdir).1, OK);
    assert_eq!(cost(&daemon, "file", "position"), Some(2));
    assert_eq!(cost(&daemon, "before", "events"), Some(0));
    assert_eq!(cost(&daemon, "file", "bytes"), bytes);
    make_directory();
    until(2);
    let bytes = cost(&daemon, "file", "bytes").unwrap();
    let run_dir = daemon.directory.path().to_str().unwrap();
    let shown = run(
        Path::new(TARSIER),
        &["status", "--rules", "--run-dir", run_dir],
    );
    let shown = text(&shown);
    let first = shown.lines().nth(1).unwrap();
    let words: Vec<&str> = first.split_whitespace().take(6).collect();
    assert_eq!(
        words,
        ["2", "file", "2", "0", "0", &bytes.to_string()],
        "{shown}"
    );
    let log = daemon.stop();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    // The lines of an event share its serial number.
    let serial = |line: &str| {
        line.split(')')
            .next()
            .unwrap()
            .rsplit(':')
            .next()
            .unwrap()
            .to_owned()
    };
    let serials: Vec<String> = lines
        .iter()
        .filter(|line| line.starts_with("type=SYSCALL ") && line.contains("key=\"file\""))
        .map(|line| serial(line))
        .collect();
    let of_rule = lines.iter().filter(|line| serials.contains(&serial(line)));
    assert_eq!(of_rule.map(|line| line.len() as u64).sum::<u64>(), bytes);
}

#[test]
fn a_file_is_taken_whole_or_not_at_all_and_a_reload_goes_back_to_the_files() {
    let Some(_lock) = claim("files") else { return };
    let daemon = Daemon::start();
    let wrong = format!("-D\n{}\n{}\n", rule("one"), rule("one"));
    let path = daemon.rules_file(&wrong);
    let (said, status) = daemon.says(&format!("-R {path}"));
    assert_eq!(status, Some(1));
    assert!(
        said.contains(&format!("There was an error in line 3 of {path}\n")),
        "{said}"
    );
    assert_eq!(daemon.says("-l").0, listed("file"));
    daemon.rules_file(&format!("-i\n{wrong}"));
    assert_eq!(daemon.says(&format!("-R {path}")).1, OK);
    assert_eq!(daemon.says("-l").0, listed("one"));
    assert_eq!(daemon.says("--signal HUP").1, OK);
    let deadline = Instant::now() + Duration::from_secs(20);
    while daemon.says("-l").0 != listed("file") {
        assert!(
            Instant::now() < deadline,
            "the files' rules did not come back"
        );
    }
    daemon.stop();
}

#[test]
fn nothing_is_recorded_while_off_and_nothing_can_be_changed_once_locked() {
    let Some(_lock) = claim("switch") else { return };
    // Without the kernel's records: a daemon with them would lock the kernel's audit until the next boot.
    let daemon = Daemon::start_with(&["--no-kernel-records"]);
    assert!(daemon.says("-e 0").0.starts_with("enabled 0\n"));
    make_directory();
    assert_eq!(daemon.says(&rule("meanwhile")).1, OK);
    assert!(daemon.says("-e 1").0.starts_with("enabled 1\n"));
    assert_eq!(daemon.says("-l").0, listed("file") + &listed("meanwhile"));
    make_directory();
    assert!(daemon.says("-e 2").0.starts_with("enabled 2\n"));
    let locked = "The audit system is in immutable mode, no rule changes allowed\n".to_owned();
    assert_eq!(daemon.says(&rule("late")), (locked.clone(), OK));
    let path = daemon.rules_file("-D\n");
    assert_eq!(daemon.says(&format!("-R {path}")), (locked, OK));
    let refused = "Error sending enable request (Operation not permitted)\n".to_owned();
    assert_eq!(daemon.says("-e 0"), (refused, Some(255)));
    assert_eq!(daemon.says("-l").0, listed("file") + &listed("meanwhile"));
    // Tarsier is locked, not the kernel.
    assert!(text(&kernel(&["-s"])).starts_with("enabled 0\n"));
    let log = daemon.stop();
    for tried in [
        "op=add_rule key=\"late\" list=4 res=0",
        "op=load_rules audit_enabled=2 ",
        "op=set audit_enabled=0 old=2 auid=",
    ] {
        assert_eq!(log.matches(tried).count(), 1, "{tried}: {log}");
    }
    assert_eq!(log.matches("key=\"file\"\n").count(), 1, "{log}");
    assert!(text(&kernel(&["-s"])).starts_with("enabled 0\n"));
}

#[test]
fn clients_that_say_nothing_or_nonsense_hold_nobody_up() {
    let Some(_lock) = claim("clients") else {
        return;
    };
    let daemon = Daemon::start();
    let mode = fs::metadata(daemon.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut silent: Vec<UnixStream> = (0..10)
        .map(|_| UnixStream::connect(daemon.socket()).unwrap())
        .collect();
    for (half, stream) in silent.iter_mut().enumerate() {
        stream
            .write_all(&b"{\"apply\":{\"steps\":["[..half])
            .unwrap();
    }
    let started = Instant::now();
    assert_eq!(daemon.says("-l").0, listed("file"));
    assert!(started.elapsed() < Duration::from_secs(4), "held up");
    for nonsense in ["\n", "null\n", "{\"apply\":{}}\n", "\u{0}\u{1}\n"] {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.write_all(nonsense.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("the request is not clear"), "{answer}");
    }
    // A client that sends nothing is disconnected.
    let mut answer = Vec::new();
    silent[0]
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    assert_eq!(silent[0].read_to_end(&mut answer).unwrap(), 0);
    let status = run(
        Path::new(TARSIER),
        &[
            "status",
            "--json",
            "--run-dir",
            daemon.directory.path().to_str().unwrap(),
        ],
    );
    assert!(text(&status).contains("\"engine\":\"tracepoint\""));
    daemon.stop();
}

#[test]
fn merged_rules_are_printed_and_compared_as_by_augenrules() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    put("10-b.rules", "-e 1\n# comment\n-w /b -k b\n");
    put("9-a.rules", "-w /a -k a\n-D\n-b 5\n");
    put("notes.txt", "no rules\n");
    let path = directory.path().to_str().unwrap();
    let merge = |args: &[&str]| {
        let output = run(
            Path::new(TARSIER),
            &[&["rules", "merge", path], args].concat(),
        );
        (text(&output), output.status.code())
    };
    let expected = format!(
        "## This file is automatically generated from {path}\n\
         -D\n-b 5\n\n-w /a -k a\n-w /b -k b\n-e 1\n"
    );
    assert_eq!(merge(&[]), (expected.clone(), OK));
    let file = directory.path().join("audit.rules.made");
    let file = file.to_str().unwrap();
    let changed = format!("{file}: Rules have changed and should be updated\n");
    assert_eq!(merge(&["--check", file]), (changed, Some(1)));
    fs::write(file, expected).unwrap();
    assert_eq!(
        merge(&["--check", file]),
        (format!("{file}: No change\n"), OK)
    );
}

#[test]
fn the_name_auditctl_is_enough() {
    let directory = tempfile::tempdir().unwrap();
    let auditctl = directory.path().join("auditctl");
    std::os::unix::fs::symlink(TARSIER, &auditctl).unwrap();
    let version = run(&auditctl, &["-v"]);
    assert!(text(&version).starts_with("auditctl version 3.0.9"));
    assert_eq!(run(&auditctl, &["-h"]).status.code(), Some(255));
    assert_eq!(run(&auditctl, &[]).status.code(), Some(1));
}
