//! The journal: append, commit, sync, rotate, and the response to failures.

mod compress;
mod current;
mod durability;
mod indexer;
mod notices;
mod open;
mod reconfigure;
mod respond;
mod sealing;
mod stream;
mod witness;

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::action::{OwnerAction, Severity};
use crate::counters::{Counters, Position};
use crate::error::{RotateError, WriteError};
use crate::files;
use crate::rotate::{self, Rotated};
use crate::space::Space;
use crate::sync::Synced;
use compress::{CompressError, Compressor};
use conf::{Config, SizeAction};
use current::{Attempt, Current};
use durability::Durability;
use indexer::Indexer;
use respond::{Response, Responses, Situation, Then};
use sealing::Messages;
use stream::LineStream;

pub use open::OpenReport;
pub use stream::{Committed, PENDING_BYTES_MAX};
pub use witness::{Witness, Write};

/// Size from which [`Journal::write_piece`] writes, in bytes: all of it is still in the processor's
/// cache.
const PIECE_BYTES: usize = 128 << 10;

/// An open log. One owner, one thread; syncs run on at most one helper thread.
///
/// Events go [`append`](Self::append) → memory → [`commit`](Self::commit) → file →
/// [`durable`](Self::durable). Disk errors are answered as the configuration says; what the owner
/// has to do then is returned by [`take_actions`](Self::take_actions).
pub struct Journal {
    config: Config,
    /// Dropped before the file and its seal, after the requested syncs have been tried.
    durability: Durability,
    current: Current,
    stream: LineStream,
    responses: Responses,
    compressor: Compressor,
    indexer: Indexer,
    counters: Counters,
}

impl Journal {
    /// Takes `events` whole events as lines, each terminated by a newline. They stay in memory
    /// until [`commit`](Self::commit). If the buffer is full, this commits first; an append that
    /// still does not fit is counted as lost, as a whole.
    pub fn append(&mut self, lines: &[u8], events: u32) {
        if lines.is_empty() {
            return;
        }

        self.counters.appended_events += u64::from(events);
        if !self.stream.has_room_for(lines.len()) {
            // The error is among the actions, and the owner's next commit returns it again.
            let _ = self.commit();
        }

        if self.stream.has_room_for(lines.len()) {
            self.stream.push(lines, events);
        } else {
            let is_open = self.current.is_open();
            let lost = &mut self.counters.lost;
            self.responses.lose(u64::from(events), lost, is_open);
        }
    }

    /// Writes the buffered lines if they are enough for a write(2) of their own. The rest of what
    /// [`commit`](Self::commit) does is left to the next commit. While the disk fails, this does
    /// nothing.
    pub fn write_piece(&mut self) {
        // A COMPACT frame compresses better the more text it holds.
        let is_written = self.config.write_logs && !self.current.is_compact();
        let is_piece = self.stream.pending().bytes().len() >= PIECE_BYTES;
        if is_piece && is_written && self.responses.is_untroubled() {
            // The error is among the actions, and the owner's next commit returns it again.
            let _ = self.write_pending();
        }
    }

    /// Writes the buffer, in one write(2) unless the file has to be rotated in between, and
    /// requests the sync that the flush mode wants. With DATA and SYNC, written events count as
    /// acknowledged only when [`durable`](Self::durable) covers them: the sync runs while the next
    /// batch is gathered.
    ///
    /// While logging is suspended this writes nothing and is not an error; with `write_logs = no`
    /// it discards the buffer.
    pub fn commit(&mut self) -> Result<Committed, WriteError> {
        // Results of syncs first: a failed one may suspend logging, and then nothing more is written.
        self.poll();
        let compressed = self.compressor.poll();
        self.note_compression(compressed);
        self.responses.begin_commit();
        if !self.config.write_logs {
            self.pass_over();
            return Ok(Committed::default());
        }

        // Written, then acknowledged, then sealed and synced: a seal covers only what is in the file.
        let result = self.write_pending();
        let committed = self.stream.commit();
        self.seal_tick();
        if committed != Committed::default() {
            self.sync_as_configured();
            self.check_space();
        }

        // A failed write is returned after the sync, so that what was written before it is durable all the same.
        result.map(|()| committed)
    }

    /// With `write_logs = no`: discards the buffer and counts its events as unlogged.
    fn pass_over(&mut self) {
        let batch = self.stream.pass_over();
        self.counters.unlogged.bytes += batch.bytes as u64;
        self.counters.unlogged.events += batch.events;
    }

