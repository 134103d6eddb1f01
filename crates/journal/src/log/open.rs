//! The log's file when it begins to be written to.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{compress, Journal};
use crate::action::Severity;
use crate::error::OpenError;
use crate::files;
use crate::recover::{self, TornLine};
use crate::rotate;
use crate::seal::Sealer;
use crate::space::{Limits, Space};
use conf::Config;

/// What was found and done when the log was opened.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Size of the log after repair.
    pub size_bytes: u64,
    /// An end that a crash left torn.
    pub torn: Option<TornLine>,
    /// The same of the file that was current before, `log.1`.
    pub torn_rotated: Option<TornLine>,
    /// Whether the log says that the daemon before ended in order; none if it cannot tell.
    pub ended_in_order: Option<bool>,
    /// Rotated files beyond `num_logs` that were removed.
    pub removed: Vec<PathBuf>,
}

/// A log that was opened and mended.
pub(crate) struct Opened {
    file: File,
    sealer: Option<Sealer>,
    space: Space,
    warning: Option<String>,
    report: OpenReport,
}

impl Opened {
    /// Opens or creates `log_file`, takes its lock, mends what a crash left, and its seal.
    pub(crate) fn new(log_file: &Path, config: &Config) -> Result<Opened, OpenError> {
        let warning = files::prepare_dir(log_file, &config.log_group)?;
        rotate::mend(log_file)
            .and_then(|()| compress::mend(log_file))
            .map_err(|e| OpenError::io(log_file, "mending an unfinished rotation", e))?;
        let torn_rotated = recover::repair_rotated(log_file)?;
        let file = files::open_log(log_file, &config.log_group)?;
        let (size_bytes, torn) = recover::repair(&file, log_file)?;
        let ended_in_order = recover::ends_in_order(&file, size_bytes)
            .map_err(|error| OpenError::io(log_file, "read", error))?;
        let sealer = open_sealer(log_file, &file, size_bytes, config)?;
        let space = Space::of(&file).map_err(|e| OpenError::io(log_file, "fstatvfs", e))?;
        Ok(Opened {
            file,
            sealer,
            space,
            warning,
            report: OpenReport {
                size_bytes,
                torn,
                torn_rotated,
                ended_in_order,
                removed: Vec::new(),
            },
        })
    }
}

impl Journal {
    /// Writes to a file that was just opened.
    pub(super) fn begin_with(&mut self, opened: Opened) -> Result<OpenReport, OpenError> {
        let mut report = self.take_over(opened);
        let log_file = self.path.clone();
        self.start_form().map_err(|error| {
            OpenError::io(&log_file, "rotation for another log_format", error.source)
        })?;
        self.seal_tick();
        report.removed = self.remove_excess();
        self.fix_rotated_permissions();
        self.check_size();
        self.check_space();
        Ok(report)
    }

    /// Makes it the file that is written to.
    pub(crate) fn take_over(&mut self, opened: Opened) -> OpenReport {
        self.limits = Limits::of(&self.config, &opened.space);
        self.size_bytes = opened.report.size_bytes;
        self.sealer = opened.sealer;
        self.file = Some(Arc::new(opened.file));
        if let Some(text) = opened.warning {
            self.say(Severity::Warning, text);
        }
        opened.report
    }
}

/// The seal of a log that was just opened, if the configuration wants one.
pub(crate) fn open_sealer(
    log_file: &Path,
    file: &File,
    size_bytes: u64,
    config: &Config,
) -> Result<Option<Sealer>, OpenError> {
    match config.seal {
        true => Sealer::open(log_file, file, size_bytes, &config.log_group).map(Some),
        false => Ok(None),
    }
}
