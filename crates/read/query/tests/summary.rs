//! Promises of summaries for any log, and for logs of the kernel.

use proptest::prelude::*;
use query::row::Row;
use query::summary::{By, Summary, Table};
use query::{Assembler, Dialect, Lines, TimeRange};
use std::path::Path;

fn summary(log: &[u8]) -> (Summary, u64) {
    let mut assembler = Assembler::new(Dialect::Own, 2, TimeRange::default());
    let mut lines = Lines::new(log, Dialect::Own.line_bytes_max());
    let (mut summary, mut events) = (Summary::default(), 0);
    let mut take = |assembler: &mut Assembler| {
        while let Some(event) = assembler.pop() {
            let row = Row::read(&event);
            assert_eq!(row.serial, event.key().serial);
            summary.add(&event);
            events += 1;
        }
    };
    while let Some(line) = lines.next_line().expect("memory is read") {
        assembler.add(line);
        take(&mut assembler);
    }
    assembler.finish();
    take(&mut assembler);
    (summary, events)
}

/// Looks at all that a report shows.
fn check(summary: &Summary, events: u64) {
    assert_eq!(summary.count().events, events);
    assert!(summary.count().failed <= events);
    for by in [By::Key, By::User, By::Unit] {
        let rows = summary.series(by, 3);
        for row in rows.rows.iter().chain(&rows.others) {
            assert!(row.buckets.len() <= 240);
            let sum: u64 = row.buckets.iter().map(|bucket| bucket[0]).sum();
            assert_eq!(sum, row.sum[0]);
        }
    }
    let users = summary.series(By::User, 2);
    let all: u64 = users
        .rows
        .iter()
        .chain(&users.others)
        .map(|row| row.sum[0])
        .sum();
    assert_eq!(all, events);
    for table in [
        Table::User,
        Table::Key,
        Table::Unit,
        Table::Program,
        Table::File,
        Table::Failure,
    ] {
        let lines = summary.table(table, &[2, 2, 2, 2]);
        assert!(lines.lines.len() <= 2);
        assert!(lines.lines.iter().all(|line| line.count.events <= events));
    }
    let users = summary.table(Table::User, &[2]);
    let shown: u64 = users.lines.iter().map(|line| line.count.events).sum();
    assert_eq!(shown + users.others_count.events, events);
    summary.forest(2);
    summary.serial_gaps();
}

fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = prop::sample::select(vec![
        &b"type=SYSCALL msg=audit("[..],
        b"node=h type=PATH msg=audit(",
        b"type=DAEMON_ERR msg=audit(1795229629.588:9): op=events-lost lost=99999999999999999999 cause=a:1",
        b"type=EXECVE msg=audit(",
        b"1795229629.588:9): ",
        b"18446744073709551615.999:18446744073709551615): ",
        b"9223372036854775000.0:1): ",
        b"0.0:0): ",
        b"arch=c000003e syscall=257 success=no exit=-9223372036854775808 a0=1 a1=2 ",
        b"ppid=1 pid=1 auid=3 uid=4 gid=5 euid=6 egid=7 comm=\"a\" exe=\"/bin/a\" key=\"k\"",
        b"ppid=-1 pid=-1 ",
        b"name=2F nametype=PARENT",
        b"name=",
        b"a0=",
        b"cwd=\"",
        b"\x1dUNIT=",
        b"\n",
        b"\n",
    ])
    .prop_map(<[u8]>::to_vec);
    prop_oneof![6 => known, 1 => prop::collection::vec(any::<u8>(), 0..9)]
}

proptest! {
    #[test]
    fn any_log_has_a_summary(parts in prop::collection::vec(fragment(), 0..60)) {
        let (summary, events) = summary(&parts.concat());
        check(&summary, events);
    }
}

#[test]
fn an_event_with_a_key_in_two_records_is_counted_once() {
    let call =
        "type=SYSCALL msg=audit(1.000:1): arch=c000003e syscall=257 success=no exit=-1 a0=1 \
                ppid=1 pid=1 auid=3 uid=4 comm=\"a\" exe=\"/bin/a\" key=\"k\"\n";
    let (summary, events) = summary(call.repeat(2).as_bytes());
    assert_eq!(events, 1);
    check(&summary, events);
}

#[test]
fn logs_of_the_kernel_are_counted_whole() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../log/record/tests/corpus");
    let mut logs = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "log") {
            let (summary, events) = summary(&std::fs::read(&path).expect("a log"));
            assert!(events > 0, "{}", path.display());
            check(&summary, events);
            logs += 1;
        }
    }
    assert!(logs > 50, "{logs} logs");
}
