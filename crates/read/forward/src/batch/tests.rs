//! Batches cover the log without a hole, and are made again the same.

#![allow(clippy::single_range_in_vec_init)] // one file of so many events

use super::*;
use crate::config::Start;
use crate::cursor::{Cursor, Gap};
use crate::spool::Spool;
use std::path::Path;
use std::time::Duration;

const SERIES: Series = Series(1);

fn recipe(exclude: &[&str]) -> Recipe {
    Recipe {
        format: "raw".into(),
        host: "web1".into(),
        keys: Words {
            exclude: exclude.iter().map(|word| (*word).to_owned()).collect(),
            ..Words::default()
        },
        types: Words::default(),
        aggregate: Words::default(),
    }
}

fn want(bytes_max: usize) -> Want {
    Want {
        bytes_max,
        messages_max: 1 << 20,
        until: None,
        quiet: Duration::MAX,
    }
}

fn event(number: usize) -> String {
    format!(
        "type=SYSCALL msg=audit(1.000:{number}): n={number} key=\"k{}\"\n\
         type=PROCTITLE msg=audit(1.000:{number}): proctitle=61\n",
        number % 3
    )
}

fn spool(dir: &Path, files: &[std::ops::Range<usize>]) -> Spool {
    let log = dir.join("audit.log");
    let mut spool = Spool::open(&dir.join("forward"), &log).expect("a spool");
    for range in files {
        let _ = std::fs::rename(&log, dir.join("audit.log.1"));
        let text: String = range.clone().map(event).collect();
        std::fs::write(&log, text).expect("write");
        std::fs::write(dir.join("audit.log.seal"), "sealed").expect("write");
        spool.refresh(Start::Oldest).expect("refresh");
        let _ = std::fs::rename(dir.join("audit.log.seal"), dir.join("audit.log.1.seal"));
    }
    spool
}

/// A batch without the times at which seals and gaps were read.
fn timeless(batch: &Batch) -> Vec<(Kind, Position, Position, u64, u64, Vec<u8>)> {
    let one = |m: &Message| {
        let body = match m.kind {
            Kind::Gap | Kind::Repeats => Vec::new(),
            _ => batch.body(m).to_vec(),
        };
        (m.kind, m.from, m.to, m.events, m.filtered, body)
    };
    batch.messages.iter().map(one).collect()
}

/// Every message up to the end of the log, each batch made twice.
fn all(
    spool: &Spool,
    mut cursor: Cursor,
    recipe: &Recipe,
    bytes_max: usize,
) -> Vec<(Message, Vec<u8>)> {
    let mut messages = Vec::new();
    while let Some(made) = make(spool, &cursor, SERIES, recipe, want(bytes_max)).expect("a batch") {
        for mark in &made.marks {
            cursor.marks.add(mark.clone());
        }
        if let Some(batch) = &made.batch {
            let again = Want {
                until: Some(made.to),
                bytes_max: 1,
                ..want(1)
            };
            let again = make(spool, &cursor, SERIES, recipe, again).expect("the batch again");
            let again = again.expect("a batch").batch.expect("messages");
            assert_eq!(timeless(&again), timeless(batch));
            cursor.acked = made.to;
            cursor.gap = None;
            messages.extend(
                batch
                    .messages
                    .iter()
                    .map(|m| (m.clone(), batch.body(m).to_vec())),
            );
        }
        cursor.read = made.to;
        cursor.filtered = made.filtered;
    }
    messages
}

#[test]
fn messages_of_any_batch_size_cover_log_and_seals() {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = spool(dir.path(), &[0..40, 40..41, 41..100]);
    for bytes_max in [1, 150, 4000, 1 << 20] {
        let messages = all(&spool, Cursor::default(), &recipe(&[]), bytes_max);
        let mut from = Position::default();
        for (message, _) in &messages {
            assert_eq!(message.from, from);
            from = message.to;
        }
        let of = |kind| messages.iter().filter(move |(m, _)| m.kind == kind);
        let text: String = of(Kind::Event)
            .map(|(_, body)| String::from_utf8_lossy(body).into_owned() + "\n")
            .collect();
        assert_eq!(text, (0..100).map(event).collect::<String>());
        let seals: Vec<u8> = of(Kind::Seal).flat_map(|(_, body)| body.clone()).collect();
        assert_eq!(seals, b"sealedsealedsealed");
    }
}

#[test]
fn filtered_events_are_counted_in_the_message_that_follows_or_ends_the_batch() {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = spool(dir.path(), &[0..30]);
    for bytes_max in [1, 300, 1 << 20] {
        let messages = all(&spool, Cursor::default(), &recipe(&["k1"]), bytes_max);
        let count = |f: fn(&Message) -> u64| messages.iter().map(|(m, _)| f(m)).sum::<u64>();
        assert_eq!(count(|m| m.events), 20);
        assert_eq!(count(|m| m.filtered), 10);
    }
}

