//! Messages that have arrived, host by host.

use super::stored::Stored;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The messages of a store.
#[derive(Default)]
pub(super) struct Store {
    /// The files that bodies are in.
    pub(super) sources: Vec<PathBuf>,
    /// The hosts by name.
    pub(super) hosts: BTreeMap<String, Arrived>,
    /// Directory of the file with the messages of a server.
    pub(super) scratch: Option<tempfile::TempDir>,
}

/// The messages of a host.
#[derive(Default)]
pub(super) struct Arrived {
    pub(super) messages: Vec<Stored>,
    /// Reason why the messages cannot all be read.
    pub(super) error: Option<String>,
}
