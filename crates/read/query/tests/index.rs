//! A search by index finds the same events in the same order as one that reads everything.

use proptest::prelude::*;
use query::index::{steps, Answer, Block, BlockUse, Blocks, Index, IndexAnswer, Needed, Subject};
use query::{Assembler, Dialect, Filter, Lines, Matcher, TimeRange};

/// Times of a log: mostly ascending, some late, some records of an event apart.
fn line() -> impl Strategy<Value = (u8, Vec<u8>)> {
    let kinds = vec![
        "SYSCALL",
        "SYSCALL",
        "PATH",
        "PATH",
        "CWD",
        "USER_LOGIN",
        "LOGIN",
        "PROCTITLE",
        "EOE",
        "SOCKADDR",
    ];
    let head = (
        0_u8..40,
        prop::sample::select(kinds),
        prop::bool::weighted(0.1),
    );
    let field = prop::sample::select(vec![
        &b" arch=c000003e syscall=1 success=yes exit=0 a0=1 a1=2"[..],
        b" arch=c000003e syscall=257 success=no exit=-13 a0=7ffd1 a1=2",
        b" ppid=1 pid=2 auid=3 uid=4 gid=5 euid=6 ses=7 ",
        b" ppid=2 pid=3 auid=1000 uid=0 gid=0 euid=0 ses=4294967295 ",
        b" pid=3 uid=0 auid=4294967295 ses=9 msg='op=login hostname=far.example terminal=ssh res=success'",
        b" comm=\"abcd\" exe=\"/bin/abcd\"",
        b" comm=\"a b exe=\"/bin/x\"",
        b" comm=6162636420 exe=\"/usr/sbin/nobody\"",
        b" key=\"watched\"",
        b" key=776174636865640177726974",
        b" name=\"./relative\" nametype=NORMAL",
        b" name=\"/etc/shadow\" nametype=NORMAL",
        b" name=2F746D702F6120 nametype=NORMAL",
        b" cwd=\"/home/user\"",
        b" saddr=02000050C0A8010A0000000000000000",
        b" tty=pts0 ses=1 res=1",
        b"\x1dUID=\"root\"",
        b"\xff\" pid=",
        b" uid=uid=5 ",
    ]);
    (head, prop::collection::vec(field, 0..7)).prop_map(|((step, kind, has_node), fields)| {
        let node = if has_node { "node=a " } else { "" };
        let mut line = format!("{node}type={kind} msg=audit(STAMP):").into_bytes();
        fields
            .iter()
            .for_each(|field| line.extend_from_slice(field));
        (step, line)
    })
}

/// A log in which steps say how time goes on.
fn log(lines: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let (mut ms, mut serial, mut out) = (1_700_000_000_000_u64, 10_u64, Vec::new());
    for (step, line) in lines {
        let (at, number) = match step {
            // Of the event before.
            0..=15 => (ms, serial),
            16..=27 => {
                serial += 1;
                (ms, serial)
            }
            28..=32 => {
                serial += 1;
                ms += 400;
                (ms, serial)
            }
            33 => {
                serial += 1;
                ms += 2600;
                (ms, serial)
            }
            34 => {
                serial += 1;
                ms += 90_000;
                (ms, serial)
            }
            // Of an earlier event, or late.
            35..=37 => (ms, serial - 1),
            38 => {
                serial += 1;
                (ms - 700, serial)
            }
            _ => {
                serial += 1;
                (ms - 200_000, serial)
            }
        };
        let text = String::from_utf8_lossy(&line[..]).into_owned();
        let stamp = format!("{}.{:03}:{number}", at / 1000, at % 1000);
        // Lossy text would change the bytes of damaged lines.
        let place = text.find("STAMP").expect("a stamp");
        out.extend_from_slice(&line[..place]);
        out.extend_from_slice(stamp.as_bytes());
        out.extend_from_slice(&line[place + 5..]);
        out.push(b'\n');
    }
    out
}

