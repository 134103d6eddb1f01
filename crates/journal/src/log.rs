//! The journal itself: append, commit, sync, rotate, resume.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use crate::action::{Action, Severity};
use crate::config::{Config, Flush, SizeAction};
use crate::counters::{Counters, Lost, Position};
use crate::error::{OpenError, RotateError, WriteError};
use crate::files::{self, TornLine};
use crate::pending::Pending;
use crate::rotate::{self, Rotated};
use crate::space::{Limits, Space};
use crate::sync::{Progress, SyncCall, Syncer};

/// Bytes that wait in memory while they cannot be written. What does not fit is counted as lost.
pub const PENDING_BYTES_MAX: usize = 4 << 20;

pub(crate) const MIB: u64 = 1 << 20;

/// What was found and done when the log was opened.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Size of the log after repair.
    pub size_bytes: u64,
    /// A last line that a crash left without its end.
    pub torn: Option<TornLine>,
    /// Rotated files beyond `num_logs` that were removed.
    pub removed: Vec<PathBuf>,
}

/// What a commit wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Bytes, in all files together.
    pub bytes: u64,
    /// Whole events.
    pub events: u64,
}

/// Why nothing is written for now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Trouble {
    #[default]
    None,
    Full,
    Error,
}

/// What has been said already and is not said again until it changes.
#[derive(Default)]
pub(crate) struct Said {
    pub(crate) full: bool,
    pub(crate) space_left: bool,
    pub(crate) admin_space_left: bool,
    pub(crate) size: bool,
    pub(crate) errors: u8,
    pub(crate) losses: bool,
}

/// An open log. One owner, one thread; syncs run on at most one helper thread.
///
/// Events go [`append`](Self::append) → memory → [`commit`](Self::commit) → file →
/// [`durable`](Self::durable). Errors of the disk are answered as the configuration says; what
/// that means for the owner is in [`take_actions`](Self::take_actions).
pub struct Journal {
    pub(crate) path: PathBuf,
    pub(crate) config: Config,
    /// None while suspended: auditd closes the file so that it can be moved away.
    pub(crate) file: Option<Arc<File>>,
    pub(crate) size_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) pending: Pending,
    pub(crate) counters: Counters,
    pub(crate) written: Position,
    pub(crate) actions: Vec<Action>,
    pub(crate) said: Said,
    pub(crate) trouble: Trouble,
    /// Rotation is not tried again within the commit in which it failed.
    pub(crate) rotation_failed: bool,
    /// Bytes written since the last rotation for space.
    pub(crate) since_space_rotation_bytes: u64,
    pub(crate) children: Vec<Child>,
    records_unsynced: u64,
    /// Progress of syncs made without the helper.
    inline: Progress,
    syncer: Option<Syncer>,
}

impl Journal {
    /// Opens or creates `log_file` with auditd's permissions and takes its lock. `config.log_file`
    /// and `config.write_logs` are not looked at: the owner decides where and whether to log.
    ///
    /// A last line without its end is repaired, and files beyond `num_logs` are removed; the
    /// report says so. The limits on size and space are checked as after a write, so there may be
    /// actions at once.
    pub fn open(log_file: &Path, config: &Config) -> Result<(Self, OpenReport), OpenError> {
        let warning = files::prepare_dir(log_file, &config.log_group)?;
        let file = files::open_log(log_file, &config.log_group)?;
        let (size_bytes, torn) = files::repair_tail(&file, log_file)?;
        let space = Space::of(&file).map_err(|e| OpenError::io(log_file, "fstatvfs", e))?;
        let syncer = start_syncer(config.flush, log_file)?;
        let mut journal = Journal {
            path: log_file.to_owned(),
            limits: Limits::of(config, &space),
            config: config.clone(),
            file: Some(Arc::new(file)),
            size_bytes,
            pending: Pending::default(),
            counters: Counters::default(),
            written: Position::default(),
            actions: Vec::new(),
            said: Said::default(),
            trouble: Trouble::None,
            rotation_failed: false,
            since_space_rotation_bytes: u64::MAX,
            children: Vec::new(),
            records_unsynced: 0,
            inline: Progress::default(),
            syncer,
        };
        if let Some(text) = warning {
            journal.say(Severity::Warning, text);
        }
        let removed = journal.remove_excess();
        journal.fix_rotated_permissions();
        journal.check_size();
        journal.check_space();
        let report = OpenReport {
            size_bytes,
            torn,
            removed,
        };
        Ok((journal, report))
    }

