//! The journal on real files: opening, flushing, suspending.

mod common;

use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::Path;

use common::{event, mode, open, quiet, says, whole_log};
use conf::{Config, Flush, Group, SizeAction};
use journal::{Journal, OpenError, OwnerAction, Position, Repair};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

fn refusal(path: &Path) -> String {
    match Journal::open(path, &quiet()) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{} was opened", path.display()),
    }
}

#[test]
fn a_batch_is_one_write_and_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(&log, &quiet());
    journal.append(b"a\nb\n", 1);
    journal.append(b"c\n", 1);
    assert_eq!(std::fs::read(&log).unwrap(), b"");
    let committed = journal.commit().unwrap();
    assert_eq!((committed.bytes, committed.events), (6, 2));
    assert_eq!(std::fs::read(&log).unwrap(), b"a\nb\nc\n");
    assert_eq!(journal.commit().unwrap().bytes, 0);
    let counters = journal.counters();
    assert_eq!((counters.writes, counters.records), (1, 3));
    assert_eq!((counters.appended_events, counters.written.events), (2, 2));
    assert_eq!((counters.pending_events, counters.lost.total()), (0, 0));
}

#[test]
fn a_piece_is_written_once_it_is_large_and_synced_with_the_commit_after_it() {
    const LINE: &[u8] = &[b'x'; 4096];
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut journal = open(
        &log,
        &Config {
            flush: Flush::Sync,
            ..quiet()
        },
    );
    let mut appended = 0;
    while journal.counters().pending_bytes > 0 || appended == 0 {
        journal.append(LINE, 1);
        appended += 1;
        journal.write_piece();
        assert!(appended < 1000, "nothing is written");
    }
    // Each unterminated line got a newline.
    assert_eq!(log.metadata().unwrap().len(), appended * 4097);
    assert!(appended > 1, "each line is a piece");
    let counters = journal.counters();
    assert_eq!((counters.writes, counters.written.events), (1, appended));
    assert_eq!(journal.durable(), Position::default());
    assert_eq!(journal.commit().unwrap().events, appended);
    assert_eq!(durable_after_sync(&mut journal).events, appended);
    assert_eq!(journal.commit().unwrap().events, 0);
}

#[test]
fn an_existing_log_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    std::fs::write(&log, "type=A\n").unwrap();
    let (mut journal, report) = Journal::open(&log, &quiet()).unwrap();
    assert_eq!((report.size_bytes, report.torn), (7, None));
    journal.append(b"type=B\n", 1);
    journal.close();
    assert_eq!(std::fs::read(&log).unwrap(), b"type=A\ntype=B\n");
}

#[test]
fn files_have_auditd_s_permissions_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    let rotating = Config {
        num_logs: 3,
        ..quiet()
    };
    let group = Group {
        gid: rustix::process::getegid().as_raw() + 4,
        name: "readers".into(),
    };
    let readable = Config {
        log_group: group,
        ..rotating.clone()
    };
    for (config, modes) in [
        (rotating, [0o700, 0o600, 0o400]),
        (readable, [0o750, 0o640, 0o440]),
    ] {
        if config.log_group.may_read() && !rustix::process::geteuid().is_root() {
            println!("skipped: only root can give a log to another group");
            continue;
        }
        let log_dir = dir.path().join(&config.log_group.name);
        let log = log_dir.join("audit.log");
        let mut journal = open(&log, &config);
        journal.append(b"x\n", 1);
        journal.rotate().unwrap().unwrap();
        let rotated = log_dir.join("audit.log.1");
        assert_eq!([mode(&log_dir), mode(&log), mode(&rotated)], modes);
        use std::os::unix::fs::MetadataExt;
        for path in [&log_dir, &log, &rotated] {
            assert_eq!(path.metadata().unwrap().gid(), config.log_group.gid);
        }
    }
}

#[test]
fn a_directory_with_other_files_keeps_its_permissions() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("other"), "").unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    open(&dir.path().join("audit.log"), &quiet());
    assert_eq!(mode(dir.path()), 0o755);
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut journal = open(&dir.path().join("audit.log"), &quiet());
    assert!(says(&journal.take_actions(), "others can replace the log"));
}

