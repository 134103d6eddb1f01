//! Disks that fill, are nearly full or cannot be written to, on a small tmpfs.

mod common;

use common::{alerts, event, open, quiet, says, whole_log, Tmpfs};
use conf::{Config, FailureAction, Flush, SpaceLimit};
use journal::{Journal, OwnerAction, Runlevel};

const KIB: usize = 1 << 10;

/// Checks that the log has only whole lines, numbered from `first` without a gap. Returns the next
/// number.
fn assert_in_sequence(log: &[u8], first: u64) -> u64 {
    assert!(log.is_empty() || log.ends_with(b"\n"), "torn end");
    let mut next = first;
    for line in log.split_inclusive(|&byte| byte == b'\n') {
        let start = format!("type=USER msg=audit(1.000:{next}): ");
        assert!(line.starts_with(start.as_bytes()), "{next} expected");
        next += 1;
    }
    next
}

#[test]
fn full_disk_tears_nothing_counts_everything_and_goes_on_when_there_is_room() {
    let Some(disk) = Tmpfs::mount("full disk", "size=1m") else {
        return;
    };
    for flush in [Flush::None, Flush::Sync] {
        let log = disk.path("audit.log");
        let filler = disk.path("filler");
        std::fs::write(&filler, vec![0; 500 * KIB]).unwrap();
        let config = Config { flush, ..quiet() };
        let mut journal = open(&log, &config);
        let mut number = 0;
        let error = loop {
            // Odd sizes, so that the disk fills in the middle of an event.
            for _ in 0..10 {
                journal.append(&event(number, 1001), 1);
                number += 1;
            }
            if let Err(error) = journal.commit() {
                break error;
            }
        };
        assert!(error.is_full(), "{error}");
        let written = assert_in_sequence(&whole_log(&log), 0);
        assert!(written > 0 && written < number);
        assert_eq!(journal.counters().written.events, written);
        assert_eq!(error.pending_events, number - written);
        let actions = journal.take_actions();
        assert_eq!(alerts(&actions), 1, "{actions:?}");
        assert!(says(&actions, "no space left for logging"));

        // Still full: no new message; events wait, and then are counted as lost.
        while journal.counters().lost.total() == 0 {
            journal.append(&event(number, 100_001), 1);
            number += 1;
        }
        assert!(journal.commit().is_err());
        let counters = journal.counters();
        assert_eq!(counters.lost.disk_full, 1);
        assert_eq!(
            counters.appended_events,
            counters.written.events + counters.pending_events + counters.lost.total()
        );
        assert!(says(
            &journal.take_actions(),
            "events are being lost: the disk is full"
        ));
        assert_in_sequence(&whole_log(&log), 0);

        // Space for the rest of what waits: everything but the counted loss arrives, in order.
        disk.resize("size=8m");
        journal.commit().unwrap();
        assert_eq!(assert_in_sequence(&whole_log(&log), 0), number - 1);
        let (counters, _) = journal.close();
        assert_eq!(counters.written.events + counters.lost.disk_full, number);
        std::fs::remove_file(&log).unwrap();
        std::fs::remove_file(&filler).unwrap();
        disk.resize("size=1m");
    }
}

#[test]
fn full_disk_is_said_again_after_it_had_recovered() {
    let Some(disk) = Tmpfs::mount("full disk twice", "size=1m") else {
        return;
    };
    let log = disk.path("audit.log");
    let filler = disk.path("filler");
    let mut journal = open(&log, &quiet());
    let mut alerts_seen = 0;
    for number in 0..2 {
        std::fs::write(&filler, vec![0; 2000 * KIB]).unwrap_err();
        journal.append(&event(number, 64 * KIB), 1);
        journal.commit().unwrap_err();
        journal.commit().unwrap_err();
        std::fs::remove_file(&filler).unwrap();
        journal.commit().unwrap();
        alerts_seen += alerts(&journal.take_actions());
    }
    assert_eq!(alerts_seen, 2);
    assert_eq!(assert_in_sequence(&whole_log(&log), 0), 2);
}

