//! Answers `tarsier status`.

use crate::status::{socket_path, Status};
use anyhow::{Context, Result};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The listening socket; its file goes with it.
pub(super) struct StatusServer {
    listener: UnixListener,
    path: PathBuf,
}

impl StatusServer {
    /// Listens in `run_dir`, whose lock is held: a file that is there is left over.
    pub(super) fn start(run_dir: &Path) -> Result<StatusServer> {
        let path = socket_path(run_dir);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&path, mode).context("status socket")?;
        listener.set_nonblocking(true).context("status socket")?;
        Ok(StatusServer { listener, path })
    }

    /// Readable when somebody asks.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers everybody who asks. The answer fits a socket's buffer, so that nobody is waited for.
    pub(super) fn answer(&self, status: impl Fn() -> Status) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            let _ = stream.set_nonblocking(true);
            if let Ok(mut text) = serde_json::to_vec(&status()) {
                text.push(b'\n');
                let _ = stream.write_all(&text);
            }
        }
    }
}

impl Drop for StatusServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
