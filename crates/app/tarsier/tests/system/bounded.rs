//! What one user does, however slow it is to look up, holds up neither events of others nor the end of the daemon.

use crate::calls::{call, Caller};
use crate::daemon::{Daemon, Setup};
use crate::machine;
use abi::exit::{EACCES, EPERM};
use rustix::fd::OwnedFd;
use rustix::fs::{mkdirat, openat, unlinkat, AtFlags, Mode, OFlags, XattrFlags, CWD};
use rustix::thread::{set_thread_res_uid, unshare_unsafe, UnshareFlags};
use std::io::Read;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Uids of slow users begin here.
const SLOW: u32 = 61_500;
/// The user whose events must not wait.
const OTHER: u32 = 61_249;
/// Seconds for which a hundred users are slow: 60 where there is time.
const SECONDS: &str = "TARSIER_SLOW_SECONDS";

fn open(dir: &OwnedFd, name: &str) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::empty()).expect("a directory")
}

/// A chain of directories, the last of which has a file `f`; removed when dropped.
struct Chain {
    top: PathBuf,
    name: String,
    depth: usize,
}

impl Chain {
    fn make(top: PathBuf, name: &str, depth: usize) -> Chain {
        std::fs::create_dir(&top).expect("a directory");
        let chain = Chain {
            top,
            name: name.to_owned(),
            depth,
        };
        let mut dir = chain.top();
        for _ in 0..depth {
            mkdirat(&dir, name, Mode::from_raw_mode(0o777)).expect("mkdir");
            dir = open(&dir, name);
        }
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = openat(&dir, "f", flags, Mode::empty()).expect("a file");
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o666)).expect("fchmod");
        chain
    }

    fn top(&self) -> OwnedFd {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, &self.top, flags, Mode::empty()).expect("the top")
    }

    /// The last directory.
    fn end(&self) -> OwnedFd {
        (0..self.depth).fold(self.top(), |dir, _| open(&dir, &self.name))
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let mut dir = self.end();
        let _ = unlinkat(&dir, "f", AtFlags::empty());
        for _ in 0..self.depth {
            dir = open(&dir, "..");
            let _ = unlinkat(&dir, &*self.name, AtFlags::REMOVEDIR);
        }
    }
}

/// Links of which each leads through a long way to the next, and the last one to a file.
fn make_links(dir: &Path) {
    let way = "./".repeat(1500);
    std::fs::write(dir.join("f"), "").expect("a file");
    for number in 0..30 {
        let next = match number {
            29 => "f".to_owned(),
            _ => format!("l{}", number + 1),
        };
        symlink(format!("{way}{next}"), dir.join(format!("l{number}"))).expect("a link");
    }
}

/// Tells users to end, also if a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes calls on `name` in `dir` as a user until `is_over`, with a pause after each, and counts them.
fn be_slow(
    uid: u32,
    (dir, name): (&OwnedFd, &str),
    pause: Duration,
    is_over: &AtomicBool,
    made: &AtomicU64,
) {
    // SAFETY: this thread only; the current directory is used by nothing else that it does.
    unsafe { unshare_unsafe(UnshareFlags::FS) }.expect("a current directory of its own");
    rustix::process::fchdir(dir).expect("the directory");
    // A user's processes have no more of the processors than the daemon: systemd's slices do this.
    let _ = rustix::process::setpriority_process(None, 19);
    let uid = rustix::process::Uid::from_raw(uid);
    set_thread_res_uid(uid, uid, uid).expect("the user");
    while !is_over.load(Ordering::Relaxed) {
        let _ = rustix::fs::setxattr(name, "user.slow", b"x", XattrFlags::empty());
        made.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(pause);
    }
}

fn watched(setup: &Setup) -> (PathBuf, String) {
    std::fs::set_permissions(setup.path(""), PermissionsExt::from_mode(0o755)).expect("chmod");
    let dir = setup.path("watched");
    std::fs::create_dir(&dir).expect("a directory");
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("chmod");
    let rule = format!("-w {} -p wa -k watched\n", dir.display());
    (dir, rule)
}