#[test]
fn events_that_are_alike_are_counted_where_the_last_of_them_ends() {
    let dir = tempfile::tempdir().expect("a directory");
    let line = |number: usize, what: &str| {
        format!("type=SYSCALL msg=audit(1.000:{number}): pid={number} name={what} key=\"k\"\n")
    };
    let acts = ["a", "b", "a", "a", "c", "b", "d", "a"];
    let mut spool =
        Spool::open(&dir.path().join("forward"), &dir.path().join("audit.log")).expect("a spool");
    let text: String = (0..800).map(|n| line(n, acts[n % 8])).collect();
    std::fs::write(dir.path().join("audit.log"), text).expect("write");
    spool.refresh(Start::Oldest).expect("refresh");
    let recipe = Recipe {
        aggregate: Words {
            include: vec!["k".into()],
            ..Words::default()
        },
        ..recipe(&[])
    };
    for (bytes_max, sent) in [(1, 800), (1 << 20, 4)] {
        let messages = all(&spool, Cursor::default(), &recipe, bytes_max);
        let mut from = Position::default();
        for (message, _) in &messages {
            assert_eq!(message.from, from);
            from = message.to;
        }
        let of = |kind| messages.iter().filter(move |(m, _)| m.kind == kind);
        let count = |kind| of(kind).map(|(m, _)| m.events).sum::<u64>();
        let filtered: u64 = messages.iter().map(|(m, _)| m.filtered).sum();
        assert_eq!(count(Kind::Event), sent, "{bytes_max}");
        assert_eq!(count(Kind::Event) + filtered, 800, "{bytes_max}");
        assert_eq!(count(Kind::Repeats), filtered, "{bytes_max}");
    }
    let messages = all(&spool, Cursor::default(), &recipe, 1 << 20);
    let (last, body) = messages.last().expect("a message");
    let body = String::from_utf8_lossy(body);
    assert_eq!((last.kind, last.events), (Kind::Repeats, 399));
    assert!(
        body.contains("op=forward-repeats first=1/0/0 ") && body.contains(" events=399 "),
        "{body}"
    );
    // Two are no more than an event and a count.
    let only = Recipe {
        aggregate: recipe.aggregate.clone(),
        ..recipe
    };
    std::fs::write(
        dir.path().join("audit.log"),
        [line(0, "a"), line(1, "a")].concat(),
    )
    .expect("write");
    let messages = all(&spool, Cursor::default(), &only, 1 << 20);
    let kinds: Vec<Kind> = messages.iter().map(|(m, _)| m.kind).collect();
    assert_eq!(kinds, [Kind::Event, Kind::Event]);
}

#[test]
fn an_event_whose_end_is_not_known_waits() {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = spool(dir.path(), &[0..1]);
    let log = dir.path().join("audit.log");
    let text = std::fs::read_to_string(&log).expect("read");
    let open = text + "type=SYSCALL msg=audit(1.000:9): cut";
    std::fs::write(&log, &open).expect("write");
    let waiting = Want {
        quiet: Duration::ZERO,
        ..want(1 << 20)
    };
    let cursor = Cursor::default();
    let first = make(&spool, &cursor, SERIES, &recipe(&[]), waiting).expect("a batch");
    assert_eq!(
        first
            .and_then(|made| made.batch)
            .map(|batch| batch.events()),
        Some(1)
    );
    std::fs::write(&log, open + " off\n").expect("write");
    let settled = make(&spool, &cursor, SERIES, &recipe(&[]), want(1 << 20)).expect("a batch");
    assert_eq!(
        settled
            .and_then(|made| made.batch)
            .map(|batch| batch.events()),
        Some(2)
    );
}

#[test]
fn a_log_that_changed_before_a_place_is_not_read_from_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = spool(dir.path(), &[0..20]);
    let log = dir.path().join("audit.log");
    let mut cursor = Cursor::default();
    let first = make(&spool, &cursor, SERIES, &recipe(&[]), want(300)).expect("a batch");
    let first = first.expect("a batch");
    for mark in first.marks {
        cursor.marks.add(mark);
    }
    let text = std::fs::read(&log).expect("read");
    let end = first.to.offset as usize;
    let edited = |at: usize| {
        let mut text = text.clone();
        text[at] ^= 1;
        text
    };
    let next = Cursor {
        acked: first.to,
        read: first.to,
        ..cursor.clone()
    };
    let again = Want {
        until: Some(first.to),
        ..want(300)
    };
    for (text, is_same) in [
        (text.clone(), true),
        (edited(end), true),
        (edited(end - 1), false),
        (text[..end - 1].to_vec(), false),
        (Vec::new(), false),
    ] {
        std::fs::write(&log, text).expect("write");
        for (cursor, want) in [(&next, want(300)), (&cursor, again)] {
            match make(&spool, cursor, SERIES, &recipe(&[]), want) {
                Ok(made) => assert!(is_same && made.is_some()),
                Err(MakeError::Changed { file, .. }) => assert!(!is_same && file == 1),
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_gap_is_said_before_what_follows_it() {
    let dir = tempfile::tempdir().expect("a directory");
    let spool = spool(dir.path(), &[0..5, 5..8]);
    let cursor = Cursor {
        gap: Some(Gap {
            to: Position {
                file: 2,
                ..Position::default()
            },
            events: 5,
            cause: "hold".into(),
        }),
        ..Cursor::default()
    };
    let messages = all(&spool, cursor, &recipe(&[]), 1 << 20);
    let (gap, text) = &messages[0];
    assert_eq!((gap.kind, gap.events), (Kind::Gap, 5));
    let text = String::from_utf8_lossy(text);
    assert!(
        text.contains("op=forward-gap") && text.contains("events=5 cause=hold"),
        "{text}"
    );
    let events = messages.iter().filter(|(m, _)| m.kind == Kind::Event);
    assert_eq!(events.count(), 3);
}

#[test]
fn recipes_are_read_as_they_are_written() {
    let recipe = Recipe {
        types: Words {
            include: vec!["EXECVE".into()],
            ..Words::default()
        },
        aggregate: Words {
            exclude: vec!["c".into()],
            ..Words::default()
        },
        ..recipe(&["a", "b"])
    };
    let text = recipe.to_text();
    let (of_before, _) = text.rsplit_once('\t').expect("columns");
    assert_eq!(
        Recipe::from_text(of_before).map(|recipe| recipe.aggregate),
        Some(Words::default())
    );
    assert_eq!(Recipe::from_text(&text), Some(recipe));
    assert_eq!(Recipe::from_text("raw"), None);
}
