//! Workloads of events: the cgroup's path, however short the lives of the cgroup and its processes.

use crate::daemon::{Daemon, Run, Setup};
use crate::{log, machine, survival};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const GID: libc::gid_t = 61333;
const RULES: &str = "-a always,exit -F arch=b64 -S fchmodat -F gid=61333 -k identity\n\
                     -a always,exit -F arch=b64 -S chmod -F gid=61333 -k identity\n";
/// Rings in which nothing is lost while the daemon reads.
const RING_KIB: u32 = 65536;

/// A cgroup below the root of cgroup2; removed when dropped, with all that is in it.
pub(crate) struct Top {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
}

impl Top {
    /// `None`, which is printed, if cgroup2 is not mounted here or cannot be changed.
    pub(crate) fn new(test: &str) -> Option<Top> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").expect("the mounts");
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let root = mounts.find_map(|mut line| {
            let (place, kind) = (line.nth(1)?, line.next()?);
            (kind == "cgroup2").then(|| place.to_owned())
        });
        let name = format!("tarsier-test-{}.slice", std::process::id());
        let path = Path::new(&root.unwrap_or_default()).join(&name);
        match std::fs::create_dir(&path) {
            Ok(()) => Some(Top { path, name }),
            Err(error) => {
                println!("skipped: {test}: no cgroup2 to change: {error}");
                None
            }
        }
    }

    /// Makes a cgroup. Returns a file that a process writes 0 to when it moves there.
    pub(crate) fn make(&self, name: &str) -> File {
        let dir = self.path.join(name);
        std::fs::create_dir(&dir).expect("a cgroup");
        let procs = dir.join("cgroup.procs");
        let file = File::options().write(true).open(procs);
        file.expect("its processes")
    }

    pub(crate) fn remove(&self, name: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        // Newer kernels take a task out of its cgroup a moment after its parent has seen its end.
        while let Err(error) = std::fs::remove_dir(self.path.join(name)) {
            let is_busy = error.raw_os_error() == Some(libc::EBUSY);
            assert!(is_busy && Instant::now() < end, "{name}: {error}");
        }
    }

    /// The path of a cgroup, as events have it.
    fn told(&self, name: &str) -> String {
        format!("/{}/{name}", self.name)
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        // cgroup2 removes no files, and nothing that is not empty: the deepest come first.
        let mut dirs = vec![self.path.clone()];
        let mut at = 0;
        while let Some(dir) = dirs.get(at) {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            let below: Vec<PathBuf> = entries
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path())
                .collect();
            dirs.extend(below);
            at += 1;
        }
        for dir in dirs.iter().rev() {
            let _ = std::fs::remove_dir(dir);
        }
    }
}

/// Runs a process that moves to a cgroup, makes one call on a path with this name, and ends: well under 1 ms.
fn begin(procs: &File, name: &str) -> libc::pid_t {
    let path = CString::new(format!("/no/such/{name}")).expect("a path");
    // SAFETY: after fork, the child makes system calls only.
    unsafe {
        match libc::fork() {
            0 => {
                let moved = libc::write(procs.as_raw_fd(), c"0".as_ptr().cast(), 1) == 1;
                let is_ready = moved && libc::syscall(libc::SYS_setresgid, GID, GID, GID) == 0;
                libc::syscall(libc::SYS_fchmodat, libc::AT_FDCWD, path.as_ptr(), 0o600);
                libc::_exit(i32::from(!is_ready))
            }
            pid => pid,
        }
    }
}

pub(crate) fn wait(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: the status is written to a variable of ours.
    let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
    assert_eq!((waited, status), (pid, 0), "a process in its cgroup");
}

pub(crate) fn run(procs: &File, name: &str) {
    wait(begin(procs, name));
}

fn tarsier(setup: &Setup) -> Run {
    let run = setup.tarsier(RULES).format("json").ring_kib(RING_KIB);
    run.option("--no-kernel-records")
}

/// The name that the call used, and the workload, of each event of the test's processes.
pub(crate) fn events(log: &Path) -> Vec<(String, Value)> {
    let lines = BufReader::new(File::open(log).expect("the log")).lines();
    let event = |line: std::io::Result<String>| {
        let event: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let records = event["records"].as_array().expect("records");
        let path = records.iter().find(|record| record["type"] == "PATH")?;
        let name = path["name"].as_str()?.strip_prefix("/no/such/")?;
        Some((name.to_owned(), event["workload"].clone()))
    };
    lines.filter_map(event).collect()
}

