//! Counts and lags, as text of Prometheus.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::cursor::Cursor;

/// What is counted since the start, and how far behind the far side is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Whether the last attempt succeeded.
    pub is_up: bool,
    /// Bytes of the log that are not at the far side.
    pub lag_bytes: u64,
    /// About how many events that is, by the mean size of those sent.
    pub lag_events: u64,
    /// Age of the oldest event that waits, in seconds.
    pub lag_seconds: f64,
    /// Events that were acknowledged.
    pub events: u64,
    /// Bytes of the log that were acknowledged.
    pub bytes: u64,
    /// Batches that were acknowledged.
    pub batches: u64,
    /// Attempts that failed.
    pub retries: u64,
    /// Batches that the far side had already.
    pub repeated: u64,
    /// Batches sent under a new producer although it is not known whether they had arrived.
    pub doubtful: u64,
    /// Events that a filter kept back.
    pub filtered: u64,
    /// Events in the dead-letter file.
    pub refused: u64,
    /// Events dropped because more than `hold` waited.
    pub dropped_hold: u64,
    /// Times that files were gone before they could be linked.
    pub files_missed: u64,
    /// Why the last attempt failed; empty if it did not.
    pub error: String,
}

impl Metrics {
    /// Prometheus' text form.
    pub fn to_text(&self, cursor: &Cursor) -> String {
        let mut text = String::new();
        let mut put = |name: &str, help: &str, value: &dyn std::fmt::Display| {
            let kind = match name.ends_with("_total") {
                true => "counter",
                false => "gauge",
            };
            let _ = write!(
                text,
                "# HELP tarsier_forward_{name} {help}\n# TYPE tarsier_forward_{name} {kind}\n\
                 tarsier_forward_{name} {value}\n"
            );
        };
        put(
            "up",
            "1 if the last attempt succeeded",
            &u8::from(self.is_up),
        );
        put(
            "lag_bytes",
            "bytes of the log not at the far side",
            &self.lag_bytes,
        );
        put(
            "lag_events",
            "events not at the far side, about",
            &self.lag_events,
        );
        put(
            "lag_seconds",
            "age of the oldest event that waits",
            &self.lag_seconds,
        );
        put("events_total", "events acknowledged", &self.events);
        put("bytes_total", "bytes of the log acknowledged", &self.bytes);
        put("batches_total", "batches acknowledged", &self.batches);
        put("retries_total", "attempts that failed", &self.retries);
        put(
            "repeated_total",
            "batches that the far side had already",
            &self.repeated,
        );
        put(
            "doubtful_total",
            "batches that may be there twice",
            &self.doubtful,
        );
        put(
            "filtered_total",
            "events that filters kept back",
            &self.filtered,
        );
        put(
            "refused_total",
            "events in the dead-letter file",
            &self.refused,
        );
        put(
            "dropped_hold_total",
            "events dropped: more than hold waited",
            &self.dropped_hold,
        );
        put(
            "files_missed_total",
            "times that files were gone unseen",
            &self.files_missed,
        );
        put(
            "acknowledged_file",
            "log file that is acknowledged",
            &cursor.acked.file,
        );
        put("acknowledged_offset", "bytes of it", &cursor.acked.offset);
        if !self.error.is_empty() {
            let line = self.error.replace(['\n', '\r'], " ");
            let _ = writeln!(text, "# error {line}");
        }
        text
    }
}

/// Replaces `path` by `text`, so that a reader never sees half of it.
///
/// # Errors
/// The file cannot be written.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    std::fs::write(&unfinished, text)?;
    std::fs::rename(&unfinished, path)
}
