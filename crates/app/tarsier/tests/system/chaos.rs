//! Everything that can happen to a daemon, in random order, while a known number of calls is made.
//!
//! A run is a series of lives of a daemon. Each life has steps in random order: bursts of calls,
//! reloads of varying configurations, rotations, a disk that is full for a while, rotations on it,
//! plugins that are stuck or killed, a daemon that is stopped for a while. A life ends in order,
//! and then every call is in the log or counted as lost; or it ends by SIGKILL, which loses what
//! was in the rings, and the next life reports that. At the end ausearch and `tarsier verify` read
//! what is left.
//!
//! `TARSIER_CHAOS_SECONDS` makes the run longer; `TARSIER_CHAOS_SEED` repeats one.

use crate::daemon::{Daemon, Setup};
use crate::{machine, programs};
use rustix::process::{Pid, Signal};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest time to wait for anything.
const PATIENCE: Duration = Duration::from_secs(600);
const GROUP: u32 = 61237;
const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61237 -k chaos\n";
/// Size of the file system of the log.
const DISK_MIB: u64 = 64;
/// Limit of the daemon's anonymous memory: buffers of the log and of plugins, each bounded.
const MEMORY_KIB_MAX: u64 = 96 * 1024;
const STEPS: u32 = 6;
/// Number of calls whose events do not fit in the log's buffer in memory.
const CALLS_OF_FULL_DISK: u64 = 12_000;
/// Limit of lives on one log that end by SIGKILL: the disk is small.
const KILLS_MAX: u32 = 2;

/// xorshift64*: only the order of steps is random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}

/// A file system for the log, unmounted at the end.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf) -> Disk {
        std::fs::create_dir(&path).expect("a directory");
        let size = std::ffi::CString::new(format!("size={DISK_MIB}m,mode=0700")).expect("no NUL");
        let flags = rustix::mount::MountFlags::empty();
        rustix::mount::mount("none", &path, "tmpfs", flags, &*size).expect("a tmpfs");
        Disk(path)
    }

    /// Fills the disk for as long as the returned file exists.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = std::fs::File::create(&path).expect("a file");
        while file.write(&[0; 65536]).is_ok_and(|count| count > 0) {}
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let flags = rustix::mount::UnmountFlags::DETACH;
        let _ = rustix::mount::unmount(&self.0, flags);
    }
}

fn plugin(setup: &Setup, name: &str, script: &str) {
    let script = setup.write(&format!("{name}.sh"), &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o750)).expect("its mode");
    std::fs::create_dir_all(setup.path("plugins.d")).expect("a directory");
    let text = format!("active = yes\npath = {}\n", script.display());
    let conf = setup.write(&format!("plugins.d/{name}.conf"), &text);
    std::fs::set_permissions(&conf, PermissionsExt::from_mode(0o640)).expect("its mode");
}

/// Writes a random configuration; the threads are the same in all.
fn configure(setup: &Setup, random: &mut Random) {
    let flush = ["SYNC", "DATA", "INCREMENTAL_ASYNC"][random.below(3) as usize];
    let overload = ["THROTTLE", "DROP"][random.below(2) as usize];
    let depth = [20, 2000, 50_000][random.below(3) as usize];
    setup.configure(&format!(
        "flush = {flush}\nfreq = 50\noverload = {overload}\nq_depth = {depth}\nseal = yes\n\
         max_log_file = 4\nmax_log_file_action = KEEP_LOGS\ndisk_full_action = SYSLOG\n\
         max_restarts = 1000000\nspace_left = 2\nadmin_space_left = 1\n"
    ));
}

/// One life of a daemon.
struct Life<'s> {
    setup: &'s Setup,
    disk: &'s Disk,
    daemon: Daemon,
    made: u64,
}

