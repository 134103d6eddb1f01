//! Tracks which part of the stream is durable, and runs the syncs that make it so.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::process::Pid;

use crate::counters::Position;
use crate::error::OpenError;
use crate::files;
use crate::sync::{SyncCall, SyncProgress, Synced, Syncer, SYNCED_MAX};
use conf::{Config, Flush};

/// Syncs of the log: on the helper thread if the configuration wants one, otherwise immediate.
pub(super) struct Durability {
    syncer: Option<Syncer>,
    /// Progress of syncs that were made without the helper.
    inline: SyncProgress,
    records_unsynced: u64,
    /// End of the stream in rotated files.
    rotated_at: Position,
}

/// Syncs that have finished.
pub(super) struct FinishedSyncs {
    /// Number of syncs that succeeded.
    pub(super) syncs: u64,
    /// Failed syncs: the error, and the number of events each was to cover.
    pub(super) failures: Vec<(io::Error, u64)>,
}

impl Durability {
    /// Starts the helper if `config` wants one.
    pub(super) fn start(config: &Config, log_file: &Path) -> Result<Self, OpenError> {
        let syncer = if wants_syncer(config) {
            Some(start_syncer(log_file)?)
        } else {
            None
        };
        Ok(Durability {
            syncer,
            inline: SyncProgress::default(),
            records_unsynced: 0,
            rotated_at: Position::default(),
        })
    }

    /// Starts the helper that `config` wants, if none is running. Pass it to
    /// [`change_helper`](Self::change_helper).
    pub(super) fn start_missing(
        &self,
        config: &Config,
        log_file: &Path,
    ) -> Result<Option<Syncer>, OpenError> {
        match (wants_syncer(config), self.syncer.is_some()) {
            (true, false) => start_syncer(log_file).map(Some),
            _ => Ok(None),
        }
    }

    /// Uses a helper that was just started, or ends one that `config` does not want.
    pub(super) fn change_helper(&mut self, started: Option<Syncer>, config: &Config) {
        if started.is_some() {
            self.syncer = started;
        } else if !wants_syncer(config) {
            self.retire_syncer();
        }
    }

    fn retire_syncer(&mut self) {
        if let Some(syncer) = self.syncer.take() {
            // The results stay known after the helper: how far the log is durable must not go back.
            syncer.drain();
            let progress = syncer.take_progress();
            self.inline.durable = self.inline.durable.max(progress.durable);
            self.inline.syncs += progress.syncs;
            self.inline.failures.extend(progress.failures);
        }
    }

    /// Counts records that were written and for which no sync was requested yet.
    pub(super) fn note_written(&mut self, records: u64) {
        self.records_unsynced += records;
    }

    /// Whether records were written for which no sync was requested.
    pub(super) fn has_unsynced(&self) -> bool {
        self.records_unsynced > 0
    }

    /// Whether the flush mode wants a sync after a commit that wrote something.
    pub(super) fn is_due(&self, config: &Config) -> bool {
        match config.flush {
            Flush::None => false,
            Flush::Incremental | Flush::IncrementalAsync => {
                self.records_unsynced >= u64::from(config.freq)
            }
            Flush::Data | Flush::Sync => true,
        }
    }

    /// Starts a sync of `file` that covers everything up to `written`, with the call that `flush`
    /// names. Without a helper the sync is finished on return, and this returns true.
    pub(super) fn request(&mut self, file: &Arc<File>, flush: Flush, written: Position) -> bool {
        self.records_unsynced = 0;
        let call = match flush {
            Flush::Sync => SyncCall::Full,
            _ => SyncCall::Data,
        };

        match &self.syncer {
            Some(syncer) => {
                syncer.request(file, call, written);
                false
            }
            None => {
                let outcome = call.run(file);
                self.inline.note(written, outcome);
                true
            }
        }
    }

    /// Waits until every requested sync has been tried.
    pub(super) fn drain(&self) {
        if let Some(syncer) = &self.syncer {
            syncer.drain();
        }
    }

    /// Syncs that have finished since the last call.
    pub(super) fn poll(&mut self) -> FinishedSyncs {
        let mut failures = std::mem::take(&mut self.inline.failures);
        let mut syncs = std::mem::take(&mut self.inline.syncs);
        if let Some(syncer) = &self.syncer {
            let progress = syncer.take_progress();
            syncs += progress.syncs;
            failures.extend(progress.failures);
            self.inline.synced.extend(progress.synced);
            self.inline.synced.truncate(SYNCED_MAX);
        }
        FinishedSyncs { syncs, failures }
    }

