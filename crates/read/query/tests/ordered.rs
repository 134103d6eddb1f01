//! A search of pieces, by a literal or without the state machine, finds what the state machine finds.

use proptest::prelude::*;
use query::index::{cut, steps, Block, BlockUse};
use query::report::runs::{boundary, Extent, NotOrdered, Part, Reading, AFTER_BYTES, BEFORE_BYTES};
use query::{
    Assembler, Dialect, Escape, Event, EventView, Filter, InOrder, Lines, Matcher, PieceEvents,
    Sink, TimeRange,
};
use std::io;

const TIMEOUT_S: u64 = 2;

/// The records of an event, which mostly stand together.
fn event() -> impl Strategy<Value = (u8, Vec<Vec<u8>>)> {
    let kinds = vec![
        "SYSCALL",
        "PATH",
        "CWD",
        "USER_LOGIN",
        "LOGIN",
        "PROCTITLE",
        "EOE",
        "SOCKADDR",
        "AVC",
        "VIRT_CONTROL",
        "DAEMON_START",
    ];
    let field = prop::sample::select(vec![
        &b" arch=c000003e syscall=1 success=yes exit=0 a0=1 a1=2"[..],
        b" ppid=1 pid=2 auid=3 uid=4 gid=5 euid=6 ses=7 ",
        b" comm=\"kill\" exe=\"/bin/kill\"",
        b" comm=6B696C6c exe=\"/usr/sbin/nobody\"",
        b" comm=\"a b exe=2F62696E2F6B696C6C",
        b" key=\"watched\"",
        b" key=776174636865640177726974",
        b" key=77617463686564 key=4",
        b" name=\"./relative\" nametype=NORMAL",
        b" name=\"../up\" nametype=NORMAL",
        b" name=\"/etc/shadow\" nametype=NORMAL",
        b" name=2F6574632F736861646F77 nametype=NORMAL",
        b" cwd=\"/home/user\"",
        b" cwd=2F686F6D652F75736572",
        b" path=\"/etc/shadow\" dev=1 tclass=file",
        b" saddr=01002F72756E2F736F636B6574000000",
        b" saddr=02000050C0A8010A0000000000000000",
        b" hostname=far.example, addr=192.168.1.10, terminal=ssh res=success'",
        b" vm=\"machine\" uuid=12-34 ",
        b" vm=6D616368696E65 ",
        b" tty=pts0 ses=1 res=1",
        b"\x1dUID=\"root\"",
        b"\xff\" pid=",
    ]);
    let record = (
        prop::sample::select(kinds),
        prop::collection::vec(field, 0..6),
    );
    let record = record.prop_map(|(kind, fields)| {
        let mut line = format!("type={kind} msg=audit(STAMP):").into_bytes();
        fields
            .iter()
            .for_each(|field| line.extend_from_slice(field));
        line
    });
    (0_u8..40, prop::collection::vec(record, 1..5))
}

/// A log whose times mostly ascend.
fn log(events: &[(u8, Vec<Vec<u8>>)]) -> Vec<u8> {
    let (mut ms, mut out) = (1_700_000_000_000_u64, Vec::new());
    for (number, (step, records)) in events.iter().enumerate() {
        let serial = 100 + number as u64;
        let (at, serial) = match step {
            0..=20 => (ms, serial),
            // Begun before those that stand before it.
            21..=25 => (ms - 3, serial),
            26..=30 => {
                ms += 900;
                (ms, serial)
            }
            31..=34 => {
                ms += 2100;
                (ms, serial)
            }
            35 => {
                ms += 100_000;
                (ms, serial)
            }
            36 => (ms - 2500, serial),
            // A record of an event before, which only the state machine joins.
            37 => (ms, serial.saturating_sub(2)),
            _ => (ms + 1, serial),
        };
        let stamp = format!("{}.{:03}:{serial}", at / 1000, at % 1000);
        for record in records {
            let place = record.windows(5).position(|part| part == b"STAMP");
            let place = place.expect("a stamp");
            out.extend_from_slice(&record[..place]);
            out.extend_from_slice(stamp.as_bytes());
            out.extend_from_slice(&record[place + 5..]);
            out.push(b'\n');
        }
    }
    out
}

