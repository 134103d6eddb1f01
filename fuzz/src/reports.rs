//! Logs of which reports are made: the first byte says which, the rest is the log.

use query::report::runs::{Part, Reading};
use query::report::top::{Field, Top};
use query::report::{Changes, Kind, List, Request, Summary};
use query::{Assembler, Dialect, Escape, Lines, TimeRange};

/// Makes a report of each form in every dialect.
pub(crate) fn reports(data: &[u8]) {
    let Some((which, log)) = data.split_first() else {
        return;
    };
    for dialect in [Dialect::Own, Dialect::Compat] {
        let request = request(*which, dialect);
        let mut list = List::new(Request {
            is_summary: false,
            ..request.clone()
        });
        let mut summary = Summary::new(request.clone(), 0);
        let mut top = Top::new(request.clone(), vec![Field::File, Field::Key]);
        let mut out = Vec::new();
        let mut assembler = Assembler::new(dialect, 2, TimeRange::default());
        let mut lines = Lines::new(log, dialect.line_bytes_max());
        let mut is_open = true;
        while is_open {
            match lines.next_line().expect("memory is read") {
                Some(line) => drop(assembler.add(line)),
                None => {
                    assembler.finish();
                    is_open = false;
                }
            }
            assembler.take_bad_times();
            while let Some(event) = assembler.pop() {
                list.add(event.view(), &mut out);
                summary.add(event.view());
                top.add(event.view());
                assembler.recycle(event);
            }
        }
        let mut report = Vec::new();
        summary.write((0, 0), (0, 0), &mut report);
        assert!(top.finish(3).rows.len() <= 3);
        in_parts(log, request, &report);
    }
}

/// A log that is in order has the same report without the state machine.
fn in_parts(log: &[u8], request: Request, whole: &[u8]) {
    let reading = Reading {
        dialect: request.dialect,
        timeout_s: 2,
        range: TimeRange::default(),
    };
    let mut summary = Summary::new(request, 0);
    let read = Part::default().events(log, reading, |event| summary.add(event));
    if read.is_ok() {
        let mut out = Vec::new();
        summary.write((0, 0), (0, 0), &mut out);
        assert_eq!(out, whole);
    }
}

fn request(which: u8, dialect: Dialect) -> Request {
    Request {
        kind: Kind::ALL[usize::from(which) % Kind::ALL.len()],
        is_summary: true,
        success: None,
        nodes: Vec::new(),
        changes: Changes::All,
        no_config: false,
        interpret: which & 0x80 != 0,
        escape: Escape::Tty,
        start_s: 0,
        end_s: 0,
        dialect,
        user_name: |_| None,
        has_hosts: false,
    }
}
