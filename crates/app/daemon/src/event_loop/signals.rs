//! Receives signals through descriptors that poll(2) can wait for, with the process that sent each.

use anyhow::{Context, Result};
use libc::{c_int, siginfo_t};
use rustix::net::{send, SendFlags};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixDatagram;

/// The signals that the daemon acts on; each has its own socket.
pub(crate) struct Signals {
    sources: Vec<(i32, UnixDatagram)>,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: i32,
    /// The process that sent the last of them; `None` if the kernel itself did, for example for a terminal.
    pub(crate) sender: Option<Sender>,
}

/// A process that sent a signal, as siginfo_t(3type) names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    /// Process id; 0 if the process is in another namespace.
    pub(crate) pid: u32,
    /// Real uid.
    pub(crate) uid: u32,
}

impl Sender {
    /// The sender that a handler was told of. Signals of the kernel have codes above 0.
    fn of(info: &siginfo_t) -> Option<Sender> {
        (info.si_code <= 0).then(|| {
            // SAFETY: signals that processes send with kill(2), tgkill(2) or sigqueue(3) have both members.
            let (pid, uid) = unsafe { (info.si_pid(), info.si_uid()) };
            Sender {
                pid: pid as u32,
                uid,
            }
        })
    }

    /// The message from the handler: nothing, or both numbers.
    fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.pid.to_ne_bytes());
        bytes[4..].copy_from_slice(&self.uid.to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Sender> {
        let (pid, uid) = bytes.split_first_chunk()?;
        Some(Sender {
            pid: u32::from_ne_bytes(*pid),
            uid: u32::from_ne_bytes(uid.try_into().ok()?),
        })
    }
}

impl Signals {
    /// Handles these signals from now on.
    pub(crate) fn take() -> Result<Signals> {
        let signals = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGCONT];
        let sources = signals
            .into_iter()
            .map(|signal| Ok((signal, handle(signal)?)))
            .collect::<std::io::Result<_>>()
            .context("cannot take signals over")?;
        Ok(Signals { sources })
    }

    /// Descriptors that are readable when a signal has come.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sources.iter().map(|(_, read)| read.as_fd())
    }

    /// The signals received since the last call, each once.
    pub(crate) fn pending(&mut self) -> Vec<Received> {
        let mut found = Vec::new();
        for (signal, read) in &self.sources {
            let mut bytes = [0; 8];
            let mut last = None;
            while let Ok(len) = read.recv(&mut bytes) {
                last = Some(Sender::read(&bytes[..len]));
            }
            let received = last.map(|sender| Received {
                signal: *signal,
                sender,
            });
            found.extend(received);
        }

        found
    }
}

/// Handles a signal. Returns the socket that gets a datagram for each.
fn handle(signal: c_int) -> std::io::Result<UnixDatagram> {
    let (read, write) = UnixDatagram::pair()?;
    read.set_nonblocking(true)?;
    let action = move |info: &siginfo_t| {
        let sender = Sender::of(info).map(Sender::bytes);
        let bytes = sender.as_ref().map_or(&[][..], |bytes| bytes);
        // Without room, enough signals of this kind are waiting to be handled.
        let _ = send(&write, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    };
    // SAFETY: the action is async-signal-safe: it makes one system call, and allocates and locks nothing.
    unsafe { signal_hook_registry::register_sigaction(signal, action) }?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, getuid, kill_process, Signal};

    #[test]
    fn a_signal_is_received_once_with_its_sender() {
        let read = handle(SIGUSR2).expect("handled");
        let mut signals = Signals {
            sources: vec![(SIGUSR2, read)],
        };
        assert_eq!(signals.pending(), []);
        for _ in 0..2 {
            kill_process(getpid(), Signal::USR2).expect("the signal is sent");
        }
        let sender = Sender {
            pid: std::process::id(),
            uid: getuid().as_raw(),
        };
        let received = Received {
            signal: SIGUSR2,
            sender: Some(sender),
        };
        // Another thread may get it.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let mut found = signals.pending();
        while found.is_empty() && std::time::Instant::now() < end {
            std::thread::yield_now();
            found = signals.pending();
        }
        assert_eq!(found, [received]);
    }
}
