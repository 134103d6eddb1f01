//! The sender's report on itself: metrics, written once a second.

use std::time::{Duration, Instant};

use super::progress::Progress;
use super::waiting;
use crate::config::Config;
use crate::metrics::{self, Lag, Metrics};
use crate::spool::Files;

/// Time between two reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// The metrics, and when they are due.
pub(super) struct Report {
    pub(super) metrics: Metrics,
    due: Instant,
}

impl Report {
    pub(super) fn new() -> Report {
        Report {
            metrics: Metrics::default(),
            due: Instant::now(),
        }
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// The next one is due an interval from now.
    pub(super) fn postpone(&mut self) {
        self.due = Instant::now() + INTERVAL;
    }

    /// Writes what is known now. Returns a line for each file that cannot be written.
    pub(super) fn write(
        &mut self,
        config: &Config,
        progress: &Progress,
        files: &Files,
    ) -> Vec<String> {
        let from = progress.unsent_from();
        let bytes = files.bytes_after(from);
        let seconds = match bytes {
            0 => 0.0,
            _ => waiting::age_s(files, from),
        };
        self.metrics.lag = Lag::of(bytes, seconds, &self.metrics.sent);

        let text = self.metrics.to_text(progress.cursor());
        let status = config.spool_dir().join("status.prom");
        let paths = [Some(&status), config.metrics_file.as_ref()];
        let mut errors = Vec::new();
        for path in paths.into_iter().flatten() {
            if let Err(error) = metrics::replace(path, &text) {
                errors.push(format!("{}: cannot write metrics: {error}", path.display()));
            }
        }

        errors
    }
}