#[test]
fn what_a_log_cannot_be_is_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    std::fs::write(&target, "x\n").unwrap();
    let link = dir.path().join("link");
    symlink(&target, &link).unwrap();
    assert!(refusal(&link).contains("link: a symbolic link; name the file itself"));
    assert_eq!(std::fs::read(&target).unwrap(), b"x\n");

    assert!(refusal(dir.path()).contains("a directory; name a file inside it"));
    let fifo = dir.path().join("fifo");
    let kind = rustix::fs::FileType::Fifo;
    let perm = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, perm, 0).unwrap();
    assert!(refusal(&fifo).contains("not a regular file"));
    assert!(refusal(&target.join("audit.log")).contains("not a directory"));
    let deep = dir.path().join("a/b/audit.log");
    assert!(
        refusal(&deep).contains("create the directory above it"),
        "{}",
        refusal(&deep)
    );

    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&target, Some(1234), None).unwrap();
        assert!(refusal(&target).contains("owned by uid 1234, not by root"));
    }
}

#[test]
fn a_second_writer_is_refused_until_the_first_ends() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let mut first = open(&log, &quiet());
    let second = Journal::open(&log, &quiet()).err().unwrap();
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    first.rotate().unwrap();
    assert!(Journal::open(&log, &quiet()).is_err(), "after rotation too");
    drop(first);
    open(&log, &quiet());
}

#[test]
fn torn_last_line_is_cut_and_reported_and_the_next_event_starts_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let whole = "type=A msg=audit(1.000:1): a\n";
    let cases: [(&[u8], Repair, &[u8]); 6] = [
        (b"type=B msg=audit(1.000:2): uid=10", Repair::Cut, b""),
        (b"typ", Repair::Cut, b""),
        (b"node=x ty", Repair::Cut, b""),
        (b"{\"a\":", Repair::Cut, b""),
        (b"\0\0\0\0", Repair::Mended, b""),
        (
            b"words of somebody",
            Repair::Completed,
            b"words of somebody\n",
        ),
    ];
    for (torn, repair, left) in cases {
        for before in ["", whole] {
            std::fs::write(&log, [before.as_bytes(), torn].concat()).unwrap();
            let (mut journal, report) = Journal::open(&log, &quiet()).unwrap();
            let found = report.torn.unwrap();
            assert_eq!((found.repair, found.bytes.as_slice()), (repair, torn));
            journal.append(b"next\n", 1);
            journal.commit().unwrap();
            let expected = [before.as_bytes(), left, b"next\n"].concat();
            assert_eq!(std::fs::read(&log).unwrap(), expected);
            assert_eq!(journal.size_bytes(), expected.len() as u64);
        }
    }
}

#[test]
fn a_large_file_that_is_no_log_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let bytes = vec![b'x'; (1 << 20) + 1];
    std::fs::write(&log, &bytes).unwrap();
    assert!(refusal(&log).contains("hold no newline; this is not an audit log"));
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
}

#[test]
fn none_never_syncs_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = open(&dir.path().join("audit.log"), &quiet());
    journal.append(b"x\n", 1);
    journal.commit().unwrap();
    assert_eq!(journal.durable(), Position::default());
    assert_eq!(journal.counters().syncs, 0);
    assert!(journal.sync_fd().is_none());
    journal.sync().unwrap();
    assert_eq!(journal.durable(), journal.written());
    assert_eq!(journal.counters().syncs, 1);
}

#[test]
fn incremental_syncs_every_freq_records() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        flush: Flush::Incremental,
        freq: 3,
        ..quiet()
    };
    let mut journal = open(&dir.path().join("audit.log"), &config);
    for (records, durable) in [("a\nb\n", 0), ("c\n", 2), ("d\n", 2), ("e\nf\n", 4)] {
        journal.append(records.as_bytes(), 1);
        journal.commit().unwrap();
        assert_eq!(journal.durable().events, durable);
    }
    assert_eq!(journal.counters().syncs, 2);
}

/// Waits for the sync descriptor. Returns what is durable then.
fn durable_after_sync(journal: &mut Journal) -> Position {
    {
        let fd = journal.sync_fd().unwrap();
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 30,
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut fds, Some(&limit)).unwrap(), 1, "no sync came");
    }
    journal.poll();
    journal.durable()
}