    /// Successful syncs seen by [`poll`](Self::poll), with their times; empties the list.
    pub(super) fn take_synced(&mut self) -> Vec<Synced> {
        std::mem::take(&mut self.inline.synced)
    }

    /// Position up to which everything is covered by a finished sync.
    pub(super) fn durable(&self) -> Position {
        let background = self.syncer.as_ref().map(Syncer::durable);
        background.unwrap_or_default().max(self.inline.durable)
    }

    /// Descriptor that is readable after a background sync has finished.
    pub(super) fn done_fd(&self) -> Option<BorrowedFd<'_>> {
        self.syncer.as_ref().map(Syncer::done_fd)
    }

    /// Thread id of the helper thread.
    pub(super) fn helper(&self) -> Option<Pid> {
        self.syncer.as_ref().map(Syncer::id)
    }

    /// Waits before another rotation: only the newest rotated file may still need its last sync,
    /// since that is the one that is repaired after a crash.
    pub(super) fn wait_for_rotated(&self) {
        if let (Some(syncer), true) = (&self.syncer, self.durable() < self.rotated_at) {
            syncer.drain();
        }
    }

    /// Records that the file about to be rotated away ends at `written`.
    pub(super) fn note_rotation(&mut self, written: Position) {
        self.rotated_at = written;
    }

    /// Makes the renames durable, after all syncs requested so far.
    pub(super) fn sync_dir(&self, log_file: &Path) {
        if let (Some(syncer), Ok(dir)) = (&self.syncer, File::open(files::dir_of(log_file))) {
            // Covers no position of the stream: what becomes durable is the names.
            syncer.request(&Arc::new(dir), SyncCall::Full, Position::default());
        }
    }
}

fn wants_syncer(config: &Config) -> bool {
    let in_background = config.flush.syncs() && !config.flush.waits();
    in_background || !config.urgent_keys.is_empty()
}

fn start_syncer(log_file: &Path) -> Result<Syncer, OpenError> {
    Syncer::start().map_err(|error| OpenError::io(log_file, "start of the sync thread", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(flush: Flush, freq: u32) -> Config {
        Config {
            flush,
            freq,
            ..Config::default()
        }
    }

    fn position(events: u64) -> Position {
        Position {
            bytes: events * 100,
            events,
        }
    }

    fn started(config: &Config) -> Durability {
        Durability::start(config, Path::new("audit.log")).unwrap()
    }

    /// fdatasync(2) on a pipe gives EINVAL: a real failure of the real call.
    fn broken_file() -> Arc<File> {
        let (_reader, writer) = rustix::pipe::pipe().unwrap();
        Arc::new(File::from(writer))
    }

    #[test]
    fn incremental_asks_for_a_sync_every_freq_records() {
        let config = config(Flush::Incremental, 3);
        let mut durability = started(&config);
        let file = Arc::new(tempfile::tempfile().unwrap());
        durability.note_written(2);
        assert!(!durability.is_due(&config));
        durability.note_written(1);
        assert!(durability.is_due(&config));
        assert!(durability.request(&file, config.flush, position(3)));
        assert!(!durability.is_due(&config) && !durability.has_unsynced());
        assert_eq!(durability.durable(), position(3));
        assert_eq!(durability.poll().syncs, 1);
        assert_eq!(durability.poll().syncs, 0, "counted once");
    }

    #[test]
    fn each_failed_sync_is_told_once_with_the_events_it_was_to_cover() {
        for flush in [Flush::Incremental, Flush::Data] {
            let mut durability = started(&config(flush, 1));
            let file = Arc::new(tempfile::tempfile().unwrap());
            durability.request(&file, flush, position(4));
            durability.request(&broken_file(), flush, position(9));
            durability.drain();
            let finished = durability.poll();
            let events: Vec<u64> = finished
                .failures
                .iter()
                .map(|(_, events)| *events)
                .collect();
            assert_eq!((finished.syncs, events), (1, vec![5]), "{flush:?}");
            assert!(durability.poll().failures.is_empty());
        }
    }

    #[test]
    fn nothing_is_forgotten_when_the_helper_ends() {
        let mut durability = started(&config(Flush::Data, 0));
        let file = Arc::new(tempfile::tempfile().unwrap());
        durability.request(&file, Flush::Data, position(4));
        durability.request(&broken_file(), Flush::Data, position(6));
        durability.change_helper(None, &config(Flush::None, 0));
        assert!(durability.helper().is_none() && durability.done_fd().is_none());
        assert_eq!(durability.durable(), position(6));
        let finished = durability.poll();
        assert_eq!((finished.syncs, finished.failures.len()), (1, 1));
    }
}
