//! The log file and its directory: opening, names, permissions.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::OpenError;
use crate::read::COMPRESSED_SUFFIX;
use crate::seal::with_suffix;
use crate::writing;
use conf::Group;

/// Permission bits of the log's files and directory, as auditd sets them; they depend on whether
/// `log_group` may read.
pub(crate) struct Modes {
    pub(crate) dir: u32,
    pub(crate) current: u32,
    pub(crate) rotated: u32,
}

pub(crate) fn modes(group: &Group) -> Modes {
    if group.may_read() {
        Modes {
            dir: 0o750,
            current: 0o640,
            rotated: 0o440,
        }
    } else {
        Modes {
            dir: 0o700,
            current: 0o600,
            rotated: 0o400,
        }
    }
}

/// Path of the rotated file `log.N`.
pub(crate) fn numbered(log_file: &Path, number: u32) -> PathBuf {
    let mut name = log_file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

pub(crate) fn dir_of(log_file: &Path) -> &Path {
    match log_file.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// The existing files of a log, oldest first: `log.N` or `log.N.zst` by descending number, then
/// `log`.
pub fn log_files(log_file: &Path) -> io::Result<Vec<PathBuf>> {
    let mut numbers = rotated_numbers(log_file)?;
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let existing = |number| {
        let plain = numbered(log_file, number);
        if plain.exists() {
            plain
        } else {
            with_suffix(&plain, COMPRESSED_SUFFIX)
        }
    };

    let mut files: Vec<PathBuf> = numbers.into_iter().map(existing).collect();
    if log_file.exists() {
        files.push(log_file.to_owned());
    }
    Ok(files)
}

/// The numbers of the existing rotated files, in no particular order.
pub(crate) fn rotated_numbers(log_file: &Path) -> io::Result<Vec<u32>> {
    let Some(name) = log_file.file_name() else {
        return Ok(Vec::new());
    };

    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir_of(log_file))? {
        let entry = entry?.file_name();
        let number = entry
            .as_bytes()
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"."))
            .map(|rest| {
                rest.strip_suffix(COMPRESSED_SUFFIX.as_bytes())
                    .unwrap_or(rest)
            })
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| {
                digits
                    .parse::<u32>()
                    .ok()
                    // `log.01` is no file of this log.
                    .filter(|n| n.to_string() == digits)
            });

        // `log.N` and `log.N.zst` are one file when a crash interrupted its compression.
        numbers.extend(number.filter(|number| !numbers.contains(number)));
    }

    Ok(numbers)
}

/// Makes sure that the log's directory exists; creates at most one level. An existing directory
/// gets auditd's permissions only if it contains nothing but this log: `--log-file /tmp/x` must not
/// close /tmp to others. Returns a warning if other users could replace the log.
pub(crate) fn prepare_dir(log_file: &Path, group: &Group) -> Result<Option<String>, OpenError> {
    let dir = dir_of(log_file);
    let mode = modes(group).dir;
    match rustix::fs::mkdir(dir, Mode::from_raw_mode(mode)) {
        Ok(()) => {
            set_dir_permissions(dir, mode, group)?;
            return Ok(None);
        }
        Err(Errno::EXIST) => {}
        // Some file systems answer EROFS or EACCES before they check whether the directory exists.
        Err(_) if dir.is_dir() => {}
        Err(errno) => return Err(OpenError::io(dir, "mkdir", errno)),
    }

    let metadata = std::fs::metadata(dir).map_err(|e| OpenError::io(dir, "stat", e))?;
    if !metadata.is_dir() {
        let remedy = "name a log file inside a directory";
        return Err(OpenError::refused(dir, "not a directory", remedy));
    }

    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    let sticky = metadata.mode() & 0o1000 != 0;
    if ours && !sticky && only_holds(dir, log_file) {
        // Not a reason to fail: the log itself is protected by its own mode.
        return Ok(set_dir_permissions(dir, mode, group)
            .err()
            .map(|e| e.to_string()));
    }

    let open_to_others = metadata.mode() & 0o022 != 0 && !sticky;
    Ok(open_to_others.then(|| {
        format!(
            "{}: mode {:04o}: others can replace the log; use a directory of its own",
            dir.display(),
            metadata.mode() & 0o7777
        )
    }))
}