fn filter() -> impl Strategy<Value = Filter> {
    let words = [
        "kill",
        "nobody",
        "watched",
        "writ",
        "ched",
        "/etc/shadow",
        "shadow",
        "user/",
        "user/./relative",
        "/./rel",
        "user/../up",
        "/home/user",
        "e/user",
        "socket",
        "/run/s",
        "far.example",
        "168.1",
        "machine",
        "pts0",
        "none",
        "12-34",
        "absent",
        "jklm",
        "~",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    let few = || (0_u8..12, word.clone());
    (few(), few(), any::<bool>(), any::<bool>()).prop_map(|(first, second, has_both, is_exact)| {
        let mut filter = Filter {
            is_exact,
            ..Filter::default()
        };
        set(&mut filter, first);
        if has_both {
            set(&mut filter, second);
        }
        filter
    })
}

fn set(filter: &mut Filter, (which, word): (u8, Vec<u8>)) {
    match which {
        0 => filter.key = Some(word),
        1 | 2 => filter.file = Some(word),
        3 => filter.exe = Some(word),
        4 => filter.comm = Some(word),
        5 => filter.vm = Some(word),
        6 => filter.uuid = Some(word),
        7 => filter.host = Some(word),
        8 => filter.terminal = Some(word),
        9 => filter.pid = Some(2),
        10 => filter.kinds = vec![1006, 1302],
        _ => filter.serial = Some(104),
    }
}

struct Output(Vec<u8>);

impl Sink for Output {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.0.extend_from_slice(text);
        Ok(())
    }

    fn message(&mut self, _: &str) {}
}

fn matcher(filter: &Filter) -> Matcher {
    Matcher::new(filter.clone(), Dialect::Own, |_| None)
}

/// Whether an event is found by its fields alone, without the literal.
fn drain(assembler: &mut Assembler, matcher: &mut Matcher, out: &mut Vec<u8>) {
    while let Some(event) = assembler.pop() {
        if matcher.matches(&event) {
            query::write_default(&event, Escape::Raw, out);
        }
    }
}

fn add(text: &[u8], assembler: &mut Assembler, matcher: &mut Matcher, out: &mut Vec<u8>) {
    let mut lines = Lines::new(text, None);
    while let Some(line) = lines.next_line().expect("memory is read") {
        assembler.add(line);
        drain(assembler, matcher, out);
    }
}

fn by_machine(log: &[u8], filter: &Filter, range: TimeRange) -> Vec<u8> {
    let (mut assembler, mut out) = (Assembler::new(Dialect::Own, TIMEOUT_S, range), Vec::new());
    let mut matcher = Matcher::without_literal(filter.clone(), Dialect::Own, |_| None);
    add(log, &mut assembler, &mut matcher, &mut out);
    assembler.finish();
    drain(&mut assembler, &mut matcher, &mut out);
    out
}

/// Searches as for a literal: reads only blocks that have it, and those whose times meet theirs.
fn by_literal(log: &[u8], filter: &Filter, range: TimeRange, block_bytes: usize) -> Vec<u8> {
    let mut matcher = matcher(filter);
    let mut ends: Vec<usize> = (1..log.len() / block_bytes)
        .map(|number| number * block_bytes)
        .filter_map(|at| match cut(&log[at..log.len().min(at + block_bytes)]) {
            0 => None,
            bytes => Some(at + bytes),
        })
        .chain([log.len()])
        .collect();
    ends.dedup();
    let mut start = 0;
    let texts: Vec<&[u8]> = ends
        .iter()
        .map(|end| &log[std::mem::replace(&mut start, *end)..*end])
        .collect();
    let blocks: Vec<Block> = texts.iter().map(|text| Block::of(text, 0)).collect();
    let blocks: Vec<&Block> = blocks.iter().collect();
    let is_hit = |set: &[usize]| set.iter().any(|number| matcher.may_match(texts[*number]));
    let steps = steps(&blocks, range, is_hit);
    let (mut assembler, mut out) = (Assembler::new(Dialect::Own, TIMEOUT_S, range), Vec::new());
    for (step, text) in steps.iter().zip(&texts) {
        match step {
            BlockUse::Read => add(text, &mut assembler, &mut matcher, &mut out),
            BlockUse::LeaveOut(Some(sec)) => assembler.leave_out(*sec),
            BlockUse::LeaveOut(None) => {}
        }
        drain(&mut assembler, &mut matcher, &mut out);
    }
    assembler.finish();
    drain(&mut assembler, &mut matcher, &mut out);
    out
}