impl Life<'_> {
    fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    fn calls(&mut self, random: &mut Random) {
        let count = 1 + random.below(4_000);
        self.calls_of(count, random);
    }

    fn calls_of(&mut self, count: u64, random: &mut Random) {
        let threads = 1 + random.below(4);
        let mut command = Command::new(programs::workload());
        command.args(["--mark", &GROUP.to_string(), "--count", &count.to_string()]);
        programs::output_of(command.args(["--threads", &threads.to_string(), "getppid"]));
        self.made += count;
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(7) {
            0 => {
                configure(self.setup, random);
                self.daemon.signal(Signal::HUP);
            }
            1 => self.daemon.signal(Signal::USR1),
            2 => {
                let filler = self.disk.fill();
                if random.below(2) == 0 {
                    self.daemon.signal(Signal::USR1);
                }
                self.calls_of(CALLS_OF_FULL_DISK, random);
                std::fs::remove_file(filler).expect("the filler goes");
                self.daemon.signal(Signal::USR2);
            }
            3 => {
                self.daemon.signal(Signal::STOP);
                self.calls(random);
                self.daemon.signal(Signal::CONT);
            }
            4 => {
                for pid in children(&self.daemon) {
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
            }
            _ => {}
        }
        self.calls(random);
    }

    /// Number of descriptors and threads, which must not grow. Checks that memory stays below its
    /// limit.
    fn resources(&self) -> (usize, usize) {
        // The answer comes after the daemon has finished earlier work.
        self.daemon.status();
        let count = |name: &str| {
            let path = format!("/proc/{}/{name}", self.pid());
            std::fs::read_dir(path).expect("its directory").count()
        };
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("its status");
        let anonymous = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = anonymous.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
        let kib = kib.expect("RssAnon");
        assert!(kib < MEMORY_KIB_MAX, "{kib} KiB of anonymous memory");
        (count("fd"), count("task"))
    }
}

/// Waits until `life` has these numbers of descriptors and threads again: killed plugins are
/// restarted, and a rotated file is synced and closed.
fn settles(life: &Life<'_>, resources: (usize, usize)) {
    let end = Instant::now() + PATIENCE;
    loop {
        let now = life.resources();
        if now == resources {
            return;
        }
        assert!(
            Instant::now() < end,
            "{now:?} descriptors and threads, were {resources:?}"
        );
    }
}

/// The daemon's plugins and look-up helpers, and one of the two processes that start them: without both nothing is
/// started any more, which `confinement::both_spawners…` tries. The daemon says which the other one is: a program that
/// a spawner is about to start looks like a spawner.
fn children(daemon: &Daemon) -> Vec<Pid> {
    let spawners = &daemon.status()["spawner"];
    let standby = spawners["standby"].as_i64();
    let left = standby.or(spawners["pid"].as_i64()).expect("a spawner");
    let pid = daemon.pid();
    let list = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
    let pids = pids.filter(|&pid: &i32| i64::from(pid) != left);
    pids.filter_map(Pid::from_raw).collect()
}

/// The log's files, oldest first.
fn logs(disk: &Disk) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&disk.0).expect("the disk") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let number = match name.strip_prefix("audit.log") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('.').and_then(|n| n.parse::<u32>().ok()),
            None => None,
        };
        found.extend(number.map(|number| (number, path)));
    }
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Number of events of the rule in the log.
fn recorded(disk: &Disk) -> u64 {
    let count = |path: &PathBuf| {
        let text = std::fs::read(path).expect("a log");
        let lines = text.split(|&byte| byte == b'\n');
        lines
            .filter(|line| line.starts_with(b"type=SYSCALL ") && line.ends_with(b"key=\"chaos\""))
            .count() as u64
    };
    logs(disk).iter().map(count).sum()
}

/// Number of events of the rule that the daemon reported as lost when it ended.
fn lost(said: &str) -> u64 {
    let lines = said
        .lines()
        .filter_map(|line| line.strip_prefix("tarsier: lost "));
    let counts = lines.filter_map(|line| line.split_once(": "));
    let of_rule = counts.filter(|(_, cause)| *cause != "log_other");
    of_rule
        .map(|(count, _)| count.parse::<u64>().expect("a number"))
        .sum()
}