/// A filter with one thing changed.
fn with(change: impl Fn(&mut Filter)) -> Filter {
    let mut filter = Filter::default();
    change(&mut filter);
    filter
}

fn filters() -> Vec<Filter> {
    let text = |text: &str| Some(text.as_bytes().to_vec());
    vec![
        with(|all| all.key = text("watched")),
        with(|all| (all.key, all.is_exact) = (text("writ"), true)),
        with(|all| all.comm = text("abcd")),
        with(|all| (all.exe, all.success) = (text("nobody"), Some(false))),
        with(|all| all.file = text("user/./relative")),
        with(|all| (all.file, all.key) = (text("shadow"), text("watched"))),
        with(|all| all.host = text("192.168.1.10")),
        with(|all| all.host = text("far.example")),
        with(|all| all.terminal = text("pts0")),
        with(|all| all.terminal = text("none")),
        with(|all| all.pid = Some(2)),
        with(|all| (all.ppid, all.uid) = (Some(2), Some(5))),
        with(|all| (all.auid, all.exit) = (Some(1000), Some(-13))),
        with(|all| {
            (all.uid, all.euid, all.auid) = (Some(6), Some(6), Some(6));
            all.is_any_user = true;
        }),
        with(|all| all.session = Some(9)),
        with(|all| all.serial = Some(20)),
        with(|all| all.syscall = Some(257)),
        with(|all| all.kinds = vec![1006, 1112]),
        with(|_| {}),
    ]
}

fn found(assembler: &mut Assembler, matcher: &mut Matcher, out: &mut Vec<u8>) {
    while let Some(event) = assembler.pop() {
        if matcher.matches(&event) {
            query::write_default(&event, query::Escape::Raw, out);
        }
    }
}

fn by_reading(logs: &[Vec<u8>], filter: &Filter, range: TimeRange) -> Vec<u8> {
    let mut matcher = Matcher::new(filter.clone(), Dialect::Own, |_| None);
    let (mut assembler, mut out) = (Assembler::new(Dialect::Own, 2, range), Vec::new());
    for log in logs {
        let mut lines = Lines::new(&log[..], None);
        while let Some(line) = lines.next_line().expect("memory is read") {
            assembler.add(line);
            found(&mut assembler, &mut matcher, &mut out);
        }
    }
    assembler.finish();
    found(&mut assembler, &mut matcher, &mut out);
    out
}

/// Also counts the blocks that were left out.
fn by_index(
    logs: &[Vec<u8>],
    indexes: &[Index],
    filter: &Filter,
    range: TimeRange,
) -> (Vec<u8>, usize) {
    let mut matcher = Matcher::new(filter.clone(), Dialect::Own, |_| None);
    let needed = Needed::of(filter);
    let blocks: Vec<&Block> = indexes.iter().flat_map(|index| &index.blocks).collect();
    let answers: Vec<Answer> = indexes
        .iter()
        .flat_map(|index| {
            let bytes = index.to_bytes();
            let asked =
                IndexAnswer::read(&bytes[..], bytes.len() as u64, &needed).expect("an index");
            assert!(asked.subject == index.subject && asked.blocks == index.blocks);
            asked.answers
        })
        .collect();
    let texts: Vec<&[u8]> = indexes
        .iter()
        .zip(logs)
        .flat_map(|(index, log)| {
            index
                .blocks
                .iter()
                .map(|block| &log[block.start as usize..block.end as usize])
        })
        .collect();
    let steps = steps(&blocks, range, |set| {
        let mut all = answers[set[0]].clone();
        set.iter().for_each(|number| all.merge(&answers[*number]));
        all.is_yes()
    });
    let (mut assembler, mut out) = (Assembler::new(Dialect::Own, 2, range), Vec::new());
    let mut left_out = 0;
    for (step, text) in steps.iter().zip(texts) {
        match step {
            BlockUse::Read => {
                let mut lines = Lines::new(text, None);
                while let Some(line) = lines.next_line().expect("memory is read") {
                    assembler.add(line);
                    found(&mut assembler, &mut matcher, &mut out);
                }
                continue;
            }
            BlockUse::LeaveOut(Some(sec)) => assembler.leave_out(*sec),
            BlockUse::LeaveOut(None) => {}
        }
        left_out += 1;
        found(&mut assembler, &mut matcher, &mut out);
    }
    assembler.finish();
    found(&mut assembler, &mut matcher, &mut out);
    (out, left_out)
}