/// Checks that each call was recorded once, in the cgroup `expected` for its name.
fn are_told(log: &Path, expected: &BTreeMap<String, Option<String>>) {
    let events = events(log);
    assert_eq!(events.len(), expected.len(), "events");
    for (name, workload) in events {
        let told = workload["cgroup"].as_str().map(str::to_owned);
        assert_eq!(Some(&told), expected.get(&name), "{name}: {workload}");
    }
}

/// Results of a program that reads the log and then /proc, as other tools do.
#[derive(Default)]
struct Usual {
    right: usize,
    missed: usize,
}

fn ask_as_usual(log: &Path, is_over: &AtomicBool) -> Usual {
    let mut log = BufReader::new(File::open(log).expect("the log"));
    let (mut usual, mut line) = (Usual::default(), String::new());
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        if log.read_line(&mut line).expect("a line") == 0 {
            if was_over {
                return usual;
            }
            std::thread::yield_now();
            continue;
        }
        if line.ends_with('\n') {
            let event: Value = serde_json::from_str(&line).expect("JSON");
            let call = event["records"][0].clone();
            if call["type"] == "SYSCALL" {
                let path = format!("/proc/{}/cgroup", call["pid"]);
                let found = std::fs::read_to_string(path).unwrap_or_default();
                let found = found.lines().find_map(|line| line.strip_prefix("0::"));
                if found == event["workload"]["cgroup"].as_str() {
                    usual.right += 1
                } else {
                    usual.missed += 1
                }
            }
            line.clear();
        }
    }
}

#[test]
fn ten_thousand_short_processes_in_cgroups_that_are_gone_are_told_apart() {
    machine::test("short processes in short cgroups", |setup| {
        let Some(top) = Top::new("short processes in short cgroups") else {
            return;
        };
        let daemon = tarsier(setup).start();
        let is_over = Arc::new(AtomicBool::new(false));
        let (log, over) = (setup.path("audit.log"), Arc::clone(&is_over));
        let usual = std::thread::spawn(move || ask_as_usual(&log, &over));
        let mut expected = BTreeMap::new();
        for unit in 0..100 {
            let unit = format!("unit-{unit}.service");
            let procs = top.make(&unit);
            for process in 0..100 {
                let name = format!("{unit}-{process}");
                run(&procs, &name);
                expected.insert(name, Some(top.told(&unit)));
            }
            drop(procs);
            top.remove(&unit);
        }
        let status = daemon.status();
        assert_eq!(status["cgroups_lost"], 0);
        let ended = daemon.stop();
        is_over.store(true, Ordering::Release);
        let usual = usual.join().expect("the reader");
        are_told(&ended.log, &expected);
        let Usual { right, missed } = usual;
        println!("10000 of 10000 told; who reads /proc after the log: {right}, missed {missed}");
        let (name, workload) = &events(&ended.log)[0];
        assert_eq!(workload["unit"], name[..name.len() - 2], "{workload}");
        assert_eq!(workload["slice"], *top.name, "{workload}");
    });
}

#[test]
fn a_unit_that_is_started_a_thousand_times_is_itself_each_time() {
    machine::test("a unit that is started often", |setup| {
        let Some(top) = Top::new("a unit that is started often") else {
            return;
        };
        let daemon = tarsier(setup).start();
        let mut expected = BTreeMap::new();
        for start in 0..1000 {
            // Another cgroup with the same name, and one that takes its turn.
            let unit = ["web.service", "db.service"][start % 2];
            let procs = top.make(unit);
            let name = start.to_string();
            run(&procs, &name);
            expected.insert(name, Some(top.told(unit)));
            drop(procs);
            top.remove(unit);
        }
        are_told(&daemon.stop().log, &expected);
    });
}

