//! Tests when the log is rotated, and which files remain.

mod common;

use common::{event, mode, names, open, quiet, says, whole_log};
use conf::{Config, SizeAction};
use journal::{Journal, OwnerAction};

#[test]
fn rotation_shifts_numbers_and_keeps_num_logs_files() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        num_logs: 3,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    let mut dropped = Vec::new();
    for number in 1..=5 {
        journal.append(format!("{number}\n").as_bytes(), 1);
        let rotated = journal.rotate().unwrap().unwrap();
        assert_eq!(rotated.to, dir.path().join("audit.log.1"));
        dropped.push(rotated.dropped.is_some());
    }
    assert_eq!(
        names(dir.path()),
        ["audit.log", "audit.log.1", "audit.log.2"]
    );
    assert_eq!(whole_log(&log), b"4\n5\n");
    assert_eq!(dropped, [false, false, true, true, true]);
}

#[test]
fn fewer_than_two_logs_means_no_rotation() {
    for num_logs in [0, 1] {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        let config = Config {
            num_logs,
            max_log_file_mib: 1,
            max_log_file_action: SizeAction::Rotate,
            ..quiet()
        };
        let mut journal = open(&log, &config);
        journal.append(&event(1, 2 << 20), 1);
        journal.commit().unwrap();
        assert!(journal.rotate().unwrap().is_none());
        assert!(says(&journal.take_actions(), "num_logs < 2"));
        assert_eq!(names(dir.path()), ["audit.log"]);
    }
}

#[test]
fn size_rotates_at_the_event_that_reaches_it_even_within_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        num_logs: 5,
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Rotate,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    let size = 300 << 10;
    for number in 0..9 {
        journal.append(&event(number, size), 1);
    }
    assert_eq!(journal.commit().unwrap().events, 9);
    let sizes: Vec<u64> = journal::log_files(&log)
        .unwrap()
        .iter()
        .map(|file| file.metadata().unwrap().len() / size as u64)
        .collect();
    assert_eq!(sizes, [4, 4, 1]);
    assert_eq!(journal.counters().rotations, 2);
    let rotations = journal.take_actions();
    assert_eq!(rotations.len(), 2);
    assert!(matches!(&rotations[0], OwnerAction::Rotated(_)));
}

#[test]
fn keep_logs_never_drops_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        num_logs: 2,
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::KeepLogs,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    let mut expected = Vec::new();
    for number in 0..12 {
        let bytes = event(number, 1 << 20);
        expected.extend_from_slice(&bytes);
        journal.append(&bytes, 1);
        journal.commit().unwrap();
    }
    assert_eq!(names(dir.path()).len(), 13);
    assert!(whole_log(&log) == expected);
}

#[test]
fn excess_files_are_removed_at_open_as_auditd_does() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    for name in [
        "audit.log.1",
        "audit.log.2",
        "audit.log.3",
        "audit.log.4",
        "audit.log.6",
    ] {
        std::fs::write(dir.path().join(name), name).unwrap();
    }
    let config = Config {
        num_logs: 3,
        max_log_file_mib: 8,
        max_log_file_action: SizeAction::Rotate,
        ..quiet()
    };
    let (_journal, report) = Journal::open(&log, &config).unwrap();
    assert_eq!(report.removed.len(), 2);
    assert_eq!(
        names(dir.path()),
        ["audit.log", "audit.log.1", "audit.log.2", "audit.log.6"]
    );
    assert_eq!(mode(&dir.path().join("audit.log.2")), 0o400);
}

#[test]
fn syslog_warns_once_about_size() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Syslog,
        ..quiet()
    };
    let mut journal = open(&dir.path().join("audit.log"), &config);
    for number in 0..4 {
        journal.append(&event(number, 600 << 10), 1);
        journal.commit().unwrap();
    }
    let actions = journal.take_actions();
    assert_eq!(actions.len(), 1, "{actions:?}");
    assert!(says(&actions, "larger than 1 MiB"));
}

#[test]
fn failed_rotation_leaves_the_log_as_it_was_and_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        num_logs: 2,
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Rotate,
        ..quiet()
    };
    // A directory with something in it cannot be replaced by a file.
    std::fs::create_dir_all(dir.path().join("audit.log.1/x")).unwrap();
    let mut journal = open(&log, &config);
    journal.append(&event(1, 1 << 20), 1);
    journal.append(&event(2, 100), 1);
    assert_eq!(journal.commit().unwrap().events, 2);
    let actions = journal.take_actions();
    assert!(says(&actions, "rotation failed"), "{actions:?}");
    let error = journal.rotate().unwrap_err().to_string();
    assert!(
        error.contains("audit.log: rotation failed: rename to"),
        "{error}"
    );
    assert_eq!(std::fs::metadata(&log).unwrap().len(), (1 << 20) + 100);
    assert_eq!(mode(&log), 0o600);
    std::fs::remove_dir_all(dir.path().join("audit.log.1")).unwrap();
    assert!(journal.rotate().unwrap().is_some());
}
