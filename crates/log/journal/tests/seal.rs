//! Seals: an untouched log passes; any other is detected.

mod common;

use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{event, open, quiet, says};
use conf::Config;
use journal::seal::verify::{Options, Report, VerifyError};
use journal::seal::{init, seal_path, state_path, verify, VerificationKey};
use journal::{log_files, Journal};
use proptest::prelude::*;

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

struct Sealed {
    dir: tempfile::TempDir,
    key: VerificationKey,
}

impl Sealed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = init(&dir.path().join("audit.log")).unwrap();
        Sealed { dir, key }
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }

    fn verify(&self) -> Report {
        self.verify_with(&self.key, ALL).unwrap()
    }

    fn verify_with(&self, key: &VerificationKey, options: Options) -> Result<Report, VerifyError> {
        verify(&log_files(&self.log()).unwrap(), key, options)
    }

    /// The finding as text; empty if there is none.
    fn finding(&self) -> String {
        let finding = self.verify().finding;
        finding.map_or_else(String::new, |finding| finding.to_string())
    }

    /// Makes a few events per commit, one commit for each number.
    fn write(&self, journal: &mut Journal, numbers: std::ops::Range<u64>) {
        for number in numbers {
            for part in 0..number % 3 + 1 {
                journal.append(
                    &event(10 * number + part, 40 + (number % 7) as usize * 30),
                    1,
                );
            }
            journal.commit().unwrap();
        }
    }

    /// Writes three files with two starts, each ended in order.
    fn fill(&self) {
        let mut journal = open(&self.log(), &sealed());
        self.write(&mut journal, 0..15);
        journal.rotate().unwrap().unwrap();
        self.write(&mut journal, 15..30);
        journal.close();
        let mut journal = open(&self.log(), &sealed());
        self.write(&mut journal, 30..40);
        journal.rotate().unwrap().unwrap();
        self.write(&mut journal, 40..50);
        journal.close();
    }

    fn files(&self) -> Vec<PathBuf> {
        let logs = log_files(&self.log()).unwrap();
        let seals = logs.iter().map(|log| seal_path(log));
        logs.iter().cloned().chain(seals).collect()
    }
}

#[test]
fn an_untouched_log_passes_whatever_its_life_was() {
    let sealed_log = Sealed::new();
    sealed_log.fill();
    let report = sealed_log.verify();
    assert_eq!(report.finding, None);
    assert_eq!(report.notes, []);
    assert!(report.is_closed());
    assert_eq!(report.files.len(), 3);
    for file in &report.files {
        let size = std::fs::metadata(&file.path).unwrap().len();
        assert_eq!(file.intact_bytes, size);
    }
    // The log itself is the same as without a seal.
    assert!(common::whole_log(&sealed_log.log()).starts_with(&event(0, 40)));
    // While it is being written, and with only the public key.
    let mut journal = open(&sealed_log.log(), &sealed());
    sealed_log.write(&mut journal, 50..60);
    let report = sealed_log.verify();
    assert_eq!((report.is_closed(), report.finding), (false, None));
    journal.close();
    let public = sealed_log.key.without_secret();
    let report = sealed_log.verify_with(&public, ALL).unwrap();
    assert_eq!((report.is_closed(), report.finding), (true, None));
}

/// A small random generator: a failure names the number of its case.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

fn line_ranges(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut start = 0;
    let ends = bytes.split_inclusive(|&byte| byte == b'\n').map(|line| {
        start += line.len();
        start - line.len()..start
    });
    ends.collect()
}