    /// Takes `events` whole events as lines, each ended by a newline. They are in memory until
    /// [`commit`](Self::commit); when the buffer is full, this commits by itself, and events that
    /// then still do not fit are counted as lost, whole appends at a time.
    pub fn append(&mut self, lines: &[u8], events: u32) {
        self.counters.appended_events += u64::from(events);
        let fits = |pending: &Pending| {
            pending.is_empty() || pending.bytes().len() + lines.len() <= PENDING_BYTES_MAX
        };
        if !fits(&self.pending) {
            // The error is in the actions and shows again at the owner's next commit.
            let _ = self.commit();
        }
        if fits(&self.pending) {
            self.pending.push(lines, events);
        } else {
            self.lose(u64::from(events));
        }
    }

    /// Writes the buffer, in one write(2) unless the file has to be rotated in between, and asks
    /// for the sync that the flush mode wants. With DATA and SYNC, what was written counts as
    /// acknowledged only when [`durable`](Self::durable) covers it: the sync runs while the next
    /// batch is gathered.
    ///
    /// While suspended this writes nothing and is not an error.
    pub fn commit(&mut self) -> Result<Committed, WriteError> {
        self.poll();
        self.rotation_failed = false;
        let before = self.written;
        let result = self.write_pending();
        let wrote = self.written != before;
        if wrote {
            self.sync_as_configured();
            self.check_space();
        }
        result.map(|()| Committed {
            bytes: self.written.bytes - before.bytes,
            events: self.written.events - before.events,
        })
    }

