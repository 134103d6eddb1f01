//! The host's keys on disk: one record of less than a sector, overwritten in place.
//!
//! A new file renamed over the old one would leave the old file's blocks, and the old key in them,
//! to the file system. Overwriting a sector destroys the old key if the file system writes in
//! place. A device writes a sector completely or not at all, so the record is never torn.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use zeroize::Zeroizing;

use super::entry::Chain;
use super::keys::{Keys, Secret, SeriesId};

const MAGIC: &[u8; 8] = b"TARSKEY1";
const RECORD_BYTES: usize = 208;
const CHECKED_BYTES: usize = RECORD_BYTES - 32;

/// What the host stores about a series.
pub(super) struct State {
    pub(super) id: SeriesId,
    pub(super) keys: Keys,
    /// Number of the current seal file.
    pub(super) file: u32,
    /// True while no seal file is expected to exist: the first is not created yet, or a rotation is
    /// under way.
    pub(super) is_between_files: bool,
    pub(super) chain: Chain,
}

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("damaged, or not a state of a seal")]
    Damaged,
}

/// The open state file.
pub(super) struct StateFile {
    file: Arc<File>,
}

impl StateFile {
    /// Creates the file, which must not exist yet.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(StateFile {
            file: Arc::new(File::from(fd)),
        })
    }

    /// Opens the file and reads its record.
    pub(super) fn open(path: &Path) -> Result<(Self, State), StateError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(
            rustix::fs::open(path, flags, Mode::empty()).map_err(|e| StateError::Io(e.into()))?,
        );
        let state = read(&file)?;
        let file = Arc::new(file);
        Ok((StateFile { file }, state))
    }

    /// Overwrites the record. The old content can no longer be read through the file system.
    pub(super) fn write(&self, state: &State) -> io::Result<()> {
        self.file.write_all_at(record(state).as_slice(), 0)
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }
}

/// Reads a state file without changing anything. Returns the series, epoch and index of the next
/// entry.
pub(super) fn peek(path: &Path) -> Option<(SeriesId, u32, u32)> {
    let state = read(&File::open(path).ok()?).ok()?;
    Some((state.id, state.keys.epoch, state.keys.index))
}

fn record(state: &State) -> Zeroizing<Vec<u8>> {
    let mut record = Zeroizing::new(Vec::with_capacity(RECORD_BYTES));
    record.extend_from_slice(MAGIC);
    record.extend_from_slice(&state.id);
    let between = u32::from(state.is_between_files);
    for number in [
        state.keys.epoch,
        state.keys.index,
        state.file,
        between,
        0,
        0,
    ] {
        record.extend_from_slice(&number.to_le_bytes());
    }
    for secret in [&state.keys.next, &state.keys.sign, &state.keys.entry] {
        record.extend_from_slice(secret.as_slice());
    }
    record.extend_from_slice(&state.chain.0);
    let check = blake3::hash(&record);
    record.extend_from_slice(check.as_bytes());
    record
}

fn read(file: &File) -> Result<State, StateError> {
    let mut record = Zeroizing::new([0; RECORD_BYTES]);
    match file.read_exact_at(record.as_mut_slice(), 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(StateError::Damaged)
        }
        other => other?,
    }
    let (content, check) = record.split_at(CHECKED_BYTES);
    if blake3::hash(content).as_bytes() != check || !content.starts_with(MAGIC) {
        return Err(StateError::Damaged);
    }
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| content[at + i]));
    let secret = |at: usize| -> Secret {
        let mut secret = Zeroizing::new([0; 32]);
        secret.copy_from_slice(&content[at..at + 32]);
        secret
    };
    let mut id = [0; 16];
    id.copy_from_slice(&content[8..24]);
    Ok(State {
        id,
        keys: Keys {
            epoch: number(24),
            index: number(28),
            next: secret(48),
            sign: secret(80),
            entry: secret(112),
        },
        file: number(32),
        is_between_files: number(36) != 0,
        chain: Chain(*secret(144)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_back_and_its_past_keys_are_not_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.sealkey");
        let file = StateFile::create(&path).unwrap();
        let mut state = State {
            id: [1; 16],
            keys: Keys::first(&[2; 32]),
            file: 4,
            is_between_files: true,
            chain: Chain([5; 32]),
        };
        file.write(&state).unwrap();
        let old = state.keys.entry.clone();
        state.keys.step();
        file.write(&state).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(32).any(|window| window == old.as_slice()));
        let (_, again) = StateFile::open(&path).unwrap();
        assert_eq!(
            (again.id, again.file, again.is_between_files),
            (state.id, 4, true)
        );
        assert_eq!((again.keys.epoch, again.keys.index), (0, 1));
        assert_eq!(again.keys.entry, state.keys.entry);
        assert_eq!(again.keys.next, state.keys.next);
        assert_eq!(again.keys.sign, state.keys.sign);
        assert_eq!(again.chain, state.chain);
        for bit in [0, 300, 1000, RECORD_BYTES * 8 - 1] {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, wrong).unwrap();
            assert!(matches!(StateFile::open(&path), Err(StateError::Damaged)));
        }
    }
}
