//! Counts and lags, as text of Prometheus.

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use crate::cursor::Cursor;

/// Smallest size of an event that is reckoned with, in bytes.
const EVENT_BYTES_LEAST: u64 = 200;

/// Counts since the start, and the lag of the destination.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Result of the last attempt, and the number of failed ones.
    pub attempts: Attempts,
    /// Part of the log that waits.
    pub lag: Lag,
    /// Counts of what was acknowledged.
    pub sent: Sent,
    /// Counts of what was not sent, by reason.
    pub kept: Kept,
}

/// Attempts to send.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attempts {
    /// Whether the last one succeeded.
    pub is_up: bool,
    /// Number of those that failed.
    pub failed: u64,
    /// Error of the last attempt; empty if it did not fail.
    pub error: String,
}

/// Part of the log that is not at the destination.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lag {
    /// Bytes of the log.
    pub bytes: u64,
    /// Approximate number of those events, by the mean size of those sent.
    pub events: u64,
    /// Age of the oldest event, in seconds.
    pub seconds: f64,
}

/// Counts of what was acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Events.
    pub events: u64,
    /// Bytes of the log.
    pub bytes: u64,
    /// Batches.
    pub batches: u64,
    /// Batches that the destination had already.
    pub repeated: u64,
    /// Batches sent under a new producer although it is not known whether they had arrived.
    pub doubtful: u64,
}

/// Counts of what was not sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Events that a filter kept back.
    pub filtered: u64,
    /// Events in the dead-letter file.
    pub refused: u64,
    /// Events dropped because more than `hold` waited.
    pub dropped_hold: u64,
    /// Times that files were gone before they could be linked.
    pub files_missed: u64,
    /// Times that what was sent was not in the log any more.
    pub log_changed: u64,
}

impl Attempts {
    /// Notes a success.
    pub fn succeeded(&mut self) {
        self.is_up = true;
        self.error.clear();
    }

    /// Notes a failure. True if its reason is another than that of the one before.
    pub fn failed(&mut self, why: &str) -> bool {
        self.failed += 1;
        self.is_up = false;
        let is_new = self.error != why;
        if is_new {
            self.error = why.to_owned();
        }
        is_new
    }
}

impl Lag {
    /// `bytes` that wait, the oldest of them `seconds` old, after what was sent.
    pub fn of(bytes: u64, seconds: f64, sent: &Sent) -> Lag {
        let mean = (sent.bytes / sent.events.max(1)).max(EVENT_BYTES_LEAST);
        Lag {
            bytes,
            events: bytes / mean,
            seconds,
        }
    }
}

impl Metrics {
    /// Prometheus' text form.
    pub fn to_text(&self, cursor: &Cursor) -> String {
        let mut text = String::new();
        self.put_gauges(cursor, &mut text);
        self.put_counters(&mut text);
        if !self.attempts.error.is_empty() {
            let line = self.attempts.error.replace(['\n', '\r'], " ");
            let _ = writeln!(text, "# error {line}");
        }
        text
    }

    fn put_gauges(&self, cursor: &Cursor, text: &mut String) {
        let mut put =
            |name, help, value: &dyn std::fmt::Display| one(text, name, "gauge", help, value);
        let is_up = u8::from(self.attempts.is_up);
        put("up", "1 if the last attempt succeeded", &is_up);
        let bytes = self.lag.bytes;
        put("lag_bytes", "bytes of the log not at the far side", &bytes);

        let events = self.lag.events;
        put("lag_events", "events not at the far side, about", &events);
        let age = self.lag.seconds;
        put("lag_seconds", "age of the oldest event that waits", &age);
        let acked = cursor.acked;
        put("acknowledged_file", "log file acknowledged", &acked.file);
        put("acknowledged_offset", "bytes of it", &acked.offset);
    }

    fn put_counters(&self, text: &mut String) {
        let all = [
            ("events_total", "events acknowledged", self.sent.events),
            (
                "bytes_total",
                "bytes of the log acknowledged",
                self.sent.bytes,
            ),
            ("batches_total", "batches acknowledged", self.sent.batches),
            (
                "retries_total",
                "attempts that failed",
                self.attempts.failed,
            ),
            (
                "repeated_total",
                "batches the far side had already",
                self.sent.repeated,
            ),
            (
                "doubtful_total",
                "batches that may be there twice",
                self.sent.doubtful,
            ),
            (
                "filtered_total",
                "events that filters kept back",
                self.kept.filtered,
            ),
            (
                "refused_total",
                "events in the dead-letter file",
                self.kept.refused,
            ),
            (
                "dropped_hold_total",
                "events given up: more than hold waited",
                self.kept.dropped_hold,
            ),
            (
                "files_missed_total",
                "times that files were gone unseen",
                self.kept.files_missed,
            ),
            (
                "log_changed_total",
                "times that the log was cut or rewritten",
                self.kept.log_changed,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_new_until_it_is_known() {
        let mut attempts = Attempts::default();
        assert!(attempts.failed("down"));
        assert!(!attempts.failed("down"));
        assert!(attempts.failed("refused"));
        attempts.succeeded();
        assert!(attempts.is_up && attempts.failed("refused"));
        assert_eq!(attempts.failed, 4);
    }

    #[test]
    fn the_text_has_every_count_and_one_line_of_error() {
        let sent = Sent {
            events: 10,
            bytes: 5000,
            ..Sent::default()
        };
        let mut metrics = Metrics {
            lag: Lag::of(1500, 2.5, &sent),
            sent,
            ..Metrics::default()
        };
        metrics.attempts.failed("two\nlines");
        let text = metrics.to_text(&Cursor::default());
        for line in [
            "tarsier_forward_up 0",
            "tarsier_forward_lag_events 3",
            "tarsier_forward_lag_seconds 2.5",
            "tarsier_forward_events_total 10",
            "tarsier_forward_retries_total 1",
            "# error two lines",
        ] {
            assert!(text.lines().any(|each| each == line), "{line} in {text}");
        }
    }
}
