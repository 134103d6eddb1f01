//! Opening the log's file and repairing what a crash left.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::compress;
use super::sealing::open_sealer;
use crate::error::OpenError;
use crate::files;
use crate::recover::{self, TornLine};
use crate::rotate;
use crate::seal::Sealer;
use crate::space::{Limits, Space};
use conf::Config;

/// Findings and repairs made when the log was opened.
#[derive(Clone, Debug, Default)]
pub struct OpenReport {
    /// Size of the log after repair.
    pub size_bytes: u64,
    /// An end that a crash left torn.
    pub torn: Option<TornLine>,
    /// A torn end of the previous file, `log.1`.
    pub torn_rotated: Option<TornLine>,
    /// Whether the log shows that the previous daemon stopped in order; `None` if it does not tell.
    pub ended_in_order: Option<bool>,
    /// Rotated files beyond `num_logs` that were removed.
    pub removed: Vec<PathBuf>,
}

/// A log that was opened and repaired.
pub(super) struct OpenedLog {
    pub(super) file: File,
    pub(super) sealer: Option<Sealer>,
    pub(super) limits: Limits,
    pub(super) warning: Option<String>,
    pub(super) report: OpenReport,
}

impl OpenedLog {
    /// Opens or creates `log_file`, locks it, repairs what a crash left, and opens its seal.
    pub(super) fn new(log_file: &Path, config: &Config) -> Result<OpenedLog, OpenError> {
        let warning = files::prepare_dir(log_file, &config.log_group)?;
        rotate::repair(log_file)
            .and_then(|()| compress::repair(log_file))
            .map_err(|e| OpenError::io(log_file, "mending an unfinished rotation", e))?;
        let torn_rotated = recover::repair_rotated(log_file)?;
        let file = files::open_log(log_file, &config.log_group)?;
        let (size_bytes, torn) = recover::repair(&file, log_file)?;
        let ended_in_order = recover::ends_in_order(&file, size_bytes)
            .map_err(|error| OpenError::io(log_file, "read", error))?;
        let sealer = open_sealer(log_file, &file, size_bytes, config)?;
        let space = Space::of(&file).map_err(|e| OpenError::io(log_file, "fstatvfs", e))?;

        Ok(OpenedLog {
            file,
            sealer,
            limits: Limits::of(config, &space),
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
