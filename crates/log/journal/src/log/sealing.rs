//! The seal of the log, across closing and opening.

use std::fs::File;
use std::path::Path;

use crate::action::Severity;
use crate::error::OpenError;
use crate::seal::Sealer;
use conf::Config;

/// Messages for the administrator.
pub(super) type Messages = Vec<(Severity, String)>;

/// The seal of the current file, with `seal = yes`, and what remains of the previous one.
#[derive(Default)]
pub(super) struct Sealing {
    sealer: Option<Sealer>,
    /// A closed seal with entries that did not fit on the disk.
    unwritten: Option<Sealer>,
}

impl Sealing {
    /// Starts with the seal of a log that was just opened.
    pub(super) fn new(sealer: Option<Sealer>) -> Self {
        Sealing {
            sealer,
            unwritten: None,
        }
    }

    /// Whether what is written is sealed.
    pub(super) fn is_open(&self) -> bool {
        self.sealer.is_some()
    }

    /// Continues with another seal, or none. The previous one was [closed](Self::close).
    pub(super) fn set(&mut self, sealer: Option<Sealer>) {
        self.sealer = sealer;
    }

    /// Takes bytes that were written to the log's end, to be sealed by [`tick`](Self::tick).
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        if let Some(sealer) = &mut self.sealer {
            sealer.extend(bytes);
        }
    }

    /// Seals what was written, and makes a checkpoint if one is due.
    pub(super) fn tick(&mut self) -> Messages {
        let Some(sealer) = &mut self.sealer else {
            return Messages::new();
        };
        sealer.tick();
        sealer.take_messages()
    }

    /// Whether the seal of the last rotated file could not be written because the disk is full:
    /// another rotation has to wait.
    pub(super) fn is_behind(&mut self) -> bool {
        self.sealer.as_mut().is_some_and(Sealer::is_behind)
    }

    /// Prepares for renaming the log.
    pub(super) fn before_rotation(&mut self) {
        if let Some(sealer) = &mut self.sealer {
            sealer.before_rotation();
        }
    }

    /// Continues in `seal`, the new seal file, after a rotation; without one, the rotation failed.
    pub(super) fn after_rotation(&mut self, seal: Option<File>) {
        if let Some(sealer) = &mut self.sealer {
            sealer.after_rotation(seal);
        }
    }

    /// Closes the seal in order, if there is one, and waits until it is durable.
    pub(super) fn close(&mut self) -> Messages {
        let Some(mut sealer) = self.sealer.take() else {
            return Messages::new();
        };
        sealer.close();
        let messages = sealer.take_messages();
        self.unwritten = Some(sealer).filter(Sealer::is_waiting);
        messages
    }

    /// Writes entries that did not fit when the seal was closed. Call this before the seal is
    /// opened again.
    pub(super) fn end_closed(&mut self) {
        if let Some(mut sealer) = self.unwritten.take() {
            sealer.write_waiting();
        }
    }
}

/// The seal of a log that was just opened, if the configuration wants one.
pub(super) fn open_sealer(
    log_file: &Path,
    file: &File,
    size_bytes: u64,
    config: &Config,
) -> Result<Option<Sealer>, OpenError> {
    if config.seal {
        Sealer::open(log_file, file, size_bytes, &config.log_group).map(Some)
    } else {
        Ok(None)
    }
}
