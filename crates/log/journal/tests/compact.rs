//! COMPACT: smaller than RAW, and read back as the same text.

mod common;

use std::io::Read;
use std::path::{Path, PathBuf};

use common::{event, open, quiet, says};
use conf::{Config, FailureAction, LogFormat, SizeAction};
use journal::compact::{self, TimeRange};
use journal::read::raw_line;
use journal::{log_files, Journal, Repair};
use proptest::prelude::*;

fn config() -> Config {
    Config {
        log_format: LogFormat::Compact,
        ..quiet()
    }
}

fn text(path: &Path) -> Vec<u8> {
    text_in(path, TimeRange::ALL)
}

fn text_in(path: &Path, range: TimeRange) -> Vec<u8> {
    let mut text = Vec::new();
    let mut reader = compact::open(path, range).unwrap();
    reader.read_to_end(&mut text).unwrap();
    text
}

/// Real ENRICHED logs, event by event.
fn corpus() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/corpus");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".enriched.log"))
        .collect();
    files.sort();
    let mut events: Vec<Vec<u8>> = Vec::new();
    let stamp = |line: &[u8]| {
        let end = line.iter().position(|&byte| byte == b')').unwrap_or(0);
        let start = line[..end].iter().rposition(|&byte| byte == b'(');
        line[start.unwrap_or(end)..end].to_vec()
    };
    let mut last = Vec::new();
    for line in files.iter().flat_map(|file| {
        let text = std::fs::read(file).unwrap();
        let lines: Vec<Vec<u8>> = text
            .split_inclusive(|&b| b == b'\n')
            .map(Into::into)
            .collect();
        lines
    }) {
        let this = stamp(&line);
        match events.last_mut() {
            Some(event) if this == last => event.extend_from_slice(&line),
            _ => events.push(line),
        }
        last = this;
    }
    events
}

#[test]
fn real_logs_take_at_most_a_tenth_of_raw_and_come_back_identical() {
    let events = corpus();
    let whole: Vec<u8> = events.concat();
    let raw: usize = whole
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| raw_line(line).len() + 1)
        .sum();
    // 64 events: what 10 ms of 6,400 events per second commit.
    for (events_per_commit, tenths) in [(64, 10), (8, 10), (1, 6)] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        let mut journal = open(&log, &config());
        for batch in events.chunks(events_per_commit) {
            for event in batch {
                journal.append(event, 1);
            }
            journal.commit().unwrap();
        }
        journal.close();
        assert!(text(&log) == whole, "{events_per_commit} events per commit");
        let stored = std::fs::metadata(&log).unwrap().len() as usize;
        println!(
            "{events_per_commit} events per commit: {stored} bytes, RAW {raw}: 1/{:.1}",
            raw as f64 / stored as f64
        );
        assert!(stored * tenths <= raw, "{stored} of {raw}");
    }
}

#[test]
fn a_torn_frame_is_cut_and_the_file_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &config());
    journal.append(&event(0, 3000), 1);
    journal.commit().unwrap();
    let whole = std::fs::metadata(&log).unwrap().len();
    journal.append(&event(1, 3000), 1);
    journal.close();
    let bytes = std::fs::read(&log).unwrap();
    for size in whole + 1..bytes.len() as u64 {
        std::fs::write(&log, &bytes[..size as usize]).unwrap();
        // A reader of a live log may see such a file.
        assert_eq!(text(&log), event(0, 3000));
        let (mut journal, report) = Journal::open(&log, &config()).unwrap();
        let torn = report.torn.unwrap();
        assert_eq!(
            (torn.repair, torn.removed_bytes),
            (Repair::Cut, size - whole)
        );
        journal.append(&event(2, 50), 1);
        journal.close();
        assert_eq!(text(&log), [event(0, 3000), event(2, 50)].concat());
    }
}

#[test]
fn damage_in_the_middle_is_an_error_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &config());
    for number in 0..3 {
        journal.append(&event(number, 300), 1);
        journal.commit().unwrap();
    }
    journal.close();
    let bytes = std::fs::read(&log).unwrap();
    for bit in 64..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&log, &wrong).unwrap();
        let mut text = Vec::new();
        let outcome = compact::open(&log, TimeRange::ALL)
            .unwrap()
            .read_to_end(&mut text);
        let intact = [event(0, 300), event(1, 300), event(2, 300)].concat();
        assert!(intact.starts_with(&text));
        match outcome {
            Err(error) => assert!(error.to_string().contains("frame at byte"), "{error}"),
            // A length that reaches past the end looks like a torn end.
            Ok(_) => assert!(text.len() < intact.len()),
        }
    }
}

