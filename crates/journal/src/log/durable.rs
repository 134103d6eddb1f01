//! When what was written becomes durable: the flush modes.

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::process::Pid;

use super::{Committed, Journal};
use crate::counters::Position;
use crate::error::{OpenError, WriteError};
use crate::files;
use crate::sync::{SyncCall, Synced, Syncer, SYNCED_MAX};
use conf::{Config, Flush};

impl Journal {
    pub(crate) fn sync_as_configured(&mut self) {
        let due = match self.config.flush {
            Flush::None => false,
            Flush::Incremental | Flush::IncrementalAsync => {
                self.records_unsynced >= u64::from(self.config.freq)
            }
            Flush::Data | Flush::Sync => true,
        };
        if due {
            self.request_sync();
            if let (Flush::Incremental, Some(syncer)) = (self.config.flush, &self.syncer) {
                // The helper is there for urgent events; this mode waits.
                syncer.drain();
            }
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
            self.inline.synced.extend(progress.synced);
            self.inline.synced.truncate(SYNCED_MAX);
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

    /// The thread that syncs in the background; none if this mode has no helper.
    pub fn sync_thread(&self) -> Option<Pid> {
        self.syncer.as_ref().map(Syncer::id)
    }

    /// Everything up to here is covered by a finished sync (events whose sync failed are in
    /// [`Counters::doubtful_events`]). Never moves with `flush = NONE`, except through
    /// [`sync`](Self::sync).
    pub fn durable(&self) -> Position {
        let background = self.syncer.as_ref().map(Syncer::durable);
        background.unwrap_or_default().max(self.inline.durable)
    }

    /// Syncs that have finished since the last call, oldest first; some are missing if it is not
    /// called for a long time.
    pub fn take_synced(&mut self) -> Vec<Synced> {
        self.poll();
        std::mem::take(&mut self.inline.synced)
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

    /// Commits, and starts a sync of what was written whatever the flush mode, for events that must
    /// not wait. [`durable`](Self::durable) says when it is done; without a helper thread
    /// ([`sync_fd`](Self::sync_fd)) this waits for it.
    pub fn hurry(&mut self) -> Result<Committed, WriteError> {
        let result = self.commit();
        if self.records_unsynced > 0 {
            self.request_sync();
        }
        result
    }

    /// Before another rotation: at most the newest rotated file may be waiting for its last sync,
    /// for that is the one which is repaired after a crash.
    pub(crate) fn wait_for_rotated(&mut self) {
        if let (Some(syncer), true) = (&self.syncer, self.durable() < self.rotated_at) {
            syncer.drain();
        }
    }

    /// Asks for the last sync of a file that will not be written any more.
    pub(crate) fn sync_before_leaving(&mut self) {
        if self.config.flush != Flush::None && self.durable() < self.written {
            self.request_sync();
        }
    }

    /// Makes the renames durable, after everything asked for so far.
    pub(crate) fn sync_dir(&self) {
        if let (Some(syncer), Ok(dir)) = (&self.syncer, File::open(files::dir_of(&self.path))) {
            syncer.request(&Arc::new(dir), SyncCall::Full, Position::default());
        }
    }

    pub(crate) fn retire_syncer(&mut self) {
        if let Some(syncer) = self.syncer.take() {
            syncer.drain();
            let progress = syncer.take_progress();
            self.inline.durable = self.inline.durable.max(progress.durable);
            self.inline.syncs += progress.syncs;
            self.inline.failures.extend(progress.failures);
        }
    }
}

pub(crate) fn wants_syncer(config: &Config) -> bool {
    let in_background = matches!(
        config.flush,
        Flush::IncrementalAsync | Flush::Data | Flush::Sync
    );
    in_background || !config.urgent_keys.is_empty()
}

pub(crate) fn start_syncer(config: &Config, log_file: &Path) -> Result<Option<Syncer>, OpenError> {
    match wants_syncer(config) {
        true => Syncer::start()
            .map(Some)
            .map_err(|error| OpenError::io(log_file, "start of the sync thread", error)),
        false => Ok(None),
    }
}