#[test]
fn background_modes_tell_by_fd_when_events_are_durable() {
    for flush in [Flush::IncrementalAsync, Flush::Data, Flush::Sync] {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            flush,
            freq: 2,
            ..quiet()
        };
        let mut journal = open(&dir.path().join("audit.log"), &config);
        journal.append(b"a\nb\n", 2);
        journal.commit().unwrap();
        assert_eq!(durable_after_sync(&mut journal), journal.written());
        assert_eq!(journal.durable().events, 2);
        assert_eq!(journal.counters().syncs, 1, "{flush:?}");
    }
}

#[test]
fn async_does_not_sync_before_freq_records() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        flush: Flush::IncrementalAsync,
        freq: 50,
        ..quiet()
    };
    let mut journal = open(&dir.path().join("audit.log"), &config);
    for number in 0..49 {
        journal.append(&event(number, 60), 1);
        journal.commit().unwrap();
    }
    assert_eq!(journal.durable().events, 0);
    journal.append(&event(49, 60), 1);
    journal.commit().unwrap();
    assert_eq!(durable_after_sync(&mut journal).events, 50);
}

#[test]
fn rotated_events_become_durable_before_later_ones() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config {
        flush: Flush::Sync,
        num_logs: 100,
        ..quiet()
    };
    let mut journal = open(&dir.path().join("audit.log"), &config);
    let mut last = Position::default();
    for number in 0..40 {
        journal.append(&event(number, 60), 1);
        journal.rotate().unwrap();
        let durable = journal.durable();
        assert!(durable >= last && durable <= journal.written());
        last = durable;
    }
    let written = journal.written();
    journal.sync().unwrap();
    assert_eq!(journal.durable(), written);
    assert_eq!(journal.counters().sync_errors, 0);
}

#[test]
fn suspended_journal_keeps_events_and_writes_them_after_resume() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    for flush in [Flush::None, Flush::Sync] {
        let _ = std::fs::remove_file(&log);
        let config = Config {
            flush,
            max_log_file_mib: 1,
            max_log_file_action: SizeAction::Suspend,
            ..quiet()
        };
        let mut journal = open(&log, &config);
        journal.append(&event(1, 1 << 20), 1);
        journal.append(b"later\n", 1);
        assert_eq!(journal.commit().unwrap().events, 1);
        assert!(journal.is_suspended());
        let actions = journal.take_actions();
        assert!(
            matches!(&actions[..], [OwnerAction::Suspended { .. }]),
            "{actions:?}"
        );
        assert_eq!(journal.commit().unwrap().events, 0);
        // As an administrator would do before SIGUSR2.
        std::fs::remove_file(&log).unwrap();
        journal.resume().unwrap();
        assert_eq!(journal.commit().unwrap().events, 1);
        assert_eq!(std::fs::read(&log).unwrap(), b"later\n");
        assert_eq!(journal.counters().lost.total(), 0);
    }
}

#[test]
fn resumed_journal_is_suspended_again_while_the_file_is_too_large() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    // A sync is still running, which holds the file and its lock.
    let config = Config {
        flush: Flush::Sync,
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Suspend,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    journal.append(&event(1, 1 << 20), 1);
    journal.commit().unwrap();
    for _ in 0..20 {
        journal.append(b"x\n", 1);
        journal.resume().unwrap();
        assert!(journal.is_suspended());
    }
}

#[test]
fn what_does_not_fit_while_suspended_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("audit.log");
    let config = Config {
        max_log_file_mib: 1,
        max_log_file_action: SizeAction::Suspend,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    journal.append(&event(0, 1 << 20), 1);
    journal.commit().unwrap();
    for number in 1..=10 {
        journal.append(&event(number, 1 << 20), 3);
    }
    let counters = journal.counters();
    assert_eq!(counters.pending_events, 12);
    assert_eq!(counters.lost.suspended, 18);
    assert!(counters.pending_bytes <= journal::PENDING_BYTES_MAX as u64);
    assert!(says(
        &journal.take_actions(),
        "events are being lost: logging is suspended"
    ));
    let (counters, actions) = journal.close();
    assert_eq!(counters.lost.closed, 12);
    assert_eq!(
        counters.appended_events,
        counters.written.events + counters.lost.total()
    );
    assert!(says(&actions, "12 events could not be written"));
}

