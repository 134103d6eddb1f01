//! Changes of log files for a daemon that has lost its right to them: to Landlock, a file system that is mounted anew at
//! the same path is another directory.

use crate::spawn::message::LogChange;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Flags that the daemon may choose. It gets no directory, and nothing behind a symbolic link.
const CHOSEN: OFlags = OFlags::from_bits_retain(
    OFlags::RDWR.bits()
        | OFlags::WRONLY.bits()
        | OFlags::APPEND.bits()
        | OFlags::CREATE.bits()
        | OFlags::EXCL.bits()
        | OFlags::TRUNC.bits(),
);
const ALWAYS: OFlags = OFlags::from_bits_retain(
    OFlags::NOFOLLOW.bits()
        | OFlags::CLOEXEC.bits()
        | OFlags::NOCTTY.bits()
        | OFlags::NONBLOCK.bits(),
);
/// Bits of the mode of a new file.
const MODES: u32 = 0o660;

/// Whether all files of a change are of this log: in its directory, with names that begin with the log's.
pub(crate) fn is_of(change: &LogChange, log: &Path) -> bool {
    let of_log = |path: &Path| {
        let name = log.file_name().unwrap_or_default().as_bytes();
        let found = path.file_name().unwrap_or_default().as_bytes();
        let rest = found.strip_prefix(name);
        let is_plain = !path.components().any(|part| part == Component::ParentDir);
        is_plain
            && !name.is_empty()
            && path.parent() == log.parent()
            && rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
    };

    match change {
        LogChange::Open { path, .. } | LogChange::Remove { path } => of_log(path),
        LogChange::Rename { from, to } => of_log(from) && of_log(to),
    }
}

/// Makes a change. The descriptor is that of an opened file.
pub(crate) fn make(change: &LogChange) -> io::Result<Option<OwnedFd>> {
    match change {
        LogChange::Open { path, flags, mode } => {
            let flags = OFlags::from_bits_retain(*flags) & CHOSEN | ALWAYS;
            let mode = Mode::from_raw_mode(mode & MODES);
            let file = rustix::fs::open(path, flags, mode)?;
            let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
            if kind.is_file() {
                Ok(Some(file))
            } else {
                Err(rustix::io::Errno::NXIO.into())
            }
        }
        LogChange::Rename { from, to } => std::fs::rename(from, to).map(|()| None),
        LogChange::Remove { path } => std::fs::remove_file(path).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::path::PathBuf;

    fn open(path: PathBuf, flags: OFlags) -> LogChange {
        LogChange::Open {
            path,
            flags: flags.bits(),
            mode: 0o7777,
        }
    }

    #[test]
    fn only_files_of_the_log_are_changed() {
        let log = Path::new("/var/log/audit/audit.log");
        let is = |path: &str| is_of(&open(path.into(), OFlags::RDWR), log);
        for own in [
            "audit.log",
            "audit.log.1",
            "audit.log.seal",
            "audit.log.3.zst",
        ] {
            assert!(is(&format!("/var/log/audit/{own}")), "{own}");
        }
        for other in [
            "/var/log/audit/other",
            "/var/log/audit/audit.logs",
            "/var/log/audit",
            "/var/log/audit/../audit/audit.log",
            "/var/log/audit/audit.log/../x",
            "/etc/audit.log",
            "/var/log/audit/d/audit.log",
            "",
        ] {
            assert!(!is(other), "{other}");
        }
        let rename = |from: &str, to: &str| LogChange::Rename {
            from: from.into(),
            to: to.into(),
        };
        assert!(is_of(
            &rename("/var/log/audit/audit.log", "/var/log/audit/audit.log.1"),
            log
        ));
        assert!(!is_of(
            &rename("/var/log/audit/audit.log", "/etc/shadow"),
            log
        ));
        assert!(!is_of(
            &rename("/etc/shadow", "/var/log/audit/audit.log"),
            log
        ));
    }

    #[test]
    fn files_are_opened_renamed_and_removed_but_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.log");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::PATH;
        let file = make(&open(path.clone(), flags)).unwrap().expect("a file");
        File::from(file).write_all(b"line\n").expect("not O_PATH");
        let to = dir.path().join("audit.log.1");
        let rename = LogChange::Rename {
            from: path.clone(),
            to: to.clone(),
        };
        assert!(make(&rename).unwrap().is_none());
        let mut text = String::new();
        let file = File::open(&to).unwrap();
        let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata().unwrap());
        assert_eq!(mode & 0o7117, 0, "{mode:o}");
        (&file).read_to_string(&mut text).unwrap();
        assert_eq!(text, "line\n");
        std::os::unix::fs::symlink(&to, &path).unwrap();
        let error = make(&open(path, OFlags::RDWR)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        make(&LogChange::Remove { path: to.clone() }).unwrap();
        assert!(!to.exists());
    }
}