/// Searches as threads do, until it cannot be told whether the records of an event stand together. Returns the text of
/// the events found, and whether these are all.
fn by_pieces(log: &[u8], filter: &Filter, range: TimeRange, piece_bytes: usize) -> (Vec<u8>, bool) {
    let reading = Reading {
        dialect: Dialect::Own,
        timeout_s: TIMEOUT_S,
        range,
    };
    let mut output = Output(Vec::new());
    let mut order = InOrder::new(TIMEOUT_S);
    let mut search = || -> Result<(), NotOrdered> {
        let (mut extent, mut part) = (Extent::default(), Part::default());
        let (mut matcher, mut event) = (matcher(filter), Event::default());
        let place = |at: usize| {
            let (from, to) = (
                at.saturating_sub(BEFORE_BYTES),
                log.len().min(at + AFTER_BYTES),
            );
            let found = boundary(
                &log[from..to],
                at - from,
                from == 0,
                to == log.len(),
                reading,
            );
            found.map(|found| from + found)
        };
        for start in (0..log.len()).step_by(piece_bytes) {
            let end = match start + piece_bytes {
                end if end >= log.len() => log.len(),
                end => place(end)?,
            };
            let mut found = PieceEvents::default();
            let each = |view: EventView<'_>| {
                if !matcher.matches_view(view) {
                    return found.pass(view.time());
                }
                event.set(view);
                query::write_default(&event, Escape::Raw, &mut found.text);
                found.print(view.time(), Vec::new());
            };
            let next = part.events(&log[place(start)?.min(end)..end], reading, each)?;
            extent.append(next, reading.dialect)?;
            order.add(found, &mut output).expect("memory is written");
        }
        Ok(())
    };
    let is_all = search().is_ok();
    if is_all {
        order.end(&mut output).expect("memory is written");
    }
    (output.0, is_all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::times(256, 2048)))]

    #[test]
    fn blocks_without_the_literal_hold_no_event_that_matches(
        events in prop::collection::vec(event(), 1..40),
        filter in filter(),
        start_s in prop::sample::select(vec![0_i64, 1_700_000_001]),
        block_bytes in 50_usize..900,
    ) {
        let (log, range) = (log(&events), TimeRange { start_s, end_s: 0 });
        let found = by_literal(&log, &filter, range, block_bytes);
        let expected = by_machine(&log, &filter, range);
        prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(&expected), "{:?}", filter);
    }

    #[test]
    fn pieces_give_the_events_of_the_state_machine_in_its_order(
        events in prop::collection::vec(event(), 1..40),
        filter in filter(),
        start_s in prop::sample::select(vec![0_i64, 1_700_000_001]),
        piece_bytes in 50_usize..900,
    ) {
        let (log, range) = (log(&events), TimeRange { start_s, end_s: 0 });
        let (found, is_all) = by_pieces(&log, &filter, range, piece_bytes);
        let expected = by_machine(&log, &filter, range);
        let same = &expected[..found.len().min(expected.len())];
        prop_assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(same), "{:?}", filter);
        prop_assert!(!is_all || found.len() == expected.len());
    }

    /// Bytes are changed, lines cut and put together.
    #[test]
    fn damage_makes_no_difference(
        events in prop::collection::vec(event(), 1..20),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        filter in filter(),
        bytes in 50_usize..600,
    ) {
        let (mut log, range) = (log(&events), TimeRange::default());
        for (at, byte) in changes {
            let at = at.index(log.len());
            log[at] = byte;
        }
        let expected = by_machine(&log, &filter, range);
        let literal = by_literal(&log, &filter, range, bytes);
        prop_assert_eq!(String::from_utf8_lossy(&literal), String::from_utf8_lossy(&expected), "{:?}", filter);
        let (found, is_all) = by_pieces(&log, &filter, range, bytes);
        prop_assert!(expected.starts_with(&found), "{:?}", filter);
        prop_assert!(!is_all || found.len() == expected.len(), "{:?}", filter);
    }
}

#[test]
fn a_log_in_order_is_read_in_pieces_to_its_end() {
    let line = |number: u64| {
        let stamp = format!(
            "{}.{:03}:{number}",
            1_700_000_000 + number / 200,
            number % 200
        );
        format!("type=SYSCALL msg=audit({stamp}): arch=1 syscall=1 a0=1 a1=2 pid={number} key=\"k\"\ntype=CWD msg=audit({stamp}): cwd=\"/\"\n")
    };
    let log: String = (0..3000).map(line).collect();
    let (found, is_all) = by_pieces(
        log.as_bytes(),
        &Filter::default(),
        TimeRange::default(),
        5000,
    );
    assert!(is_all);
    let expected = by_machine(log.as_bytes(), &Filter::default(), TimeRange::default());
    assert!(found == expected && !found.is_empty());
}
