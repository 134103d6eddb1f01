//! The spool follows a log through every kind of rotation.

use super::*;
use std::fs;

struct Log {
    dir: tempfile::TempDir,
}

impl Log {
    fn new() -> Log {
        Log {
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("audit.log")
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.dir.path().join(format!("audit.log.{number}"))
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).expect("write the log");
    }

    /// Rotates, keeping two older files.
    fn rotate(&self) {
        let _ = fs::rename(self.numbered(1), self.numbered(2));
        fs::rename(self.path(), self.numbered(1)).expect("rename");
    }

    fn spool(&self) -> Spool {
        Spool::open(&self.dir.path().join("forward"), &self.path()).expect("a spool")
    }
}

fn text(spool: &Spool, number: u64) -> String {
    fs::read_to_string(spool.path(number)).expect("read a link")
}

#[test]
fn rotated_files_are_kept_under_their_numbers() {
    let log = Log::new();
    let mut spool = log.spool();
    assert_eq!(
        spool.refresh(Start::Oldest).expect("refresh"),
        Refreshed::default()
    );
    for turn in 1..=5 {
        log.write(&format!("file {turn}\n"));
        spool.refresh(Start::Oldest).expect("refresh");
        log.rotate();
    }
    let numbers: Vec<u64> = spool.numbers().collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(numbers
        .iter()
        .all(|n| text(&spool, *n) == format!("file {n}\n")));
    spool.release(4).expect("release");
    drop(spool);
    let mut spool = log.spool();
    log.write("file 6\n");
    spool.refresh(Start::Oldest).expect("refresh");
    assert_eq!(spool.numbers().collect::<Vec<_>>(), [4, 5, 6]);
}

#[test]
fn rotations_without_a_sender_are_caught_up_with() {
    let log = Log::new();
    log.write("file 1\n");
    log.spool().refresh(Start::Oldest).expect("refresh");
    for turn in 2..=3 {
        log.rotate();
        log.write(&format!("file {turn}\n"));
    }
    let mut spool = log.spool();
    let refreshed = spool.refresh(Start::Oldest).expect("refresh");
    assert_eq!((refreshed.added, refreshed.gap_before), (vec![2, 3], None));
    assert_eq!(text(&spool, 2), "file 2\n");
}

#[test]
fn files_that_are_gone_are_a_gap() {
    let log = Log::new();
    log.write("file 1\n");
    log.spool().refresh(Start::Oldest).expect("refresh");
    for turn in 2..=5 {
        log.rotate();
        log.write(&format!("file {turn}\n"));
    }
    let mut spool = log.spool();
    let refreshed = spool.refresh(Start::Oldest).expect("refresh");
    assert_eq!(
        (refreshed.added, refreshed.gap_before),
        (vec![2, 3, 4], Some(2))
    );
    assert_eq!(text(&spool, 2), "file 3\n");
}

#[test]
fn compressed_files_are_known_and_read() {
    let log = Log::new();
    log.write("file 1\n");
    log.spool().refresh(Start::Oldest).expect("refresh");
    for turn in 2..=3 {
        log.rotate();
        log.write(&format!("file {turn}\n"));
    }
    for number in 1..=2 {
        let plain = log.numbered(number);
        let packed = zstd::encode_all(&fs::read(&plain).expect("read")[..], 3).expect("pack");
        fs::write(
            log.dir.path().join(format!("audit.log.{number}.zst")),
            packed,
        )
        .expect("write");
        fs::remove_file(plain).expect("remove");
    }
    let mut spool = log.spool();
    let refreshed = spool.refresh(Start::Oldest).expect("refresh");
    assert_eq!((refreshed.added, refreshed.gap_before), (vec![2, 3], None));
    assert_eq!(text(&spool, 2), "file 2\n");
}

#[test]
fn the_start_may_be_now_and_the_seal_comes_along() {
    let log = Log::new();
    log.write("file 1\n");
    log.rotate();
    log.write("file 2\n");
    let mut spool = log.spool();
    assert_eq!(spool.refresh(Start::Now).expect("refresh").added, [1]);
    assert_eq!(text(&spool, 1), "file 2\n");
    fs::write(log.dir.path().join("audit.log.seal"), "seal").expect("write");
    spool.refresh(Start::Now).expect("refresh");
    assert_eq!(spool.seal_size(1), 4);
}

#[test]
fn one_sender_uses_a_spool_and_compact_logs_are_refused() {
    let log = Log::new();
    let mut spool = log.spool();
    let error = Spool::open(spool.dir(), &log.path()).expect_err("in use");
    assert!(
        error.to_string().contains("another tarsier-forward"),
        "{error}"
    );
    log.write("TARCOMP1 and so on");
    let error = spool.refresh(Start::Oldest).expect_err("compact");
    assert!(error.to_string().contains("log_format = RAW"), "{error}");
}
