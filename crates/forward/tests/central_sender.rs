//! Central verification of what the program itself sent: a sealed log is followed while it is written, and verified
//! from the far side's file alone.

mod common;

use common::{Config, Log, Program};
use journal::seal::init;
use journal::Journal;
use std::fs;

fn sealed() -> conf::Config {
    conf::Config {
        seal: true,
        flush: conf::Flush::None,
        num_logs: 9,
        max_log_file_mib: 0,
        max_log_file_action: conf::SizeAction::Ignore,
        space_left: conf::SpaceLimit::Mib(0),
        admin_space_left: conf::SpaceLimit::Mib(0),
        space_left_action: conf::FailureAction::Ignore,
        admin_space_left_action: conf::FailureAction::Ignore,
        ..conf::Config::default()
    }
}

#[test]
fn a_followed_log_is_verified_from_what_arrived() {
    let log = Log::new();
    let out = log.dir().join("out");
    let key = init(&log.path()).expect("keys");
    let key_file = log.dir().join("web1.key");
    fs::write(&key_file, key.to_text()).expect("the key");
    let settings = format!(
        "sink = file\npath = {}\nformat = raw\nenvelope = yes\nlinger = 5ms\n",
        out.display()
    );
    let config = Config::new(&log, &settings);
    let (from, key) = (out.display().to_string(), key_file.display().to_string());
    let verify = || common::run(&config, &["verify", "--from", &from, "--key", &key]);

    let (mut journal, _) = Journal::open(&log.path(), &sealed()).expect("a journal");
    let sender = Program::start(&config);
    for number in 0..300 {
        journal.append(common::event(number).as_bytes(), 1);
        journal.commit().expect("committed");
        if number % 100 == 99 {
            common::await_that("the file is linked", || log.is_linked());
            journal.rotate().expect("rotated");
        }
    }
    common::await_that("part of it is intact", || verify().0 == 3);
    let _ = journal.close();
    common::await_that("all of it is intact", || verify().0 == 0);
    let (_, text) = verify();
    assert!(text.contains("web1: series "), "{text}");
    assert!(text.contains("complete from 0/0/0"), "{text}");
    assert!(text.contains("300 events"), "{text}");
    assert!(text.contains("the log was closed in order"), "{text}");
    sender.stop();

    // Whoever has the host afterwards cannot change what arrived; whoever has the store is found out.
    fs::write(
        log.path(),
        "type=USER msg=audit(1.000:1): nothing happened\n",
    )
    .expect("rewritten");
    assert_eq!(verify().0, 0);
    let stored = fs::read_to_string(&out).expect("the far side");
    fs::write(&out, stored.replacen("n=150 ", "n=151 ", 1)).expect("altered");
    let (status, text) = verify();
    assert_eq!(status, 1, "{text}");
    let lines: Vec<&str> = stored.lines().collect();
    let some: Vec<&str> = lines
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != 60)
        .map(|(_, line)| *line)
        .collect();
    fs::write(&out, some.join("\n") + "\n").expect("removed");
    let (status, text) = verify();
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("web1: MISSING from "), "{text}");
}
