//! Counts the threads that a journal uses. A test program of its own, so that no other threads are counted.

mod common;

use std::time::{Duration, Instant};

use common::{event, open, quiet};
use conf::{Config, Flush};

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Waits until there are `expected` threads, because a joined thread leaves `/proc` a moment after
/// the join returns. Returns the final number.
fn threads_settled_at(expected: usize) -> usize {
    let end = Instant::now() + Duration::from_secs(10);
    while threads() != expected && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    threads()
}

#[test]
fn a_journal_has_at_most_one_helper_thread_however_much_it_syncs() {
    let before = threads();
    let cases = [
        (Flush::None, 0),
        (Flush::Incremental, 0),
        (Flush::IncrementalAsync, 1),
        (Flush::Data, 1),
        (Flush::Sync, 1),
    ];
    for (flush, helpers) in cases {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            flush,
            freq: 1,
            ..quiet()
        };
        let mut journal = open(&dir.path().join("audit.log"), &config);
        for number in 0..50 {
            journal.append(&event(number, 60), 1);
            journal.rotate().unwrap();
            assert_eq!(threads(), before + helpers, "{flush:?}");
        }
        journal.close();
        assert_eq!(threads_settled_at(before), before, "{flush:?}");
    }
}
