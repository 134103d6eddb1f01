//! The record of what was changed, which `tarsier migrate --back` reads.

use super::steps::MigrationStep;
use anyhow::{bail, Context, Result};
use serde::{Deserialize, Serialize};

/// Version of the record's format.
const VERSION: u32 = 2;

/// The steps that were begun, in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MigrationRecord {
    version: u32,
    pub(super) steps: Vec<MigrationStep>,
}

impl Default for MigrationRecord {
    fn default() -> MigrationRecord {
        MigrationRecord {
            version: VERSION,
            steps: Vec::new(),
        }
    }
}

impl MigrationRecord {
    pub(super) fn text(&self) -> Result<Vec<u8>> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// # Errors
    /// The text is not a record, or has another version.
    pub(super) fn parse(text: &[u8]) -> Result<MigrationRecord> {
        let record: MigrationRecord = serde_json::from_slice(text).context(
            "this is not a record of `tarsier migrate`; docs/guide/migrate.md has the steps to do by hand",
        )?;
        if record.version != VERSION {
            bail!(
                "the record has version {}, and this Tarsier knows {VERSION}: go back with the Tarsier that migrated",
                record.version
            );
        }

        for step in &record.steps {
            step.check()?;
        }
        Ok(record)
    }
}
