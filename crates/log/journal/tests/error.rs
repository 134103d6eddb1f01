//! A disk that fails for another reason than being full. In a test program of its own, since the
//! limit on file sizes that makes write(2) fail (EFBIG) applies to the whole process.

mod common;

use common::{alerts, event, open, quiet, whole_log};
use conf::{Config, FailureAction};
use journal::OwnerAction;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};

fn limit_file_size(bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        ..getrlimit(Resource::Fsize)
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn failing_disk_is_answered_as_configured_and_written_again_when_it_works() {
    // Without this the signal that comes with EFBIG would end the program.
    // SAFETY: SIG_IGN is a valid disposition, and no other thread of this program cares.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let dir = tempfile::tempdir().unwrap();

    let log = dir.path().join("syslog.log");
    let mut journal = open(&log, &quiet());
    limit_file_size(Some(2500));
    for number in 0..4 {
        journal.append(&event(number, 1000), 1);
    }
    for _ in 0..10 {
        let error = journal.commit().unwrap_err();
        assert!(!error.is_full());
        assert_eq!(error.pending_events, 2);
    }
    // Two whole events; the third, which was written in part, was removed again.
    assert_eq!(whole_log(&log).len(), 2000);
    assert_eq!(
        alerts(&journal.take_actions()),
        5,
        "auditd's limit of messages"
    );
    limit_file_size(None);
    assert_eq!(journal.commit().unwrap().events, 2);
    assert_eq!(whole_log(&log).len(), 4000);
    let (counters, _) = journal.close();
    assert_eq!((counters.lost.total(), counters.write_errors), (0, 10));

    let log = dir.path().join("suspend.log");
    let config = Config {
        disk_error_action: FailureAction::Suspend,
        ..quiet()
    };
    let mut journal = open(&log, &config);
    limit_file_size(Some(2500));
    for number in 0..4 {
        journal.append(&event(number, 1000), 1);
    }
    journal.commit().unwrap_err();
    assert!(journal.is_suspended());
    let suspended = |action: &OwnerAction| matches!(action, OwnerAction::Suspended { .. });
    assert!(journal.take_actions().iter().any(suspended));
    limit_file_size(None);
    journal.resume().unwrap();
    assert_eq!(journal.commit().unwrap().events, 2);
    assert_eq!(whole_log(&log).len(), 4000);
}
