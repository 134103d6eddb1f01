//! Logs that are counted for a report.

use query::row::Row;
use query::summary::{By, Summary, Table};
use query::{Assembler, Dialect, Feed, Lines, TimeRange};

/// Counts the events of a log: none is counted twice or forgotten.
pub(crate) fn summary(data: &[u8]) {
    let mut assembler = Assembler::new(Dialect::Own, 2, TimeRange::default());
    let (mut feed, mut summary, mut events) = (Feed::default(), Summary::default(), 0);
    let mut lines = Lines::new(data, Dialect::Own.line_bytes_max());
    let mut take = |assembler: &mut Assembler| {
        while let Some(event) = assembler.pop() {
            summary.add(&event);
            Row::command(&event);
            events += 1;
            assembler.recycle(event);
        }
    };
    while let Some(line) = lines.next_line().expect("memory is read") {
        feed.add(line, &mut assembler);
        take(&mut assembler);
    }
    assembler.finish();
    take(&mut assembler);
    assert_eq!(summary.count().events, events);
    for by in [By::Key, By::User, By::Unit] {
        let rows = summary.series(by, 2);
        assert!(rows.rows.iter().all(|row| row.buckets.len() <= 240));
    }
    let users = summary.table(Table::User, &[2, 2, 2, 2]);
    let shown: u64 = users.lines.iter().map(|line| line.count.events).sum();
    assert_eq!(shown + users.others_count.events, events);
    summary.forest(2);
    summary.serial_gaps();
}
