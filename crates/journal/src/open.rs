//! The log's file when it begins to be written to.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::action::Severity;
use crate::compress;
use crate::error::OpenError;
use crate::files;
use crate::log::{open_sealer, Journal, OpenReport};
use crate::recover;
use crate::rotate;
use crate::seal::Sealer;
use crate::space::{Limits, Space};
use conf::Config;

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
