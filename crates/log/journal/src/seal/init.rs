//! `tarsier seal init`: a new series of keys for a log.

use std::io;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::entry::SealChain;
use super::keys::{Keys, VerificationKey};
use super::state::{SealState, StateFile};
use super::{seal_path, state_path};
use crate::files::dir_of;

/// Error of making keys. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Keys, or a seal made with earlier keys, exist already.
    #[error("{}: there already; the log is sealed by earlier keys. To begin anew, move the log, its \
             rotated files, {} and {} away together and keep them with their key", path.display(), seal.display(), state.display())]
    Exists {
        /// Path of the existing file.
        path: PathBuf,
        /// The seal's path.
        seal: PathBuf,
        /// The path of the state file, which holds the host's keys.
        state: PathBuf,
    },
    /// A system call failed.
    #[error("{}: {call} failed: {source}; the log's directory must be there and writable", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The call.
        call: &'static str,
        /// Error of the call.
        source: io::Error,
    },
}

/// Creates keys for `log`. The host's keys go to the state file beside the log (mode 0600); the
/// verification key is returned and stored nowhere. The directory of the log must exist; the log
/// need not.
pub fn init(log: &Path) -> Result<VerificationKey, InitError> {
    let (seal, path) = (seal_path(log), state_path(log));
    if let Some(found) = [&path, &seal].into_iter().find(|path| path.exists()) {
        return Err(InitError::Exists {
            path: found.clone(),
            seal: seal.clone(),
            state: path.clone(),
        });
    }

    let failed = |call| {
        let path = path.clone();
        move |source: io::Error| InitError::Io { path, call, source }
    };
    let mut secret = Zeroizing::new([0; 32]);
    let mut id = [0; 16];
    fill_random(secret.as_mut_slice()).map_err(failed("getrandom"))?;
    fill_random(&mut id).map_err(failed("getrandom"))?;

    let mut state = SealState {
        id,
        keys: Keys::first(&secret),
        file: 0,
        is_between_files: true,
        chain: SealChain([0; 32]),
    };

    // Durable before the key is returned: without the host's keys there would be nothing to verify with it.
    let file = StateFile::create(&path).map_err(failed("open"))?;
    let written = file.write(&mut state).and_then(|()| file.file().sync_all());
    let written = written.and_then(|()| std::fs::File::open(dir_of(log))?.sync_all());
    if let Err(error) = written {
        forget(&path, &file);
        return Err(failed("write")(error));
    }

    Ok(VerificationKey::new(id, secret))
}

/// Takes back the keys that [`init`] made for `log`, because the verification key could not be given
/// to anybody. Nothing must have been sealed with them.
pub fn take_back(log: &Path) {
    let path = state_path(log);
    if let Ok((file, _)) = StateFile::open(&path) {
        forget(&path, &file);
    }
}

/// Removes a state file, whose blocks then hold no keys.
fn forget(path: &Path, file: &StateFile) {
    // The file goes whether or not it could be wiped.
    let _ = file.wipe();
    let _ = std::fs::remove_file(path);
}

fn fill_random(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::rand::getrandom(&mut *bytes, rustix::rand::GetRandomFlags::empty())?;
        bytes = &mut bytes[count..];
    }
    Ok(())
}
