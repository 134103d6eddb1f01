//! Records that are made elsewhere (logins, SELinux, seccomp, configuration) and reach us over the
//! audit socket.

use super::filter;
use super::grouped::Grouped;
use super::recorder::Generation;
use anyhow::{Context, Result};
use capture::netlink::{self, KernelRecord, NetlinkError, Ownership, TakeOverError};
use event::Encoder;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// The audit socket, while it is ours.
pub(super) struct KernelRecords {
    ownership: Ownership,
    buffer: Vec<u8>,
    grouped: Grouped,
    pub(super) received: u64,
    pub(super) overruns: u64,
    /// Starts of CONFIG_CHANGE records about what was set here for somebody, whose record says
    /// who that was.
    own_changes: Vec<String>,
}

/// `AUDIT_CONFIG_CHANGE`
const CONFIG_CHANGE: u16 = 1305;

impl KernelRecords {
    /// Takes the socket over. `Ok(None)` when somebody else has it or it is locked: that is said,
    /// and recording goes on without.
    pub(super) fn start(run_dir: &Path) -> Result<Option<KernelRecords>> {
        match netlink::take_over(&run_dir.join("audit-state")) {
            Ok(ownership) => {
                if let Some(pid) = ownership.predecessor() {
                    eprintln!("tarsier: process {pid} ended without restoring audit: taken over");
                }
                let buffer = vec![0; netlink::RECORD_BYTES_MAX];
                Ok(Some(KernelRecords {
                    ownership,
                    buffer,
                    grouped: Grouped::default(),
                    received: 0,
                    overruns: 0,
                    own_changes: Vec::new(),
                }))
            }
            Err(error @ (TakeOverError::AnotherDaemon { .. } | TakeOverError::Immutable)) => {
                eprintln!("tarsier: {error}");
                Ok(None)
            }
            Err(TakeOverError::Netlink(error)) => {
                eprintln!("tarsier: records made by others are not available: {error}");
                Ok(None)
            }
            Err(error) => Err(error).context("cannot take over the audit socket"),
        }
    }

    /// Readable when records are there.
    pub(super) fn fd(&mut self) -> BorrowedFd<'_> {
        let socket: &netlink::AuditSocket = self.ownership.socket();
        socket.as_fd()
    }

    /// Appends the events of all records that are there; an event whose end has not come waits for
    /// the next call, unless nothing more comes. How many events there were.
    pub(super) fn drain(
        &mut self,
        generation: &Generation,
        encoder: &mut Encoder,
        out: &mut Vec<u8>,
    ) -> u32 {
        let mut events = 0;
        let mut came = false;
        loop {
            match self.ownership.socket().receive(&mut self.buffer) {
                Ok(Some(KernelRecord { kind, text })) => {
                    self.received += 1;
                    let is_own = |change: &String| {
                        kind == CONFIG_CHANGE && contains(text, change.as_bytes())
                    };
                    if let Some(own) = self.own_changes.iter().position(is_own) {
                        self.own_changes.swap_remove(own);
                        continue;
                    }
                    if filter::drops_message(generation, kind, text) {
                        continue;
                    }
                    came = true;
                    events += self.grouped.push(kind, text, encoder, out);
                }
                Ok(None) if came => return events,
                Ok(None) => return events + self.grouped.end(encoder, out),
                Err(NetlinkError::Overrun) => self.overruns += 1,
                Err(error) => {
                    eprintln!("tarsier: {error}");
                    return events;
                }
            }
        }
    }

    /// For requests. What is set with them is put back at the end.
    pub(super) fn socket(&mut self) -> &mut netlink::AuditSocket {
        self.ownership.socket()
    }

    /// The kernel is about to log a change with this text, and that is not to be written.
    pub(super) fn expect_change(&mut self, text: String) {
        self.own_changes.push(text);
    }

    /// Who sent the last signal to this process: auid-less form that auditd logs (uid, pid).
    pub(super) fn signal_sender(&mut self) -> Option<(u32, u32)> {
        let info = self.ownership.socket().signal_info().ok()?;
        Some((info.auid, info.pid))
    }

    /// Gives the socket back and restores the kernel's audit state; appends the last records.
    pub(super) fn stop(mut self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<u32> {
        let mut events = 0;
        for (kind, text) in self
            .ownership
            .release()
            .context("restoring the audit state")?
        {
            events += self.grouped.push(kind, &text, encoder, out);
        }
        Ok(events + self.grouped.end(encoder, out))
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
