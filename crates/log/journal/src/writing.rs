//! Changes of the log's files by path. A confined daemon may lose its right to them while it runs: to Landlock, a file
//! system that is mounted anew is another directory. Then the process that starts programs makes the change.

use privsep::spawn::{Launcher, LogChange};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::OnceLock;

/// Launcher that makes the changes which are refused to this process.
static HELPER: OnceLock<Launcher> = OnceLock::new();

/// Sets the launcher that makes the changes which are refused to this process. Once set, it stays.
pub(crate) fn helped_by(launcher: &Launcher) {
    if let Launcher::Spawners(_) = launcher {
        let _ = HELPER.set(launcher.clone());
    }
}

/// open(2) for writing.
pub(crate) fn open(path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let change = |path: &Path| LogChange::Open {
        path: path.to_owned(),
        flags: flags.bits(),
        mode: mode.bits(),
    };

    match rustix::fs::open(path, flags, mode) {
        Err(Errno::ACCESS) => match helped(change(path))? {
            Some(Some(file)) => Ok(file),
            _ => Err(Errno::ACCESS.into()),
        },
        other => Ok(other?),
    }
}

/// rename(2).
pub(crate) fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    let (from, to) = (from.as_ref(), to.as_ref());
    or_helped(std::fs::rename(from, to), || LogChange::Rename {
        from: from.to_owned(),
        to: to.to_owned(),
    })
}

/// unlink(2).
pub(crate) fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    or_helped(std::fs::remove_file(path), || LogChange::Remove {
        path: path.to_owned(),
    })
}

/// Result of a change; if this process was refused it, the result of having the helper make it.
fn or_helped(made: io::Result<()>, change: impl FnOnce() -> LogChange) -> io::Result<()> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => match helped(change())? {
            Some(_) => Ok(()),
            None => Err(error),
        },
        other => other,
    }
}

/// Has a change made; `None` if there is nobody who could.
fn helped(change: LogChange) -> io::Result<Option<Option<OwnedFd>>> {
    match HELPER.get() {
        Some(launcher) => launcher.change_log(change).map(Some),
        None => Ok(None),
    }
}