#[test]
fn full_disk_with_rotate_makes_room_by_dropping_the_oldest() {
    let Some(disk) = Tmpfs::mount("full disk, ROTATE", "size=1m") else {
        return;
    };
    let log = disk.path("audit.log");
    let config = Config {
        num_logs: 3,
        disk_full_action: FailureAction::Rotate,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    for number in 0..3 {
        journal.append(&event(number, 300 * KIB), 1);
        journal.commit().unwrap();
        if number < 2 {
            journal.rotate().unwrap();
        }
    }
    journal.take_actions();
    journal.append(&event(3, 300 * KIB), 1);
    journal.commit().unwrap();
    assert!(journal.take_actions().iter().any(
        |action| matches!(action, OwnerAction::Rotated(rotated) if rotated.dropped.is_some())
    ));
    assert_eq!(assert_in_sequence(&whole_log(&log), 1), 4);
}

#[test]
fn full_disk_with_suspend_halt_and_single_stops_and_tells() {
    let cases = [
        (FailureAction::Suspend, None),
        (FailureAction::Single, Some(Runlevel::Single)),
        (FailureAction::Halt, Some(Runlevel::Halt)),
    ];
    for (action, level) in cases {
        let Some(disk) = Tmpfs::mount("full disk, SUSPEND", "size=1m") else {
            return;
        };
        let log = disk.path("audit.log");
        let config = Config {
            disk_full_action: action,
            ..quiet()
        };
        let mut journal = open(&log, &config);
        for number in 0..20 {
            journal.append(&event(number, 101 * KIB), 1);
        }
        journal.commit().unwrap_err();
        assert!(journal.is_suspended());
        let asked = journal
            .take_actions()
            .into_iter()
            .find_map(|action| match action {
                OwnerAction::ChangeRunlevel { runlevel, .. } => Some(runlevel),
                _ => None,
            });
        assert_eq!(asked, level);
        let written = assert_in_sequence(&whole_log(&log), 0);
        disk.resize("size=4m");
        assert_eq!(
            journal.commit().unwrap().events,
            0,
            "not before it is resumed"
        );
        journal.resume().unwrap();
        assert_eq!(journal.commit().unwrap().events, 20 - written);
        assert_eq!(assert_in_sequence(&whole_log(&log), 0), 20);
    }
}

#[test]
fn low_space_is_said_once_until_it_recovers() {
    let Some(disk) = Tmpfs::mount("low space", "size=8m") else {
        return;
    };
    let filler = disk.path("filler");
    let config = Config {
        space_left: SpaceLimit::Percent(50),
        admin_space_left: SpaceLimit::Mib(2),
        space_left_action: FailureAction::Email,
        admin_space_left_action: FailureAction::Syslog,
        ..quiet()
    };
    let mut journal = open(&disk.path("audit.log"), &config);
    let mut commit = |number| {
        journal.append(&event(number, 100), 1);
        journal.commit().unwrap();
        let mut actions = journal.take_actions();
        // EMAIL: each message also requests a mail.
        let mails = actions.len();
        actions.retain(
            |action| !matches!(action, OwnerAction::Mail { account, .. } if account == "root"),
        );
        let mails = mails - actions.len();
        let very = actions
            .iter()
            .filter(|a| a.to_string().contains("very low"))
            .count();
        assert_eq!(mails, actions.len() - very);
        (actions.len() - very, very)
    };
    assert_eq!(commit(0), (0, 0));
    std::fs::write(&filler, vec![0; 5000 * KIB]).unwrap();
    assert_eq!(commit(1), (1, 0));
    assert_eq!(commit(2), (0, 0));
    std::fs::write(&filler, vec![0; 7000 * KIB]).unwrap();
    assert_eq!(commit(3), (0, 1));
    assert_eq!(commit(4), (0, 0));
    // Not removed: a program started by another test may have the file open for a moment, which
    // would keep its space in use.
    std::fs::write(&filler, b"").unwrap();
    assert_eq!(commit(5), (0, 0));
    std::fs::write(&filler, vec![0; 7000 * KIB]).unwrap();
    assert_eq!(commit(6), (1, 1));
}

#[test]
fn low_space_with_rotate_does_not_throw_the_whole_history_away() {
    let Some(disk) = Tmpfs::mount("low space, ROTATE", "size=8m") else {
        return;
    };
    let log = disk.path("audit.log");
    let config = Config {
        num_logs: 4,
        space_left: SpaceLimit::Mib(7),
        admin_space_left: SpaceLimit::Mib(1),
        space_left_action: FailureAction::Rotate,
        ..quiet()
    };
    std::fs::write(disk.path("filler"), vec![0; 2000 * KIB]).unwrap();
    let mut journal = open(&log, &config);
    for number in 0..50 {
        journal.append(&event(number, 100), 1);
        journal.commit().unwrap();
    }
    assert_eq!(journal.counters().rotations, 1);
    assert_eq!(assert_in_sequence(&whole_log(&log), 0), 50);
    journal.append(&event(50, 1100 * KIB), 1);
    journal.commit().unwrap();
    assert_eq!(journal.counters().rotations, 2);
}

#[test]
fn limits_are_checked_when_the_log_is_opened() {
    let Some(disk) = Tmpfs::mount("low space at open", "size=2m") else {
        return;
    };
    let config = Config {
        space_left: SpaceLimit::Mib(75),
        admin_space_left: SpaceLimit::Mib(50),
        space_left_action: FailureAction::Syslog,
        admin_space_left_action: FailureAction::Suspend,
        ..quiet()
    };
    let mut journal = open(&disk.path("audit.log"), &config);
    assert!(journal.is_suspended());
    let actions = journal.take_actions();
    assert!(says(&actions, "space_left is 75 MiB"), "{actions:?}");
    assert!(
        says(&actions, "logging is suspended: very low on disk space"),
        "{actions:?}"
    );
}

#[test]
fn read_only_directory_is_refused_with_path_errno_and_remedy() {
    let Some(disk) = Tmpfs::mount("read-only", "size=1m") else {
        return;
    };
    disk.make_read_only();
    for name in ["audit.log", "dir/audit.log"] {
        let log = disk.path(name);
        let error = Journal::open(&log, &quiet()).err().unwrap();
        let message = error.to_string();
        assert_eq!(error.raw_os_error(), Some(30), "{message}");
        assert!(
            message.contains(log.parent().unwrap().to_str().unwrap()),
            "{message}"
        );
        assert!(
            message.contains("the file system is read-only: log elsewhere"),
            "{message}"
        );
    }
}
