//! Arguments in memory that another thread changes while the kernel reads them.

use crate::daemon::Setup;
use crate::{log, machine};
use std::ffi::CString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const GID: u32 = 61311;
const OPENS: usize = 20_000;
const FILE: &str = "TARSIER_TEST_FLIPS";
/// Set if the threads share their descriptors.
const SHARED: &str = "TARSIER_TEST_FLIPS_SHARED";

/// Keeps the thread on a processor, if there are two.
fn stay_on(cpu: usize) {
    let mut only = rustix::thread::CpuSet::new();
    only.set(cpu);
    let _ = rustix::thread::sched_setaffinity(None, &only);
}

/// Opens a file by openat2(2) while another thread flips the access mode in its structure. Prints how often the file
/// was opened for writing. Without the name of the file in the environment this test does nothing.
#[test]
fn flipped_opens() {
    let Ok(file) = std::env::var(FILE) else {
        return;
    };
    let path = CString::new(file).expect("no NUL");
    let how: [AtomicU64; 3] = Default::default();
    let is_over = AtomicBool::new(false);
    let mut writes = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stay_on(1);
            while !is_over.load(Ordering::Relaxed) {
                how[0].fetch_xor(libc::O_WRONLY as u64, Ordering::Relaxed);
            }
        });
        stay_on(0);
        if std::env::var_os(SHARED).is_none() {
            // SAFETY: the call takes a number. The threads need no descriptors of each other.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
        }
        for _ in 0..OPENS {
            // SAFETY: a path and a structure that live through the call; the descriptor is ours.
            let mode = unsafe {
                let (at, size) = (libc::AT_FDCWD, size_of_val(&how));
                let fd = libc::syscall(libc::SYS_openat2, at, path.as_ptr(), &how, size) as i32;
                assert!(fd >= 0, "{}", std::io::Error::last_os_error());
                let flags = libc::fcntl(fd, libc::F_GETFL);
                libc::close(fd);
                flags & libc::O_ACCMODE
            };
            writes += usize::from(mode == libc::O_WRONLY);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    println!("writes {writes}");
}

/// Opens the file with flags that another thread changes, under a rule on writes, in a process of its own. Returns what
/// that process printed, and the log.
fn opens_under_a_rule_on_writes(setup: &Setup, are_shared: bool) -> (String, Vec<log::Event>) {
    let file = setup.write("file", "text");
    let rule = format!("-a always,exit -F arch=b64 -S openat2 -F perm=w -F gid={GID} -k w\n");
    let daemon = setup.tarsier(&rule).format("raw").ring_kib(65536).start();
    let mut command = Command::new(std::env::current_exe().expect("our own path"));
    command.args(["--exact", "flips::flipped_opens", "--nocapture"]);
    command.env(FILE, &file).gid(GID).stderr(Stdio::inherit());
    if are_shared {
        command.env(SHARED, "1");
    }
    let output = command.output().expect("this test runs again");
    assert!(output.status.success());
    let ended = daemon.stop();
    assert!(ended.said.contains(" 0 lost;"), "{}", ended.said);
    let text = String::from_utf8(output.stdout).expect("text");
    (text, log::events(&ended.log))
}

/// A thread that shares the descriptors could put another file in the place of the one that was opened.
#[test]
fn every_access_counts_where_another_thread_shares_the_descriptors() {
    machine::test("flipped opens, shared descriptors", |setup| {
        let (_, events) = opens_under_a_rule_on_writes(setup, true);
        assert_eq!(log::records(&events, "OPENAT2").len(), OPENS);
    });
}

#[test]
fn opens_for_writing_are_all_recorded_whatever_another_thread_puts_into_the_structure() {
    machine::test("flipped opens", |setup| {
        let (text, events) = opens_under_a_rule_on_writes(setup, false);
        let writes = text.lines().find_map(|line| line.split_once("writes "));
        let writes: usize = writes.map_or(0, |(_, n)| n.parse().expect("a number"));
        assert!((1..OPENS).contains(&writes), "{text}");
        // The other thread could have shared the descriptors until a moment ago: any access counts.
        let how: Vec<_> = log::records(&events, "OPENAT2");
        assert!(how.len() >= writes, "{} of {writes}", how.len());
    });
}
