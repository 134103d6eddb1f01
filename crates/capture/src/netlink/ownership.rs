//! Owning the audit socket for a while, and leaving everything as it was.

use std::path::{Path, PathBuf};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::client::{AuditSocket, RECORD_BYTES_MAX};
use super::error::{NetlinkError, TakeOverError};
use super::message::{is_never_task_rule, never_task_rule, Status};
use super::state::{self, Found, Writer};

/// How long the last records are waited for when the socket is given up.
const LATE_RECORDS_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// A record that arrived while the ownership was given up: its type and text.
pub type LateRecord = (u16, Vec<u8>);

/// The audit socket is ours: audit is on, kernel syscall auditing is off for new tasks
/// (`never,task`), and records arrive on [`socket`](Self::socket).
///
/// Dropping it puts everything back like [`release`](Self::release), without a word.
#[derive(Debug)]
pub struct Ownership {
    socket: AuditSocket,
    state_file: PathBuf,
    found: Found,
    /// Left over by a predecessor that was killed: its process id.
    predecessor: Option<u32>,
    released: bool,
}

/// Becomes the audit daemon. Before anything is changed, the state found is remembered in
/// `state_file` (0600, atomically, synced). Then `never,task` is put before all rules, audit is
/// enabled and this process registered. Rules that are loaded stay as they are.
///
/// If the file of a predecessor that is dead is there, what it remembers is what will be put back.
/// If anything is refused, what had been changed is put back and the error says why.
pub fn take_over(state_file: &Path) -> Result<Ownership, TakeOverError> {
    let mut socket = AuditSocket::open()?;
    let status = socket.status()?;
    let leftover = leftover(state_file)?;
    if status.enabled >= 2 {
        return Err(TakeOverError::Immutable);
    }
    // The number of a predecessor that is known to be dead may belong to another process by now.
    let is_stale = |(writer, _): &(Writer, Found)| writer.pid == status.pid;
    let stale = leftover.as_ref().is_some_and(is_stale);
    if status.pid != 0 && !stale && is_alive(status.pid) {
        return Err(TakeOverError::AnotherDaemon { pid: status.pid });
    }
    let rules = socket.list_rules()?;
    let never_task_loaded = rules.iter().any(|rule| is_never_task_rule(rule));
    let found = match &leftover {
        Some((_, found)) => *found,
        None => Found::new(&status, rules.len(), never_task_loaded),
    };
    state::write(state_file, &Writer::this_process(), found)?;
    // From here on, dropping it puts back what was found.
    let mut ownership = Ownership {
        socket,
        state_file: state_file.to_owned(),
        found,
        predecessor: leftover.map(|(writer, _)| writer.pid),
        released: false,
    };
    match ownership.arm(&status, never_task_loaded) {
        Ok(()) => Ok(ownership),
        Err(NetlinkError::AnotherDaemon { pid }) => Err(TakeOverError::AnotherDaemon { pid }),
        Err(error) => Err(error.into()),
    }
}

/// Puts back what a killed predecessor left changed, if its state file is there; gives what was
/// restored.
pub fn restore_leftover(state_file: &Path) -> Result<Option<Found>, TakeOverError> {
    let Some((_, found)) = leftover(state_file)? else {
        return Ok(None);
    };
    let mut socket = AuditSocket::open()?;
    let status = socket.status()?;
    if status.pid != 0 && is_alive(status.pid) {
        return Err(TakeOverError::AnotherDaemon { pid: status.pid });
    }
    restore(&mut socket, &found, &mut Vec::new())?;
    state::remove(state_file)?;
    Ok(Some(found))
}

/// The state that a dead predecessor left in this boot. A file of an earlier boot is removed.
fn leftover(state_file: &Path) -> Result<Option<(Writer, Found)>, TakeOverError> {
    let Some((writer, found)) = state::read(state_file)? else {
        return Ok(None);
    };
    if writer.is_of_another_boot() {
        state::remove(state_file)?;
        return Ok(None);
    }
    if writer.is_alive() {
        return Err(TakeOverError::AnotherInstance {
            path: state_file.to_owned(),
            pid: writer.pid,
        });
    }
    Ok(Some((writer, found)))
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        // EPERM: there, but somebody else's.
        Some(Ok(()) | Err(Errno::PERM)) => true,
        Some(Err(_)) | None => false,
    }
}