/// An altered copy, and a description of the alteration.
fn alter(bytes: &[u8], is_log: bool, random: &mut Random) -> (Vec<u8>, &'static str) {
    let mut altered = bytes.to_vec();
    let kinds = if is_log { 6 } else { 4 };
    match random.below(kinds) {
        0 | 1 => {
            altered[random.below(bytes.len())] ^= 1 << random.below(8);
            (altered, "bit flip")
        }
        2 => {
            altered.truncate(random.below(bytes.len()));
            (altered, "cut")
        }
        3 => {
            let at = random.below(bytes.len());
            altered.insert(at, b'x');
            (altered, "insertion")
        }
        4 => {
            let lines = line_ranges(bytes);
            altered.drain(lines[random.below(lines.len())].clone());
            (altered, "line removal")
        }
        _ => {
            let lines = line_ranges(bytes);
            let (a, b) = (random.below(lines.len()), random.below(lines.len() - 1));
            let b = if b >= a { b + 1 } else { b };
            let (a, b) = (lines[a.min(b)].clone(), lines[a.max(b)].clone());
            let parts = [
                &bytes[..a.start],
                &bytes[b.clone()],
                &bytes[a.end..b.start],
                &bytes[a.clone()],
                &bytes[b.end..],
            ];
            (parts.concat(), "swap of lines")
        }
    }
}

#[test]
fn random_alterations_are_all_found() {
    let sealed_log = Sealed::new();
    sealed_log.fill();
    let files = sealed_log.files();
    let originals: Vec<Vec<u8>> = files
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    let logs = files.len() / 2;
    let mut random = Random(0x5eed);
    for case in 0..testkit::times(1000, 10_000) {
        let number = random.below(files.len());
        let (altered, what) = alter(&originals[number], number < logs, &mut random);
        assert_ne!(altered, originals[number]);
        set(&files[number], &altered);
        let report = sealed_log.verify();
        let Some(finding) = report.finding else {
            panic!(
                "case {case}: {what} in {} is not found",
                files[number].display()
            );
        };
        if number < logs {
            // The finding names the altered file, and a place at or before the first altered byte.
            assert_eq!(
                finding.path, files[number],
                "case {case}: {what}: {finding}"
            );
            let first = altered
                .iter()
                .zip(&originals[number])
                .position(|(a, b)| a != b);
            let first = first.unwrap_or(altered.len().min(originals[number].len())) as u64;
            let bytes = finding.bytes.clone().unwrap();
            assert!(
                (bytes.start..=bytes.end).contains(&first),
                "case {case}: {what} at {first}: {finding}"
            );
        }
        set(&files[number], &originals[number]);
    }
    assert_eq!(sealed_log.finding(), "");
}

/// Overwrites a file. Rotated files are read-only for others, but root can write them.
fn set(path: &Path, bytes: &[u8]) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn the_first_altered_place_is_named_with_its_line_and_kind() {
    let sealed_log = Sealed::new();
    sealed_log.fill();
    let first = log_files(&sealed_log.log()).unwrap()[0].clone();
    let original = std::fs::read(&first).unwrap();
    let lines = line_ranges(&original);

    let mut flipped = original.clone();
    flipped[lines[20].start + 12] ^= 1;
    set(&first, &flipped);
    let finding = sealed_log.finding();
    assert!(finding.contains("audit.log.2: bytes "), "{finding}");
    assert!(finding.contains("from line 20: altered"), "{finding}");
    assert!(finding.contains("sealed at 20"), "{finding}");

    let shorter = [&original[..lines[3].start], &original[lines[3].end..]].concat();
    set(&first, &shorter);
    let removed = lines[3].len();
    let text = format!("the log is {removed} bytes shorter than what was sealed");
    assert!(
        sealed_log.finding().contains(&text),
        "{}",
        sealed_log.finding()
    );

    set(&first, &original[..lines[9].start]);
    let text = format!("the log ends at byte {}", lines[9].start);
    assert!(
        sealed_log.finding().contains(&text),
        "{}",
        sealed_log.finding()
    );
}

