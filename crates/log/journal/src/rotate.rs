//! Rotation: `log` becomes `log.1`, `log.1` becomes `log.2` and so on, each with its seal; a
//! compressed `log.1.zst` becomes `log.2.zst`.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{access, Access};

use crate::error::RotateError;
use crate::files::{self, modes, numbered, open_log, set_permissions};
use crate::index;
use crate::read::COMPRESSED_SUFFIX;
use crate::seal::{seal_path, with_suffix};
use crate::writing;
use conf::Group;

/// A finished rotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The new path of the file that was current.
    pub to: PathBuf,
    /// The oldest file, if it was overwritten or removed.
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

/// The value of `num_logs` with which KEEP_LOGS drops nothing: all existing rotated files, one
/// more, and the current file.
pub(crate) fn keep_all(log_file: &Path) -> u32 {
    let mut free = 1;
    while free < u32::MAX - 1 && rotated(log_file, free).is_some() {
        free += 1;
    }
    free + 1
}

/// The rotated file with this number, compressed or not.
fn rotated(log_file: &Path, number: u32) -> Option<PathBuf> {
    let plain = numbered(log_file, number);
    let compressed = with_suffix(&plain, COMPRESSED_SUFFIX);
    [plain, compressed]
        .into_iter()
        .find(|path| access(path, Access::EXISTS).is_ok())
}

/// Renames a rotated file and its seal to the next number, over what is there. `Ok` also if there
/// is none.
fn shift(log_file: &Path, number: u32) -> Result<(), (PathBuf, io::Error)> {
    let (here, above) = (numbered(log_file, number), numbered(log_file, number + 1));
    let forms = ["", COMPRESSED_SUFFIX];
    for (form, other) in [(forms[0], forms[1]), (forms[1], forms[0])] {
        let (from, to) = (with_suffix(&here, form), with_suffix(&above, form));
        match writing::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((to, error)),
            Err(_) => {}
            Ok(()) => {
                // A file in the other form that was there before must not be taken for this one.
                let _ = writing::remove_file(with_suffix(&above, other));
                break;
            }
        }
    }

    index::follow(&here, &above);
    move_seal(&here, &above).map_err(|error| (seal_path(&above), error))
}

/// Moves the seal of a file that was renamed. Without one, a seal that already has the new name
/// belongs to another file, and is removed.
fn move_seal(from: &Path, to: &Path) -> io::Result<()> {
    match writing::rename(seal_path(from), seal_path(to)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match writing::remove_file(seal_path(to)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        }
        other => other,
    }
}

/// Finishes a rotation that a crash interrupted: renames a seal that did not follow its file. Call
/// this before the log is opened, since opening creates it.
pub(crate) fn repair(log_file: &Path) -> io::Result<()> {
    let mut numbers = files::rotated_numbers(log_file)?;
    numbers.sort_unstable_by(|a, b| b.cmp(a));

    // Highest number first, as the rotation itself goes: each seal then moves to a name that is free.
    for number in numbers {
        let here = numbered(log_file, number);
        let before = match number {
            0 => continue,
            1 => log_file.to_owned(),
            _ => numbered(log_file, number - 1),
        };
        let is_gone = match number {
            1 => access(log_file, Access::EXISTS).is_err(),
            _ => rotated(log_file, number - 1).is_none(),
        };
        let has_seal = |path: &Path| access(seal_path(path), Access::EXISTS).is_ok();

        // The file has its new name and the seal its old one: the crash came between the two renames.
        if is_gone && has_seal(&before) && !has_seal(&here) {
            writing::rename(seal_path(&before), seal_path(&here))?;
        }
    }

    Ok(())
}

/// The files that are open after a rotation.
pub(crate) struct OpenFiles {
    pub(crate) log: File,
    /// Empty; `None` if the log is not sealed.
    pub(crate) seal: Option<File>,
}

/// Renames the files so that at most `keep` are left, including the new current one (`keep` >= 2),
/// and opens a new current file.
///
/// If a step fails, the steps before it stand and the current file stays current and writable: a
/// later rotation closes the gap in the numbers. (auditd goes on and overwrites the file that could
/// not be moved.)
pub(crate) fn rotate(
    log_file: &Path,
    current: &File,
    keep: u32,
    group: &Group,
    is_sealed: bool,
) -> Result<(OpenFiles, Rotated), RotateError> {
    let failed = |call, target: &Path, source: io::Error| RotateError {
        path: log_file.to_owned(),
        call,
        target: target.to_owned(),
        source,
    };
    let dropped = rotated(log_file, keep - 1);
    // Highest number first: each file moves to a name whose file has already moved on.
    for number in (1..keep - 1).rev() {
        shift(log_file, number).map_err(|(to, error)| failed("rename to", &to, error))?;
    }

    let first = numbered(log_file, 1);
    match writing::rename(log_file, &first) {
        // Somebody moved or deleted the current file; a new one is wanted anyway.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("rename to", &first, error)),
        Ok(()) => {
            // Matters only if the oldest file was `log.1`: otherwise shifting moved it away.
            let _ = writing::remove_file(with_suffix(&first, COMPRESSED_SUFFIX));
        }
    }

    // The seal follows its file; after a crash between the two renames, `repair` completes the second.
    move_seal(log_file, &first).map_err(|error| failed("rename to", &seal_path(&first), error))?;
    match create(log_file, group, is_sealed) {
        Ok(files) => {
            // Not worth stopping for; auditd goes on too.
            let _ = set_permissions(current, &first, modes(group).rotated, group);
            Ok((files, Rotated { to: first, dropped }))
        }
        Err((path, source)) => {
            // Restores the names. If that fails too, events go on into log.1, which is still open.
            let _ = writing::rename(&first, log_file);
            let _ = writing::rename(seal_path(&first), seal_path(log_file));
            Err(failed("create", &path, source))
        }
    }
}

fn create(
    log_file: &Path,
    group: &Group,
    is_sealed: bool,
) -> Result<OpenFiles, (PathBuf, io::Error)> {
    let open = |path: PathBuf| {
        open_log(&path, group).map_err(|error| {
            let source = match error.raw_os_error() {
                Some(errno) => io::Error::from_raw_os_error(errno),
                None => io::Error::other(error.to_string()),
            };
            (path, source)
        })
    };

    let log = open(log_file.to_owned())?;
    let seal = if is_sealed {
        Some(open(seal_path(log_file))?)
    } else {
        None
    };
    Ok(OpenFiles { log, seal })
}

/// Removes the files beyond `num_logs` (auditd's `check_excess_logs()`). Returns the removed paths.
pub(crate) fn remove_excess(log_file: &Path, num_logs: u32) -> Vec<PathBuf> {
    (num_logs..)
        .map_while(|number| {
            let path = rotated(log_file, number)?;
            writing::remove_file(&path).ok()?;
            // Most logs have no seal.
            let _ = writing::remove_file(seal_path(&numbered(log_file, number)));
            Some(path)
        })
        .collect()
}

/// Gives the files from `log.1` to below `num_logs` the mode of rotated files, as auditd does at
/// every start.
pub(crate) fn fix_permissions(log_file: &Path, num_logs: u32, group: &Group) {
    let mode = modes(group).rotated;
    for number in 1..num_logs {
        let path = numbered(log_file, number);
        for path in [with_suffix(&path, COMPRESSED_SUFFIX), path] {
            let metadata = std::fs::symlink_metadata(&path);
            if metadata.is_ok_and(|metadata| metadata.is_file()) {
                let _ = rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(mode));
            }
        }
    }
}