#[test]
fn reconfigure_moves_to_another_file_and_mode_without_losing_events() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a.log"), dir.path().join("b.log"));
    let mut journal = open(&first, &quiet());
    journal.append(b"1\n", 1);
    let config = Config {
        flush: Flush::Data,
        ..quiet()
    };
    journal.reconfigure(&second, &config).unwrap();
    journal.append(b"2\n", 1);
    journal.commit().unwrap();
    assert_eq!(durable_after_sync(&mut journal), journal.written());
    // A path that is refused changes nothing.
    assert!(journal.reconfigure(dir.path(), &quiet()).is_err());
    journal.append(b"3\n", 1);
    journal.reconfigure(&second, &quiet()).unwrap();
    assert!(journal.sync_fd().is_none());
    journal.append(b"4\n", 1);
    journal.close();
    assert_eq!(std::fs::read(&first).unwrap(), b"1\n");
    assert_eq!(std::fs::read(&second).unwrap(), b"2\n3\n4\n");
}

mod any_sequence {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Append(usize),
        Commit,
        Rotate,
        Sync,
        Reopen,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (30usize..400_000).prop_map(Step::Append),
            3 => Just(Step::Commit),
            1 => Just(Step::Rotate),
            1 => Just(Step::Sync),
            1 => Just(Step::Reopen),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_files_together_are_what_was_appended(
            steps in proptest::collection::vec(step(), 1..60),
            flush in prop_oneof![
                Just(Flush::None), Just(Flush::Incremental), Just(Flush::IncrementalAsync),
                Just(Flush::Data), Just(Flush::Sync),
            ],
        ) {
            let dir = tempfile::tempdir().unwrap();
            let log = dir.path().join("audit.log");
            let config = Config {
                flush,
                freq: 3,
                num_logs: 999,
                max_log_file_mib: 1,
                max_log_file_action: SizeAction::Rotate,
                ..quiet()
            };
            let mut journal = open(&log, &config);
            let mut expected = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Append(len) => {
                        let bytes = event(number as u64, len);
                        expected.extend_from_slice(&bytes);
                        journal.append(&bytes, 1);
                    }
                    Step::Commit => drop(journal.commit().unwrap()),
                    Step::Rotate => drop(journal.rotate().unwrap()),
                    Step::Sync => drop(journal.sync().unwrap()),
                    Step::Reopen => {
                        prop_assert_eq!(journal.close().0.lost.total(), 0);
                        journal = open(&log, &config);
                    }
                }
                let (durable, written) = (journal.durable(), journal.written());
                prop_assert!(durable <= written);
                // No file grows past the limit by more than the event that reached it.
                prop_assert!(journal.size_bytes() < 1 << 20);
            }
            let (counters, actions) = journal.close();
            prop_assert_eq!(counters.lost.total(), 0);
            prop_assert!(actions.iter().all(|action| matches!(action, OwnerAction::Rotated(_))));
            prop_assert!(whole_log(&log) == expected);
        }
    }
}

#[test]
fn urgent_events_are_synced_whatever_the_flush_mode() {
    for flush in [Flush::None, Flush::Incremental, Flush::IncrementalAsync] {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            flush,
            freq: 1000,
            urgent_keys: vec!["now".into()],
            ..Config::default()
        };
        let (mut journal, _) = Journal::open(&dir.path().join("audit.log"), &config).unwrap();
        journal.append(b"type=USER msg=audit(1.000:1): text\n", 1);
        journal.commit().unwrap();
        assert_eq!(journal.durable(), Default::default(), "{flush:?}");
        journal.append(b"type=USER msg=audit(1.000:2): text\n", 1);
        journal.flush().unwrap();
        while journal.durable() < journal.written() {
            let fd = journal
                .sync_fd()
                .expect("a helper that syncs urgent events");
            poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], None).unwrap();
            journal.poll();
        }
        assert_eq!(journal.durable().events, 2, "{flush:?}");
    }
}
