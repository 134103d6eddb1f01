//! A process that makes numbered calls all the time, and the search for them in a log.

use crate::at_rest;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const GROUP: u32 = 61241;
/// Selects the calls of this process.
pub(crate) const RULE: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61241 -k numbered\n";
/// Number of calls between two rests.
const BURST: u64 = 4;
/// Number of calls that it makes even if it is ended earlier.
const CALLS_MIN: u64 = 1000;
const REST: Duration = Duration::from_millis(2);

/// The calling process.
pub(crate) struct Caller {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Caller {
    /// Starts it; with `rests` it sleeps between bursts, so that others get the processor.
    pub(crate) fn start(rests: bool) -> Caller {
        Caller::start_as(if rests { "rests" } else { "hurries" })
    }

    /// Starts one that makes about `rate` calls a second.
    pub(crate) fn paced(rate: u32) -> Caller {
        Caller::start_as(&rate.to_string())
    }

    /// Starts one whose calls all have the same number, 0.
    pub(crate) fn unnumbered() -> Caller {
        Caller::start_as("unnumbered")
    }

    fn start_as(how: &str) -> Caller {
        let mut child = Command::new(std::env::current_exe().expect("our own path"))
            .args(["--exact", "numbered::calls", "--nocapture"])
            .env("TARSIER_TEST_CALLS", how)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test runs again");
        let out = child.stdout.take().expect("its output");
        let mut lines = BufReader::new(out).lines();
        assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")));
        Caller { child, lines }
    }

    /// Waits until it has had a processor for this many ticks (of 10 ms) more.
    pub(crate) fn work(&self, ticks: u64) {
        let end = at_rest::ticks(self.child.id()) + ticks;
        while at_rest::ticks(self.child.id()) < end {
            std::thread::sleep(REST);
        }
    }

    /// Ends it. Returns the number of calls it has made.
    pub(crate) fn stop(mut self) -> u64 {
        drop(self.child.stdin.take());
        let mut made = self.lines.by_ref().map_while(Result::ok);
        let made = made.find_map(|line| line.strip_prefix("made ")?.parse().ok());
        assert!(self.child.wait().expect("it ends").success());
        made.expect("it says how many")
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// The body of the process. Without its variable in the environment this test does nothing.
#[test]
fn calls() {
    let Ok(how) = std::env::var("TARSIER_TEST_CALLS") else {
        return;
    };
    let ended = Arc::new(AtomicBool::new(false));
    let reader = ended.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        reader.store(true, Ordering::Relaxed);
    });
    println!("\nready");
    std::io::stdout().flush().expect("the parent reads");
    // SAFETY: no arguments but numbers; of this thread alone.
    let changed = unsafe { libc::syscall(libc::SYS_setresgid, GROUP, -1, -1) };
    assert_eq!(changed, 0);
    let (mut made, begun) = (0u64, Instant::now());
    let rate: Option<u32> = how.parse().ok();
    while made < CALLS_MIN || !ended.load(Ordering::Relaxed) {
        for _ in 0..BURST {
            made += 1;
            // SAFETY: getppid(2) looks at none of its arguments.
            unsafe {
                libc::syscall(
                    libc::SYS_getppid,
                    if how == "unnumbered" { 0 } else { made },
                )
            };
        }
        if how == "rests" || how == "unnumbered" && made % 20 == 0 {
            std::thread::sleep(REST);
        }
        let due = rate.map(|rate| Duration::from_secs_f64(made as f64 / f64::from(rate)));
        if let Some(early) = due.and_then(|due| due.checked_sub(begun.elapsed())) {
            std::thread::sleep(early.max(REST));
        }
    }
    println!("made {made}");
}

/// Number of times that each number is in a log, by number and key of the rule.
pub(crate) fn recorded(log: &Path) -> BTreeMap<(u64, String), u32> {
    let text = std::fs::read(log).expect("the log");
    let mut found = BTreeMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !line.starts_with("type=SYSCALL ") || !line.contains(" syscall=110 ") {
            continue;
        }
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name));
        let number = field("a0=").and_then(|text| u64::from_str_radix(text, 16).ok());
        let key = field("key=").unwrap_or("?").trim_matches('"').to_owned();
        *found.entry((number.expect("a number"), key)).or_default() += 1;
    }
    found
}

/// Checks that each number is in the log at most once, and that it was made. Returns how many there
/// are.
pub(crate) fn count_once(log: &Path, made: u64) -> u64 {
    let found = recorded(log);
    let mut numbers: Vec<u64> = found.keys().map(|(number, _)| *number).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), found.len(), "under two keys");
    let doubled: Vec<_> = found.iter().filter(|(_, count)| **count > 1).collect();
    assert!(doubled.is_empty(), "recorded twice: {doubled:?}");
    assert!(numbers.iter().all(|number| (1..=made).contains(number)));
    numbers.len() as u64
}
