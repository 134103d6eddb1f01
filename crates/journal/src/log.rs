//! The journal itself: append, commit, sync, rotate, resume.

mod change;
mod compress;
mod durable;
mod open;
mod respond;
mod witness;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use crate::action::{Action, Severity};
use crate::compact;
use crate::counters::{Counters, Lost, Position};
use crate::error::{OpenError, RotateError, WriteError};
use crate::files;
use crate::pending::Pending;
use crate::read::COMPRESSED_SUFFIX;
use crate::rotate::{self, Rotated};
use crate::seal::{seal_path, with_suffix, Sealer};
use crate::space::Limits;
use crate::sync::{Progress, Syncer};
use compress::Compression;
use conf::{Config, Flush, SizeAction};
use durable::start_syncer;
use open::Opened;

pub use open::OpenReport;
pub use witness::{Witness, Write};

/// Bytes that wait in memory while they cannot be written. What does not fit is counted as lost.
pub const PENDING_BYTES_MAX: usize = 4 << 20;

pub(crate) const MIB: u64 = 1 << 20;

/// What [`Journal::write_piece`] waits for: the processor still has it all in its cache.
const PIECE_BYTES: usize = 128 << 10;

/// What was written since the commit before.
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
    /// None while suspended: auditd closes the file so that it can be moved away. None with
    /// `write_logs = no` too.
    pub(crate) file: Option<Arc<File>>,
    pub(crate) size_bytes: u64,
    pub(crate) limits: Limits,
    pub(crate) pending: Pending,
    pub(crate) counters: Counters,
    pub(crate) written: Position,
    /// The same at the end of the last commit.
    committed: Position,
    pub(crate) actions: Vec<Action>,
    pub(crate) said: Said,
    pub(crate) trouble: Trouble,
    /// Rotation is not tried again within the commit in which it failed.
    pub(crate) rotation_failed: bool,
    /// Bytes written since the last rotation for space.
    pub(crate) since_space_rotation_bytes: u64,
    pub(crate) children: Vec<Child>,
    pub(crate) records_unsynced: u64,
    /// Progress of syncs made without the helper.
    pub(crate) inline: Progress,
    pub(crate) syncer: Option<Syncer>,
    /// With `seal = yes`, while the file is open.
    pub(crate) sealer: Option<Sealer>,
    /// A closed seal with entries that there was no room for.
    pub(crate) unwritten_seal: Option<Sealer>,
    pub(crate) compression: Option<Compression>,
    /// Everything up to here is in rotated files.
    pub(crate) rotated_at: Position,
    /// With `log_format = COMPACT`.
    pub(crate) compact: Option<compact::Writer>,
    pub(crate) witness: Option<Box<dyn Witness>>,
}

impl Journal {
    /// Opens or creates `log_file` with auditd's permissions and takes its lock. `config.log_file`
    /// is not looked at: the owner decides where to log. With `write_logs = no` nothing is opened,
    /// made or changed, and what is appended is [passed over](Counters::unlogged).
    ///
    /// A last line without its end is repaired, and files beyond `num_logs` are removed; the
    /// report says so. The limits on size and space are checked as after a write, so there may be
    /// actions at once.
    pub fn open(log_file: &Path, config: &Config) -> Result<(Self, OpenReport), OpenError> {
        let opened = match config.write_logs {
            true => Some(Opened::new(log_file, config)?),
            false => None,
        };
        let syncer = start_syncer(config, log_file)?;
        let mut journal = Journal {
            path: log_file.to_owned(),
            limits: Limits::default(),
            config: config.clone(),
            file: None,
            size_bytes: 0,
            pending: Pending::default(),
            counters: Counters::default(),
            written: Position::default(),
            committed: Position::default(),
            actions: Vec::new(),
            said: Said::default(),
            trouble: Trouble::None,
            rotation_failed: false,
            since_space_rotation_bytes: u64::MAX,
            children: Vec::new(),
            records_unsynced: 0,
            inline: Progress::default(),
            syncer,
            sealer: None,
            unwritten_seal: None,
            compression: None,
            rotated_at: Position::default(),
            compact: None,
            witness: None,
        };
        let report = match opened {
            Some(opened) => journal.begin_with(opened)?,
            None => OpenReport::default(),
        };
        Ok((journal, report))
    }

