//! One version in another's place, under load: each call is in the log once, or counted as lost.

use crate::daemon::{Daemon, Ended};
use crate::machine;
use crate::numbered::{Caller, RULE};
use crate::survival::{kill, make_foreign, more_than, pin_dir, pinned, stop};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Number of upgrades and downgrades, and of calls per second meanwhile; the variable TARSIER_UPGRADES makes it more.
const UPGRADES: u32 = 6;
const RATE: u32 = 10_000;
const RATE_OF_MANY: u32 = 50_000;

/// Directory in which a capture is prepared that is to take another's place.
fn next_dir() -> PathBuf {
    let mut name = pin_dir().into_os_string();
    name.push("-next");
    name.into()
}

/// Numbered calls found in a log.
#[derive(Default)]
struct Found {
    /// Number of times that each call number is there, by number.
    times: Vec<u8>,
    /// Number of calls without a number.
    unnumbered: u64,
    /// Sum of the losses that the log tells.
    lost: u64,
    /// Number of records that tell of a time without a daemon.
    resumed: usize,
}

fn found(log: &Path) -> Found {
    let mut found = Found::default();
    let number = |line: &str, name: &str, radix: u32| {
        let field = line.split(' ').find_map(|word| word.strip_prefix(name));
        field.and_then(|text| u64::from_str_radix(text, radix).ok())
    };
    for line in BufReader::new(File::open(log).expect("the log")).lines() {
        let line = line.expect("text");
        if line.starts_with("type=SYSCALL ") && line.contains(" syscall=110 ") {
            match number(&line, "a0=", 16).expect("a number") as usize {
                0 => found.unnumbered += 1,
                number => {
                    let len = found.times.len().max(number + 1);
                    found.times.resize(len, 0);
                    found.times[number] = found.times[number].saturating_add(1);
                }
            }
        } else if line.contains("op=capture-resumed") || line.contains("op=events-lost ") {
            found.resumed += usize::from(line.contains("op=capture-resumed"));
            found.lost += number(&line, "lost=", 10).unwrap_or(0);
        }
    }
    found
}

/// Checks that each of `made` numbers and `unnumbered` other calls is there once, or counted as lost.
fn once_or_counted(log: &Path, made: u64, unnumbered: u64) -> Found {
    let found = found(log);
    let doubled = found.times.iter().filter(|times| **times > 1).count();
    assert_eq!(doubled, 0, "numbers that are recorded more than once");
    let recorded = found.times.iter().filter(|times| **times == 1).count() as u64;
    assert_eq!(
        (recorded + found.unnumbered) as i64 - (made + unnumbered) as i64,
        -(found.lost as i64),
        "{recorded} of {made} numbers, {} of {unnumbered} others recorded, {} told as lost",
        found.unnumbered,
        found.lost
    );
    found
}

fn ended_well(ended: &Ended) {
    assert!(ended.status.success(), "{}", ended.said);
    assert!(!pin_dir().exists() && !next_dir().exists());
}

#[test]
fn upgrades_and_downgrades_under_load_lose_no_call_and_double_none() {
    machine::test("upgrades under load", |setup| {
        let many = std::env::var("TARSIER_UPGRADES").ok();
        let upgrades = many
            .as_ref()
            .map_or(UPGRADES, |n| n.parse().expect("a number"));
        let rate = many.map_or(RATE, |_| RATE_OF_MANY);
        let mut daemon = pinned(setup, RULE).start();
        let (begun, caller) = (Instant::now(), Caller::paced(rate));
        let other = Caller::unnumbered();
        for number in 0..upgrades {
            more_than(&daemon, 1000);
            let stopped = stop(setup, &["--keep"]);
            assert!(stopped.status.success(), "{stopped:?}");
            assert!(daemon.wait().status.success());
            // Every third time the programs are the same, and are taken over.
            if number % 3 != 2 {
                make_foreign(&pin_dir());
            }
            daemon = pinned(setup, RULE).start();
        }
        more_than(&daemon, 1000);
        let (made, others, took) = (caller.stop(), other.stop(), begun.elapsed());
        let ended = daemon.stop();
        ended_well(&ended);
        let found = once_or_counted(&ended.log, made, others);
        assert_eq!(found.resumed, upgrades as usize);
        println!(
            "{upgrades} upgrades, {made} numbered calls and {others} others in {:.0} s ({:.0} a second), {} lost",
            took.as_secs_f64(),
            (made + others) as f64 / took.as_secs_f64(),
            found.lost
        );
    });
}

/// Number of hooks that are pinned in a directory.
fn links(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("link-")).count()
}

/// Kills a daemon once it has armed `hooks` of the hooks with which it replaces another capture, and some time later.
fn killed_at(daemon: Daemon, hooks: usize, later: Duration) {
    while links(&next_dir()) < hooks && !daemon.has_said(" rules armed on ") {
        std::thread::yield_now();
    }
    std::thread::sleep(later);
    kill(daemon);
}

#[test]
fn a_daemon_that_is_killed_while_it_replaces_another_version_loses_no_call() {
    machine::test("kill -9 during an upgrade", |setup| {
        let mut daemon = pinned(setup, RULE).start();
        let hooks = links(&pin_dir());
        let caller = Caller::start(true);
        // While the new hooks are armed; while both record, for 50 ms; when the earlier capture has ended.
        let moments = [(1, 0), (hooks, 0), (hooks, 45), (hooks, 55), (hooks, 65)];
        for (hooks, later_ms) in moments {
            more_than(&daemon, 0);
            kill(daemon);
            make_foreign(&pin_dir());
            killed_at(
                pinned(setup, RULE).spawn(),
                hooks,
                Duration::from_millis(later_ms),
            );
            daemon = pinned(setup, RULE).start();
        }
        more_than(&daemon, 0);
        let made = caller.stop();
        let ended = daemon.stop();
        ended_well(&ended);
        once_or_counted(&ended.log, made, 0);
    });
}
