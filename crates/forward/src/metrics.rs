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
        self.put_gauges(cursor, &mut text);
        self.put_counters(&mut text);
        if !self.error.is_empty() {
            let line = self.error.replace(['\n', '\r'], " ");
            let _ = writeln!(text, "# error {line}");
        }
        text
    }

    fn put_gauges(&self, cursor: &Cursor, text: &mut String) {
        let mut put =
            |name, help, value: &dyn std::fmt::Display| one(text, name, "gauge", help, value);
        let is_up = u8::from(self.is_up);
        put("up", "1 if the last attempt succeeded", &is_up);
        let bytes = self.lag_bytes;
        put("lag_bytes", "bytes of the log not at the far side", &bytes);
        let events = self.lag_events;
        put("lag_events", "events not at the far side, about", &events);
        let age = self.lag_seconds;
        put("lag_seconds", "age of the oldest event that waits", &age);
        let acked = cursor.acked;
        put("acknowledged_file", "log file acknowledged", &acked.file);
        put("acknowledged_offset", "bytes of it", &acked.offset);
    }

    fn put_counters(&self, text: &mut String) {
        let all = [
            ("events_total", "events acknowledged", self.events),
            ("bytes_total", "bytes of the log acknowledged", self.bytes),
            ("batches_total", "batches acknowledged", self.batches),
            ("retries_total", "attempts that failed", self.retries),
            (
                "repeated_total",
                "batches the far side had already",
                self.repeated,
            ),
            (
                "doubtful_total",
                "batches that may be there twice",
                self.doubtful,
            ),
            (
                "filtered_total",
                "events that filters kept back",
                self.filtered,
            ),
            (
                "refused_total",
                "events in the dead-letter file",
                self.refused,
            ),
            (
                "dropped_hold_total",
                "events given up: more than hold waited",
                self.dropped_hold,
            ),
            (
                "files_missed_total",
                "times that files were gone unseen",
                self.files_missed,
            ),
        ];
        for (name, help, value) in all {
            one(text, name, "counter", help, &value);
        }
    }
}

fn one(text: &mut String, name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display) {
    let name = format!("tarsier_forward_{name}");
    let _ = write!(
        text,
        "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
    );
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
