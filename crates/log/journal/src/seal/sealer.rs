//! The journal's side: an entry for each commit, regular checkpoints, and a new file at a rotation.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::blocks::Blocks;
use super::entry::{self, EntryKind, Reason, SealEntry, HEADER_BYTES};
use super::output::SealOutput;
use super::reconcile::{self, Reconciled, Unusable};
use super::state::{SealState, StateError, StateFile};
use super::sync::SealSyncer;
use super::{now_ms, seal_path, state_path, with_suffix};
use crate::action::Severity;
use crate::error::OpenError;
use crate::files;
use crate::writing;
use conf::Group;

/// Time between two checkpoints while events are written.
pub(crate) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checkpoints while nothing is written: they show that nothing was.
pub(crate) const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(60);
/// Limit of the entries waiting, in bytes, while the seal cannot be written. Further entries are
/// left out, and verification reports them as missing.
const WAITING_BYTES_MAX: usize = 1 << 20;
/// Bytes of the log from which an entry is made before the commit ends. Making one takes some
/// microseconds, too many for each piece of a commit.
const ENTRY_BYTES: usize = 1 << 20;
/// Bytes of the log that are read at once when sealing what was written but not sealed.
const LATE_BYTES: usize = 1 << 20;

/// Seals one log.
pub(crate) struct Sealer {
    log: PathBuf,
    seal: SealOutput,
    /// The previous file's seal, as long as its last entries did not fit on the disk.
    unended: Option<SealOutput>,
    state: SealState,
    state_file: StateFile,
    /// What the entries cover.
    covered: u64,
    /// What was written after that.
    blocks: Blocks,
    has_commits: bool,
    last_checkpoint: Instant,
    durability: SealSyncer,
    messages: Vec<(Severity, String)>,
    has_reported_failure: bool,
}

impl Sealer {
    /// Continues the seal of `log`, whose file has `size_bytes` and no torn end, and seals the part
    /// of the log that is not sealed yet.
    pub(crate) fn open(
        log: &Path,
        log_file: &File,
        size_bytes: u64,
        group: &Group,
    ) -> Result<Self, OpenError> {
        let state_path = state_path(log);
        let (state_file, mut state) =
            StateFile::open(&state_path).map_err(|error| {
                match error {
            StateError::Io(error) if error.kind() == io::ErrorKind::NotFound => OpenError::refused(
                &state_path,
                "no keys to seal the log with",
                "make them with `tarsier seal init`, or set seal = no",
            ),
            StateError::Io(error) => OpenError::io(&state_path, "open", error),
            StateError::Damaged => OpenError::refused(
                &state_path,
                "damaged, or not what `tarsier seal init` made",
                "move it, the log and its seal away together, and run `tarsier seal init` again",
            ),
        }
            })?;

        let is_first = (state.keys.epoch, state.keys.index, state.file) == (0, 0, 0);
        let (seal, found) = open_seal(log, group, &mut state)?;
        let durability = SealSyncer::start()
            .map_err(|error| OpenError::io(log, "start of the seal's sync thread", error))?;
        let mut sealer = Sealer {
            log: log.to_owned(),
            seal: SealOutput::new(seal.file, found.keep as u64),
            unended: None,
            state,
            state_file,
            covered: found.covered,
            blocks: Blocks::default(),
            has_commits: false,
            last_checkpoint: Instant::now(),
            durability,
            messages: Vec::new(),
            has_reported_failure: false,
        };

        sealer.report_unprotected();
        sealer.report_opened(&found, size_bytes, is_first);
        // OPEN precedes the late entries: verification judges those by whether the last run ended in order.
        sealer.put_open(&found, seal.cut_bytes, size_bytes, is_first);
        sealer
            .seal_late(log_file, size_bytes)
            .map_err(|error| OpenError::io(log, "read", error))?;
        sealer.request_sync();

        Ok(sealer)
    }

    fn report_unprotected(&mut self) {
        if let Some((call, error)) = self.state.keys.unprotected() {
            let text = format!(
                "the keys of the seal may reach swap, core dumps or child processes: {call}: {error}; \
                 raise RLIMIT_MEMLOCK"
            );
            self.messages.push((Severity::Warning, text));
        }
    }

    fn report_opened(&mut self, found: &Reconciled, size_bytes: u64, is_first: bool) {
        let seal = seal_path(&self.log).display().to_string();
        if found.is_altered {
            let text = format!("{seal}: altered since it was written; see tarsier verify");
            self.messages.push((Severity::Alert, text));
        }

        if found.entries_lost && !is_first {
            let text = format!("{seal}: entries at its end are missing; see tarsier verify");
            self.messages.push((Severity::Alert, text));
        }

        if size_bytes < found.covered {
            let text = format!(
                "{}: {} bytes that were sealed are missing at its end",
                self.log.display(),
                found.covered - size_bytes
            );
            self.messages.push((Severity::Alert, text));
        } else if size_bytes > found.covered && !is_first {
            let text = format!(
                "{}: the last {} bytes were not sealed before now",
                self.log.display(),
                size_bytes - found.covered
            );
            self.messages.push((Severity::Warning, text));
        }
    }

