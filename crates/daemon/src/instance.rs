//! One daemon per run directory.

use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The lock of a run directory, held as long as this value lives.
pub struct Instance {
    _file: File,
    run_dir: PathBuf,
}

/// Contains the process id; the lock is on this file.
const PID_FILE: &str = "tarsier.pid";

impl Instance {
    /// Creates `run_dir` (0700) if needed and locks it for this process.
    pub fn lock(run_dir: &Path) -> Result<Instance> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(run_dir)
            .with_context(|| format!("cannot make {}", run_dir.display()))?;
        let path = run_dir.join(PID_FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
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
            run_dir: run_dir.to_owned(),
        })
    }

    /// The run directory.
    pub(super) fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    /// Whether a daemon holds the lock of this directory.
    pub fn is_running(run_dir: &Path) -> bool {
        let file = File::open(run_dir.join(PID_FILE));
        let taken = file.map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
        matches!(taken, Ok(Err(Errno::WOULDBLOCK)))
    }

    /// Waits until no daemon holds the lock.
    pub fn wait_for_end(run_dir: &Path) -> Result<()> {
        let path = run_dir.join(PID_FILE);
        let file = File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        loop {
            match flock(&file, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                other => return other.with_context(|| format!("flock {}", path.display())),
            }
        }
    }
}
