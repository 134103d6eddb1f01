//! Digests of executed files: right ones, or a reason.

use crate::daemon::{Daemon, Run, Setup};
use crate::{log, machine, programs};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const GID: u32 = 61247;
/// The second rule selects calls of the helper, by the id that it has where it has no account.
const RULES: &str = "-a always,exit -F arch=b64 -S execve,execveat -F gid=61247 -k hashes\n\
                     -a always,exit -F arch=b64 -S pread64 -F uid=2130706433 -k helper\n";
const PATIENCE: Duration = Duration::from_secs(600);

fn tarsier(setup: &Setup, lines: &str) -> Run {
    let run = setup.tarsier(RULES).ring_kib(65536);
    configure(setup, lines);
    run.option("--no-kernel-records")
}

fn configure(setup: &Setup, lines: &str) {
    setup.configure(&format!(
        "flush = NONE\nmax_log_file_action = IGNORE\n{lines}"
    ));
}

/// Starts recording in JSON.
fn json(setup: &Setup, lines: &str) -> Daemon {
    tarsier(setup, &format!("exe_hash = sha256\n{lines}"))
        .format("json")
        .start()
}

/// Whether changes of files here show in their times: `false`, which is printed, on tmpfs and
/// overlayfs.
fn is_possible(setup: &Setup, test: &str) -> bool {
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    let found = rustix::fs::statfs(setup.path("")).expect("statfs");
    let is_possible = matches!(found.f_type as i64, EXT4 | XFS);
    if !is_possible {
        println!("skipped: {test}: the temporary directory is not on ext4 or XFS");
    }
    is_possible
}

fn executable(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("a program");
    set_executable(path);
}

fn set_executable(path: &Path) {
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, mode).expect("its mode");
}

/// A command that the rules select.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.gid(GID).stdin(Stdio::null());
    command
}

fn run(program: &Path, argument: &str) {
    let status = command(program).arg(argument).status();
    assert!(status.expect("it runs").success(), "{}", program.display());
}

/// sha256sum(1) of a file, or of bytes.
fn sha256sum(path: &Path) -> String {
    let path = path.canonicalize().expect("a path");
    let (text, _) = programs::output_of(Command::new("sha256sum").arg(path));
    text.split(' ').next().expect("a digest").to_owned()
}

fn sha256sum_of(bytes: &[u8]) -> String {
    let mut command = Command::new("sha256sum");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("sha256sum(1)");
    let mut pipe = child.stdin.take().expect("a pipe");
    pipe.write_all(bytes).expect("it reads");
    drop(pipe);
    let output = child.wait_with_output().expect("its output");
    let text = String::from_utf8(output.stdout).expect("text");
    text.split(' ').next().expect("a digest").to_owned()
}

/// The hashes of each event, by the last argument of the execve.
fn hashes(log: &Path) -> HashMap<String, Vec<Value>> {
    let text = std::fs::read_to_string(log).expect("the log");
    let events = text.lines().map(|line| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let records = event["records"].as_array().expect("records").clone();
        let argv = records.iter().find(|record| record["type"] == "EXECVE");
        let last = argv.and_then(|record| record["argv"].as_array()?.last()?.as_str());
        let hashes = event["hashes"].as_array().cloned().unwrap_or_default();
        (last.unwrap_or_default().to_owned(), hashes)
    });
    events.collect()
}

/// Number of runs whose event has a digest of the file number `place`, which has to be right. What was run is given by the
/// name of the run. Some runs have to lack the digest, for a reason.
fn right_digests<Ran: std::fmt::Debug>(
    log: &Path,
    place: usize,
    runs: &BTreeMap<String, Ran>,
    mut is_right: impl FnMut(&Ran, &str) -> bool,
) -> u32 {
    let mut told = hashes(log);
    let (mut right, mut missing) = (0, BTreeMap::<String, u32>::new());
    for (name, ran) in runs {
        let found = told.remove(name).expect("its event");
        if let Some(digest) = found[place]["sha256"].as_str() {
            assert!(is_right(ran, digest), "{name} was {ran:?}: {found:?}");
            right += 1;
        } else {
            let why = found[place]["why"].as_str().expect("a reason");
            *missing.entry(why.to_owned()).or_default() += 1;
        }
    }
    println!(
        "{} runs: {right} right digests, missing {missing:?}",
        runs.len()
    );
    assert!(!missing.is_empty(), "a digest for each run");
    right
}

