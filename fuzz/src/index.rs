//! Indexes of logs, and expressions.

use query::expr::Expr;
use query::index::{steps, Block, BlockUse, Blocks, Index, IndexAnswer, Needed, Subject, Terms};
use query::{
    Assembler, Dialect, Escape, Filter, Interpreter, Lines, MachineNames, Matcher, TimeRange,
};

/// Seconds of `end_of_event_timeout`.
const TIMEOUT_S: u64 = 2;

/// The bytes as an index, which may use a search; then, with the first line as the key that is looked for, as a log:
/// a search by its index finds what a search without finds.
pub(crate) fn index(data: &[u8]) {
    let _ = IndexAnswer::read(data, data.len() as u64, &Needed::default());
    if let Some(index) = Index::from_body(data) {
        let blocks: Vec<&Block> = index.blocks.iter().collect();
        steps(
            &blocks,
            TimeRange {
                start_s: 5,
                end_s: 500,
            },
            |set| set.len() > 1,
        );
        let bytes = index.to_bytes();
        let again = Index::from_bytes(&bytes).expect("what was written");
        assert!(again.to_bytes() == bytes);
        let mut needed = Needed::default();
        needed.add_text(data);
        let asked = IndexAnswer::read(&bytes[..], bytes.len() as u64, &needed).expect("an index");
        assert!(asked.subject == index.subject && asked.blocks == index.blocks);
        for (answer, terms) in asked.answers.iter().zip(&index.terms) {
            assert_eq!(*answer, needed.answer(terms));
        }
    }
    let end = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (key, log) = data.split_at(end);
    let filter = Filter {
        key: Some(key.to_vec()),
        ..Filter::default()
    };
    let (blocks, terms) = Blocks::of_sizes(log, 150, 200)
        .all()
        .expect("memory is read");
    let subject = Subject {
        device: 0,
        inode: 0,
        length: log.len() as u64,
        changed_ns: 0,
        ends: [0; 32],
    };
    let index = Index {
        subject,
        blocks,
        terms,
    };
    assert_eq!(
        found(log, &index, &filter, true),
        found(log, &index, &filter, false)
    );
}

fn found(log: &[u8], index: &Index, filter: &Filter, by_index: bool) -> Vec<u8> {
    let mut matcher = Matcher::new(filter.clone(), Dialect::Own, |_| None);
    let needed = Needed::of(filter);
    let blocks: Vec<&Block> = index.blocks.iter().collect();
    let steps = steps(&blocks, TimeRange::default(), |set| {
        let mut all = Terms::default();
        set.iter()
            .for_each(|number| all.merge(&index.terms[*number]));
        !by_index || needed.may_be_in(&all)
    });
    let (mut assembler, mut out) = (
        Assembler::new(Dialect::Own, TIMEOUT_S, TimeRange::default()),
        Vec::new(),
    );
    for (block, step) in index.blocks.iter().zip(steps) {
        match step {
            BlockUse::LeaveOut(None) => {}
            BlockUse::LeaveOut(Some(sec)) => assembler.leave_out(sec),
            BlockUse::Read => {
                let mut lines = Lines::new(&log[block.start as usize..block.end as usize], None);
                while let Some(line) = lines.next_line().expect("memory is read") {
                    assembler.add(line);
                    look(&mut assembler, &mut matcher, &mut out);
                }
            }
        }
        look(&mut assembler, &mut matcher, &mut out);
    }
    assembler.finish();
    look(&mut assembler, &mut matcher, &mut out);
    out
}

fn look(assembler: &mut Assembler, matcher: &mut Matcher, out: &mut Vec<u8>) {
    while let Some(event) = assembler.pop() {
        if matcher.matches(&event) {
            query::write_raw(&event, Dialect::Own, out);
        }
    }
}

/// An expression on the first line, a log on the others.
pub(crate) fn expression(data: &[u8]) {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (text, log) = data.split_at(end);
    let Ok(expr) = Expr::parse(&String::from_utf8_lossy(text)) else {
        return;
    };
    let interpreter = Interpreter::new(Dialect::Own, Escape::Raw, MachineNames::none());
    let mut assembler = Assembler::new(Dialect::Own, TIMEOUT_S, TimeRange::default());
    let mut lines = Lines::new(log, None);
    while let Some(line) = lines.next_line().expect("memory is read") {
        assembler.add(line);
    }
    assembler.finish();
    while let Some(event) = assembler.pop() {
        expr.matches(&event, &interpreter);
    }
}
