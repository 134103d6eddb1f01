//! Rotation: `log` becomes `log.1`, `log.1` becomes `log.2` and so on.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{access, Access};

use crate::config::Group;
use crate::error::RotateError;
use crate::files::{modes, numbered, open_log, set_permissions};

/// A finished rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// Where the file that was current is now.
    pub to: PathBuf,
    /// The oldest file, if it had to make room.
    pub dropped: Option<PathBuf>,
}

impl fmt::Display for Rotated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "log rotated to {}", self.to.display())?;
        match &self.dropped {
            Some(path) => write!(f, ", the oldest ({}) dropped", path.display()),
            None => Ok(()),
        }
    }
}

/// The number of files after which KEEP_LOGS drops nothing: all there are, one more, and the
/// current one.
pub(crate) fn keep_all(log_file: &Path) -> u32 {
    let mut free = 1;
    while free < u32::MAX - 1 && access(numbered(log_file, free), Access::EXISTS).is_ok() {
        free += 1;
    }
    free + 1
}

/// Shifts the files so that at most `keep` are left, the new current one included (`keep` >= 2),
/// and opens a new current one.
///
/// If a step fails, the ones before it stay and the current file stays current and writable: a
/// later rotation closes the gap in the numbers. (auditd goes on and overwrites the file that
/// could not be moved.)
pub(crate) fn rotate(
    log_file: &Path,
    current: &File,
    keep: u32,
    group: &Group,
) -> Result<(File, Rotated), RotateError> {
    let failed = |call, target: &Path, source: io::Error| RotateError {
        path: log_file.to_owned(),
        call,
        target: target.to_owned(),
        source,
    };
    let oldest = numbered(log_file, keep - 1);
    let dropped = access(&oldest, Access::EXISTS).is_ok().then_some(oldest);
    for number in (2..keep).rev() {
        let (from, to) = (numbered(log_file, number - 1), numbered(log_file, number));
        match std::fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("rename to", &to, error))
            }
            _ => {}
        }
    }
    let first = numbered(log_file, 1);
    match std::fs::rename(log_file, &first) {
        // Somebody moved or deleted the current file; a new one is what is wanted.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("rename to", &first, error)),
        Ok(()) => {}
    }
    match open_log(log_file, group) {
        Ok(file) => {
            // Like auditd, not worth stopping for.
            let _ = set_permissions(current, &first, modes(group).rotated, group);
            Ok((file, Rotated { to: first, dropped }))
        }
        Err(error) => {
            let source = match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::other(error.to_string()),
            };
            // Back to the state before, as far as names go. If that fails too, events go on into
            // log.1, which is still open.
            let _ = std::fs::rename(&first, log_file);
            Err(failed("create", log_file, source))
        }
    }
}

/// Removes what lies beyond `num_logs` (auditd's `check_excess_logs()`); gives what was removed.
pub(crate) fn remove_excess(log_file: &Path, num_logs: u32) -> Vec<PathBuf> {
    (num_logs..)
        .map(|number| numbered(log_file, number))
        .take_while(|path| std::fs::remove_file(path).is_ok())
        .collect()
}