/// Checks that `tarsier verify` and, if available, ausearch accept the log.
fn check_log(disk: &Disk, key: &Path) {
    let mut verify = Command::new(programs::tarsier());
    verify
        .arg("verify")
        .arg("--key")
        .arg(key)
        .arg(disk.0.join("audit.log"));
    let output = verify.output().expect("tarsier verify runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let Some(root) = testkit::peers("ausearch on the log of chaos") else {
        return;
    };
    let libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    let libraries = libraries
        .map(|dir| root.join(dir).display().to_string())
        .join(":");
    let mut found = 0;
    for path in logs(disk) {
        let mut ausearch = Command::new(root.join("sbin/ausearch"));
        ausearch
            .env("LD_LIBRARY_PATH", &libraries)
            .args(["-k", "chaos", "--raw", "-if"]);
        let output = ausearch.arg(&path).output().expect("ausearch runs");
        let lines = output.stdout.split(|&byte| byte == b'\n');
        found += lines
            .filter(|line| line.starts_with(b"type=SYSCALL "))
            .count() as u64;
    }
    assert_eq!(found, recorded(disk), "what ausearch finds");
}

/// Creates keys, and removes what an earlier life has left: the disk is small.
fn new_log(setup: &Setup, disk: &Disk, number: u32) -> PathBuf {
    for entry in std::fs::read_dir(&disk.0).expect("the disk") {
        std::fs::remove_file(entry.expect("an entry").path()).expect("it goes");
    }
    let key = setup.path(&format!("key-{number}"));
    let mut init = Command::new(programs::tarsier());
    init.args(["seal", "init", "--log-file"])
        .arg(disk.0.join("audit.log"));
    programs::output_of(init.arg("--key").arg(&key).arg("--on-disk"));
    key
}

fn start(setup: &Setup, disk: &Disk, random: &mut Random) -> Daemon {
    let run = setup
        .tarsier(RULE)
        .format("raw")
        .option("--no-kernel-records");
    configure(setup, random);
    run.log(disk.0.join("audit.log")).ring_kib(256).start()
}

/// Several lives on one log: any number that are killed, and one that ends in order.
fn lives(setup: &Setup, disk: &Disk, random: &mut Random, number: u32) {
    let key = new_log(setup, disk, number);
    for killed in 0.. {
        let daemon = start(setup, disk, random);
        // Not counting what a kill has torn.
        let before = recorded(disk);
        let mut life = Life {
            setup,
            disk,
            daemon,
            made: 0,
        };
        let resources = life.resources();
        for _ in 0..STEPS {
            life.step(random);
        }
        if killed < KILLS_MAX && random.below(3) == 0 {
            life.daemon.signal(Signal::KILL);
            let made = life.made;
            life.daemon.wait();
            let recorded = recorded(disk) - before;
            assert!(recorded <= made, "{recorded} of {made}");
            continue;
        }
        settles(&life, resources);
        let made = life.made;
        let ended = life.daemon.stop();
        assert!(ended.status.success(), "{}", ended.said);
        let recorded = recorded(disk) - before;
        assert_eq!(
            recorded + lost(&ended.said),
            made,
            "{recorded} recorded; {}",
            ended.said
        );
        println!("{made} made, {recorded} recorded, {} lost", made - recorded);
        return check_log(disk, &key);
    }
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn whatever_happens_made_is_recorded_and_lost_and_the_log_is_accepted() {
    machine::test("chaos", |setup| {
        let seconds = number_in("TARSIER_CHAOS_SECONDS").unwrap_or(10);
        let seed = number_in("TARSIER_CHAOS_SEED").unwrap_or_else(|| u64::from(std::process::id()));
        println!("TARSIER_CHAOS_SEED={seed}");
        let mut random = Random(seed.max(1));
        let disk = Disk::mount(setup.path("disk"));
        let log = disk.0.join("audit.log");
        plugin(setup, "well", "exec cat >/dev/null");
        plugin(setup, "stuck", "exec sleep 100000");
        let end = Instant::now() + Duration::from_secs(seconds);
        let mut number = 0;
        while number == 0 || Instant::now() < end {
            number += 1;
            lives(setup, &disk, &mut random, number);
        }
        assert!(log.exists());
    });
}
