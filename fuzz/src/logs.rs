//! Files of the journal: logs in every form, and their seals.

use journal::compact::TimeRange;
use journal::seal::verify::{End, Options};
use journal::seal::{seal_path, state_path, verify, VerificationKey};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most bytes of text that a file is read to.
const TEXT_BYTES_MAX: u64 = 16 << 20;

/// A directory of this call alone, in memory if there is such a place.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("tarsier-fuzz-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("a new directory");
        Scratch(path)
    }

    fn put(&self, path: &Path, bytes: &[u8]) {
        assert!(path.starts_with(&self.0));
        fs::write(path, bytes).expect("written");
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A log: plain, COMPACT, or compressed after its rotation. What a range of times leaves is not more
/// than the whole.
pub(crate) fn compact(data: &[u8]) {
    let scratch = Scratch::new();
    let path = scratch.0.join("audit.log");
    scratch.put(&path, data);
    let text = |range| {
        let mut text = Vec::new();
        let file = journal::compact::open(&path, range).ok()?;
        // Damage is an error; what came before it is text.
        let _ = file.take(TEXT_BYTES_MAX).read_to_end(&mut text);
        Some(text)
    };
    let range = TimeRange {
        since_s: 1,
        until_s: 1_700_000_000,
    };
    if let (Some(whole), Some(part)) = (text(TimeRange::ALL), text(range)) {
        assert!(part.len() <= whole.len() || whole.len() as u64 == TEXT_BYTES_MAX);
    }
}

/// The first part of `data` after its length (u32, little-endian), which is taken off.
fn part<'d>(data: &mut &'d [u8]) -> &'d [u8] {
    let Some((length, rest)) = data.split_first_chunk() else {
        return std::mem::take(data);
    };
    let length = (u32::from_le_bytes(*length) as usize).min(rest.len());
    let (part, rest) = rest.split_at(length);
    *data = rest;
    part
}

/// A verification key, a log, its seal, and the host's keys, each after its length. What is intact
/// is so after a journal has continued it, and closed then.
pub(crate) fn seals(mut data: &[u8]) {
    let scratch = Scratch::new();
    let log = scratch.0.join("audit.log");
    let key = String::from_utf8_lossy(part(&mut data)).into_owned();
    scratch.put(&log, part(&mut data));
    scratch.put(&seal_path(&log), part(&mut data));
    scratch.put(&state_path(&log), part(&mut data));
    let Ok(key) = VerificationKey::parse(&key, Path::new("fuzz")) else {
        return;
    };
    let size = fs::metadata(&log).expect("the log").len();
    let logs = [log.clone()];
    let verified = |key: &VerificationKey, is_complete| {
        let options = Options {
            is_complete,
            age_max: None,
        };
        verify(&logs, key, options).ok()
    };
    for is_complete in [false, true] {
        let public = verified(&key.without_secret(), is_complete);
        let report = verified(&key, is_complete);
        for report in [&public, &report].into_iter().flatten() {
            assert!(report.files.iter().all(|file| file.intact_bytes <= size));
            assert!(!report.is_intact() || report.files[0].intact_bytes == size);
        }
    }
    let was_intact = verified(&key, true).is_some_and(|report| report.is_intact());
    let config = conf::Config {
        seal: true,
        ..conf::Config::default()
    };
    let Ok((mut journal, _)) = journal::Journal::open(&log, &config) else {
        return;
    };
    journal.append(b"type=USER msg=audit(1.000:1): fuzz\n", 1);
    // Without room, nothing is written; that is no damage either.
    let _ = journal.commit();
    journal.close();
    if was_intact {
        let report = verified(&key, true).expect("it is sealed");
        assert_eq!((report.finding, report.end), (None, End::InOrder));
    }
}