#[test]
fn rotated_files_can_be_read_alone_and_no_file_holds_both_forms() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &quiet());
    journal.append(&event(0, 100), 1);
    journal.close();
    let mut journal = open(&log, &config());
    journal.append(&event(1, 100), 1);
    journal.rotate().unwrap().unwrap();
    journal.append(&event(2, 100), 1);
    journal.commit().unwrap();
    journal.reconfigure(&log, &quiet()).unwrap();
    journal.append(&event(3, 100), 1);
    journal.close();
    let files = log_files(&log).unwrap();
    let texts: Vec<Vec<u8>> = files.iter().map(|file| text(file)).collect();
    let expected: Vec<Vec<u8>> = (0..4).map(|number| event(number, 100)).collect();
    assert_eq!(texts, expected);
    let plain = std::fs::read(&files[0]).unwrap();
    assert_eq!(plain, event(0, 100));
    assert!(compact::is_compact(&std::fs::read(&files[1]).unwrap()));
}

#[test]
fn max_log_file_counts_what_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Rotate,
        ..config()
    };
    let mut journal = open(&log, &config);
    let mut random = 1u64;
    let mut expected = Vec::new();
    for number in 0..400 {
        // Text that does not compress well.
        let mut line = format!("type=USER msg=audit(1.000:{number}): ").into_bytes();
        for _ in 0..10_000 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            line.push(b'0' + (random % 64) as u8);
        }
        line.push(b'\n');
        journal.append(&line, 1);
        journal.commit().unwrap();
        expected.extend(line);
    }
    journal.close();
    let files = log_files(&log).unwrap();
    assert!(files.len() > 2, "{files:?}");
    for rotated in &files[..files.len() - 1] {
        let size = std::fs::metadata(rotated).unwrap().len();
        assert!((1 << 20..(1 << 20) + 20_000).contains(&size), "{size}");
    }
    let read: Vec<u8> = files.iter().flat_map(|file| text(file)).collect();
    assert!(read == expected);
}

#[test]
fn a_full_disk_loses_no_frame_and_tears_none() {
    let Some(disk) = common::Tmpfs::mount("full disk, COMPACT", "size=1m") else {
        return;
    };
    let log = disk.path("audit.log");
    let filler = disk.path("filler");
    std::fs::write(&filler, vec![0; 1000 << 10]).unwrap();
    let config = Config {
        disk_full_action: FailureAction::Syslog,
        ..config()
    };
    let mut journal = open(&log, &config);
    let mut expected = Vec::new();
    let mut failures = 0;
    for number in 0..2000u64 {
        let mut line = event(number, 60);
        let digits = format!(
            "{:x}\n",
            u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)
        );
        line.pop();
        line.extend_from_slice(digits.repeat(40).replace('\n', "").as_bytes());
        line.push(b'\n');
        journal.append(&line, 1);
        expected.extend(line);
        failures += u32::from(journal.commit().is_err());
    }
    assert!(failures > 0);
    assert!(says(&journal.take_actions(), "no space left for logging"));
    assert!(expected.starts_with(&text(&log)));
    std::fs::remove_file(&filler).unwrap();
    let (counters, _) = journal.close();
    assert_eq!(counters.lost.total(), 0);
    assert!(text(&log) == expected);
}

#[test]
fn a_time_range_leaves_out_frames_without_decoding_those_after_them_wrongly() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &config());
    let line = |time: u32| format!("type=USER msg=audit({time}.000:7): same text\n").into_bytes();
    for time in 1000..1100 {
        journal.append(&line(time), 1);
        journal.commit().unwrap();
    }
    journal.close();
    let range = TimeRange {
        since_s: 1040,
        until_s: 1041,
    };
    assert_eq!(text_in(&log, range), [line(1040), line(1041)].concat());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_come_back(
        batches in prop::collection::vec(prop::collection::vec("[ -~]{0,200}", 1..20), 1..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        let mut journal = open(&log, &config());
        let mut expected = Vec::new();
        for batch in &batches {
            for line in batch {
                let line = format!("{line}\n").into_bytes();
                journal.append(&line, 1);
                expected.extend(line);
            }
            journal.commit().unwrap();
        }
        journal.close();
        prop_assert_eq!(text(&log), expected);
    }

    #[test]
    fn hostile_files_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        let mut file = b"TARCOMP1TC\x01\0".to_vec();
        file.extend_from_slice(&bytes);
        std::fs::write(&log, &file).unwrap();
        let mut text = Vec::new();
        let _ = compact::open(&log, TimeRange::ALL).unwrap().read_to_end(&mut text);
    }
}
