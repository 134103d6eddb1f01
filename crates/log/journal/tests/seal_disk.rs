//! Seals on disks that fill: what is written is sealed, though the seal may have to wait for space.

mod common;

use std::path::PathBuf;

use common::{event, open, quiet, Tmpfs};
use conf::{Config, FailureAction};
use journal::seal::verify::{Options, SealFinding};
use journal::seal::{init, verify, VerificationKey};
use journal::{log_files, Journal};

const KIB: usize = 1 << 10;

/// A sealed log on its own disk of 1 MiB.
struct Sealed {
    disk: Tmpfs,
    key: VerificationKey,
    config: Config,
}

impl Sealed {
    fn new(test: &str, disk_full_action: FailureAction) -> Option<Self> {
        let disk = Tmpfs::mount(test, "size=1m")?;
        let key = init(&disk.path("audit.log")).unwrap();
        let config = Config {
            seal: true,
            disk_full_action,
            num_logs: 99,
            ..quiet()
        };
        Some(Sealed { disk, key, config })
    }

    fn log(&self) -> PathBuf {
        self.disk.path("audit.log")
    }

    fn open(&self) -> Journal {
        open(&self.log(), &self.config)
    }

    /// Fills the disk completely.
    fn fill(&self) {
        use std::io::Write;
        let mut filler = std::fs::File::create(self.disk.path("filler")).unwrap();
        for size in [64 * KIB, 1] {
            while filler.write(&vec![0; size]).is_ok_and(|count| count > 0) {}
        }
    }

    fn make_room(&self) {
        std::fs::remove_file(self.disk.path("filler")).unwrap();
    }

    fn finding(&self) -> Option<SealFinding> {
        let options = Options {
            is_complete: true,
            age_max: None,
        };
        let report = verify(&log_files(&self.log()).unwrap(), &self.key, options);
        report.unwrap().finding
    }

    fn assert_intact(&self, when: &str) {
        assert_eq!(self.finding(), None, "{when}");
    }
}

fn write(journal: &mut Journal, numbers: std::ops::Range<u64>) {
    for number in numbers {
        journal.append(&event(number, 1001), 1);
        journal.commit().unwrap();
    }
}

/// Writes events of odd sizes until the disk is full; some then wait in memory.
fn overfill(journal: &mut Journal, first: u64) {
    let mut number = first;
    loop {
        for _ in 0..10 {
            journal.append(&event(number, 1001), 1);
            number += 1;
        }
        if journal.commit().is_err() {
            return;
        }
    }
}

#[test]
fn a_seal_waits_for_room_and_goes_on_where_it_was() {
    let Some(sealed) = Sealed::new("seal on a full disk", FailureAction::Syslog) else {
        return;
    };
    let mut journal = sealed.open();
    write(&mut journal, 0..20);
    sealed.fill();
    overfill(&mut journal, 20);
    sealed.make_room();
    journal.commit().unwrap();
    write(&mut journal, 1000..1010);
    assert!(journal.close().0.lost.total() == 0);
    sealed.assert_intact("after the disk was full");
}

#[test]
fn a_log_rotated_on_a_full_disk_is_sealed_in_both_files() {
    let Some(sealed) = Sealed::new("rotation on a full disk", FailureAction::Syslog) else {
        return;
    };
    let mut journal = sealed.open();
    for first in [0, 1000, 2000] {
        write(&mut journal, first..first + 20);
        sealed.fill();
        let mut rotations = 0;
        // The seal's reserve is used up, then a header waits, and then a rotation is refused.
        let error = loop {
            match journal.rotate() {
                Ok(rotated) => assert!(rotated.is_some()),
                Err(error) => break error,
            }
            rotations += 1;
            assert!(rotations < 10);
            overfill(&mut journal, first + 100);
        };
        assert_eq!(error.source.raw_os_error(), Some(libc::ENOSPC), "{error}");
        assert!(rotations > 0);
        sealed.make_room();
        journal.commit().unwrap();
    }
    write(&mut journal, 9000..9010);
    let (counters, actions) = journal.close();
    assert_eq!(counters.lost.total(), 0, "{actions:?}");
    assert!(counters.rotations >= 3);
    sealed.assert_intact("after rotations on a full disk");
    write(&mut sealed.open(), 9010..9020);
    sealed.assert_intact("after another start");
}

#[test]
fn a_seal_closed_on_a_full_disk_can_be_opened_again() {
    let Some(sealed) = Sealed::new("seal turned off on a full disk", FailureAction::Syslog) else {
        return;
    };
    let mut journal = sealed.open();
    write(&mut journal, 0..20);
    sealed.fill();
    while journal.rotate().is_ok() {
        overfill(&mut journal, 20);
    }
    // The new file's header is still to be written, and so is the end of the previous one.
    let path = sealed.log();
    let off = Config {
        seal: false,
        ..sealed.config.clone()
    };
    journal.reconfigure(&path, &off).unwrap();
    sealed.make_room();
    journal.reconfigure(&path, &sealed.config).unwrap();
    journal.commit().unwrap();
    assert_eq!(journal.close().0.lost.total(), 0);
    // What waited for space was written while sealing was off; everything else is in order.
    let finding = sealed.finding().expect("a finding").to_string();
    assert!(
        finding.contains("added between an orderly end"),
        "{finding}"
    );
}

#[test]
fn a_log_suspended_for_a_full_disk_is_intact_before_and_after() {
    // Seals of many sizes: some end where their last page does.
    for commits in 0..60 {
        let Some(sealed) = Sealed::new("suspension for a full disk", FailureAction::Suspend) else {
            return;
        };
        let mut journal = sealed.open();
        write(&mut journal, 0..commits);
        sealed.fill();
        overfill(&mut journal, 100);
        assert!(journal.is_suspended());
        sealed.assert_intact("while suspended");
        sealed.make_room();
        journal.resume().unwrap();
        journal.commit().unwrap();
        assert_eq!(journal.close().0.lost.total(), 0);
        sealed.assert_intact("after it went on");
    }
}

#[test]
fn a_journal_that_ends_on_a_full_disk_leaves_an_intact_log() {
    for commits in 0..60 {
        let Some(sealed) = Sealed::new("end on a full disk", FailureAction::Syslog) else {
            return;
        };
        let mut journal = sealed.open();
        write(&mut journal, 0..commits);
        sealed.fill();
        overfill(&mut journal, 100);
        assert!(journal.close().0.lost.closed > 0);
        sealed.assert_intact("after the end");
        sealed.make_room();
        write(&mut sealed.open(), 1000..1010);
        sealed.assert_intact("after another start");
    }
}