impl Ownership {
    fn arm(&mut self, status: &Status, never_task_loaded: bool) -> Result<(), NetlinkError> {
        // First, so that no task ever starts with an audit context on our account.
        if !never_task_loaded {
            self.socket.add_rule(&never_task_rule(true))?;
        }
        if status.enabled == 0 {
            self.socket.set_enabled(1)?;
        }
        self.socket.register()
    }

    /// The socket: records, and requests such as
    /// [`signal_info`](AuditSocket::signal_info) and the setters. What the setters change is put
    /// back at release.
    pub fn socket(&mut self) -> &mut AuditSocket {
        &mut self.socket
    }

    /// The state that will be put back.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Process id of a killed predecessor whose remembered state was taken over.
    pub fn predecessor(&self) -> Option<u32> {
        self.predecessor
    }

    /// Puts back what was found: our rule deleted, `enabled` and the limits as they were, nobody
    /// registered; then removes the state file. Gives the records that arrived until then,
    /// unread ones included. If a step fails the others are still done, and the state file stays.
    pub fn release(mut self) -> Result<Vec<LateRecord>, TakeOverError> {
        let mut late = Vec::new();
        self.give_up(&mut late)?;
        Ok(late)
    }

    /// Leaves everything changed, as a kill does.
    #[cfg(test)]
    pub(super) fn forget(mut self) {
        self.released = true;
    }

    fn give_up(&mut self, late: &mut Vec<LateRecord>) -> Result<(), TakeOverError> {
        self.released = true;
        restore(&mut self.socket, &self.found, late)?;
        state::remove(&self.state_file)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        if !self.released {
            // Nobody is left to tell; the state file stays if this failed.
            let _ = self.give_up(&mut Vec::new());
        }
    }
}

/// Does every step, and gives the first error.
fn restore(
    socket: &mut AuditSocket,
    found: &Found,
    late: &mut Vec<LateRecord>,
) -> Result<(), NetlinkError> {
    let now = socket.status()?;
    let mut first_error = None;
    let mut step = |result: Result<(), NetlinkError>| {
        if let Err(error) = result {
            first_error.get_or_insert(error);
        }
    };
    if now.failure != found.failure {
        step(socket.set_failure(found.failure));
    }
    if now.rate_limit != found.rate_limit {
        step(socket.set_rate_limit(found.rate_limit));
    }
    if now.backlog_limit != found.backlog_limit {
        step(socket.set_backlog_limit(found.backlog_limit));
    }
    if now.backlog_wait_time != found.backlog_wait_time {
        step(socket.set_backlog_wait_time(found.backlog_wait_time));
    }
    if now.enabled != found.enabled {
        step(socket.set_enabled(found.enabled));
    }
    // After audit is off again, so that no task gets a context in between.
    if found.never_task == 0 {
        step(match socket.delete_rule(&never_task_rule(false)) {
            // Somebody has deleted all rules meanwhile.
            Err(error) if error.errno() == Some(Errno::NOENT) => Ok(()),
            other => other,
        });
    }
    collect(socket, late);
    if now.pid != 0 {
        step(socket.unregister());
    }
    collect_queued(socket, late);
    first_error.map_or(Ok(()), Err)
}

/// Records on their way: the kernel sends them from a thread of its own.
fn collect(socket: &mut AuditSocket, late: &mut Vec<LateRecord>) {
    loop {
        collect_queued(socket, late);
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        match poll(&mut fds, Some(&LATE_RECORDS_WAIT)) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn collect_queued(socket: &mut AuditSocket, late: &mut Vec<LateRecord>) {
    let mut buffer = vec![0; RECORD_BYTES_MAX];
    loop {
        match socket.receive(&mut buffer) {
            Ok(Some(record)) => late.push((record.kind, record.text.to_vec())),
            Err(NetlinkError::Overrun) => {}
            Ok(None) | Err(_) => return,
        }
    }
}
