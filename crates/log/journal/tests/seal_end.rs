//! Tests of the ends of sealed logs: in order, or anywhere.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{event, open, quiet};
use conf::Config;
use journal::seal::verify::{End, Options, Report};
use journal::seal::{init, seal_path, state_path, verify, VerificationKey};
use journal::{log_files, Journal};

const ALL: Options = Options {
    is_complete: true,
    age_max: None,
};

fn sealed() -> Config {
    Config {
        seal: true,
        ..quiet()
    }
}

fn write(journal: &mut Journal, numbers: std::ops::Range<u64>) {
    for number in numbers {
        journal.append(&event(number, 80), 1);
        journal.commit().unwrap();
    }
}

fn report(log: &Path, key: &VerificationKey, options: Options) -> Report {
    verify(&log_files(log).unwrap(), key, options).unwrap()
}

/// The ends of the entries of a seal, and how many bytes of the log it covers at each; whether the
/// entry is the one of an orderly close. (`entry.rs` has the format.)
fn borders(seal: &[u8]) -> Vec<(usize, usize, bool)> {
    const HEADER_BYTES: usize = 88;
    let number = |at: usize, len: usize| {
        let bytes = seal[at..at + len].iter().rev();
        bytes.fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let (mut at, mut covered, mut borders) = (HEADER_BYTES, 0, Vec::new());
    while at < seal.len() {
        let (length, body) = (number(at, 4), at + 4);
        let is_checkpoint = seal[body] == 3;
        if matches!(seal[body], 1 | 2) {
            covered = number(body + 17, 8) + number(body + 25, 8);
        }
        at = body + length + 32 + if is_checkpoint { 64 } else { 0 };
        borders.push((at, covered, is_checkpoint && seal[body + 17] == 2));
    }
    borders
}

struct Copied {
    dir: tempfile::TempDir,
}

impl Copied {
    /// A log and its seal on another host, each cut after so many bytes.
    fn new(log: &[u8], seal: &[u8]) -> Copied {
        let copied = Copied {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::write(copied.log(), log).unwrap();
        std::fs::write(seal_path(&copied.log()), seal).unwrap();
        copied
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }
}

#[test]
fn a_log_cut_with_its_seal_at_any_entry_is_told_from_one_that_was_closed() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let key = init(&log).unwrap();
    let mut journal = open(&log, &sealed());
    write(&mut journal, 0..6);
    journal.close();
    let mut journal = open(&log, &sealed());
    write(&mut journal, 6..9);
    journal.close();
    let (bytes, seal) = (
        std::fs::read(&log).unwrap(),
        std::fs::read(seal_path(&log)).unwrap(),
    );
    let borders = borders(&seal);
    let last = borders.last().unwrap();
    assert_eq!((last.0, last.1, last.2), (seal.len(), bytes.len(), true));
    assert_eq!(borders.iter().filter(|border| border.2).count(), 2);
    let public = key.without_secret();
    for (end, covered, is_close) in borders {
        let copied = Copied::new(&bytes[..covered], &seal[..end]);
        for key in [&key, &public] {
            let report = report(&copied.log(), key, ALL);
            assert_eq!(report.finding, None, "cut at byte {end} of the seal");
            let expected = if is_close { End::InOrder } else { End::Open };
            assert_eq!(report.end, expected, "cut at byte {end} of the seal");
        }
        // A single file that is given as one of several ends no better.
        let alone = Options {
            is_complete: false,
            ..ALL
        };
        let report = report(&copied.log(), &key, alone);
        assert_eq!(report.end == End::Open, !is_close);
    }
    // Cut to the header: nothing was ever sealed, nor closed.
    let copied = Copied::new(b"", &seal[..88]);
    assert_eq!(report(&copied.log(), &key, ALL).end, End::Open);
}

#[test]
fn the_journal_that_writes_the_log_vouches_for_its_end_on_its_own_host_only() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let key = init(&log).unwrap();
    let mut journal = open(&log, &sealed());
    write(&mut journal, 0..3);
    assert_eq!(report(&log, &key, ALL).end, End::Vouched);
    let bytes = std::fs::read(&log).unwrap();
    let copied = Copied::new(&bytes, &std::fs::read(seal_path(&log)).unwrap());
    assert_eq!(report(&copied.log(), &key, ALL).end, End::Open);
    // An age that was asked for says as much as the user wants to know.
    let young = Options {
        age_max: Some(Duration::from_secs(3600)),
        ..ALL
    };
    assert_eq!(report(&copied.log(), &key, young).end, End::Vouched);
    // A rotated file that is given without its successor ends in order: it says so itself.
    journal.rotate().unwrap().unwrap();
    let rotated = log_files(&log).unwrap().remove(0);
    let alone = Options {
        is_complete: false,
        ..ALL
    };
    let found = verify(&[rotated], &key, alone).unwrap();
    assert_eq!((found.finding, found.end), (None, End::InOrder));
    journal.close();
    assert_eq!(report(&log, &key, ALL).end, End::InOrder);
}

#[test]
fn keys_that_were_taken_back_leave_nothing_and_can_be_made_anew() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    init(&log).unwrap();
    // A second name shows what the blocks hold after the file is gone.
    let witness = dir.path().join("witness");
    std::fs::hard_link(state_path(&log), &witness).unwrap();
    journal::seal::take_back(&log);
    assert!(!state_path(&log).exists());
    let left = std::fs::read(&witness).unwrap();
    assert!(left.iter().all(|&byte| byte == 0), "{left:x?}");
    init(&log).unwrap();
}