#[test]
fn moved_blocks_are_called_reordered() {
    let sealed_log = Sealed::new();
    let mut journal = open(&sealed_log.log(), &sealed());
    for number in 0..3 {
        journal.append(&event(number, 500), 1);
        journal.commit().unwrap();
    }
    journal.close();
    let bytes = std::fs::read(sealed_log.log()).unwrap();
    set(
        &sealed_log.log(),
        &[&bytes[500..1000], &bytes[..500], &bytes[1000..]].concat(),
    );
    let finding = sealed_log.finding();
    assert!(
        finding.contains("bytes 0 to 500, from line 1: reordered"),
        "{finding}"
    );
    assert!(finding.contains("as the bytes from 500"), "{finding}");
}

#[test]
fn missing_and_exchanged_files_are_found() {
    let sealed_log = Sealed::new();
    sealed_log.fill();
    let logs = log_files(&sealed_log.log()).unwrap();
    let found = |logs: &[PathBuf]| {
        let report = verify(logs, &sealed_log.key, ALL).unwrap();
        report.finding.unwrap().to_string()
    };
    let [oldest, middle, last] = &logs[..] else {
        panic!("{logs:?}")
    };
    let text = found(&[oldest.clone(), last.clone()]);
    assert!(
        text.contains("audit.log: a file, or the end of the one before, is missing"),
        "{text}"
    );
    let text = found(&[middle.clone(), oldest.clone(), last.clone()]);
    assert!(text.contains("audit.log.2: out of order"), "{text}");
    let text = found(&[oldest.clone(), middle.clone()]);
    assert!(text.contains("the file that followed is missing"), "{text}");
    // The oldest files are removed by rotation: a note, not a fault.
    let report = verify(&logs[1..], &sealed_log.key, ALL).unwrap();
    assert!(report.is_intact());
    assert!(report.notes[0].text.contains("earlier files are not here"));
    // But then a missing seal is a fault.
    std::fs::remove_file(seal_path(oldest)).unwrap();
    assert!(found(&logs).contains("audit.log.2: its seal is missing"));
    std::fs::remove_file(seal_path(last)).unwrap();
    assert!(found(&logs[1..]).contains("audit.log: its seal is missing"));
    let only = verify(&logs[2..], &sealed_log.key, ALL);
    assert!(matches!(only, Err(VerifyError::NotSealed { .. })));
}

#[test]
fn log_and_seal_cut_together_are_found_by_the_host_s_keys_or_by_age() {
    let sealed_log = Sealed::new();
    let mut journal = open(&sealed_log.log(), &sealed());
    sealed_log.write(&mut journal, 0..5);
    let (log, seal) = (sealed_log.log(), seal_path(&sealed_log.log()));
    let early = (std::fs::read(&log).unwrap(), std::fs::read(&seal).unwrap());
    sealed_log.write(&mut journal, 5..9);
    journal.close();
    set(&log, &early.0);
    set(&seal, &early.1);
    let finding = sealed_log.finding();
    assert!(
        finding.contains("the end of log and seal was removed"),
        "{finding}"
    );
    // On another host, only the age of an end that was not orderly reveals it.
    std::fs::remove_file(state_path(&log)).unwrap();
    let report = sealed_log.verify();
    assert_eq!((report.is_closed(), report.finding), (false, None));
    let old = Options {
        age_max: Some(Duration::ZERO),
        ..ALL
    };
    std::thread::yield_now();
    let finding = loop {
        // At most a millisecond, the resolution of the clock.
        if let Some(finding) = sealed_log
            .verify_with(&sealed_log.key, old)
            .unwrap()
            .finding
        {
            break finding.to_string();
        }
    };
    assert!(finding.contains("was not closed"), "{finding}");
}