    fn put_open(&mut self, found: &Reconciled, cut: u64, size_bytes: u64, is_first: bool) {
        let mut flags = 0;
        if found.ends_in_order {
            flags |= entry::IN_ORDER;
        }

        if is_first {
            flags |= entry::FIRST;
        } else if found.entries_lost {
            flags |= entry::ENTRIES_LOST;
        }

        self.put(&EntryKind::Open {
            flags,
            found: size_bytes,
            sealed: found.covered,
            cut,
        });

        // A log that lost sealed bytes goes on at its own end.
        self.covered = found.covered.min(size_bytes);
    }

    /// Seals the part of the log after the covered bytes.
    fn seal_late(&mut self, log_file: &File, size_bytes: u64) -> io::Result<()> {
        let mut bytes = Vec::new();
        while self.covered < size_bytes {
            let count = (size_bytes - self.covered).min(LATE_BYTES as u64) as usize;
            bytes.resize(count, 0);
            log_file.read_exact_at(&mut bytes, self.covered)?;
            self.blocks.add(&bytes);
            self.put_commit(true);
        }
        Ok(())
    }

    /// Takes bytes that were written to the log's end. They are sealed by [`tick`](Self::tick), or
    /// before, where they are many.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(ENTRY_BYTES) {
            self.blocks.add(part);
            if self.blocks.length() >= ENTRY_BYTES as u64 {
                self.put_commit(false);
            }
        }
    }

    /// Makes the entry of what was written since the last one, if anything was.
    fn put_commit(&mut self, is_late: bool) {
        let length = self.blocks.length();
        if length == 0 {
            return;
        }

        let mut blocks = std::mem::take(&mut self.blocks);
        self.put(&EntryKind::Commit {
            is_late,
            start: self.covered,
            length,
            hashes: blocks.end(),
        });
        blocks.clear();
        self.blocks = blocks;
        self.covered += length;

        self.has_commits = true;
    }

    /// Seals what was written, and makes a checkpoint if one is due. The journal calls it at every
    /// commit.
    pub(crate) fn tick(&mut self) {
        self.put_commit(false);
        let elapsed = self.last_checkpoint.elapsed();
        if elapsed >= HEARTBEAT_INTERVAL || self.has_commits && elapsed >= CHECKPOINT_INTERVAL {
            self.checkpoint(Reason::Periodic);
            if let Some(error) = self.durability.take_failure() {
                self.failed("sync", &error);
            }
        }
    }

    fn checkpoint(&mut self, reason: Reason) {
        self.put_commit(false);
        self.put(&EntryKind::Checkpoint {
            reason,
            size: self.covered,
            next_public: self.state.keys.next_public(),
        });
        self.has_commits = false;
        self.last_checkpoint = Instant::now();
        self.request_sync();
    }

    fn request_sync(&self) {
        self.durability
            .request(self.seal.file(), self.state_file.file());
    }

    /// Whether the seal of the last rotated file could not be written because the disk is full:
    /// another rotation has to wait.
    pub(crate) fn is_behind(&mut self) -> bool {
        if self.state.is_between_files {
            self.write_waiting();
            self.save_state();
        }
        self.state.is_between_files
    }

    /// Prepares for renaming the log.
    pub(crate) fn before_rotation(&mut self) {
        self.state.file = self.state.file.saturating_add(1);
        self.checkpoint(Reason::Rotate);

        // Saved before the rename: after a crash without a new seal file, the host knows that none was lost.
        self.state.is_between_files = true;
        self.save_state();
    }

    /// Continues in `seal`, the new seal file: the log and its seal were rotated. Without one, the
    /// rotation failed.
    pub(crate) fn after_rotation(&mut self, seal: Option<File>) {
        match seal {
            Some(file) => {
                let old = std::mem::replace(&mut self.seal, SealOutput::new(file, 0));
                self.unended = Some(old);
                let (header, chain) = reconcile::new_header(&self.state);
                self.state.chain = chain;
                self.seal.waiting.extend_from_slice(&header);
                self.covered = 0;
                self.write_waiting();
            }
            None => {
                self.state.file = self.state.file.saturating_sub(1);
                self.state.is_between_files = false;
            }
        }

        self.save_state();
        self.request_sync();
    }

    /// Closes the seal in order: what is added to the log before it is opened again was not added
    /// by the journal. Entries may still be [waiting](Self::is_waiting) for disk space.
    pub(crate) fn close(&mut self) {
        self.checkpoint(Reason::Close);
        self.seal.trim();
    }

    /// Whether some entries are not in their file yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.unended.is_some() || !self.seal.waiting.is_empty()
    }

    /// Messages since the last call.
    pub(crate) fn take_messages(&mut self) -> Vec<(Severity, String)> {
        std::mem::take(&mut self.messages)
    }

    /// Authenticates an entry, replaces the keys, writes the entry, and overwrites the keys on disk.
    fn put(&mut self, kind: &EntryKind<'_>) {
        let keys = &mut self.state.keys;
        let entry = SealEntry {
            epoch: keys.epoch,
            index: keys.index,
            time_ms: now_ms(),
            kind: kind.clone(),
        };
        let is_checkpoint = entry.is_checkpoint();
        let waiting = &mut self.seal.waiting;
        let start = waiting.len();

        if start < WAITING_BYTES_MAX {
            entry.write(waiting);
            let chain = self.state.chain.after(&waiting[start..]);
            self.state.chain = chain;
            waiting.extend_from_slice(keys.tag(&chain.0).as_bytes());
            if is_checkpoint {
                waiting.extend_from_slice(&keys.sign(&chain.0));
            }
        }

        // The keys advance even if the entry was left out: verification then finds it missing.
        if is_checkpoint {
            keys.next_epoch()
        } else {
            keys.step()
        }

        // The entry before the keys: keys that are ahead of the seal look like removed entries.
        self.write_waiting();
        self.save_state();
    }

    /// Writes the waiting entries, as far as there is disk space.
    pub(crate) fn write_waiting(&mut self) {
        let outcome = self.write_out();
        match outcome {
            Ok(()) => self.has_reported_failure = false,
            Err(error) => self.failed("write", &error),
        }
    }

    fn write_out(&mut self) -> io::Result<()> {
        // The previous file's last entries first: no entry may stand in a file before those that precede it.
        if let Some(old) = &mut self.unended {
            let is_late = !old.waiting.is_empty();
            old.write()?;
            old.trim();
            if is_late {
                self.durability.request(old.file(), self.state_file.file());
            }
            self.unended = None;
        }

        self.seal.write()?;
        // The new file's header is written: it is the first thing written to the file.
        self.state.is_between_files = false;
        Ok(())
    }

    fn save_state(&mut self) {
        if let Err(error) = self.state_file.write(&mut self.state) {
            self.failed("write of the keys", &error);
        }
    }

    fn failed(&mut self, call: &str, error: &io::Error) {
        if !self.has_reported_failure {
            self.has_reported_failure = true;
            let seal = seal_path(&self.log);
            let text = format!("{}: {call} failed: {error}", seal.display());
            self.messages.push((Severity::Alert, text));
        }
    }
}