fn set_dir_permissions(dir: &Path, mode: u32, group: &Group) -> Result<(), OpenError> {
    rustix::fs::chmod(dir, Mode::from_raw_mode(mode))
        .map_err(|errno| OpenError::io(dir, "chmod", errno))?;
    match rustix::fs::chown(dir, None, Some(rustix::fs::Gid::from_raw(group.gid))) {
        Err(errno) if running_as_root() => Err(OpenError::io(dir, "chown", errno)),
        _ => Ok(()),
    }
}

/// Whether `dir` has no entries but the files of this log.
fn only_holds(dir: &Path, log_file: &Path) -> bool {
    let (Some(name), Ok(entries)) = (log_file.file_name(), std::fs::read_dir(dir)) else {
        return false;
    };
    entries
        .into_iter()
        .all(|entry| entry.is_ok_and(|e| e.file_name().as_bytes().starts_with(name.as_bytes())))
}

fn running_as_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Opens the log for appending, or creates it, and locks it.
pub(crate) fn open_log(path: &Path, group: &Group) -> Result<File, OpenError> {
    let file = open_or_create(path, modes(group).current)?;
    let metadata = file
        .metadata()
        .map_err(|error| OpenError::io(path, "fstat", error))?;
    if !metadata.is_file() {
        let remedy = "name a regular file, or one that does not exist yet";
        return Err(OpenError::refused(path, "not a regular file", remedy));
    }

    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let found = format!("owned by uid {owner}, not by root");
        let remedy = "chown root it if you trust what it says, else move it away";
        return Err(OpenError::refused(path, found, remedy));
    }

    // The lock keeps a second journal out, and shows `tarsier verify` that the log is being written.
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            return Err(OpenError::InUse {
                path: path.to_owned(),
            })
        }
        // File systems without locks: there is nothing to hold.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(errno) => return Err(OpenError::io(path, "flock", errno)),
    }

    // Only under the lock: a file that another daemon writes must not change.
    set_permissions(&file, path, modes(group).current, group)?;
    Ok(file)
}

fn open_or_create(path: &Path, mode: u32) -> Result<File, OpenError> {
    // NONBLOCK keeps open(2) from waiting for a device or FIFO, which is refused afterwards.
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY
        | OFlags::NONBLOCK;
    let opened = match writing::open(path, flags, Mode::empty()) {
        // O_EXCL: a file or link that somebody makes between the two calls is refused, not written.
        Err(error) if error.kind() == io::ErrorKind::NotFound => writing::open(
            path,
            flags | OFlags::CREATE | OFlags::EXCL,
            Mode::from_raw_mode(mode),
        ),
        other => other,
    };

    let error = match opened {
        Ok(fd) => return Ok(File::from(fd)),
        Err(error) => error,
    };
    match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => Err(OpenError::refused(
            path,
            "a symbolic link",
            "name the file itself: a log is never written through a link",
        )),
        Some(Errno::ISDIR) => Err(OpenError::refused(
            path,
            "a directory",
            "name a file inside it",
        )),
        Some(Errno::NXIO) => Err(OpenError::refused(
            path,
            "a socket or device, not a regular file",
            "name a regular file, or one that does not exist yet",
        )),
        _ => Err(OpenError::io(path, "open", error)),
    }
}

/// Sets the mode and, when run as root, the owner root and the log's group.
pub(crate) fn set_permissions(
    file: &File,
    path: &Path,
    mode: u32,
    group: &Group,
) -> Result<(), OpenError> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode))
        .map_err(|errno| OpenError::io(path, "fchmod", errno))?;
    if running_as_root() {
        let (root, gid) = (rustix::fs::Uid::ROOT, rustix::fs::Gid::from_raw(group.gid));
        rustix::fs::fchown(file, Some(root), Some(gid))
            .map_err(|errno| OpenError::io(path, "fchown", errno))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_files_are_listed_oldest_first_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        for name in [
            "audit.log",
            "audit.log.1",
            "audit.log.10",
            "audit.log.2",
            "audit.log.3.zst",
        ] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        for name in ["audit.log.01", "audit.log.1.seal", "audit.log.", "other.3"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<String> = log_files(&log)
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            names,
            [
                "audit.log.10",
                "audit.log.3.zst",
                "audit.log.2",
                "audit.log.1",
                "audit.log"
            ]
        );
    }
}
