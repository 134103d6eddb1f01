//! Owns the audit socket while the daemon runs, and restores the former state afterwards.

use std::path::{Path, PathBuf};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use super::client::{AuditSocket, RECORD_BYTES_MAX};
use super::error::{NetlinkError, TakeOverError};
use super::guard::Known;
use super::lock::{digest_rule, LOCKED};
use super::message::{is_never_task_rule, never_task_rule, Status};
use super::rules::{self, Change};
use super::state::{self, Found, Saved, Writer};

/// Time to wait for the last records before the socket is given up.
const LATE_RECORDS_WAIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Type and text of a record that arrived while the socket was being given up.
pub type LateRecord = (u16, Vec<u8>);

/// This process is the audit daemon: audit is on, and records arrive on [`socket`](Self::socket).
/// Either kernel syscall auditing is off for new tasks (`never,task`), or our rules are loaded.
///
/// Dropping it restores the former state like [`release`](Self::release), but reports no errors.
#[derive(Debug)]
pub struct Ownership {
    pub(super) socket: AuditSocket,
    state_file: PathBuf,
    found: Found,
    /// Our rules in the kernel, in its order. With `never,task`, the kernel only shows them.
    pub(super) loaded: Vec<Vec<u8>>,
    pub(super) known: Known,
    /// Process id of a killed predecessor whose state file was found.
    predecessor: Option<u32>,
    released: bool,
}

/// Makes this process the audit daemon. Before it changes anything, it saves the state found in
/// `state_file` (mode 0600, written atomically, synced). Then it puts `never,task` before all rules,
/// enables audit and registers this process. Loaded rules stay as they are.
///
/// `never_enabled` says that audit was never enabled since the machine was started; then `never,task` stays loaded at
/// the end if there was no rule either: see [`Found::unused`].
///
/// If the file of a dead predecessor exists, the state in it is what will be restored, and rules that
/// the predecessor had loaded are deleted.
///
/// Where audit is locked (`-e 2`), nothing but the registration is changed or restored.
///
/// # Errors
/// If anything is refused, what had been changed is put back, and the error names the reason.
/// [`TakeOverError::Immutable`] if audit is locked without `never,task`: the kernel's own events would come, too.
pub fn take_over(state_file: &Path, never_enabled: bool) -> Result<Ownership, TakeOverError> {
    let mut begun = begin(state_file, never_enabled)?;
    let rules = begun.socket.list_rules()?;
    let never_task_loaded = rules.iter().any(|rule| is_never_task_rule(rule));
    if begun.status.enabled == LOCKED && !never_task_loaded {
        return Err(TakeOverError::Immutable);
    }

    let status = begun.status;
    // The state is on the disk before anything is changed: a killed daemon's successor restores it.
    let mut ownership = begun.own(state_file, rules.len(), never_task_loaded, Vec::new())?;
    // Before audit is enabled, so that no task gets an audit context because of us.
    if !never_task_loaded {
        ownership.socket.add_rule(&never_task_rule(true))?;
    }

    if status.enabled == 0 {
        ownership.socket.set_enabled(1)?;
    }
    // Last: records arrive only when audit is as it has to be.
    ownership.register()?;
    Ok(ownership)
}

