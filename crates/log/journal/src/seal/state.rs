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

use super::entry::SealChain;
use super::keys::{Keys, SeriesId, SECRETS_BYTES};
use crate::writing;
use rustix::fs::{Mode, OFlags};

const MAGIC: &[u8; 8] = b"TARSKEY1";
const RECORD_BYTES: usize = 208;
const CHECKED_BYTES: usize = RECORD_BYTES - 32;
const SECRETS_AT: usize = 48;
const CHAIN_AT: usize = SECRETS_AT + SECRETS_BYTES;

/// A series' state on the host.
pub(super) struct SealState {
    pub(super) id: SeriesId,
    pub(super) keys: Keys,
    /// Number of the current seal file.
    pub(super) file: u32,
    /// True while no seal file is expected to exist: the first is not created yet, or a rotation is
    /// under way.
    pub(super) is_between_files: bool,
    pub(super) chain: SealChain,
}

/// Reason why the state cannot be used.
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
    pub(super) fn open(path: &Path) -> Result<(Self, SealState), StateError> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(writing::open(path, flags, Mode::empty()).map_err(StateError::Io)?);
        let state = read(&file)?;
        let file = Arc::new(file);
        Ok((StateFile { file }, state))
    }

    /// Overwrites the record. The old content can no longer be read through the file system.
    pub(super) fn write(&self, state: &mut SealState) -> io::Result<()> {
        let between = u32::from(state.is_between_files);
        let (epoch, index) = (state.keys.epoch, state.keys.index);
        let (id, chain) = (state.id, state.chain.0);
        let numbers = [epoch, index, state.file, between, 0, 0].map(u32::to_le_bytes);
        state.keys.write(|secrets, room| {
            // Built in the locked page: no secret reaches memory that may be swapped out.
            let record = &mut room[..RECORD_BYTES];
            record[..8].copy_from_slice(MAGIC);
            record[8..24].copy_from_slice(&id);
            record[24..SECRETS_AT].copy_from_slice(numbers.as_flattened());
            record[SECRETS_AT..CHAIN_AT].copy_from_slice(secrets);
            record[CHAIN_AT..CHECKED_BYTES].copy_from_slice(&chain);
            let check = blake3::hash(&record[..CHECKED_BYTES]);
            record[CHECKED_BYTES..].copy_from_slice(check.as_bytes());
            self.file.write_all_at(record, 0)
        })
    }

    /// Overwrites the record with zeros, before the file is given up.
    pub(super) fn wipe(&self) -> io::Result<()> {
        self.file.write_all_at(&[0; RECORD_BYTES], 0)?;
        self.file.sync_all()
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

/// Decodes a record of the right length. The secrets go to `secrets`.
fn decode(record: &[u8], secrets: &mut [u8]) -> Result<StateNumbers, StateError> {
    let (content, check) = record.split_at(CHECKED_BYTES);
    if blake3::hash(content).as_bytes() != check || !content.starts_with(MAGIC) {
        return Err(StateError::Damaged);
    }

    secrets.copy_from_slice(&content[SECRETS_AT..SECRETS_AT + SECRETS_BYTES]);
    let number = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| content[at + i]));
    let mut numbers = StateNumbers {
        id: [0; 16],
        epoch: number(24),
        index: number(28),
        file: number(32),
        is_between_files: number(36) != 0,
        chain: [0; 32],
    };

    numbers.id.copy_from_slice(&content[8..24]);
    numbers
        .chain
        .copy_from_slice(&content[CHAIN_AT..CHECKED_BYTES]);
    Ok(numbers)
}

/// The content of a record that is no secret.
struct StateNumbers {
    id: SeriesId,
    epoch: u32,
    index: u32,
    file: u32,
    is_between_files: bool,
    chain: [u8; 32],
}

fn read(file: &File) -> Result<SealState, StateError> {
    let mut numbers = None;
    let mut keys = Keys::read(0, 0, |secrets, room| {
        let record = &mut room[..RECORD_BYTES];
        match file.read_exact_at(record, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(StateError::Damaged)
            }
            other => other?,
        }
        numbers = Some(decode(record, secrets)?);
        Ok(())
    })?;

    let numbers = numbers.ok_or(StateError::Damaged)?;
    (keys.epoch, keys.index) = (numbers.epoch, numbers.index);
    Ok(SealState {
        id: numbers.id,
        keys,
        file: numbers.file,
        is_between_files: numbers.is_between_files,
        chain: SealChain(numbers.chain),
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
        let mut state = SealState {
            id: [1; 16],
            keys: Keys::first(&[2; 32]),
            file: 4,
            is_between_files: true,
            chain: SealChain([5; 32]),
        };
        let secrets = |keys: &mut Keys| keys.write(|secrets, _| secrets.to_vec());
        file.write(&mut state).unwrap();
        let old = secrets(&mut state.keys)[64..].to_vec();
        state.keys.step();
        file.write(&mut state).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), RECORD_BYTES);
        assert!(!bytes.windows(32).any(|window| window == old));
        let (_, mut again) = StateFile::open(&path).unwrap();
        assert_eq!(
            (again.id, again.file, again.is_between_files),
            (state.id, 4, true)
        );
        assert_eq!((again.keys.epoch, again.keys.index), (0, 1));
        assert_eq!(secrets(&mut again.keys), secrets(&mut state.keys));
        state
            .keys
            .write(|_, room| assert!(room.iter().all(|&byte| byte == 0)));
        assert_eq!(again.chain, state.chain);
        for bit in [0, 300, 1000, RECORD_BYTES * 8 - 1] {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, wrong).unwrap();
            assert!(matches!(StateFile::open(&path), Err(StateError::Damaged)));
        }
        file.wipe().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [0; RECORD_BYTES]);
    }
}
