//! The log's own bytes.

use super::{Format, LogEvent, Refused};

/// The lines of an event as they are in the log, with newlines between them.
pub struct Raw;

impl Format for Raw {
    fn name(&self) -> &'static str {
        "raw"
    }

    fn content_type(&self) -> &'static str {
        "text/plain"
    }

    fn carries_seals(&self) -> bool {
        true
    }

    fn event(&mut self, event: &LogEvent<'_>, out: &mut Vec<u8>) -> Result<(), Refused> {
        out.extend_from_slice(event.lines.strip_suffix(b"\n").unwrap_or(event.lines));
        Ok(())
    }
}
