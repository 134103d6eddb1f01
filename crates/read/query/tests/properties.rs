//! Promises of the library for any input.

use proptest::prelude::*;
use query::{Assembler, Dialect, Event, Facts, Filter, Lines, Matcher, TimeRange, Wanted};

/// Lines of few events, so that records of one event meet, and bytes that are no lines.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let head = (0_usize..6, 0_u64..6, 0_u64..4, prop::bool::ANY).prop_map(|(kind, s, n, node)| {
        let kind = ["SYSCALL", "PATH", "CWD", "LOGIN", "PROCTITLE", "EOE"][kind];
        let node = if node { "node=a " } else { "" };
        format!("{node}type={kind} msg=audit(179522963{s}.000:{n}):").into_bytes()
    });
    let field = prop::sample::select(vec![
        &b" arch=c000003e syscall=1 success=yes exit=0 a0=1 a1=2"[..],
        b" ppid=1 pid=2 auid=3 uid=4 gid=5 euid=6",
        b" comm=\"a\" exe=\"/bin/a\"",
        b" comm=6162",
        b" key=\"word\"",
        b" key=776F726401782020",
        b" name=\"./x\" nametype=NORMAL",
        b" name=2F746D70 nametype=NORMAL",
        b" cwd=\"/tmp\"",
        b" ses=1 res=1",
        b"\x1dUID=\"root\"",
        b"\0",
        b"\xff\"",
    ]);
    (head, prop::collection::vec(field, 0..5)).prop_map(|(mut line, fields)| {
        for field in fields {
            line.extend_from_slice(field);
        }
        line
    })
}

fn events(log: &[u8], dialect: Dialect) -> Vec<Event> {
    let mut assembler = Assembler::new(dialect, 2, TimeRange::default());
    let mut lines = Lines::new(log, dialect.line_bytes_max());
    let mut found = Vec::new();
    while let Some(line) = lines.next_line().expect("memory is read") {
        assembler.add(line);
        found.extend(std::iter::from_fn(|| assembler.pop()));
    }
    assembler.finish();
    found.extend(std::iter::from_fn(|| assembler.pop()));
    found
}

fn filters() -> Vec<Filter> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    let key = |wanted: &str| Filter {
        key: text(wanted),
        ..Filter::default()
    };
    vec![
        Filter::default(),
        key("word"),
        key("x"),
        Filter {
            key: text("word"),
            is_exact: true,
            ..Filter::default()
        },
        Filter {
            comm: text("ab"),
            file: text("/tmp/./x"),
            ..Filter::default()
        },
        Filter {
            names: [text("root"), text("root"), text("root")],
            uid: Some(0),
            euid: Some(0),
            auid: Some(0),
            is_any_user: true,
            ..Filter::default()
        },
    ]
}

proptest! {
    /// Every record of the log is in exactly one event, in the order of the log; EOE alone is none.
    #[test]
    fn no_record_is_lost_and_none_comes_twice(lines in prop::collection::vec(line(), 0..40)) {
        let log = lines.join(&b'\n');
        for dialect in [Dialect::Own, Dialect::Compat] {
            let events = events(&log, dialect);
            let mut count = 0;
            for event in &events {
                for record in event.records() {
                    prop_assert!(log.windows(record.text.len()).any(|text| text == record.text));
                    count += 1;
                }
            }
            let is_kept = |line: &&Vec<u8>| !line.windows(9).any(|text| text == b"type=EOE ");
            prop_assert!(count >= lines.iter().filter(is_kept).count());
            prop_assert!(count <= lines.len());
        }
    }

    /// The literal that excludes events before their fields are read excludes none with the key.
    #[test]
    fn an_event_with_the_key_is_not_excluded_by_its_text(lines in prop::collection::vec(line(), 0..40)) {
        let log = lines.join(&b'\n');
        let wanted = Wanted { keys: true, ..Wanted::default() };
        for key in ["word", "x", "ord", "  ", "wor"] {
            let filter = Filter { key: Some(key.as_bytes().to_vec()), ..Filter::default() };
            let matcher = Matcher::new(filter, Dialect::Own, |_| None);
            for event in events(&log, Dialect::Own) {
                let facts = Facts::read(&event, &wanted, Dialect::Own).expect("facts");
                let keys = facts.keys.unwrap_or_default();
                let has_key = keys.iter().any(|each| each.windows(key.len()).any(|part| part == key.as_bytes()));
                prop_assert!(!has_key || matcher.may_match(event.text()));
                prop_assert!(!has_key || matcher.may_match(&log));
            }
        }
    }

    /// Any bytes are searched without a panic.
    #[test]
    fn bytes_that_are_no_log_do_no_harm(log in prop::collection::vec(any::<u8>(), 0..400)) {
        for dialect in [Dialect::Own, Dialect::Compat] {
            for filter in filters() {
                let mut matcher = Matcher::new(filter, dialect, |_| None);
                for event in events(&log, dialect) {
                    matcher.matches(&event);
                }
            }
        }
    }
}

/// Forwarders of several threads mix the lines of neighbouring events.
#[test]
fn records_of_an_event_are_joined_in_whatever_order_they_come() {
    let record = |kind: &str, serial: u32| {
        format!(
            "type={kind} msg=audit(1700000000.{:03}:{serial}): a=b\n",
            serial % 10
        )
    };
    let mixed = [
        ("PROCTITLE", 1),
        ("USER_LOGIN", 3),
        ("PROCTITLE", 2),
        ("PATH", 1),
        ("SYSCALL", 2),
        ("CWD", 2),
        ("SYSCALL", 1),
        ("EOE", 1),
    ];
    let mut assembler = Assembler::new(Dialect::Own, 2, TimeRange::default());
    for (kind, serial) in mixed {
        assembler.add(record(kind, serial).as_bytes());
    }
    assembler.finish();

    let mut found = Vec::new();
    while let Some(event) = assembler.pop() {
        found.push((event.key().serial, event.records().len()));
    }
    assert_eq!(found, [(1, 4), (2, 3), (3, 1)]);
}