/// Like [`take_over`], but has the kernel match `rules` (each a `struct audit_rule_data` with its
/// strings, no two equal): registers, loads them in this order and enables audit. The rules are
/// written to `state_file` before the first one is loaded. If `never,task` is the only rule in the
/// kernel, as an earlier daemon may have left it, it is deleted meanwhile.
///
/// Where audit is locked (`-e 2`), `rules` have to be those that are in the kernel; they stay there.
///
/// # Errors
/// [`TakeOverError::Immutable`] if audit is locked with other rules than these.
/// [`TakeOverError::OtherRules`] if the kernel has rules that no dead predecessor loaded.
pub fn take_over_with_rules(
    state_file: &Path,
    rules: Vec<Vec<u8>>,
    never_enabled: bool,
) -> Result<Ownership, TakeOverError> {
    let mut begun = begin(state_file, never_enabled)?;
    if begun.status.enabled == LOCKED {
        return begun.own_locked(state_file, rules);
    }

    // The predecessor's own never,task, which was not there before it.
    if begun.leftover.as_ref().is_some_and(|l| l.1.never_task == 0) {
        begun.socket.delete_rule_if_there(&never_task_rule(false))?;
    }
    let there = begun.socket.list_rules()?;
    let has_never_task = matches!(&there[..], [rule] if is_never_task_rule(rule));
    if !there.is_empty() && !has_never_task {
        let count = there.len();
        return Err(TakeOverError::OtherRules { count });
    }

    let status = begun.status;
    let mut ownership = begun.own(state_file, there.len(), has_never_task, rules)?;
    if has_never_task {
        let socket = &mut ownership.socket;
        socket.delete_rule_if_there(&never_task_rule(false))?;
    }

    // Before any rule is loaded: the kernel does not audit the calls of the registered daemon.
    ownership.register()?;
    for rule in &ownership.loaded {
        let added = ownership.socket.add_rule(rule);
        added.map_err(|error| TakeOverError::Rule {
            rule: rule.clone(),
            error,
        })?;
    }

    // Enabled last: no event is decided by a part of the rules.
    if status.enabled == 0 {
        ownership.socket.set_enabled(1)?;
    }
    Ok(ownership)
}

/// The state found before anything is changed.
struct Begun {
    socket: AuditSocket,
    status: Status,
    leftover: Option<Saved>,
    never_enabled: bool,
}

/// Checks that nobody else owns the socket, and deletes rules that a dead predecessor loaded.
fn begin(state_file: &Path, never_enabled: bool) -> Result<Begun, TakeOverError> {
    let mut socket = AuditSocket::open()?;
    let status = socket.status()?;
    let leftover = leftover(state_file)?;
    // The process id of a dead predecessor may belong to another process by now.
    let is_stale = |(writer, ..): &Saved| writer.pid == status.pid;
    let stale = leftover.as_ref().is_some_and(is_stale);
    if status.pid != 0 && !stale && is_alive(status.pid) {
        return Err(TakeOverError::AnotherDaemon { pid: status.pid });
    }

    if let (Some((_, _, loaded)), true) = (leftover.as_ref(), status.enabled != LOCKED) {
        rules::unload(&mut socket, loaded)?;
    }
    Ok(Begun {
        socket,
        status,
        leftover,
        never_enabled,
    })
}

impl Begun {
    /// Registers beside locked rules, which have to be `rules`, and changes nothing else.
    fn own_locked(
        mut self,
        state_file: &Path,
        rules: Vec<Vec<u8>>,
    ) -> Result<Ownership, TakeOverError> {
        let there = self.socket.list_rules()?;
        if !rules::are_same(&there, &rules) {
            return Err(TakeOverError::Immutable);
        }
        let mut ownership = self.own(state_file, there.len(), false, rules)?;
        ownership.register()?;
        Ok(ownership)
    }

    /// Saves the state found. Dropping the returned ownership restores that state.
    fn own(
        self,
        state_file: &Path,
        rules: usize,
        never_task: bool,
        loaded: Vec<Vec<u8>>,
    ) -> Result<Ownership, TakeOverError> {
        let found = match &self.leftover {
            Some((_, found, _)) => *found,
            None => Found::new(&self.status, rules, never_task, self.never_enabled),
        };
        let saved: Vec<&[u8]> = loaded.iter().map(Vec::as_slice).collect();
        state::write(state_file, &Writer::this_process(), found, &saved)?;

        Ok(Ownership {
            socket: self.socket,
            state_file: state_file.to_owned(),
            found,
            loaded,
            known: Known::default(),
            predecessor: self.leftover.map(|(writer, ..)| writer.pid),
            released: false,
        })
    }
}

