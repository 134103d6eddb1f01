//! One daemon per run directory.

use anyhow::{bail, Context, Result};
use rustix::fs::{flock, openat, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use trust::{Directory, Links};

/// The lock of a run directory, held as long as this value lives.
pub struct Instance {
    _file: File,
    /// The run directory. Only root can create or replace files in it, so they can be named by path.
    directory: Directory,
}

/// Contains the process id; the lock is on this file.
const PID_FILE: &str = "tarsier.pid";

impl Instance {
    /// Creates `run_dir` (0700) if needed and locks it for this process.
    ///
    /// # Errors
    /// Somebody other than root can change the directory or what leads to it, or it is a symbolic
    /// link, or another process has the lock.
    pub fn lock(run_dir: &Path) -> Result<Instance> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(run_dir)
            .with_context(|| format!("cannot make {}", run_dir.display()))?;
        // Held open: later paths lead through this descriptor, whatever happens to the name.
        let directory = Directory::open(run_dir, Links::Refuse)
            .context("the run directory is refused; give another --run-dir, or mend this one")?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(
            &directory,
            PID_FILE,
            flags | OFlags::NONBLOCK,
            Mode::from(0o600),
        )
        .with_context(|| format!("cannot open {}", run_dir.join(PID_FILE).display()))?;

        let mut file = File::from(file);
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            let mut pid = String::new();
            let _ = file.read_to_string(&mut pid);
            bail!(
                "another tarsier (pid {}) runs with {}: stop it, or give another --run-dir",
                pid.trim(),
                run_dir.display()
            );
        }

        file.set_len(0)
            .and_then(|()| file.rewind())
            .context("pid file")?;
        writeln!(file, "{}", std::process::id()).context("pid file")?;
        Ok(Instance {
            _file: file,
            directory,
        })
    }

    /// A path that leads to `name` in the very directory that is locked, for calls that take paths
    /// only. Valid while this value lives.
    pub(crate) fn held(&self, name: &str) -> PathBuf {
        let fd = self.directory.as_fd().as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{fd}/{name}"))
    }

    /// The directory that is locked.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The run directory.
    pub(crate) fn run_dir(&self) -> &Path {
        self.directory.path()
    }

    /// Whether a daemon holds the lock of this directory.
    pub fn is_running(run_dir: &Path) -> bool {
        let file = open(&run_dir.join(PID_FILE));
        let taken = file.map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
        matches!(taken, Ok(Err(Errno::WOULDBLOCK)))
    }

    /// Waits until no daemon holds the lock.
    pub fn wait_for_end(run_dir: &Path) -> Result<()> {
        let path = run_dir.join(PID_FILE);
        let file = open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        loop {
            match flock(&file, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                other => return other.with_context(|| format!("flock {}", path.display())),
            }
        }
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, symlink, PermissionsExt};

    fn why(run_dir: &Path) -> String {
        match Instance::lock(run_dir) {
            Ok(_) => panic!("{} was locked", run_dir.display()),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn a_run_directory_that_somebody_else_can_change_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let run_dir = dir.path().join("run");
        drop(Instance::lock(&run_dir).unwrap());
        let mode =
            |mode| std::fs::set_permissions(&run_dir, PermissionsExt::from_mode(mode)).unwrap();
        for bits in [0o770, 0o707, 0o1777] {
            mode(bits);
            let found = why(&run_dir);
            assert!(found.contains("writable by group or others"), "{found}");
        }
        mode(0o755);
        let link = dir.path().join("link");
        symlink(&run_dir, &link).unwrap();
        assert!(why(&link).contains("symbolic link"), "{}", why(&link));
        let pid_file = run_dir.join(PID_FILE);
        std::fs::remove_file(&pid_file).unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        symlink(&victim, &pid_file).unwrap();
        assert!(why(&run_dir).contains("tarsier.pid"), "{}", why(&run_dir));
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        std::fs::remove_file(&pid_file).unwrap();
        drop(Instance::lock(&run_dir).unwrap());
        if rustix::process::geteuid().is_root() {
            chown(&run_dir, Some(1234), None).unwrap();
            let found = why(&run_dir);
            assert!(found.contains("owned by uid 1234"), "{found}");
        }
    }
}