/// Runs a program until the digest of its file number `place` is told. Each digest that is told has to be `expected`.
fn is_told(daemon: &Daemon, log: &Path, program: &Path, place: usize, expected: &str) {
    let end = Instant::now() + PATIENCE;
    for round in 0.. {
        let name = format!("{}-{place}-{round}", program.display());
        run(program, &name);
        daemon.wait_for_record(&format!("{name}\"]"));
        let found = hashes(log).remove(&name).expect("the event");
        match found[place]["sha256"].as_str() {
            Some(digest) => return assert_eq!(digest, expected, "{name}"),
            None => assert!(found[place]["why"].is_string(), "{found:?}"),
        }
        assert!(Instant::now() < end, "no digest: {found:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn digests_of_programs_and_scripts_are_those_of_sha256sum() {
    machine::test("digests", |setup| {
        if !is_possible(setup, "digests") {
            return;
        }
        let bin = setup.path("bin");
        std::fs::create_dir(&bin).expect("a directory");
        let (program, script) = (bin.join("program"), bin.join("script"));
        std::fs::copy("/bin/true", &program).expect("a copy");
        executable(&script, b"#!/bin/sh -e\nexit 0\n");
        let daemon = json(setup, "");
        let log = setup.path("audit.log");
        for program in [Path::new("/bin/true"), &program] {
            is_told(&daemon, &log, program, 0, &sha256sum(program));
        }
        is_told(&daemon, &log, &script, 0, &sha256sum(Path::new("/bin/sh")));
        is_told(&daemon, &log, &script, 1, &sha256sum(&script));
        // Through a link, whose own changes count, too.
        let link = bin.join("link");
        std::os::unix::fs::symlink("script", &link).expect("a link");
        is_told(&daemon, &log, &link, 1, &sha256sum(&script));
        let ended = daemon.stop();
        let told = hashes(&ended.log);
        let all: Vec<_> = told.values().flatten().collect();
        let script = script.to_str().expect("text");
        assert!(all.iter().any(|hash| hash["path"] == script), "{all:?}");
        // What the helper reads is nobody's business.
        let text = std::fs::read_to_string(&ended.log).expect("the log");
        assert!(!text.contains("\"key\":\"helper\""), "{text}");
    });
}

#[test]
fn auditds_format_has_digests_only_if_asked_and_raw_never() {
    machine::test("digests in ENRICHED", |setup| {
        let program = Path::new("/bin/true");
        let expected = sha256sum(program);
        let daemon = tarsier(setup, "").format("enriched").start();
        let rounds = ["", "exe_hash = sha256\n", "exe_hash = none\n"];
        for (round, lines) in rounds.iter().enumerate() {
            configure(setup, lines);
            daemon.signal(Signal::HUP);
            wait_for_reload(setup, round + 1);
            assert_eq!(helper_of(&daemon).is_some(), round == 1, "{lines}");
            for time in 0..3 {
                let name = format!("round-{round}-{time}");
                run(program, &name);
                daemon.wait_for_record(&name);
            }
        }
        let ended = daemon.stop();
        let text = std::fs::read_to_string(&ended.log).expect("the log");
        let calls = log::calls(&text);
        let told = calls.iter().map(|call| call.contains(" EXE_SHA256="));
        let expected_told: Vec<bool> = (0..9).map(|at| (3..6).contains(&at)).collect();
        assert_eq!(told.collect::<Vec<_>>(), expected_told, "{text}");
        let field = format!(" EXE_SHA256=\"{expected}\"");
        assert!(calls[5].ends_with(&field), "{}", calls[5]);
        let raw = tarsier(setup, "exe_hash = sha256\n").format("raw").start();
        run(program, "in-raw");
        raw.wait_for_record("in-raw");
        assert!(raw.has_said("exe_hash has no effect"));
        assert!(helper_of(&raw).is_none());
        raw.stop();
    });
}

/// Waits until the log reports this number of configuration reloads.
fn wait_for_reload(setup: &Setup, count: usize) {
    let end = Instant::now() + PATIENCE;
    while setup.read("audit.log").matches("op=reconfigure").count() < count {
        assert!(Instant::now() < end, "no reload");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The process that hashes for a daemon.
fn helper_of(daemon: &Daemon) -> Option<Pid> {
    let pid = daemon.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.expect("its children");
    let is_helper = |child: &&str| {
        let name = std::fs::read_to_string(format!("/proc/{child}/cmdline"));
        name.is_ok_and(|name| name.ends_with("lookup-helper\0hashes\0"))
    };
    let helper = children.split_whitespace().find(is_helper)?;
    Pid::from_raw(helper.parse().ok()?)
}

#[test]
fn a_missing_digest_has_its_reason() {
    machine::test("missing digests", |setup| {
        if !is_possible(setup, "missing digests") {
            return;
        }
        let (big, new) = (setup.path("big"), setup.path("new"));
        let program = std::fs::read("/bin/true").expect("a program");
        let padding = vec![0; 3 << 20];
        executable(&big, &[&program[..], &padding].concat());
        let daemon = json(setup, "exe_hash_max = 2\n");
        let memory = Path::new("/dev/shm").join(format!("tarsier-test-{}", std::process::id()));
        std::fs::copy("/bin/true", &memory).expect("a copy");
        let log = setup.path("audit.log");
        let why = |program: &Path, name: &str| {
            run(program, name);
            daemon.wait_for_record(&format!("{name}\"]"));
            let found = hashes(&log).remove(name).expect("the event");
            found[0]["why"].as_str().unwrap_or("there").to_owned()
        };
        let end = Instant::now() + PATIENCE;
        let in_memory = why(&memory, "in-memory");
        std::fs::remove_file(&memory).expect("it is there");
        assert_eq!(in_memory, "file-system");
        for round in 0.. {
            executable(&new, &program);
            match why(&new, &format!("just-made-{round}")).as_str() {
                "recent" => break,
                // On a busy machine.
                other => assert_eq!(other, "there"),
            }
            assert!(Instant::now() < end);
        }
        for round in 0.. {
            match why(&big, &format!("large-{round}")).as_str() {
                "too-big" => break,
                other => assert_eq!(other, "recent"),
            }
            assert!(Instant::now() < end);
        }
        // A helper that does not answer costs a digest and its deadline, but no event.
        let helper = helper_of(&daemon).expect("a helper");
        rustix::process::kill_process(helper, Signal::STOP).expect("the signal is sent");
        let begin = Instant::now();
        assert_eq!(why(Path::new("/bin/true"), "stopped"), "unanswered");
        println!("without an answer: {:?}", begin.elapsed());
        let expected = sha256sum(Path::new("/bin/true"));
        is_told(&daemon, &log, Path::new("/bin/true"), 0, &expected);
        let another = helper_of(&daemon).expect("a helper");
        assert_ne!(another, helper);
        rustix::process::kill_process(another, Signal::KILL).expect("the signal is sent");
        is_told(&daemon, &log, Path::new("/bin/true"), 0, &expected);
        daemon.stop();
    });
}

/// Programs that are replaced while they are run. Each is a shell whose file ends in a version.
struct Replaced<'a> {
    dir: &'a Path,
    shell: Vec<u8>,
    replacements: AtomicUsize,
    is_over: AtomicBool,
}

const PROGRAMS: usize = 60;
const VERSION_BYTES: usize = 16;
/// Pause after a replacement, so that some programs are left alone for long enough.
const PAUSE: Duration = Duration::from_millis(8);

impl Replaced<'_> {
    fn path(&self, number: usize) -> PathBuf {
        self.dir.join(format!("program-{number}"))
    }

    fn contents(&self, version: &str) -> Vec<u8> {
        [&self.shell[..], version.as_bytes()].concat()
    }

    /// Replaces programs, by renaming or in place, until there were `count` replacements.
    fn replace(&self, in_place: bool, count: usize) {
        let mut number = usize::from(in_place);
        while self.replacements.load(Ordering::Relaxed) < count {
            let version = self.replacements.load(Ordering::Relaxed);
            let version = format!("v{}{version:014}", u8::from(in_place));
            // Each thread has its own order, and both replace every program.
            number = (number + if in_place { 7 } else { 11 }) % PROGRAMS;
            let (path, contents) = (self.path(number), self.contents(&version));
            if in_place {
                // Refused while it runs, and then another is tried.
                if std::fs::write(&path, contents).is_err() {
                    continue;
                }
            } else {
                let new = self.dir.join("new");
                executable(&new, &contents);
                std::fs::rename(new, path).expect("the program is replaced");
            }
            self.replacements.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(PAUSE);
        }
    }

    /// Runs programs until nothing is replaced any more. Returns the version that each run had, as read from its own
    /// file while it ran, which nobody can write meanwhile.
    fn run(&self, runner: usize) -> BTreeMap<String, String> {
        let (mut versions, mut number) = (BTreeMap::new(), runner);
        while !self.is_over.load(Ordering::Relaxed) {
            number = (number + 1 + runner) % PROGRAMS;
            let name = format!("run-{runner}-{}", versions.len());
            let mut program = command(&self.path(number));
            let script = format!("/usr/bin/tail -c {VERSION_BYTES} /proc/$$/exe; exit 0");
            let output = program.args(["-c", &script, &name]).stderr(Stdio::null());
            // It may just be written.
            let Ok(output) = output.output() else {
                continue;
            };
            let version = String::from_utf8_lossy(&output.stdout).into_owned();
            if version.len() == VERSION_BYTES && version.starts_with('v') {
                versions.insert(name, version);
            }
        }
        versions
    }
}

#[test]
fn no_digest_of_a_replaced_program_is_that_of_another_version() {
    machine::test("digests of replaced programs", |setup| {
        if !is_possible(setup, "digests of replaced programs") {
            return;
        }
        let count = std::env::var("TARSIER_HASH_REPLACEMENTS");
        let count = count.map_or(1000, |text| text.parse().expect("a number"));
        let dir = setup.path("replaced");
        std::fs::create_dir(&dir).expect("a directory");
        let replaced = Replaced {
            dir: &dir,
            shell: std::fs::read("/bin/sh").expect("a shell"),
            replacements: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        };
        for number in 0..PROGRAMS {
            executable(
                &replaced.path(number),
                &replaced.contents("v-the-first-one-"),
            );
        }
        let daemon = json(setup, "");
        let replaced = &replaced;
        let versions = std::thread::scope(|scope| {
            let runners = [0, 1].map(|runner| scope.spawn(move || replaced.run(runner)));
            let replacers = [false, true]
                .map(|in_place| scope.spawn(move || replaced.replace(in_place, count)));
            for replacer in replacers {
                replacer.join().expect("a replacer");
            }
            replaced.is_over.store(true, Ordering::Relaxed);
            let mut versions = BTreeMap::new();
            for runner in runners {
                versions.extend(runner.join().expect("a runner"));
            }
            versions
        });
        // After all others, so that everything has been recorded.
        run(Path::new("/bin/true"), "the-last");
        daemon.wait_for_record("the-last\"]");
        let status = daemon.status();
        assert_eq!(status["helpers_replaced"], 0, "{status}");
        let mut digests: HashMap<String, String> = HashMap::new();
        let right = right_digests(&daemon.stop().log, 0, &versions, |version, digest| {
            let expected = digests.entry(version.clone());
            expected.or_insert_with(|| sha256sum_of(&replaced.contents(version))) == digest
        });
        assert!(right > 10, "{right}");
    });
}

/// A script that is replaced while it is run, in a directory of its own.
struct ReplacedScript {
    path: PathBuf,
    /// Texts of all versions, in the order of their installation, which follows.
    versions: Mutex<Vec<String>>,
    installed: AtomicUsize,
}

const SCRIPTS: usize = 6;
/// Time for which a script is left alone: its digest is told at the end of it.
const SCRIPT_PAUSE: Duration = Duration::from_millis(3200);

impl ReplacedScript {
    fn new(dir: &Path, number: usize) -> ReplacedScript {
        let dir = dir.join(number.to_string());
        std::fs::create_dir(&dir).expect("a directory");
        let script = ReplacedScript {
            path: dir.join("script"),
            versions: Mutex::default(),
            installed: AtomicUsize::new(0),
        };
        script.replace();
        script
    }

    /// Replaces the script, by renaming and in place by turns.
    fn replace(&self) {
        let count = self.installed.load(Ordering::SeqCst);
        let text = format!("#!/bin/sh\n: {count} of {}\n", self.path.display());
        self.versions.lock().expect("texts").push(text.clone());
        let path = match count % 2 {
            0 => self.path.with_file_name("new"),
            _ => self.path.clone(),
        };
        // Refused while the kernel looks at it.
        while std::fs::write(&path, &text).is_err() {}
        set_executable(&path);
        if count.is_multiple_of(2) {
            std::fs::rename(path, &self.path).expect("the script is replaced");
        }
        self.installed.fetch_add(1, Ordering::SeqCst);
    }

    /// Runs the script, if it is not just written. Returns the versions of which one ran.
    fn run(&self, name: &str) -> Option<Vec<String>> {
        let from = self.installed.load(Ordering::SeqCst) - 1;
        let status = command(&self.path).arg(name).status();
        let is_run = status.is_ok_and(|status| status.success());
        let versions = self.versions.lock().expect("texts");
        is_run.then(|| versions[from..].to_vec())
    }
}

#[test]
fn no_digest_of_a_replaced_script_is_that_of_another_version() {
    machine::test("digests of replaced scripts", |setup| {
        if !is_possible(setup, "digests of replaced scripts") {
            return;
        }
        // Not in /tmp, whose changes count, too.
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let scripts: Vec<_> = (0..SCRIPTS)
            .map(|number| ReplacedScript::new(dir.path(), number))
            .collect();
        let daemon = json(setup, "");
        let is_over = AtomicBool::new(false);
        let runs = std::thread::scope(|scope| {
            let runner = scope.spawn(|| {
                let mut runs = BTreeMap::new();
                while !is_over.load(Ordering::Relaxed) {
                    for script in &scripts {
                        let name = format!("run-{}", runs.len());
                        if let Some(versions) = script.run(&name) {
                            runs.insert(name, versions);
                        }
                    }
                    std::thread::sleep(PAUSE);
                }
                runs
            });
            for _ in 0..7 {
                for script in &scripts {
                    script.replace();
                    std::thread::sleep(SCRIPT_PAUSE / SCRIPTS as u32);
                }
            }
            is_over.store(true, Ordering::Relaxed);
            runner.join().expect("the runner")
        });
        run(Path::new("/bin/true"), "the-last");
        daemon.wait_for_record("the-last\"]");
        let mut digests: HashMap<String, String> = HashMap::new();
        let right = right_digests(&daemon.stop().log, 1, &runs, |versions, digest| {
            versions.iter().any(|version| {
                let of = digests.entry(version.clone());
                of.or_insert_with(|| sha256sum_of(version.as_bytes())) == digest
            })
        });
        assert!(right > 0, "{right}");
    });
}