/// Restores the state that a killed predecessor had found, if its state file exists, and returns
/// that state.
pub fn restore_leftover(state_file: &Path) -> Result<Option<Found>, TakeOverError> {
    let Some((_, found, loaded)) = leftover(state_file)? else {
        return Ok(None);
    };
    let mut socket = AuditSocket::open()?;
    let status = socket.status()?;
    if status.pid != 0 && is_alive(status.pid) {
        return Err(TakeOverError::AnotherDaemon { pid: status.pid });
    }
    restore(&mut socket, &found, &loaded, &mut Vec::new())?;

    // Only now: while something is left to restore, the file says what.
    state::remove(state_file)?;
    Ok(Some(found))
}

/// The state file that a predecessor left since the last boot. A file of an earlier boot is removed.
fn leftover(state_file: &Path) -> Result<Option<Saved>, TakeOverError> {
    let Some((writer, found, loaded)) = state::read(state_file)? else {
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

    Ok(Some((writer, found, loaded)))
}

fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    match pid.map(rustix::process::test_kill_process) {
        // EPERM: the process exists, but belongs to somebody else.
        Some(Ok(()) | Err(Errno::PERM)) => true,
        Some(Err(_)) | None => false,
    }
}

impl Ownership {
    fn register(&mut self) -> Result<(), TakeOverError> {
        match self.socket.register() {
            Err(NetlinkError::AnotherDaemon { pid }) => Err(TakeOverError::AnotherDaemon { pid }),
            other => Ok(other?),
        }
    }

    /// The rules that were loaded into the kernel, in its order.
    pub fn rules(&self) -> &[Vec<u8>] {
        &self.loaded
    }

    /// Replaces the rules that [`take_over_with_rules`] loaded. Each event is decided either by the
    /// old set or by the new one, never by a mixture. Returns the rules added and deleted, in order.
    ///
    /// # Errors
    /// The kernel refused a rule; then the old set is in force.
    pub fn replace_rules(&mut self, new: Vec<Vec<u8>>) -> Result<Vec<Change>, TakeOverError> {
        let change = rules::Replacement::between(&self.loaded, &new);
        // While the rules change, the file names the old and the new ones: a successor deletes whatever is there.
        let all: Vec<&[u8]> = change.ever_loaded(&self.loaded).collect();
        state::write(&self.state_file, &Writer::this_process(), self.found, &all)?;
        let outcome = change.carry_out(&mut self.socket);
        if outcome.is_ok() {
            self.loaded = new;
        }
        // Also after a failure: the file has to name what is in force.
        let now: Vec<&[u8]> = self.loaded.iter().map(Vec::as_slice).collect();
        state::write(&self.state_file, &Writer::this_process(), self.found, &now)?;
        outcome
    }

    /// Locks the kernel's audit (`-e 2`) until the next boot. With a `digest`, a rule that has it as its key is loaded
    /// before: the digest of rules that are not in the kernel's list.
    ///
    /// # Errors
    /// The kernel refused one of both; then audit is not locked. It is no error if audit was locked already.
    pub fn lock(&mut self, digest: Option<&str>) -> Result<(), NetlinkError> {
        if self.socket.status()?.enabled == LOCKED {
            return Ok(());
        }

        let rule = digest.map(digest_rule);
        // Before the lock, which refuses rules. EEXIST: an earlier attempt has left it.
        match rule.as_ref().map(|rule| self.socket.add_rule(rule)) {
            Some(Err(error)) if error.errno() != Some(Errno::EXIST) => return Err(error),
            _ => {}
        }
        let locked = self.socket.set_enabled(LOCKED);
        // Without a lock the digest says nothing.
        if let (Err(_), Some(rule)) = (&locked, &rule) {
            self.socket.delete_rule_if_there(rule)?;
        }
        locked
    }

    /// The socket, for records and requests. What its setters change is restored by
    /// [`release`](Self::release).
    pub fn socket(&mut self) -> &mut AuditSocket {
        &mut self.socket
    }

    /// The state that will be restored.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Process id of a killed predecessor whose saved state was taken over.
    pub fn predecessor(&self) -> Option<u32> {
        self.predecessor
    }

