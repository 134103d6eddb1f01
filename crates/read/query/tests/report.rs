//! Reports of parts of a log, merged, are those that the state machine makes of the whole.

use proptest::prelude::*;
use query::report::runs::{boundary, Extent, NotOrdered, Part, Reading};
use query::report::{Changes, Kind, Request, Summary};
use query::{Assembler, Dialect, Escape, TimeRange};

fn request(kind: Kind, dialect: Dialect, range: TimeRange) -> Request {
    Request {
        kind,
        is_summary: true,
        success: None,
        nodes: Vec::new(),
        changes: Changes::All,
        no_config: false,
        interpret: false,
        escape: Escape::Tty,
        start_s: range.start_s,
        end_s: range.end_s,
        dialect,
        user_name: |_| None,
        has_hosts: false,
    }
}

/// The report that the state machine makes of all lines.
fn whole(text: &[u8], request: &Request, range: TimeRange) -> Vec<u8> {
    let mut summary = Summary::new(request.clone(), 0);
    let mut assembler = Assembler::new(request.dialect, 2, range);
    let mut last = (0, 0);
    let mut take = |assembler: &mut Assembler| {
        while let Some(event) = assembler.pop() {
            last = last.max((event.key().sec, event.key().msec));
            summary.add(event.view());
            assembler.recycle(event);
        }
    };
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        assembler.add(line);
        take(&mut assembler);
    }
    assembler.finish();
    take(&mut assembler);
    let mut out = Vec::new();
    summary.write(assembler.first_time().unwrap_or((0, 0)), last, &mut out);
    out
}

/// The report of parts that begin near `places`, the last part first.
fn parts(
    text: &[u8],
    places: &[usize],
    request: &Request,
    range: TimeRange,
) -> Result<Vec<u8>, NotOrdered> {
    let reading = Reading {
        dialect: request.dialect,
        timeout_s: 2,
        range,
    };
    let mut cuts = vec![0];
    for place in places {
        cuts.push(boundary(text, *place, true, true, reading)?);
    }
    cuts.push(text.len());
    let mut extents = Vec::new();
    let mut merged = Summary::new(request.clone(), 0);
    for (number, cut) in cuts.windows(2).enumerate().rev() {
        let mut summary = Summary::new(request.clone(), number as u32);
        let part = &text[cut[0]..cut[1].max(cut[0])];
        extents.push(Part::default().events(part, reading, |event| summary.add(event))?);
        merged.merge(summary);
    }
    let mut extent = Extent::default();
    for next in extents.into_iter().rev() {
        extent.append(next, request.dialect)?;
    }
    let mut out = Vec::new();
    let first = extent.first_record.unwrap_or((0, 0));
    merged.write(first, extent.last_inside.unwrap_or((0, 0)), &mut out);
    Ok(out)
}

fn log() -> Vec<Vec<u8>> {
    [
        &include_bytes!("../../../log/record/tests/corpus/06-exec.enriched.log")[..],
        include_bytes!("../../../log/record/tests/corpus/10-net-saddrfam.raw.log"),
    ]
    .iter()
    .flat_map(|text| text.split_inclusive(|byte| *byte == b'\n'))
    .map(<[u8]>::to_vec)
    .collect()
}

const KINDS: [Kind; 6] = [
    Kind::Main,
    Kind::File,
    Kind::Exe,
    Kind::Pid,
    Kind::User,
    Kind::Event,
];

fn range() -> impl Strategy<Value = TimeRange> {
    // The seconds of the two logs.
    let second = prop_oneof![Just(0), 1_795_229_640_i64..1_795_229_760];
    (second.clone(), second).prop_map(|(start_s, end_s)| TimeRange { start_s, end_s })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn merged_parts_are_the_whole(
        kind in 0..KINDS.len(),
        is_own: bool,
        places in prop::collection::vec(1..20_000_usize, 0..5),
        swaps in prop::collection::vec((0..60_usize, 0..60_usize), 0..3),
        range in range(),
        first in 0..2_usize,
    ) {
        let mut lines = log();
        let half = lines.len() / 2;
        // Either of the logs, or both, which are not in order.
        lines.drain(..half * first);
        for (one, two) in &swaps {
            let (one, two) = (one % lines.len(), two % lines.len());
            lines.swap(one, two);
        }
        let text = lines.concat();
        let dialect = if is_own { Dialect::Own } else { Dialect::Compat };
        let request = request(KINDS[kind], dialect, range);
        let mut places: Vec<usize> = places.into_iter().filter(|place| *place < text.len()).collect();
        places.sort_unstable();
        // What is not in order is refused; `a_log_of_the_kernel_is_read_in_parts` says that the rest is not.
        if let Ok(merged) = parts(&text, &places, &request, range) {
            let whole = whole(&text, &request, range);
            let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            prop_assert_eq!(shown(&merged), shown(&whole));
        }
    }
}

#[test]
fn a_log_of_the_kernel_is_read_in_parts() {
    let text = include_bytes!("../../../log/record/tests/corpus/06-exec.enriched.log");
    let range = TimeRange::default();
    for kind in KINDS {
        for dialect in [Dialect::Own, Dialect::Compat] {
            let request = request(kind, dialect, range);
            let merged = parts(text, &[3000, 3001, 9000], &request, range);
            assert_eq!(merged, Ok(whole(text, &request, range)), "{kind:?}");
        }
    }
}

#[test]
fn times_of_neighbours_that_descend_are_read_in_parts() {
    let text = include_bytes!("../../../log/record/tests/corpus/53-fork-clone.enriched.log");
    let range = TimeRange::default();
    for kind in KINDS {
        let request = request(kind, Dialect::Own, range);
        for places in [&[][..], &[2000, 9000]] {
            let merged = parts(text, places, &request, range);
            assert_eq!(
                merged,
                Ok(whole(text, &request, range)),
                "{kind:?} {places:?}"
            );
        }
    }
}

#[test]
fn with_compat_parts_between_which_times_go_back_are_refused() {
    let text = log().concat();
    let range = TimeRange::default();
    let back = text.len()
        - include_bytes!("../../../log/record/tests/corpus/10-net-saddrfam.raw.log").len();
    for (dialect, is_refused) in [(Dialect::Compat, true), (Dialect::Own, false)] {
        let request = request(Kind::File, dialect, range);
        assert_eq!(parts(&text, &[back], &request, range).is_err(), is_refused);
    }
}
