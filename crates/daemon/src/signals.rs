//! Receives signals through descriptors that poll(2) can wait for.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::low_level::pipe;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The signals that the daemon acts on; each writes to its own socket.
pub(super) struct Signals {
    sources: Vec<(i32, UnixStream)>,
}

impl Signals {
    /// Handles these signals from now on.
    pub(super) fn take() -> Result<Signals> {
        let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGCONT];
        let sources = signals
            .into_iter()
            .map(|signal| {
                let (read, write) = UnixStream::pair()?;
                read.set_nonblocking(true)?;
                pipe::register(signal, write)?;
                Ok((signal, read))
            })
            .collect::<std::io::Result<_>>()
            .context("cannot take signals over")?;
        Ok(Signals { sources })
    }

    /// Descriptors that are readable when a signal has come.
    pub(super) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sources.iter().map(|(_, read)| read.as_fd())
    }

    /// The signals received since the last call.
    pub(super) fn pending(&mut self) -> Vec<i32> {
        let mut found = Vec::new();
        let mut bytes = [0; 64];
        for (signal, read) in &mut self.sources {
            if matches!(read.read(&mut bytes), Ok(n) if n > 0) {
                found.push(*signal);
            }
        }
        found
    }
}