fn stops_in_time(daemon: Daemon) -> crate::daemon::Ended {
    let begin = Instant::now();
    let ended = daemon.stop();
    // The promise is 2 s; other tests may share the machine.
    let took = begin.elapsed();
    println!("ended after {took:?}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    ended
}

#[test]
fn calls_far_from_the_root_hold_up_neither_events_of_others_nor_sigterm() {
    machine::test("directories far from the root", |setup| {
        let (dir, rule) = watched(setup);
        let chain = Chain::make(setup.path("deep"), "d", 1500);
        let end = chain.end();
        let daemon = setup.tarsier(&rule).format("raw").start();
        let (is_over, made) = (AtomicBool::new(false), AtomicU64::new(0));
        let ended = std::thread::scope(|threads| {
            let over = Over(&is_over);
            threads.spawn(|| be_slow(SLOW, (&end, "f"), Duration::ZERO, &is_over, &made));
            while made.load(Ordering::Relaxed) < 50 {
                std::thread::yield_now();
            }
            let begin = Instant::now();
            Caller::uid(OTHER).make(&[call!(mkdir, &*dir.join("other"), 0o700)]);
            daemon.wait_for_record("/other\"");
            let after = begin.elapsed();
            println!("the event of another user after {after:?}");
            assert!(after < Duration::from_secs(2), "{after:?}");
            let ended = stops_in_time(daemon);
            drop(over);
            ended
        });
        println!("{} calls; {}", made.load(Ordering::Relaxed), ended.said);
    });
}

/// Times at which texts of the form `/nNUMBER"` are in the log, by number.
fn times_in_log(log: &Path, count: usize, is_over: &AtomicBool) -> Vec<Option<Instant>> {
    let (mut times, mut tail) = (vec![None; count], Vec::new());
    let mut file = std::fs::File::open(log).expect("the log");
    while !is_over.load(Ordering::Relaxed) {
        file.read_to_end(&mut tail).expect("the log is read");
        let end = tail
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        let text = String::from_utf8_lossy(&tail[..end]).into_owned();
        tail.drain(..end);
        for (at, _) in text.match_indices("/n") {
            let number = text[at + 2..].split('"').next();
            let number = number.and_then(|number| number.parse::<usize>().ok());
            if let Some(time) = number.and_then(|number| times.get_mut(number)) {
                time.get_or_insert_with(Instant::now);
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    times
}

/// How long calls took until they were in the log, the shortest time first; those that are not in it are missing.
fn waits(calls: &[Instant], times: &[Option<Instant>]) -> Vec<Duration> {
    let both = calls.iter().zip(times);
    let waits = both.filter_map(|(call, seen)| Some((*seen)?.saturating_duration_since(*call)));
    let mut waits: Vec<Duration> = waits.collect();
    waits.sort();
    let part = |of: usize| waits.get(waits.len() * of / 1000);
    println!(
        "{} of {} calls in the log after {:?} (p50), {:?} (p99), {:?} at most",
        waits.len(),
        calls.len(),
        part(500),
        part(990),
        waits.last()
    );
    waits
}

/// Prints what tells how far the daemon was held up.
fn print_status(daemon: &Daemon) {
    let status = daemon.status();
    for name in [
        "events_out_of_time",
        "durable_after_us",
        "reader_pause_us",
        "lost",
    ] {
        println!("{name}: {}", status[name]);
    }
}

#[test]
fn a_hundred_users_who_are_as_slow_as_they_can_do_not_hold_up_another() {
    const USERS: u32 = 100;
    // Ten times what one processor could look up before. Without a pause, the machine would be short of processors and of
    // room in the rings, which is another matter: `loss.rs`.
    const PAUSE: Duration = Duration::from_millis(100);
    let seconds = std::env::var(SECONDS).ok();
    let seconds = seconds.map_or(3, |text| text.parse().expect("a number of seconds"));
    machine::test("a hundred slow users", |setup| {
        let (dir, rule) = watched(setup);
        let deep = Chain::make(setup.path("deep"), "d", 1500);
        let long = Chain::make(setup.path("long"), &"n".repeat(250), 60);
        make_links(&setup.path(""));
        let run = setup.tarsier(&rule).format("raw");
        // Before whatever else runs on the machine: that is another matter, too.
        setup.configure("flush = DATA\nmax_log_file_action = IGNORE\npriority_boost = 19\n");
        let daemon = run.start();
        let places = [
            (deep.end(), "f"),
            (long.end(), "f"),
            (open(&deep.top(), ".."), "l0"),
        ];
        let (is_over, made) = (AtomicBool::new(false), AtomicU64::new(0));
        let is_seen = AtomicBool::new(false);
        let mut calls = Vec::new();
        let (times, ended) = std::thread::scope(|threads| {
            for user in 0..USERS {
                let (dir, name) = &places[user as usize % places.len()];
                let (is_over, made) = (&is_over, &made);
                threads.spawn(move || be_slow(SLOW + user, (dir, name), PAUSE, is_over, made));
            }
            let is_seen = &is_seen;
            let (over, seen) = (Over(&is_over), Over(is_seen));
            let log = setup.path("audit.log");
            let reader = threads.spawn(move || times_in_log(&log, 10_000, is_seen));
            let end = Instant::now() + Duration::from_secs(seconds);
            while Instant::now() < end {
                let name = dir.join(format!("n{}", calls.len()));
                Caller::uid(OTHER).make(&[call!(mkdir, &*name, 0o700)]);
                calls.push(Instant::now());
                std::thread::sleep(Duration::from_millis(20));
            }
            print_status(&daemon);
            let ended = stops_in_time(daemon);
            drop(over);
            std::thread::sleep(Duration::from_millis(50));
            drop(seen);
            (reader.join().expect("times"), ended)
        });
        println!(
            "{} slow calls; {}",
            made.load(Ordering::Relaxed),
            ended.said
        );
        let waits = waits(&calls, &times);
        assert_eq!(waits.len(), calls.len(), "none is lost");
    });
}

/// The processes that look up what callers named.
fn helpers() -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("proc(5)").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Those of an earlier daemon may have ended and not been waited for yet.
    let is_helper = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with("Name:\ttarsier-lookup\n") && !status.contains("\nState:\tZ")
    };
    pids.filter(is_helper).collect()
}

#[test]
fn nobody_but_root_can_touch_the_processes_that_look_up() {
    const NEW_USER: i64 = libc::CLONE_NEWUSER as i64;
    machine::test("processes that look up", |setup| {
        let daemon = setup.tarsier("-w /etc/passwd -p wa\n").start();
        // They have their name a moment after the daemon is ready.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while helpers().is_empty() && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let pids = helpers();
        assert!(!pids.is_empty());
        for &pid in &pids {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a helper");
            let uids = status.lines().find(|line| line.starts_with("Uid:"));
            println!("{pid}: {uids:?}");
            let memory = format!("/proc/{pid}/mem");
            let adjust = format!("/proc/{pid}/oom_score_adj");
            // A nobody, somebody, and both as root of a user namespace of their own.
            for (uid, namespace) in [(65_534, 0), (SLOW, 0), (65_534, NEW_USER), (SLOW, NEW_USER)] {
                let caller = Caller {
                    uids: Some([uid; 3]),
                    gids: Some([uid; 3]),
                    ..Caller::default()
                };
                let stop = i64::from(libc::SIGSTOP);
                let made = caller.make(&[
                    call!(unshare, namespace),
                    call!(kill, pid, stop),
                    call!(kill, pid, 0),
                    call!(tkill, pid, stop),
                    call!(setpriority, 0, pid, 19),
                    call!(sched_setscheduler, pid, libc::SCHED_IDLE, vec![0_u8; 8]),
                    call!(sched_setaffinity, pid, 8, vec![1_u8, 0, 0, 0, 0, 0, 0, 0]),
                    call!(ioprio_set, 1, pid, 3 << 13),
                    call!(prlimit64, pid, 7, vec![0_u8; 16], 0),
                    call!(ptrace, libc::PTRACE_ATTACH as i64, pid, 0, 0),
                    call!(ptrace, libc::PTRACE_SEIZE as i64, pid, 0, 0),
                    call!(process_vm_writev, pid, 0, 0, 0, 0, 0),
                    call!(openat, -100, memory.as_str(), libc::O_RDWR),
                    call!(openat, -100, adjust.as_str(), libc::O_RDWR),
                ]);
                assert_eq!(made.results[0], 0, "unshare");
                // Nothing to write is nothing that is refused.
                let refused = [&made.results[1..11], &made.results[12..]].concat();
                let is_refused = |result: &i64| matches!(*result, EPERM | EACCES);
                assert!(
                    refused.iter().all(is_refused),
                    "{uid} {namespace}: {refused:?}"
                );
            }
        }
        let left = helpers();
        assert!(pids.iter().all(|pid| left.contains(pid)), "{left:?}");
        let ended = daemon.stop();
        assert!(ended.said.contains(", 0 lost; "), "{}", ended.said);
    });
}
