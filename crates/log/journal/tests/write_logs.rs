//! `write_logs`: a journal without a log, and switching between the two.

mod common;

use common::{event, names, open, quiet, says};
use conf::{Config, Flush};
use journal::{Journal, Position};

/// No log on disk: events go only to plugins.
fn unlogged() -> Config {
    Config {
        write_logs: false,
        flush: Flush::Sync,
        ..quiet()
    }
}

#[test]
fn without_write_logs_no_file_is_touched_and_every_event_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("not/there/audit.log");
    let (mut journal, report) = Journal::open(&log, &unlogged()).unwrap();
    assert_eq!((report.size_bytes, report.ended_in_order), (0, None));
    let lines = event(1, 1 << 20);
    for _ in 0..10 {
        journal.append(&lines, 2);
    }
    assert_eq!(journal.commit().unwrap().events, 0);
    let counters = journal.counters();
    assert_eq!(
        (counters.appended_events, counters.unlogged.events),
        (20, 20)
    );
    assert_eq!(counters.unlogged.bytes, 10 << 20);
    assert_eq!(
        (counters.written, counters.pending_events),
        (Position::default(), 0)
    );
    assert_eq!((counters.lost.total(), counters.syncs), (0, 0));
    // Whoever waits for the stream to be written does not wait for ever; nothing is durable.
    assert_eq!(journal.written().events, 20);
    journal.sync().unwrap();
    assert_eq!(journal.durable(), Position::default());
    assert!(!journal.is_suspended());
    assert!(journal.rotate().unwrap().is_none());
    journal.resume().unwrap();
    let (_, actions) = journal.close();
    assert!(says(&actions, "skipping rotation"));
    assert_eq!(names(dir.path()), Vec::<String>::new());
}

#[test]
fn write_logs_can_be_switched_and_the_log_has_what_came_in_between() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &unlogged());
    journal.append(b"type=A\n", 1);
    journal.reconfigure(&log, &quiet()).unwrap();
    journal.append(b"type=B\n", 1);
    journal.reconfigure(&log, &unlogged()).unwrap();
    assert_eq!(
        journal.durable(),
        journal.written(),
        "what it has is durable"
    );
    journal.append(b"type=C\n", 1);
    journal.commit().unwrap();
    // Nobody holds the file any more.
    open(&log, &quiet()).close();
    journal.reconfigure(&log, &quiet()).unwrap();
    journal.append(b"type=D\n", 1);
    let (counters, _) = journal.close();
    assert_eq!(std::fs::read(&log).unwrap(), b"type=B\ntype=D\n");
    assert_eq!((counters.written.events, counters.unlogged.events), (2, 2));
}

#[test]
fn a_log_that_cannot_be_begun_leaves_write_logs_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    std::fs::create_dir(&log).unwrap();
    let mut journal = open(&log, &unlogged());
    journal.append(b"type=A\n", 1);
    assert!(journal.reconfigure(&log, &quiet()).is_err());
    journal.append(b"type=B\n", 1);
    let (counters, _) = journal.close();
    assert_eq!((counters.unlogged.events, counters.lost.total()), (2, 0));
}