fn index(log: &[u8], block_bytes: u64) -> Index {
    let subject = Subject {
        device: 1,
        inode: 2,
        length: log.len() as u64,
        changed_ns: 3,
        ends: [4; 32],
    };
    let (blocks, terms) = Blocks::of_sizes(log, block_bytes, 600)
        .all()
        .expect("memory is read");
    let made = Index {
        subject,
        blocks,
        terms,
    };
    let bytes = made.to_bytes();
    let read = Index::from_bytes(&bytes).expect("what was written");
    assert_eq!(read.to_bytes(), bytes);
    read
}

/// Whether a search over `logs` gives the same with indexes. Returns how many blocks were left out.
fn compare(logs: &[Vec<u8>], block_bytes: u64) -> Result<usize, TestCaseError> {
    let indexes: Vec<Index> = logs.iter().map(|log| index(log, block_bytes)).collect();
    let mut left_out = 0;
    let base = 1_700_000_000;
    for filter in filters() {
        for (start_s, end_s) in [
            (0, 0),
            (base + 1, 0),
            (0, base + 3),
            (base + 1, base + 95),
            (base - 300, base),
        ] {
            let range = TimeRange { start_s, end_s };
            let (out, left) = by_index(logs, &indexes, &filter, range);
            let read = by_reading(logs, &filter, range);
            prop_assert_eq!(
                String::from_utf8_lossy(&out),
                String::from_utf8_lossy(&read),
                "{:?} {:?}",
                filter,
                range
            );
            left_out += left;
        }
    }
    Ok(left_out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::times(8, 32)))]

    #[test]
    fn a_search_by_index_finds_what_a_search_without_finds(
        lines in prop::collection::vec(line(), 1..120),
        parts in 1_usize..4,
        block_bytes in 50_u64..900,
    ) {
        let count = lines.len().div_ceil(parts);
        let text = log(&lines);
        let mut logs = vec![Vec::new()];
        for (number, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if number > 0 && number % count == 0 {
                logs.push(Vec::new());
            }
            logs.last_mut().expect("a log").extend_from_slice(line);
        }
        compare(&logs, block_bytes)?;
    }

    /// Bytes are changed, lines cut and put together.
    #[test]
    fn damage_makes_no_difference(
        lines in prop::collection::vec(line(), 1..60),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        block_bytes in 50_u64..600,
    ) {
        let mut text = log(&lines);
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        compare(&[text], block_bytes)?;
    }
}

proptest! {
    /// Any bytes whose sum is right are refused, or an index.
    #[test]
    fn bytes_that_are_no_index_do_no_harm(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&b"TARSIDX1"[..], &body].concat();
        prop_assert!(Index::from_bytes(&bytes).is_err());
        prop_assert!(IndexAnswer::read(&bytes[..], bytes.len() as u64, &Needed::default()).is_none());
    }
}

#[test]
fn blocks_without_the_text_are_left_out() {
    let lines: Vec<_> = (0..2000).map(|number| {
        let key = if number == 1500 { "rare" } else { "common" };
        (28, format!("type=SYSCALL msg=audit(STAMP): arch=c000003e syscall=1 success=yes exit=0 a0=1 a1=2 pid={number} key=\"{key}\"").into_bytes())
    }).collect();
    let logs = [log(&lines)];
    let index = [index(&logs[0], 4000)];
    let filter = Filter {
        key: Some(b"rare".to_vec()),
        ..Filter::default()
    };
    let (out, left_out) = by_index(&logs, &index, &filter, TimeRange::default());
    assert!(String::from_utf8_lossy(&out).contains("pid=1500 key"));
    assert_eq!(left_out, index[0].blocks.len() - 1);
}