#[test]
fn a_thief_of_the_host_s_keys_cannot_change_what_was_sealed_before() {
    let sealed_log = Sealed::new();
    let (log, seal) = (sealed_log.log(), seal_path(&sealed_log.log()));
    let mut journal = open(&log, &sealed());
    sealed_log.write(&mut journal, 0..5);
    let early = (std::fs::read(&log).unwrap(), std::fs::read(&seal).unwrap());
    sealed_log.write(&mut journal, 5..9);
    drop(journal);
    // Log and seal as they were before the incriminating commits, and the current keys: the journal
    // continues from there, and records what it found.
    set(&log, &early.0);
    set(&seal, &early.1);
    let mut journal = open(&log, &sealed());
    assert!(says(
        &journal.take_actions(),
        "entries at its end are missing"
    ));
    sealed_log.write(&mut journal, 9..12);
    journal.close();
    let finding = sealed_log.finding();
    assert!(
        finding.contains("seal entries 0.") && finding.contains("are missing"),
        "{finding}"
    );
}

#[test]
fn keys_of_another_series_are_refused() {
    let sealed_log = Sealed::new();
    sealed_log.fill();
    let other = Sealed::new();
    let error = sealed_log.verify_with(&other.key, ALL).unwrap_err();
    assert!(matches!(error, VerifyError::OtherKey { .. }), "{error}");
    std::fs::copy(state_path(&other.log()), state_path(&sealed_log.log())).unwrap();
    let error = Journal::open(&sealed_log.log(), &sealed())
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("sealed by other keys than the host has now"),
        "{error}"
    );
}

#[test]
fn sealing_without_keys_is_refused_and_keys_are_made_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let error = Journal::open(&log, &sealed()).err().unwrap().to_string();
    assert!(
        error.contains("make them with `tarsier seal init`"),
        "{error}"
    );
    init(&log).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let mode = state_path(&log).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let error = init(&log).err().unwrap().to_string();
    assert!(error.contains("there already"), "{error}");
}

#[test]
fn a_log_from_before_sealing_is_told_apart() {
    let sealed_log = Sealed::new();
    let log = sealed_log.log();
    std::fs::write(log.with_extension("log.1"), event(1, 60)).unwrap();
    std::fs::write(&log, event(2, 60)).unwrap();
    let mut journal = open(&log, &sealed());
    sealed_log.write(&mut journal, 3..6);
    journal.close();
    let report = sealed_log.verify();
    assert_eq!(report.finding, None);
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    assert!(
        notes[0].contains("audit.log.1: from before sealing began"),
        "{notes:?}"
    );
    assert!(
        notes[1].contains("bytes 0 to 60 were there before sealing began"),
        "{notes:?}"
    );
}

#[test]
fn what_a_killed_journal_left_unsealed_is_stated_and_additions_after_an_orderly_end_are_found() {
    let sealed_log = Sealed::new();
    let log = sealed_log.log();
    let mut journal = open(&log, &sealed());
    sealed_log.write(&mut journal, 0..5);
    drop(journal);
    let mut bytes = std::fs::read(&log).unwrap();
    let sealed_bytes = bytes.len();
    bytes.extend_from_slice(&event(99, 80));
    set(&log, &bytes);
    assert!(sealed_log
        .finding()
        .contains("80 bytes that no seal covers"));
    let mut journal = open(&log, &sealed());
    assert!(says(
        &journal.take_actions(),
        "the last 80 bytes were not sealed before now"
    ));
    sealed_log.write(&mut journal, 5..6);
    journal.close();
    let report = sealed_log.verify();
    assert_eq!(report.finding, None);
    let notes: Vec<String> = report.notes.iter().map(ToString::to_string).collect();
    let text = format!(
        "bytes {sealed_bytes} to {} were written as the journal",
        bytes.len()
    );
    assert!(notes.iter().any(|note| note.contains(&text)), "{notes:?}");
    assert!(
        notes
            .iter()
            .any(|note| note.contains("did not end in order")),
        "{notes:?}"
    );

    let mut bytes = std::fs::read(&log).unwrap();
    bytes.extend_from_slice(&event(100, 80));
    set(&log, &bytes);
    open(&log, &sealed()).close();
    let finding = sealed_log.finding();
    assert!(
        finding.contains("added between an orderly end of the journal and its start"),
        "{finding}"
    );
}