    fn write_pending(&mut self) -> Result<(), WriteError> {
        let mut rotated_for_room = false;
        while self.current.is_open() && !self.stream.pending().is_empty() {
            let at = situation(&self.config, &self.current);

            // Up to the event that reaches the size limit: the rest goes to the next file.
            let upto = match self.responses.bytes_until_size_action(at) {
                Some(bytes) => self.stream.pending().cut_at_or_after(bytes),
                None => self.stream.pending().bytes().len(),
            };
            let rotations = self.counters.rotations;
            match self.write_first(upto) {
                Ok(()) => self.check_size(),
                // disk_full_action = ROTATE may just have freed space. Tried once; a second failure
                // is returned.
                Err(_) if !rotated_for_room && self.counters.rotations > rotations => {
                    rotated_for_room = true;
                }
                Err(error) => return Err(error),
            }
        }

        Ok(())
    }

    /// Writes the first `upto` bytes of the buffer; a frame may take fewer.
    fn write_first(&mut self, upto: usize) -> Result<(), WriteError> {
        if self.current.is_compact() {
            let attempt = self.current.write_frame(&mut self.stream, upto);
            let outcome = self.answer(attempt);
            self.stream.end_write();
            return outcome;
        }
        let attempt = self.current.write_lines(&mut self.stream, upto);
        self.stream.end_write();
        self.answer(attempt)
    }

    /// Counts what was written, and answers a failure.
    fn answer(&mut self, attempt: Attempt) -> Result<(), WriteError> {
        self.counters.writes += attempt.writes;
        self.counters.records += attempt.batch.records;
        self.durability.note_written(attempt.batch.records);
        self.responses.note_written(attempt.stored_bytes);

        // What was written before a failure counts as written, and the rest stays in the buffer.
        let Err(source) = attempt.result else {
            self.responses.write_succeeded();
            return Ok(());
        };

        self.counters.write_errors += 1;
        let at = situation(&self.config, &self.current);

        // auditd.conf says what follows (disk_full_action, disk_error_action); rotation may free space for another attempt.
        let response = self.responses.write_failed(&source, at);
        self.perform(response);
        Err(WriteError {
            path: self.path().to_owned(),
            source,
            pending_events: self.stream.pending().events(),
        })
    }

    /// Position up to which everything was taken by write(2), or discarded with `write_logs = no`.
    pub fn written(&self) -> Position {
        self.stream.written()
    }

    /// Bytes appended to the stream since the journal was opened, whether written or still in
    /// memory.
    pub fn taken(&self) -> u64 {
        self.stream.taken_bytes()
    }

    /// Calls `witness` before and after each write from now on.
    pub fn set_witness(&mut self, witness: Option<Box<dyn Witness>>) {
        self.stream.set_witness(witness);
    }

    /// Rotates now (SIGUSR1), after committing. `Ok(None)` if rotation is off (`num_logs` < 2
    /// without KEEP_LOGS), logging is suspended, or `write_logs` is no.
    pub fn rotate(&mut self) -> Result<Option<Rotated>, RotateError> {
        // A write error is among the actions; the rotation may free space.
        let _ = self.commit();
        if !self.config.write_logs {
            let text = "no log is written (write_logs = no), skipping rotation";
            self.report(Severity::Notice, text.into());
            return Ok(None);
        }

        let keep = match self.config.max_log_file_action {
            SizeAction::KeepLogs => rotate::keep_all(self.path()),
            _ => self.config.num_logs,
        };
        if keep < 2 {
            self.report(
                Severity::Notice,
                "log rotation is disabled (num_logs < 2), skipping".into(),
            );
            return Ok(None);
        }

        self.rotate_keeping(keep)
    }

    fn rotate_keeping(&mut self, keep: u32) -> Result<Option<Rotated>, RotateError> {
        let Some(file) = self.current.file().cloned() else {
            return Ok(None);
        };

        // A file leaves with its last seal written, its syncs finished or under way, and nothing else at work on it.
        self.current.check_seal_written()?;
        self.durability.wait_for_rotated();
        self.sync_before_leaving();
        self.durability.note_rotation(self.stream.written());
        self.finish_compression();
        self.indexer.interrupt();

        let rotated = self.current.rotate(&file, keep, &self.config.log_group)?;
        self.responses.note_rotation();
        self.counters.rotations += 1;

        // The new name must survive a crash before the next write does.
        if self.config.flush.is_durable() {
            self.durability.sync_dir(self.current.path());
        }
        self.start_compression();
        self.responses
            .notices()
            .push(OwnerAction::Rotated(rotated.clone()));

        Ok(Some(rotated))
    }

