//! Opening a journal, changing its configuration or file, and ending a suspension.

use std::path::{Path, PathBuf};

use super::compress::Compressor;
use super::current::Current;
use super::durability::Durability;
use super::indexer::Indexer;
use super::open::{OpenReport, OpenedLog};
use super::respond::Responses;
use super::sealing::open_sealer;
use super::stream::LineStream;
use super::Journal;
use crate::action::Severity;
use crate::counters::Counters;
use crate::error::{OpenError, RotateError};
use crate::files;
use crate::recover::{self, TornLine};
use crate::rotate;
use crate::space::{Limits, Space};
use conf::{Config, SizeAction};

impl Journal {
    /// Opens or creates `log_file` with auditd's permissions and locks it. `config.log_file` is
    /// ignored: the owner decides where to log. With `write_logs = no` nothing is opened, created
    /// or changed, and appended events are only [counted](Counters::unlogged).
    ///
    /// An unterminated last line is repaired, and files beyond `num_logs` are removed; the report
    /// tells. The limits on size and space are checked as after a write, so there may be actions at
    /// once.
    pub fn open(log_file: &Path, config: &Config) -> Result<(Self, OpenReport), OpenError> {
        let opened = if config.write_logs {
            Some(OpenedLog::new(log_file, config)?)
        } else {
            None
        };
        let durability = Durability::start(config, log_file)?;
        let limits = opened.as_ref().map(|opened| opened.limits);
        let (current, warning, mut report) = match opened {
            Some(opened) => (
                Current::open(
                    log_file,
                    opened.file,
                    opened.report.size_bytes,
                    opened.sealer,
                ),
                opened.warning,
                opened.report,
            ),
            None => (Current::closed(log_file), None, OpenReport::default()),
        };

        let mut journal = Journal {
            config: config.clone(),
            durability,
            current,
            stream: LineStream::default(),
            responses: Responses::new(limits.unwrap_or_default()),
            compressor: Compressor::default(),
            indexer: Indexer::default(),
            counters: Counters::default(),
        };

        if config.write_logs {
            journal.report_warning(warning);
            report.removed = journal.begin()?;
        }
        Ok((journal, report))
    }

    /// Starts to write to a file that was just opened. Returns the rotated files that were removed.
    fn begin(&mut self) -> Result<Vec<PathBuf>, OpenError> {
        self.start_form().map_err(|error| {
            OpenError::io(self.path(), "rotation for another log_format", error.source)
        })?;
        self.seal_tick();
        let removed = self.remove_excess();
        self.fix_rotated_permissions();
        self.check_size();
        self.check_space();
        Ok(removed)
    }

    /// Starts to write in the configured form. A file in the other form is rotated away, and kept.
    fn start_form(&mut self) -> Result<(), RotateError> {
        if self.current.start_form(self.config.log_format)? {
            self.rotate_keeping(rotate::keep_all(self.path()))?;
        }
        Ok(())
    }

    /// Takes a new configuration (SIGHUP) and, if `log_file` has changed, switches to it. After an
    /// error nothing has changed. Percentages of space are computed again. With `write_logs = no`
    /// the file is made durable and closed; with `yes` again it is opened as by [`Journal::open`].
    pub fn reconfigure(&mut self, log_file: &Path, config: &Config) -> Result<(), OpenError> {
        // Under the old configuration still: what was appended before SIGHUP goes to the old file. An error is
        // among the actions.
        let _ = self.commit();
        let syncer = self.durability.start_missing(config, log_file)?;
        let opened = match (self.config.write_logs, config.write_logs) {
            (false, true) => {
                // The seal is read when it is opened: its last entries have to be in the file by then.
                self.current.sealing().end_closed();
                Some(OpenedLog::new(log_file, config)?)
            }
            _ => None,
        };

        if !config.write_logs {
            self.end_file();
            self.current.set_path(log_file);
        } else if opened.is_some() {
            self.current.set_path(log_file);
        } else {
            if log_file != self.path() || self.config.log_group != config.log_group {
                self.switch_file(log_file, config)?;
            }
            self.start_or_end_sealing(config)?;
        }

        self.durability.change_helper(syncer, config);
        self.config = config.clone();
        if let Some(opened) = opened {
            self.take_over(opened);
        }
        self.start_form().map_err(|error| {
            OpenError::io(log_file, "rotation for another log_format", error.source)
        })?;

        // Percentages are of the file system that holds the new file.
        if let Some(Ok(space)) = self.current.file().map(|file| Space::of(file)) {
            self.responses.set_limits(Limits::of(config, &space));
        }
        self.responses.forget_reported();
        if !config.write_logs {
            return Ok(());
        }

        for path in self.remove_excess() {
            let text = format!("{} removed: it is beyond num_logs", path.display());
            self.report(Severity::Notice, text);
        }

        self.fix_rotated_permissions();
        self.check_size();
        self.check_space();
        Ok(())
    }

    /// Makes `opened` the current file.
    fn take_over(&mut self, opened: OpenedLog) {
        self.responses.set_limits(opened.limits);
        self.current
            .reopen(opened.file, opened.report.size_bytes, opened.sealer);
        self.report_warning(opened.warning);
        self.report_torn(opened.report.torn);
    }

    /// Syncs the file whatever the flush mode is, and closes it and its seal in order.
    fn end_file(&mut self) {
        if self.current.is_open() {
            // An error is among the actions.
            let _ = self.sync();
        }
        self.finish_compression();
        self.close_seal();
        self.current.close();
        self.responses.forget_trouble();
        self.drop_pending("write_logs = no");
    }