    /// Takes `events` whole events as lines, each ended by a newline. They are in memory until
    /// [`commit`](Self::commit); when the buffer is full, this commits by itself, and events that
    /// then still do not fit are counted as lost, whole appends at a time.
    pub fn append(&mut self, lines: &[u8], events: u32) {
        if lines.is_empty() {
            return;
        }
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

    /// Writes what was gathered if that is a piece worth a write(2), and leaves the rest of what
    /// [`commit`](Self::commit) does to the next one. While there is trouble with the disk it does nothing.
    pub fn write_piece(&mut self) {
        // A frame of the compact form is the smaller the more it holds.
        let is_written = self.config.write_logs && self.compact.is_none();
        let is_piece = self.pending.bytes().len() >= PIECE_BYTES;
        if is_piece && is_written && self.trouble == Trouble::None && !self.rotation_failed {
            // The error is in the actions and shows again at the owner's next commit.
            let _ = self.write_pending();
        }
    }

    /// Writes the buffer, in one write(2) unless the file has to be rotated in between, and asks
    /// for the sync that the flush mode wants. With DATA and SYNC, what was written counts as
    /// acknowledged only when [`durable`](Self::durable) covers it: the sync runs while the next
    /// batch is gathered.
    ///
    /// While suspended this writes nothing and is not an error; with `write_logs = no` it passes
    /// over what was gathered.
    pub fn commit(&mut self) -> Result<Committed, WriteError> {
        self.poll();
        self.poll_compression();
        self.rotation_failed = false;
        if !self.config.write_logs {
            self.pass_over();
            return Ok(Committed::default());
        }
        let before = self.committed;
        let result = self.write_pending();
        self.committed = self.written;
        self.seal_tick();
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

    /// With `write_logs = no`: what was gathered counts as dealt with.
    fn pass_over(&mut self) {
        let batch = self.pending.consume(self.pending.bytes().len());
        let unlogged = &mut self.counters.unlogged;
        for position in [unlogged, &mut self.written] {
            position.bytes += batch.bytes as u64;
            position.events += batch.events;
        }
        self.committed = self.written;
        self.end_write();
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
        if self.compact.is_some() {
            return self.write_frame(file, upto);
        }
        self.begin_write(file, upto, upto as u64);
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
                    self.end_write();
                    return Err(self.write_failed(error));
                }
            }
        }
        self.account(upto);
        self.end_write();
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
        if let (Some(sealer), true) = (&mut self.sealer, bytes > 0) {
            sealer.extend(&self.pending.bytes()[..bytes]);
        }
        self.count_written(bytes, bytes as u64);
    }

    /// The same where the file got `stored` for the first `bytes` of the buffer.
    pub(crate) fn account_stored(&mut self, bytes: usize, stored: &[u8]) {
        if let Some(sealer) = &mut self.sealer {
            sealer.extend(stored);
        }
        self.count_written(bytes, stored.len() as u64);
    }

    fn count_written(&mut self, bytes: usize, stored_bytes: u64) {
        let batch = self.pending.consume(bytes);
        self.size_bytes += stored_bytes;
        self.since_space_rotation_bytes =
            self.since_space_rotation_bytes.saturating_add(stored_bytes);
        self.written.bytes += batch.bytes as u64;
        self.written.events += batch.events;
        self.counters.records += batch.records;
        self.records_unsynced += batch.records;
    }

    /// Everything up to here was taken by write(2), or passed over with `write_logs = no`.
    pub fn written(&self) -> Position {
        self.written
    }

    /// Rotates now (SIGUSR1), after committing. `Ok(None)` if rotation is off (`num_logs` < 2
    /// without KEEP_LOGS), logging is suspended, or `write_logs` is no.
    pub fn rotate(&mut self) -> Result<Option<Rotated>, RotateError> {
        // A write error is in the actions; rotation may be what makes room.
        let _ = self.commit();
        if !self.config.write_logs {
            let text = "no log is written (write_logs = no), skipping rotation";
            self.say(Severity::Notice, text.into());
            return Ok(None);
        }
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
        if self.sealer.as_mut().is_some_and(Sealer::is_behind) {
            return Err(RotateError {
                path: self.path.clone(),
                call: "write the last entries to",
                target: seal_path(&self.path),
                source: rustix::io::Errno::NOSPC.into(),
            });
        }
        self.wait_for_rotated();
        self.sync_before_leaving();
        self.rotated_at = self.written;
        self.finish_compression();
        if let Some(sealer) = &mut self.sealer {
            sealer.before_rotation();
        }
        let is_sealed = self.sealer.is_some();
        let outcome = rotate::rotate(
            &self.path,
            &current,
            keep,
            &self.config.log_group,
            is_sealed,
        );
        let (outcome, seal) = match outcome {
            Ok((files, rotated)) => (Ok((files.log, rotated)), files.seal),
            Err(error) => (Err(error), None),
        };
        if let Some(sealer) = &mut self.sealer {
            sealer.after_rotation(seal);
        }
        let (file, rotated) = outcome?;
        self.file = Some(Arc::new(file));
        self.size_bytes = 0;
        self.said.size = false;
        self.counters.rotations += 1;
        if matches!(self.config.flush, Flush::Data | Flush::Sync) {
            self.sync_dir();
        }
        self.start_compression();
        self.actions.push(Action::Rotated(rotated.clone()));
        Ok(Some(rotated))
    }

    /// Whether writing has stopped until [`resume`](Self::resume).
    pub fn is_suspended(&self) -> bool {
        self.file.is_none() && self.config.write_logs
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
            written: Position {
                bytes: self.written.bytes - self.counters.unlogged.bytes,
                events: self.written.events - self.counters.unlogged.events,
            },
            pending_events: self.pending.events(),
            pending_bytes: self.pending.bytes().len() as u64,
            ..self.counters
        }
    }

    /// Writes and syncs what is left and closes the file. What could not be written is lost and
    /// counted; actions not taken yet are returned with the counts.
    pub fn close(mut self) -> (Counters, Vec<Action>) {
        let _ = self.sync();
        self.finish_compression();
        self.close_seal();
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

    pub(crate) fn remove_excess(&self) -> Vec<PathBuf> {
        match (&self.config.max_log_file_action, self.config.num_logs) {
            (SizeAction::Rotate, 2..) => rotate::remove_excess(&self.path, self.config.num_logs),
            _ => Vec::new(),
        }
    }

    /// auditd gives its rotated files the right mode at every start.
    pub(crate) fn fix_rotated_permissions(&self) {
        let mode = files::modes(&self.config.log_group).rotated;
        for number in 1..self.config.num_logs {
            let path = files::numbered(&self.path, number);
            for path in [with_suffix(&path, COMPRESSED_SUFFIX), path] {
                let metadata = std::fs::symlink_metadata(&path);
                if metadata.is_ok_and(|metadata| metadata.is_file()) {
                    let _ = rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(mode));
                }
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