    /// Restores the state found: resets `enabled` and the limits, deletes our rules, unregisters this
    /// process, then removes the state file. Returns the records that have not been read yet.
    ///
    /// # Errors
    /// The first step that failed. The other steps are done nevertheless, and the state file stays.
    pub fn release(mut self) -> Result<Vec<LateRecord>, TakeOverError> {
        let mut late = Vec::new();
        self.give_up(&mut late)?;
        Ok(late)
    }

    /// Writes the state found and what has to be deleted at the end.
    pub(super) fn save(&self) -> Result<(), TakeOverError> {
        let ours = self.known.guards.iter().chain(&self.loaded);
        let ours: Vec<&[u8]> = ours.map(Vec::as_slice).collect();
        state::write(&self.state_file, &Writer::this_process(), self.found, &ours)
    }

    /// Restores nothing, as if the process had been killed.
    #[cfg(test)]
    pub(super) fn forget(mut self) {
        self.released = true;
    }

    fn give_up(&mut self, late: &mut Vec<LateRecord>) -> Result<(), TakeOverError> {
        self.released = true;
        let mut ours = self.known.guards.clone();
        ours.append(&mut self.loaded);
        restore(&mut self.socket, &self.found, &ours, late)?;
        state::remove(&self.state_file)
    }
}

impl Drop for Ownership {
    fn drop(&mut self) {
        if !self.released {
            // Drop cannot report an error. If a step fails, the state file stays.
            let _ = self.give_up(&mut Vec::new());
        }
    }
}

/// Restores `found` and deletes the `loaded` rules, unless audit is locked. Does every step; returns the first error.
fn restore(
    socket: &mut AuditSocket,
    found: &Found,
    loaded: &[Vec<u8>],
    late: &mut Vec<LateRecord>,
) -> Result<(), TakeOverError> {
    let now = socket.status()?;
    // The kernel refuses everything but the end of the registration.
    if now.enabled == LOCKED {
        return unregister(socket, &now, late).map_err(Into::into);
    }

    let mut first_error = None;
    let mut step = |result: Result<(), TakeOverError>| {
        if let Err(error) = result {
            first_error.get_or_insert(error);
        }
    };
    if now.failure != found.failure {
        step(socket.set_failure(found.failure).map_err(Into::into));
    }

    if now.rate_limit != found.rate_limit {
        step(socket.set_rate_limit(found.rate_limit).map_err(Into::into));
    }
    if now.backlog_limit != found.backlog_limit {
        let set = socket.set_backlog_limit(found.backlog_limit);
        step(set.map_err(Into::into));
    }

    if now.backlog_wait_time != found.backlog_wait_time {
        let set = socket.set_backlog_wait_time(found.backlog_wait_time);
        step(set.map_err(Into::into));
    }

    if now.enabled != found.enabled {
        step(socket.set_enabled(found.enabled).map_err(Into::into));
    }
    // After audit is off again, so that no task gets a context in between.
    step(if found.has_never_task() {
        keep_never_task(socket)
    } else {
        let deleted = socket.delete_rule_if_there(&never_task_rule(false));
        deleted.map_err(Into::into)
    });
    step(rules::unload(socket, loaded));
    step(unregister(socket, &now, late).map_err(Into::into));

    first_error.map_or(Ok(()), Err)
}

/// Ends the registration, if there is one, and collects the records that came until then.
fn unregister(
    socket: &mut AuditSocket,
    now: &Status,
    late: &mut Vec<LateRecord>,
) -> Result<(), NetlinkError> {
    // What is on its way is still sent to this process.
    collect(socket, late);
    let outcome = match now.pid {
        0 => Ok(()),
        _ => socket.unregister(),
    };
    collect_queued(socket, late);
    outcome
}

/// Loads `never,task` unless it is there.
fn keep_never_task(socket: &mut AuditSocket) -> Result<(), TakeOverError> {
    let rules = socket.list_rules()?;
    if !rules.iter().any(|rule| is_never_task_rule(rule)) {
        socket.add_rule(&never_task_rule(true))?;
    }
    Ok(())
}

/// Collects records, including those on their way: the kernel sends them from a thread of its own.
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