    fn switch_file(&mut self, log_file: &Path, config: &Config) -> Result<(), OpenError> {
        if log_file == self.path() {
            if let Some(file) = self.current.file() {
                let mode = files::modes(&config.log_group).current;
                files::set_permissions(file, log_file, mode, &config.log_group)?;
            }
            return Ok(());
        }

        files::prepare_dir(log_file, &config.log_group)?;
        let file = files::open_log(log_file, &config.log_group)?;
        let (size_bytes, torn) = recover::repair(&file, log_file)?;
        self.report_torn(torn);
        let sealer = if self.current.is_open() {
            open_sealer(log_file, &file, size_bytes, config)?
        } else {
            None
        };

        // The old file is left only now that the new one, and its seal, could be opened.
        self.close_seal();
        self.current.sealing().set(sealer);
        self.sync_before_leaving();
        self.current.move_to(log_file, file, size_bytes);

        Ok(())
    }

    /// Opens or closes the seal if `seal` was changed in the configuration.
    fn start_or_end_sealing(&mut self, config: &Config) -> Result<(), OpenError> {
        let is_sealed = self.current.sealing().is_open();
        match (config.seal, is_sealed, self.current.file().cloned()) {
            (true, false, Some(file)) => {
                self.current.sealing().end_closed();
                let size_bytes = self.size_bytes();
                let sealer = open_sealer(self.path(), &file, size_bytes, config)?;
                self.current.sealing().set(sealer);
            }
            (false, true, _) => self.close_seal(),
            _ => {}
        }

        Ok(())
    }

    fn report_warning(&mut self, warning: Option<String>) {
        if let Some(text) = warning {
            self.report(Severity::Warning, text);
        }
    }

    fn report_torn(&mut self, torn: Option<TornLine>) {
        if let Some(TornLine {
            repair,
            removed_bytes,
            ..
        }) = torn
        {
            let text = format!("the log's torn end was {repair:?}: {removed_bytes} bytes removed");
            self.report(Severity::Warning, text.to_lowercase());
        }
    }

    /// Resumes writing after a suspension (SIGUSR2): opens the file again, and repeats the messages
    /// about what is still wrong. Events kept in memory meanwhile are written by the next commit.
    pub fn resume(&mut self) -> Result<(), OpenError> {
        self.responses.forget_reported();
        self.responses.forget_trouble();
        if self.current.is_open() || !self.config.write_logs {
            return Ok(());
        }

        // The helper may still hold the file, and with it this journal's own lock.
        self.durability.drain();
        let group = &self.config.log_group;
        files::prepare_dir(self.path(), group)?;
        let file = files::open_log(self.path(), group)?;
        let (size_bytes, torn) = recover::repair(&file, self.path())?;
        self.report_torn(torn);
        self.current.sealing().end_closed();

        let sealer = open_sealer(self.path(), &file, size_bytes, &self.config)?;
        self.current.reopen(file, size_bytes, sealer);
        self.start_form().map_err(|error| {
            OpenError::io(&error.path, "rotation for another log_format", error.source)
        })?;
        self.report(Severity::Notice, "logging is resumed".into());
        self.check_size();

        Ok(())
    }

    fn remove_excess(&self) -> Vec<PathBuf> {
        match (&self.config.max_log_file_action, self.config.num_logs) {
            (SizeAction::Rotate, 2..) => rotate::remove_excess(self.path(), self.config.num_logs),
            _ => Vec::new(),
        }
    }

    fn fix_rotated_permissions(&self) {
        rotate::fix_permissions(self.path(), self.config.num_logs, &self.config.log_group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_files;
    use crate::seal::{init, verify};
    use conf::Flush;

    #[test]
    fn a_rotation_that_a_crash_ended_half_way_leaves_a_log_that_verifies() {
        let renames = [
            ("audit.log.1", "audit.log.2"),
            ("audit.log.1.seal", "audit.log.2.seal"),
            ("audit.log", "audit.log.1"),
            ("audit.log.seal", "audit.log.1.seal"),
        ];
        for done in 0..=renames.len() {
            let dir = tempfile::tempdir().unwrap();
            let log = dir.path().join("audit.log");
            let key = init(&log).unwrap();
            let config = Config {
                seal: true,
                flush: Flush::None,
                ..Config::default()
            };
            let mut journal = Journal::open(&log, &config).unwrap().0;
            journal.append(b"type=A\n", 1);
            journal.rotate().unwrap().unwrap();
            journal.append(b"type=B\n", 1);
            journal.commit().unwrap();
            // Rotates as rotate_keeping() begins; the crash comes after `done` renames.
            journal.current.sealing().before_rotation();
            drop(journal);
            for (from, to) in &renames[..done] {
                std::fs::rename(dir.path().join(from), dir.path().join(to)).unwrap();
            }
            let mut journal = Journal::open(&log, &config).unwrap().0;
            journal.append(b"type=C\n", 1);
            journal.close();
            let files = log_files(&log).unwrap();
            let options = verify::Options {
                is_complete: true,
                age_max: None,
            };
            let report = verify(&files, &key, options).unwrap();
            assert_eq!(report.finding, None, "after {done} renames");
            assert_eq!(files.len(), if done > 2 { 3 } else { 2 });
            assert_eq!(report.files.len(), files.len());
        }
    }
}
