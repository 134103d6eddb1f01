//! Changes while the journal is open: another configuration, another file, the end of a suspension.

use std::path::Path;
use std::sync::Arc;

use super::durable::{start_syncer, wants_syncer};
use super::open::{open_sealer, Opened};
use super::{Journal, Said, Trouble};
use crate::action::Severity;
use crate::error::OpenError;
use crate::files;
use crate::pending::Pending;
use crate::recover::{self, TornLine};
use crate::space::{Limits, Space};
use conf::Config;

impl Journal {
    /// Takes a new configuration (SIGHUP) and, if `log_file` is another one, moves there. On an
    /// error nothing has changed. Percentages of space are computed anew. With `write_logs = no`
    /// the file is closed as at the end, durable; with `yes` again it is opened as by [`Journal::open`].
    pub fn reconfigure(&mut self, log_file: &Path, config: &Config) -> Result<(), OpenError> {
        let _ = self.commit();
        let syncer = match (wants_syncer(config), self.syncer.is_some()) {
            (true, false) => start_syncer(config, log_file)?,
            _ => None,
        };
        let opened = match (self.config.write_logs, config.write_logs) {
            (false, true) => {
                self.end_closed_seal();
                Some(Opened::new(log_file, config)?)
            }
            _ => None,
        };
        if !config.write_logs {
            self.end_file();
            self.path = log_file.to_owned();
        } else if opened.is_some() {
            self.path = log_file.to_owned();
        } else {
            if log_file != self.path || self.config.log_group != config.log_group {
                self.switch_file(log_file, config)?;
            }
            self.start_or_end_sealing(config)?;
        }
        if syncer.is_some() {
            self.syncer = syncer;
        } else if !wants_syncer(config) {
            self.retire_syncer();
        }
        self.config = config.clone();
        if let Some(opened) = opened {
            let report = self.take_over(opened);
            self.say_torn(report.torn);
        }
        self.start_form().map_err(|error| {
            OpenError::io(log_file, "rotation for another log_format", error.source)
        })?;
        if let Some(space) = self.file.as_deref().and_then(|file| Space::of(file).ok()) {
            self.limits = Limits::of(config, &space);
        }
        self.said = Said::default();
        if !config.write_logs {
            return Ok(());
        }
        for path in self.remove_excess() {
            let text = format!("{} removed: it is beyond num_logs", path.display());
            self.say(Severity::Notice, text);
        }
        self.fix_rotated_permissions();
        self.check_size();
        self.check_space();
        Ok(())
    }

    /// Ends the file in order, durable whatever the flush mode, and closes it.
    fn end_file(&mut self) {
        if self.file.is_some() {
            // Its failure is among the actions.
            let _ = self.sync();
        }
        self.finish_compression();
        self.close_seal();
        self.file = None;
        self.trouble = Trouble::None;
        let left = self.pending.events();
        if left > 0 {
            self.counters.lost.closed += left;
            self.pending = Pending::default();
            let text = format!("{left} events could not be written before write_logs = no");
            self.say(Severity::Error, text);
        }
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
        let (size_bytes, torn) = recover::repair(&file, log_file)?;
        self.say_torn(torn);
        let sealer = match self.file.is_some() {
            true => open_sealer(log_file, &file, size_bytes, config)?,
            false => None,
        };
        self.close_seal();
        self.sealer = sealer;
        self.sync_before_leaving();
        self.path = log_file.to_owned();
        self.size_bytes = size_bytes;
        if self.file.is_some() {
            self.file = Some(Arc::new(file));
        }
        Ok(())
    }

    /// `seal` was changed in the configuration.
    fn start_or_end_sealing(&mut self, config: &Config) -> Result<(), OpenError> {
        match (config.seal, self.sealer.is_some(), self.file.clone()) {
            (true, false, Some(file)) => {
                self.end_closed_seal();
                self.sealer = open_sealer(&self.path, &file, self.size_bytes, config)?;
            }
            (false, true, _) => self.close_seal(),
            _ => {}
        }
        Ok(())
    }

    fn say_torn(&mut self, torn: Option<TornLine>) {
        if let Some(TornLine {
            repair,
            removed_bytes,
            ..
        }) = torn
        {
            let text = format!("the log's torn end was {repair:?}: {removed_bytes} bytes removed");
            self.say(Severity::Warning, text.to_lowercase());
        }
    }

    /// Starts writing again after a suspension (SIGUSR2), opens the file anew and says again what
    /// is wrong if it still is. Events kept in memory meanwhile are written by the next commit.
    pub fn resume(&mut self) -> Result<(), OpenError> {
        self.said = Said::default();
        self.trouble = Trouble::None;
        if self.file.is_some() || !self.config.write_logs {
            return Ok(());
        }
        if let Some(syncer) = &self.syncer {
            // It may still hold the file, and with it our own lock.
            syncer.drain();
        }
        files::prepare_dir(&self.path, &self.config.log_group)?;
        let file = files::open_log(&self.path, &self.config.log_group)?;
        let (size_bytes, torn) = recover::repair(&file, &self.path)?;
        self.say_torn(torn);
        self.end_closed_seal();
        self.sealer = open_sealer(&self.path, &file, size_bytes, &self.config)?;
        self.file = Some(Arc::new(file));
        self.size_bytes = size_bytes;
        self.start_form().map_err(|error| {
            OpenError::io(&error.path, "rotation for another log_format", error.source)
        })?;
        self.say(Severity::Notice, "logging is resumed".into());
        self.check_size();
        Ok(())
    }
}
