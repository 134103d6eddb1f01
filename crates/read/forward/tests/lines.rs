//! The sender as a program, with a file at its destination.

mod common;

use common::{Config, Log, Program};
use std::time::Duration;

#[test]
fn every_event_is_in_the_file_once_through_rotations_and_kills() {
    let log = Log::new();
    let out = log.dir().join("out");
    let config = Config::new(
        &log,
        &format!("sink = file\npath = {}\nlinger = 5ms\n", out.display()),
    );
    let mut written = 0;
    for round in 0..6 {
        let mut sender = Program::start(&config);
        for _ in 0..4 {
            log.append(written..written + 500);
            written += 500;
            if round % 2 == 0 {
                log.rotate();
            }
            std::thread::yield_now();
        }
        if round == 5 {
            common::await_that("all events are in the file", || {
                common::numbers_in(&out).len() == written
            });
        }
        sender.kill();
    }
    common::assert_exactly_once(&common::numbers_in(&out), written);
}

#[test]
fn a_reload_changes_the_filter_and_loses_nothing() {
    let log = Log::new();
    let out = log.dir().join("out");
    let base = format!(
        "sink = file\npath = {}\nlinger = 5ms\nenvelope = yes\n",
        out.display()
    );
    let config = Config::new(&log, &base);
    let sender = Program::start(&config);
    log.append(0..100);
    common::await_that("100 events are there", || {
        common::envelopes(&out).len() == 100
    });
    config.write(&log, &format!("{base}filter_keys = k1\n"));
    sender.signal(rustix::process::Signal::HUP);
    common::await_that("the configuration is read", || {
        sender.stderr().contains("read again")
    });
    log.append(100..200);
    // Every second event has the key k1.
    common::await_that("50 more are there", || common::envelopes(&out).len() == 150);
    let envelopes = common::envelopes(&out);
    let count = |name: &str| {
        envelopes
            .iter()
            .filter_map(|e| e[name].as_u64())
            .sum::<u64>()
    };
    assert_eq!(count("events"), 150);
    assert_eq!(
        count("events") + count("filtered"),
        200 - trailing(&envelopes)
    );
    common::assert_chained(&envelopes);
    config.write(&log, "sink = nothing\n");
    sender.signal(rustix::process::Signal::HUP);
    common::await_that("the error is said", || {
        sender.stderr().contains("the earlier configuration stays")
    });
}

/// Events after the last message, which no message counts yet.
fn trailing(envelopes: &[serde_json::Value]) -> u64 {
    let last = envelopes
        .last()
        .and_then(|e| e["body"].as_str().map(common::number_of));
    199 - last.flatten().expect("the last event has a number") as u64
}

#[test]
fn what_exceeds_hold_is_counted_at_the_far_side() {
    let log = Log::new();
    // A directory in the place of the file: it cannot be written until it is gone.
    let out = log.dir().join("out");
    std::fs::create_dir(&out).expect("a directory");
    let settings = format!(
        "sink = file\npath = {}\nlinger = 5ms\nenvelope = yes\nhold = 100K\n\
         overflow_action = exec /bin/true\nnetwork_failure_after = 1s\n",
        out.display()
    );
    let config = Config::new(&log, &settings);
    let sender = Program::start(&config);
    for turn in 0..10 {
        log.append(turn * 200..(turn + 1) * 200);
        common::await_that("the file is linked", || log.is_linked());
        log.rotate();
    }
    log.append(2000..2200);
    common::await_that("files are given up", || {
        sender.stderr().contains("were given up")
    });
    std::fs::remove_dir(&out).expect("remove the directory");
    common::await_that("the last event is there", || {
        common::envelopes(&out)
            .last()
            .is_some_and(|e| e["body"].to_string().contains("n=2199 "))
    });
    let envelopes = common::envelopes(&out);
    let of = |kind: &str| {
        let those = envelopes.iter().filter(|e| e["kind"] == kind);
        those.filter_map(|e| e["events"].as_u64()).sum::<u64>()
    };
    assert!(of("gap") > 0);
    assert_eq!(of("event") + of("gap"), 2200, "made = delivered + counted");
    common::assert_chained(&envelopes);
}

#[test]
fn urgent_events_do_not_wait() {
    let log = Log::new();
    let out = log.dir().join("out");
    // Others would wait for a minute.
    let settings = format!(
        "sink = file\npath = {}\nlinger = 60s\nurgent_keys = k1\n",
        out.display()
    );
    let config = Config::new(&log, &settings);
    let sender = Program::start(&config);
    log.append(0..1);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(common::numbers_in(&out), Vec::<usize>::new());
    log.append(1..2);
    common::await_that("the urgent event is there", || {
        common::numbers_in(&out) == [0, 1]
    });
    drop(sender);
}

#[test]
fn replay_begins_at_a_time_in_a_new_series() {
    let log = Log::new();
    let out = log.dir().join("out");
    let settings = format!(
        "sink = file\npath = {}\nlinger = 5ms\nenvelope = yes\n",
        out.display()
    );
    let config = Config::new(&log, &settings);
    let sender = Program::start(&config);
    log.append(0..10);
    common::await_that("10 events are there", || {
        common::envelopes(&out).len() == 10
    });
    assert!(common::run(&config, &["replay", "--from", "1"])
        .1
        .contains("another tarsier-forward"));
    sender.stop();
    let (status, text) = common::run(&config, &["status"]);
    assert!(status == 0 && text.contains("acknowledged  1/"), "{text}");
    let (status, text) = common::run(&config, &["replay", "--from", "1000000005"]);
    assert_eq!(status, 0, "{text}");
    let sender = Program::start(&config);
    common::await_that("5 come again", || common::envelopes(&out).len() == 15);
    let envelopes = common::envelopes(&out);
    assert!(envelopes[10]["series"] != envelopes[9]["series"]);
    assert!(envelopes[10]["body"].to_string().contains("n=5 "));
    drop(sender);
}