/// An opened seal file, cut after its last valid entry.
struct OpenedSeal {
    file: File,
    cut_bytes: u64,
}

fn open_seal(
    log: &Path,
    group: &Group,
    state: &mut SealState,
) -> Result<(OpenedSeal, Reconciled), OpenError> {
    let path = seal_path(log);
    let file = files::open_log(&path, group)?;
    let read = |file: &File| -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; file.metadata()?.len() as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    };
    let bytes = read(&file).map_err(|error| OpenError::io(&path, "read", error))?;
    let size = bytes.len();
    let found = match reconcile::reconcile(&bytes, state) {
        Ok(found) => found,
        Err(Unusable::OtherSeries) => {
            return Err(OpenError::refused(
                &path,
                "sealed by other keys than the host has now",
                "move the log and its seal away together",
            ))
        }
        Err(Unusable::NoHeader) => {
            if size > HEADER_BYTES {
                // A crash cannot leave such a file: it is kept for an investigation.
                let aside = with_suffix(&path, ".damaged");
                writing::rename(&path, &aside)
                    .map_err(|error| OpenError::io(&aside, "rename", error))?;
            } else {
                writing::remove_file(&path)
                    .map_err(|error| OpenError::io(&path, "unlink", error))?;
            }
            drop(file);
            // A seal file begins with an epoch: only there, between two files, may its header be missing.
            let entries_lost = !state.is_between_files || state.keys.index > 0;
            let file = create_seal(log, group, state)?;
            let found = Reconciled {
                keep: HEADER_BYTES,
                covered: 0,
                ends_in_order: false,
                entries_lost,
                is_altered: false,
            };
            return Ok((OpenedSeal { file, cut_bytes: 0 }, found));
        }
    };

    file.set_len(found.keep as u64)
        .map_err(|error| OpenError::io(&path, "ftruncate", error))?;
    state.is_between_files = false;
    let cut_bytes = (size - found.keep) as u64;
    Ok((OpenedSeal { file, cut_bytes }, found))
}

/// Makes a seal file with its header.
fn create_seal(log: &Path, group: &Group, state: &mut SealState) -> Result<File, OpenError> {
    let path = seal_path(log);
    let file = files::open_log(&path, group)?;
    let (header, chain) = reconcile::new_header(state);
    file.set_len(0)
        .and_then(|()| (&file).write_all(&header))
        .map_err(|error| OpenError::io(&path, "write", error))?;
    state.chain = chain;
    state.is_between_files = false;
    Ok(file)
}
