//! One daemon per run directory.

use anyhow::{bail, Context, Result};
use rustix::fs::{flock, FlockOperation};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The lock of a run directory, held as long as this lives.
pub(super) struct Instance {
    _file: File,
}

impl Instance {
    /// Makes `run_dir` (0700) if need be and locks it for this process.
    pub(super) fn lock(run_dir: &Path) -> Result<Instance> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(run_dir)
            .with_context(|| format!("cannot make {}", run_dir.display()))?;
        let path = run_dir.join("tarsier.pid");
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
        Ok(Instance { _file: file })
    }
}