    fn write_pending(&mut self) -> Result<(), WriteError> {
        let mut rotated_for_room = false;
        while let (Some(file), false) = (self.file.clone(), self.pending.is_empty()) {
            let upto = match self.bytes_until_size_action() {
                Some(bytes) => self.pending.cut_at_or_after(bytes),
                None => self.pending.bytes().len(),
            };
            let rotations = self.counters.rotations;
            match self.write_first(&file, upto) {
                Ok(()) => self.check_size(),
                // disk_full_action = ROTATE may just have made room; once, the failure stands.
                Err(_) if !rotated_for_room && self.counters.rotations > rotations => {
                    rotated_for_room = true;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Bytes after which the size limit calls for an action that changes the file.
    fn bytes_until_size_action(&self) -> Option<u64> {
        if self.rotation_failed || !self.size_action_changes_file() {
            return None;
        }
        Some((self.config.max_log_file_mib * MIB).saturating_sub(self.size_bytes))
    }

    pub(crate) fn size_action_changes_file(&self) -> bool {
        self.config.max_log_file_mib > 0
            && match self.config.max_log_file_action {
                SizeAction::Ignore | SizeAction::Syslog => false,
                SizeAction::Rotate => self.config.num_logs >= 2,
                SizeAction::Suspend | SizeAction::KeepLogs | SizeAction::Exec(_) => true,
            }
    }

    /// Writes the first `upto` bytes of the buffer.
    fn write_first(&mut self, file: &File, upto: usize) -> Result<(), WriteError> {
        let mut done = 0;
        while done < upto {
            let outcome = match rustix::io::write(file, &self.pending.bytes()[done..upto]) {
                Ok(0) => Err(io::Error::from(io::ErrorKind::WriteZero)),
                other => other.map_err(io::Error::from),
            };
            match outcome {
                Ok(count) => {
                    done += count;
                    self.counters.writes += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let kept = self.end_in_whole_events(file, done);
                    self.account(kept);
                    return Err(self.write_failed(error));
                }
            }
        }
        self.account(upto);
        self.write_succeeded();
        Ok(())
    }

    /// After a write that stopped at `done`: takes a torn event back out of the file, so that a
    /// reader and a crash find whole events. Gives the bytes that stay written.
    fn end_in_whole_events(&self, file: &File, done: usize) -> usize {
        let whole = self.pending.whole_within(done);
        if whole == done {
            return done;
        }
        let torn = (done - whole) as u64;
        let cut = file
            .metadata()
            .and_then(|metadata| file.set_len(metadata.len().saturating_sub(torn)));
        match cut {
            Ok(()) => whole,
            // Then the rest of the event follows where this write stopped.
            Err(_) => done,
        }
    }

    fn account(&mut self, bytes: usize) {
        let batch = self.pending.consume(bytes);
        self.size_bytes += batch.bytes as u64;
        self.since_space_rotation_bytes = self
            .since_space_rotation_bytes
            .saturating_add(batch.bytes as u64);
        self.written.bytes += batch.bytes as u64;
        self.written.events += batch.events;
        self.counters.records += batch.records;
        self.records_unsynced += batch.records;
    }

    fn sync_as_configured(&mut self) {
        let due = match self.config.flush {
            Flush::None => false,
            Flush::Incremental | Flush::IncrementalAsync => {
                self.records_unsynced >= u64::from(self.config.freq)
            }
            Flush::Data | Flush::Sync => true,
        };
        if due {
            self.request_sync();
        }
    }

    fn sync_call(&self) -> SyncCall {
        match self.config.flush {
            Flush::Sync => SyncCall::Full,
            _ => SyncCall::Data,
        }
    }

    /// Starts a sync of the current file that covers everything written; waits for it if there is
    /// no helper.
    fn request_sync(&mut self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        self.records_unsynced = 0;
        let call = self.sync_call();
        match &self.syncer {
            Some(syncer) => syncer.request(&file, call, self.written),
            None => {
                let outcome = call.run(&file);
                self.inline.note(self.written, outcome);
                self.poll();
            }
        }
    }

    /// Takes note of finished syncs and ended EXEC programs. Cheap; [`commit`](Self::commit) calls
    /// it. Call it when [`sync_fd`](Self::sync_fd) becomes readable.
    pub fn poll(&mut self) {
        self.children
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        let mut failures = std::mem::take(&mut self.inline.failures);
        self.counters.syncs += std::mem::take(&mut self.inline.syncs);
        if let Some(syncer) = &self.syncer {
            let progress = syncer.take_progress();
            self.counters.syncs += progress.syncs;
            failures.extend(progress.failures);
        }
        for (error, events) in failures {
            self.counters.sync_errors += 1;
            self.counters.doubtful_events += events;
            self.sync_failed(&error, events);
        }
    }

    /// Readable after a sync has finished in the background; none if this mode has no helper.
    pub fn sync_fd(&self) -> Option<BorrowedFd<'_>> {
        self.syncer.as_ref().map(Syncer::done_fd)
    }

    /// Everything up to here is covered by a finished sync (events whose sync failed are in
    /// [`Counters::doubtful_events`]). Never moves with `flush = NONE`, except through
    /// [`sync`](Self::sync).
    pub fn durable(&self) -> Position {
        let background = self.syncer.as_ref().map(Syncer::durable);
        background.unwrap_or_default().max(self.inline.durable)
    }

    /// Everything up to here was taken by write(2).
    pub fn written(&self) -> Position {
        self.written
    }

    /// Commits, and waits until what was written is durable, whatever the flush mode.
    pub fn sync(&mut self) -> Result<Committed, WriteError> {
        let result = self.commit();
        if self.durable() < self.written {
            self.request_sync();
        }
        if let Some(syncer) = &self.syncer {
            syncer.drain();
        }
        self.poll();
        result
    }

    /// Rotates now (SIGUSR1), after committing. `Ok(None)` if rotation is off (`num_logs` < 2
    /// without KEEP_LOGS) or logging is suspended.
    pub fn rotate(&mut self) -> Result<Option<Rotated>, RotateError> {
        // A write error is in the actions; rotation may be what makes room.
        let _ = self.commit();
        let keep = match self.config.max_log_file_action {
            SizeAction::KeepLogs => rotate::keep_all(&self.path),
            _ => self.config.num_logs,
        };
        if keep < 2 {
            self.say(
                Severity::Notice,
                "log rotation is disabled (num_logs < 2), skipping".into(),
            );
            return Ok(None);
        }
        self.rotate_keeping(keep)
    }

    pub(crate) fn rotate_keeping(&mut self, keep: u32) -> Result<Option<Rotated>, RotateError> {
        let Some(current) = self.file.clone() else {
            return Ok(None);
        };
        self.sync_before_leaving();
        let (file, rotated) = rotate::rotate(&self.path, &current, keep, &self.config.log_group)?;
        self.file = Some(Arc::new(file));
        self.size_bytes = 0;
        self.said.size = false;
        self.counters.rotations += 1;
        if matches!(self.config.flush, Flush::Data | Flush::Sync) {
            self.sync_dir();
        }
        self.actions.push(Action::Rotated(rotated.clone()));
        Ok(Some(rotated))
    }

    /// Asks for the last sync of a file that will not be written any more.
    pub(crate) fn sync_before_leaving(&mut self) {
        if self.config.flush != Flush::None && self.durable() < self.written {
            self.request_sync();
        }
    }

    /// Makes the renames durable, after everything asked for so far.
    fn sync_dir(&self) {
        if let (Some(syncer), Ok(dir)) = (&self.syncer, File::open(files::dir_of(&self.path))) {
            syncer.request(&Arc::new(dir), SyncCall::Full, Position::default());
        }
    }

    /// Takes a new configuration (SIGHUP) and, if `log_file` is another one, moves there. On an
    /// error nothing has changed. Percentages of space are computed anew.
    pub fn reconfigure(&mut self, log_file: &Path, config: &Config) -> Result<(), OpenError> {
        let _ = self.commit();
        let syncer = match (wants_syncer(config.flush), self.syncer.is_some()) {
            (true, false) => start_syncer(config.flush, log_file)?,
            _ => None,
        };
        if log_file != self.path || self.config.log_group != config.log_group {
            self.switch_file(log_file, config)?;
        }
        if syncer.is_some() {
            self.syncer = syncer;
        } else if !wants_syncer(config.flush) {
            self.retire_syncer();
        }
        self.config = config.clone();
        if let Some(space) = self.file.as_deref().and_then(|file| Space::of(file).ok()) {
            self.limits = Limits::of(config, &space);
        }
        self.said = Said::default();
        self.remove_excess();
        self.fix_rotated_permissions();
        self.check_size();
        self.check_space();
        Ok(())
    }

    fn switch_file(&mut self, log_file: &Path, config: &Config) -> Result<(), OpenError> {
        if log_file == self.path {
            if let Some(file) = &self.file {
                let mode = files::modes(&config.log_group).current;
                files::set_permissions(file, log_file, mode, &config.log_group)?;
            }
            return Ok(());
        }
        files::prepare_dir(log_file, &config.log_group)?;
        let file = files::open_log(log_file, &config.log_group)?;
        let (size_bytes, torn) = files::repair_tail(&file, log_file)?;
        self.say_torn(torn);
        self.sync_before_leaving();
        self.path = log_file.to_owned();
        self.size_bytes = size_bytes;
        if self.file.is_some() {
            self.file = Some(Arc::new(file));
        }
        Ok(())
    }

    fn say_torn(&mut self, torn: Option<TornLine>) {
        if let Some(TornLine { repair, bytes }) = torn {
            let text = format!("a torn last line of {} bytes was {repair:?}", bytes.len());
            self.say(Severity::Warning, text.to_lowercase());
        }
    }

    fn retire_syncer(&mut self) {
        if let Some(syncer) = self.syncer.take() {
            syncer.drain();
            let progress = syncer.take_progress();
            self.inline.durable = self.inline.durable.max(progress.durable);
            self.inline.syncs += progress.syncs;
            self.inline.failures.extend(progress.failures);
        }
    }

    /// Starts writing again after a suspension (SIGUSR2), opens the file anew and says again what
    /// is wrong if it still is. Events kept in memory meanwhile are written by the next commit.
    pub fn resume(&mut self) -> Result<(), OpenError> {
        self.said = Said::default();
        self.trouble = Trouble::None;
        if self.file.is_some() {
            return Ok(());
        }
        if let Some(syncer) = &self.syncer {
            // It may still hold the file, and with it our own lock.
            syncer.drain();
        }
        files::prepare_dir(&self.path, &self.config.log_group)?;
        let file = files::open_log(&self.path, &self.config.log_group)?;
        let (size_bytes, torn) = files::repair_tail(&file, &self.path)?;
        self.say_torn(torn);
        self.file = Some(Arc::new(file));
        self.size_bytes = size_bytes;
        self.say(Severity::Notice, "logging is resumed".into());
        self.check_size();
        Ok(())
    }

    /// Whether writing has stopped until [`resume`](Self::resume).
    pub fn is_suspended(&self) -> bool {
        self.file.is_none()
    }

    /// What has to be done or said, oldest first; empties the list.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The log file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the current file.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Counts since opening.
    pub fn counters(&self) -> Counters {
        Counters {
            written: self.written,
            pending_events: self.pending.events(),
            pending_bytes: self.pending.bytes().len() as u64,
            ..self.counters
        }
    }

    /// Writes and syncs what is left and closes the file. What could not be written is lost and
    /// counted; actions not taken yet are returned with the counts.
    pub fn close(mut self) -> (Counters, Vec<Action>) {
        let _ = self.sync();
        let left = self.pending.events();
        if left > 0 {
            self.counters.lost.closed += left;
            let text = format!("{left} events could not be written before the end");
            self.say(Severity::Error, text);
            self.pending = Pending::default();
        }
        (self.counters(), self.take_actions())
    }

    fn lose(&mut self, events: u64) {
        let Lost {
            disk_full,
            disk_error,
            suspended,
            ..
        } = &mut self.counters.lost;
        let (count, why) = match (self.file.is_none(), self.trouble) {
            (true, _) => (suspended, "logging is suspended"),
            (false, Trouble::Full) => (disk_full, "the disk is full"),
            (false, _) => (disk_error, "the log cannot be written"),
        };
        *count += events;
        if !self.said.losses {
            self.said.losses = true;
            let text = format!("events are being lost: {why} and the buffer is full");
            self.say(Severity::Alert, text);
        }
    }

    fn remove_excess(&self) -> Vec<PathBuf> {
        match (&self.config.max_log_file_action, self.config.num_logs) {
            (SizeAction::Rotate, 2..) => rotate::remove_excess(&self.path, self.config.num_logs),
            _ => Vec::new(),
        }
    }

    /// auditd gives its rotated files the right mode at every start.
    fn fix_rotated_permissions(&self) {
        let mode = files::modes(&self.config.log_group).rotated;
        for number in 1..self.config.num_logs {
            let path = files::numbered(&self.path, number);
            let Ok(metadata) = std::fs::symlink_metadata(&path) else {
                break;
            };
            if metadata.is_file() {
                let _ = rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(mode));
            }
        }
    }
}

/// Writes what is left, without anybody to tell; [`Journal::close`] tells.
impl Drop for Journal {
    fn drop(&mut self) {
        if !self.pending.is_empty() {
            let _ = self.commit();
        }
    }
}

fn wants_syncer(flush: Flush) -> bool {
    matches!(flush, Flush::IncrementalAsync | Flush::Data | Flush::Sync)
}

fn start_syncer(flush: Flush, log_file: &Path) -> Result<Option<Syncer>, OpenError> {
    match wants_syncer(flush) {
        true => Syncer::start()
            .map(Some)
            .map_err(|error| OpenError::io(log_file, "start of the sync thread", error)),
        false => Ok(None),
    }
}