#[test]
fn a_log_cut_before_a_start_is_found_and_the_statement_of_that_start_is_shown() {
    let sealed_log = Sealed::new();
    let log = sealed_log.log();
    let mut journal = open(&log, &sealed());
    sealed_log.write(&mut journal, 0..9);
    drop(journal);
    let bytes = std::fs::read(&log).unwrap();
    let cut = line_ranges(&bytes)[10].start;
    set(&log, &bytes[..cut]);
    let mut journal = open(&log, &sealed());
    assert!(says(
        &journal.take_actions(),
        "that were sealed are missing"
    ));
    sealed_log.write(&mut journal, 9..30);
    journal.close();
    let finding = sealed_log.finding();
    assert!(
        finding.contains("bytes ") && finding.contains("the journal stated at"),
        "{finding}"
    );
}

#[test]
fn compressed_rotated_files_verify_and_stay_one_log() {
    let sealed_log = Sealed::new();
    let config = Config {
        compress_rotated: true,
        num_logs: 3,
        ..sealed()
    };
    let mut journal = open(&sealed_log.log(), &config);
    for start in [0, 10, 20, 30] {
        sealed_log.write(&mut journal, start..start + 10);
        if start < 30 {
            journal.rotate().unwrap().unwrap();
        }
    }
    journal.close();
    let names = common::names(sealed_log.dir.path());
    let expected = [
        "audit.log",
        "audit.log.1.seal",
        "audit.log.1.zst",
        "audit.log.2.seal",
        "audit.log.2.zst",
        "audit.log.seal",
        "audit.log.sealkey",
    ];
    assert_eq!(names, expected);
    let report = sealed_log.verify();
    assert_eq!(report.finding, None);
    assert_eq!(report.files.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: testkit::times(20, 60), ..ProptestConfig::default() })]

    /// Any sequence of commits, rotations, orderly ends and kills leaves a log that verifies.
    #[test]
    fn any_life_of_a_journal_verifies(steps in prop::collection::vec(0..12u8, 1..40)) {
        let sealed_log = Sealed::new();
        let config = Config { num_logs: 50, ..sealed() };
        let mut journal = open(&sealed_log.log(), &config);
        for (number, step) in steps.iter().enumerate() {
            match step {
                0 => { journal.rotate().unwrap().unwrap(); }
                1 => { journal.close(); journal = open(&sealed_log.log(), &config); }
                2 => { drop(journal); journal = open(&sealed_log.log(), &config); }
                3 => { journal.append(&event(number as u64, 40_000), 1); journal.commit().unwrap(); }
                _ => {
                    let at = number as u64;
                    sealed_log.write(&mut journal, at..at + 1);
                }
            }
        }
        prop_assert_eq!(sealed_log.verify().finding, None);
        drop(journal);
        prop_assert_eq!(sealed_log.verify().finding, None);
    }
}

#[test]
fn a_seal_ends_in_order_when_write_logs_becomes_no_and_goes_on_afterwards() {
    let sealed_log = Sealed::new();
    let mut journal = open(&sealed_log.log(), &sealed());
    sealed_log.write(&mut journal, 0..5);
    let unlogged = Config {
        write_logs: false,
        ..sealed()
    };
    journal.reconfigure(&sealed_log.log(), &unlogged).unwrap();
    sealed_log.write(&mut journal, 5..10);
    let report = sealed_log.verify();
    assert_eq!((report.is_closed(), report.finding), (true, None));
    journal.reconfigure(&sealed_log.log(), &sealed()).unwrap();
    sealed_log.write(&mut journal, 10..15);
    journal.close();
    let report = sealed_log.verify();
    assert_eq!((report.is_closed(), report.finding), (true, None));
    assert!(report.notes.is_empty(), "{:?}", report.notes);
}