    /// Sets who starts the programs of EXEC actions, and changes files that this process may not; without, this process
    /// does.
    pub fn set_launcher(&mut self, launcher: privsep::spawn::Launcher) {
        crate::writing::helped_by(&launcher);
        self.responses.notices().set_launcher(launcher);
    }

    /// Whether writing has stopped until [`resume`](Self::resume).
    pub fn is_suspended(&self) -> bool {
        !self.current.is_open() && self.config.write_logs
    }

    /// Returns the actions that the owner has to take, oldest first, and empties the list.
    pub fn take_actions(&mut self) -> Vec<OwnerAction> {
        self.responses.notices().take()
    }

    /// The log file's path.
    pub fn path(&self) -> &Path {
        self.current.path()
    }

    /// Size of the current file.
    pub fn size_bytes(&self) -> u64 {
        self.current.size_bytes()
    }

    /// Counts since opening.
    pub fn counters(&self) -> Counters {
        let (written, pending) = (self.stream.written(), self.stream.pending());
        Counters {
            written: Position {
                bytes: written.bytes - self.counters.unlogged.bytes,
                events: written.events - self.counters.unlogged.events,
            },
            pending_events: pending.events(),
            pending_bytes: pending.bytes().len() as u64,
            ..self.counters
        }
    }

    /// Writes and syncs what is left and closes the file. What could not be written is counted as
    /// lost. Returns the counts and the actions that were not taken yet.
    pub fn close(mut self) -> (Counters, Vec<OwnerAction>) {
        // Synced before the seal is closed, which says that the file is whole.
        let _ = self.sync();
        self.finish_compression();
        self.close_seal();
        self.drop_pending("the end");
        (self.counters(), self.take_actions())
    }

    /// Records the results of finished syncs, and reaps EXEC programs. Cheap;
    /// [`commit`](Self::commit) calls it. Call it when [`sync_fd`](Self::sync_fd) becomes readable.
    pub fn poll(&mut self) {
        self.responses.notices().reap();
        let finished = self.durability.poll();
        self.counters.syncs += finished.syncs;
        for (error, events) in finished.failures {
            self.counters.sync_errors += 1;
            self.counters.doubtful_events += events;
            let at = situation(&self.config, &self.current);
            let response = self.responses.sync_failed(&error, events, at);
            self.perform(response);
        }
    }

