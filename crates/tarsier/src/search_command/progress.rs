//! Shows on a terminal how far a search is, if it takes longer than a second.

use super::logs::{Input, Source};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time before the first line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes after which the clock is read again.
const STEP_BYTES: u64 = 1 << 20;
/// Time between two lines.
const PAUSE: Duration = Duration::from_millis(250);

/// Counts what is read.
pub(super) struct Progress {
    /// Time of the next line; `None` if standard error is not a terminal.
    next: Option<Instant>,
    total: u64,
    done: u64,
    /// Number of bytes at which the clock is read next.
    look_at: u64,
    is_shown: bool,
}

impl Progress {
    /// The progress of a search through `input`; `None`: nothing is shown.
    pub(super) fn new(input: Option<&Input>) -> Progress {
        let length = |source: &Source| match source {
            Source::File(path) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Source::Stdin | Source::Member { .. } => 0,
        };
        // With the output on the same terminal, a line of progress would stand in it.
        let sources = input.map_or(&[][..], |input| &input.sources);
        let is_watched =
            input.is_some() && io::stderr().is_terminal() && !io::stdout().is_terminal();
        Progress {
            next: is_watched.then(|| Instant::now() + PATIENCE),
            total: sources.iter().map(length).sum(),
            done: 0,
            look_at: STEP_BYTES,
            is_shown: false,
        }
    }

    /// Counts bytes that were read or left out.
    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let Some(next) = self.next.filter(|_| self.done >= self.look_at) else {
            return;
        };
        self.look_at = self.done + STEP_BYTES;
        let now = Instant::now();
        if now < next {
            return;
        }
        self.next = Some(now + PAUSE);
        self.is_shown = true;
        // Of compressed files the length of the text is not known before.
        let done = self.done as f64 / 1e6;
        let text = match self.done <= self.total {
            true => format!("{done:.0} of {:.0} MB", self.total as f64 / 1e6),
            false => format!("{done:.0} MB"),
        };
        let _ = write!(io::stderr(), "\r\x1b[Ktarsier: searched {text}");
    }

    /// Removes the line.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