#[test]
fn long_names_and_deep_cgroups_are_told_whole_and_none_is_renamed() {
    machine::test("long and deep cgroups", |setup| {
        let Some(top) = Top::new("long and deep cgroups") else {
            return;
        };
        let mut expected = BTreeMap::new();
        let mut name = "deep".to_owned();
        // Some are there before the daemon, and are found by their ids: the path is too long for one call.
        let mut daemon = None;
        let mut dir = File::open(&top.path).expect("the cgroup");
        let mut depth = 0;
        for depth_now in 1..=40 {
            depth = depth_now;
            if depth == 20 {
                daemon = Some(tarsier(setup).start());
            }
            name = match depth {
                1 => format!("{depth:0>250}"),
                _ => format!("{name}/{depth:0>250}"),
            };
            let below = format!("{depth:0>250}");
            rustix::fs::mkdirat(&dir, &*below, 0o755.into()).expect("a cgroup");
            let flags = rustix::fs::OFlags::DIRECTORY;
            let opened = rustix::fs::openat(&dir, &*below, flags, 0.into());
            dir = File::from(opened.expect("the cgroup"));
            if depth >= 20 {
                let flags = rustix::fs::OFlags::WRONLY;
                let procs = rustix::fs::openat(&dir, "cgroup.procs", flags, 0.into());
                run(
                    &File::from(procs.expect("its processes")),
                    &depth.to_string(),
                );
                expected.insert(depth.to_string(), Some(top.told(&name)));
            }
        }
        assert_eq!(depth, 40);
        // cgroup2 refuses renames, so that no path changes.
        drop(top.make("before"));
        let renamed = std::fs::rename(top.path.join("before"), top.path.join("after"));
        let error = renamed.expect_err("cgroup2 has no rename").raw_os_error();
        assert_eq!(error, Some(libc::EPERM));
        are_told(&daemon.expect("a daemon").stop().log, &expected);
        // Opened one by one, the deepest first: their paths are too long for Drop.
        drop(dir);
        remove_chain(&top.path, depth);
    });
}

/// Removes the cgroups in each other that the test has made, without their long paths.
fn remove_chain(top: &Path, depth: usize) {
    let name = |depth: usize| format!("{depth:0>250}");
    let mut dirs = vec![File::open(top).expect("the cgroup")];
    for depth in 1..depth {
        let flags = rustix::fs::OFlags::DIRECTORY;
        let dir = rustix::fs::openat(&dirs[depth - 1], name(depth), flags, 0.into());
        dirs.push(File::from(dir.expect("the cgroup")));
    }
    for depth in (1..=depth).rev() {
        let flags = rustix::fs::AtFlags::REMOVEDIR;
        let removed = rustix::fs::unlinkat(&dirs[depth - 1], name(depth), flags);
        removed.expect("an empty cgroup");
    }
}

#[test]
fn lost_word_of_cgroups_makes_them_unknown_or_found_never_wrong() {
    machine::test("lost frames of cgroups", |setup| {
        let Some(top) = Top::new("lost frames of cgroups") else {
            return;
        };
        let daemon = tarsier(setup).ring_kib(128).start();
        daemon.signal(Signal::STOP);
        for round in 0..3000 {
            let name = format!("fills-the-rings-{round}.service");
            drop(top.make(&name));
            top.remove(&name);
        }
        let procs = top.make("not-told.service");
        daemon.signal(Signal::CONT);
        let lost = wait_for_losses(&daemon);
        run(&procs, "after");
        let ended = daemon.stop();
        let told = Some(top.told("not-told.service"));
        are_told(&ended.log, &BTreeMap::from([("after".to_owned(), told)]));
        println!("{lost} of 6001 frames lost");
    });
}

fn wait_for_losses(daemon: &Daemon) -> u64 {
    let lost = daemon.status()["cgroups_lost"].as_u64();
    let lost = lost.expect("a number");
    assert!(lost > 0, "the rings had room for everything");
    lost
}

#[test]
fn pinned_capture_tells_cgroups_that_ended_without_a_daemon() {
    machine::test("cgroups without a daemon", |setup| {
        let Some(top) = Top::new("cgroups without a daemon") else {
            return;
        };
        let run_pinned = || {
            let run = tarsier(setup);
            run.option("--pin-dir").option(survival::pin_dir())
        };
        let old = top.make("old.service");
        let daemon = run_pinned().start();
        survival::kill(daemon);
        // One that the next daemon can learn only from its end, and one of which it has all frames.
        run(&old, "old");
        drop(old);
        top.remove("old.service");
        let new = top.make("new.service");
        run(&new, "new");
        drop(new);
        top.remove("new.service");
        let daemon = run_pinned().start();
        let expected = ["old", "new"].map(|name| {
            let told = top.told(&format!("{name}.service"));
            (name.to_owned(), Some(told))
        });
        are_told(&daemon.stop().log, &BTreeMap::from(expected));
    });
}