    /// Descriptor that is readable after a background sync has finished; `None` if this mode has no
    /// helper.
    pub fn sync_fd(&self) -> Option<BorrowedFd<'_>> {
        self.durability.done_fd()
    }

    /// The thread that syncs in the background; `None` if this mode has no helper.
    pub fn sync_thread(&self) -> Option<Pid> {
        self.durability.helper()
    }

    /// Position up to which everything is covered by a finished sync (events whose sync failed are
    /// in [`Counters::doubtful_events`]). With `flush = NONE` only [`sync`](Self::sync) advances
    /// it.
    pub fn durable(&self) -> Position {
        self.durability.durable()
    }

    /// Syncs that have finished since the last call, oldest first. The list is limited: if this is
    /// not called for a long time, later ones are missing.
    pub fn take_synced(&mut self) -> Vec<Synced> {
        self.poll();
        self.durability.take_synced()
    }

    /// Commits, and waits until what was written is durable, whatever the flush mode.
    pub fn sync(&mut self) -> Result<Committed, WriteError> {
        let result = self.commit();

        // Even after a failed commit: what was written before is made durable.
        if self.durable() < self.written() {
            self.request_sync();
        }
        self.durability.drain();
        self.poll();
        result
    }

    /// Commits, and starts a sync of what was written whatever the flush mode is: for events that
    /// must not wait. [`durable`](Self::durable) tells when it has finished; without a helper
    /// thread ([`sync_fd`](Self::sync_fd)) this waits for it.
    pub fn flush(&mut self) -> Result<Committed, WriteError> {
        let result = self.commit();
        if self.durability.has_unsynced() {
            self.request_sync();
        }
        result
    }

    fn sync_as_configured(&mut self) {
        if self.durability.is_due(&self.config) {
            self.request_sync();
            if self.config.flush.waits() {
                // The helper runs only because of urgent keys; with this flush mode the sync is
                // waited for.
                self.durability.drain();
            }
        }
    }

    /// Starts a sync of the current file that covers everything written; without a helper, waits
    /// for it.
    fn request_sync(&mut self) {
        let Some(file) = self.current.file() else {
            return;
        };
        let written = self.stream.written();
        let has_finished = self.durability.request(file, self.config.flush, written);
        if has_finished {
            self.poll();
        }
    }

    /// Requests the last sync of a file that will not be written any more.
    fn sync_before_leaving(&mut self) {
        if self.config.flush.syncs() && self.durable() < self.written() {
            self.request_sync();
        }
    }

    fn report(&mut self, severity: Severity, text: String) {
        self.responses.notices().report(severity, text);
    }

    fn report_all(&mut self, messages: Messages) {
        for (severity, text) in messages {
            self.report(severity, text);
        }
    }

    /// Carries out `max_log_file_action` if the current file has reached `max_log_file`.
    fn check_size(&mut self) {
        let at = situation(&self.config, &self.current);
        let response = self.responses.check_size(at);
        self.perform(response);
    }

    /// Carries out the space actions if free space is below the limits, once until it recovers.
    fn check_space(&mut self) {
        let Some(Ok(space)) = self.current.file().map(|file| Space::of(file)) else {
            return;
        };
        let at = situation(&self.config, &self.current);
        let response = self.responses.check_space_left(&space, at);
        self.perform(response);
        // Read again: the first response may have rotated or closed the file.
        let at = situation(&self.config, &self.current);
        let response = self.responses.check_admin_space_left(&space, at);
        self.perform(response);
    }

    fn perform(&mut self, response: Response) {
        match response {
            Response::Nothing => {}
            Response::Rotate { what, keep } => self.rotate_for(what, keep),
            Response::Suspend { cause, then } => {
                // Suspended first: the program may move the log away, and resumes logging when it is done.
                self.suspend(&cause);
                match then {
                    Then::Nothing => {}
                    Then::Run(program) => self.responses.notices().run(&program),
                    Then::Change(runlevel) => {
                        let change = OwnerAction::ChangeRunlevel { runlevel, cause };
                        self.responses.notices().push(change);
                    }
                }
            }
        }
    }

    fn rotate_for(&mut self, what: &'static str, keep: u32) {
        if !self.responses.may_rotate(keep) {
            return;
        }
        if let Err(error) = self.rotate_keeping(keep) {
            let at = situation(&self.config, &self.current);
            let response = self.responses.rotate_failed(what, &error, at);
            self.perform(response);
        }
    }

    fn suspend(&mut self, cause: &str) {
        self.sync_before_leaving();
        // The seal ends in order: what is added to a closed file did not come from the journal.
        self.close_seal();
        if self.current.close() {
            self.responses.notices().push(OwnerAction::Suspended {
                cause: cause.to_owned(),
            });
        }
    }

    /// Makes checkpoints that are due, and reports the sealer's messages.
    fn seal_tick(&mut self) {
        let messages = self.current.sealing().tick();
        self.report_all(messages);
    }

    /// Closes the seal in order, if there is one, and waits until it is durable.
    fn close_seal(&mut self) {
        let messages = self.current.sealing().close();
        self.report_all(messages);
    }

    /// Starts to compress the newest rotated file or to make its index, if the configuration wants that.
    fn start_compression(&mut self) {
        if self.config.compress_rotated {
            let path = files::numbered(self.path(), 1);
            let started = self.compressor.start(path, &self.config.log_group);
            self.note_compression(started.map(|()| None));
        } else if self.config.index_rotated {
            self.indexer.start(files::numbered(self.path(), 1));
        }
    }

    /// Waits for a running compression: the names of the files are about to change.
    fn finish_compression(&mut self) {
        let finished = self.compressor.finish();
        self.note_compression(finished);
    }

    /// Says what has failed; starts to make the index of what was compressed.
    fn note_compression(&mut self, outcome: Result<Option<PathBuf>, CompressError>) {
        match outcome {
            Ok(Some(path)) if self.config.index_rotated => self.indexer.start(path),
            Ok(_) => {}
            Err(error) => self.report(Severity::Warning, error.to_string()),
        }
    }

    /// Counts the events that could not be written before `what` as lost.
    fn drop_pending(&mut self, what: &str) {
        let left = self.stream.pending().events();
        if left > 0 {
            self.counters.lost.closed += left;
            self.stream.drop_pending();
            let text = format!("{left} events could not be written before {what}");
            self.report(Severity::Error, text);
        }
    }
}

/// Writes what is left but reports nothing; use [`Journal::close`] to get the counts and actions.
impl Drop for Journal {
    fn drop(&mut self) {
        if !self.stream.pending().is_empty() {
            let _ = self.commit();
        }
    }
}

/// The situation on which responses depend.
fn situation<'a>(config: &'a Config, current: &'a Current) -> Situation<'a> {
    Situation {
        config,
        path: current.path(),
        size_bytes: current.size_bytes(),
        is_open: current.is_open(),
    }
}