#[test]
fn auditds_format_tells_identity_only_if_asked() {
    machine::test("identity in ENRICHED", |setup| {
        let Some(top) = Top::new("identity in ENRICHED") else {
            return;
        };
        let log = setup.path("audit.log");
        let configure = |identity: &str| {
            setup.configure(&format!("flush = NONE\n{identity}"));
        };
        let daemon = setup.tarsier(RULES).format("enriched");
        let daemon = daemon.option("--no-kernel-records").start();
        let procs = top.make("app.service");
        for (round, identity) in ["", "identity = yes\n", "identity = no\n"]
            .iter()
            .enumerate()
        {
            configure(identity);
            daemon.signal(Signal::HUP);
            wait_for_reload(&log, round + 1);
            run(&procs, &format!("round-{round}"));
            daemon.wait_for_record(&format!("round-{round}"));
        }
        let ended = daemon.stop();
        let text = std::fs::read_to_string(&ended.log).expect("the log");
        let calls = log::calls(&text);
        let told = calls.iter().map(|call| call.contains(" UNIT="));
        assert_eq!(told.collect::<Vec<_>>(), [false, true, false], "{text}");
        let unit = " UNIT=\"app.service\" ANCESTORS=\"";
        assert!(calls[1].contains(unit), "{}", calls[1]);
    });
}

/// Waits until the log reports this number of configuration reloads.
fn wait_for_reload(log: &Path, count: usize) {
    let end = Instant::now() + Duration::from_secs(600);
    loop {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let reloads = text.lines().filter(|line| line.contains("op=reconfigure"));
        if reloads.count() >= count {
            return;
        }
        assert!(Instant::now() < end, "no reload: {text}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Directory of CRI-O's and Podman's files of a container, which ends with the test.
struct Bundle(PathBuf);

impl Bundle {
    /// Makes what is missing of the path to a container's directory.
    fn make(id: &str, text: &str) -> Bundle {
        let dir = Path::new("/run/containers/storage/overlay-containers").join(id);
        let missing = dir.ancestors().take_while(|dir| !dir.exists());
        let first = missing.last().expect("no such container").to_owned();
        std::fs::create_dir_all(dir.join("userdata")).expect("a directory");
        std::fs::write(dir.join("userdata/config.json"), text).expect("a file");
        Bundle(first)
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn containers_have_the_names_that_their_runtimes_files_had_when_they_began() {
    const NAMED: &str = "1e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55";
    const UNNAMED: &str = "2e84f70d4d5b0d5e0d9d4fa6cb21a4ab1cb8d1d1bd4d9f2c61d7eb9d3a0b7c55";
    const ANNOTATIONS: &str = r#"{"annotations":{"io.kubernetes.container.name":"web",
        "io.kubernetes.cri-o.ImageName":"quay.io/web:7","io.kubernetes.pod.name":"web-1",
        "io.kubernetes.pod.namespace":"shop"}}"#;
    machine::test("names of containers", |setup| {
        let Some(top) = Top::new("names of containers") else {
            return;
        };
        let daemon = tarsier(setup).start();
        let bundle = Bundle::make(NAMED, ANNOTATIONS);
        let scopes = [NAMED, UNNAMED].map(|id| format!("crio-{id}.scope"));
        let procs = scopes.each_ref().map(|scope| top.make(scope));
        let asked = || daemon.status()["containers_unnamed"] == 1;
        while !asked() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // The container's first call comes when its files are gone.
        drop(bundle);
        run(&procs[0], "named");
        run(&procs[1], "unnamed");
        drop(procs);
        scopes.iter().for_each(|scope| top.remove(scope));
        let ended = daemon.stop();
        let events: BTreeMap<String, Value> = events(&ended.log).into_iter().collect();
        let container = |name: &str| events[name]["container"].clone();
        let named = container("named");
        assert_eq!(named["name"], "web", "{named}");
        assert_eq!(named["image"], "quay.io/web:7");
        let unnamed = container("unnamed");
        assert_eq!(unnamed["id"], UNNAMED);
        assert_eq!(unnamed["name"], Value::Null);
        assert!(unnamed.get("image").is_some(), "{unnamed}");
    });
}
