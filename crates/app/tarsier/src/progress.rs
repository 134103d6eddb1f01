//! How far a command is that reads logs, on a terminal, if it takes longer than a second; and its end by SIGINT, with
//! what was found until then.

use crate::interrupt::is_interrupted;
use crate::search_command::logs::{Input, Source};
use cli::messages::report;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Exit status of a command that SIGINT ended, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;
/// Time before the first line.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two lines.
const PAUSE: Duration = Duration::from_millis(250);

/// Whether the line is on the terminal.
static IS_SHOWN: Mutex<bool> = Mutex::new(false);

/// Removes the line from the terminal, before something else is written there.
pub(crate) fn hide() {
    let mut is_shown = IS_SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *is_shown) {
        let _ = write!(io::stderr(), "\r\x1b[K");
    }
}

/// The progress of reading logs. It is shown until it is dropped.
pub(crate) struct Progress {
    /// Length of all files; 0 if a log has no length.
    total: u64,
    thread: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Begins to watch the reading of `input`. The first SIGINT ends the reading, the second the program.
    ///
    /// # Errors
    /// The signal cannot be handled.
    pub(crate) fn of(input: &Input) -> io::Result<Progress> {
        let length = |source: &Source| match source {
            Source::File(path) => std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            Source::Stdin | Source::Member { .. } => 0,
        };
        let has_length = |source: &Source| matches!(source, Source::File(_));
        let total = if input.sources.iter().all(has_length) {
            input.sources.iter().map(length).sum()
        } else {
            0
        };
        let flag = crate::interrupt::flag();
        let signal = signal_hook::consts::SIGINT;
        signal_hook::flag::register_conditional_shutdown(
            signal,
            INTERRUPTED.into(),
            Arc::clone(flag),
        )?;
        signal_hook::flag::register(signal, Arc::clone(flag))?;
        let thread = io::stderr().is_terminal().then(|| {
            let (sender, end) = channel();
            let thread = std::thread::spawn(move || {
                let start = Instant::now();
                let mut pause = PATIENCE;
                while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                    pause = PAUSE;
                    show(total, start.elapsed());
                }
            });
            (sender, thread)
        });

        Ok(Progress { total, thread })
    }

    /// After the output: says that it is not complete if the command was interrupted, and returns the exit status then.
    pub(crate) fn end(mut self) -> Option<u8> {
        self.stop();
        if !is_interrupted() {
            return None;
        }
        report!(
            "tarsier: interrupted after {}: the output is what was found until then",
            amount(logs::bytes_read(), self.total)
        );
        Some(INTERRUPTED)
    }

    fn stop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
        hide();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.stop();
    }
}

fn show(total: u64, elapsed: Duration) {
    let line = line(logs::bytes_read(), total, elapsed);
    let mut is_shown = IS_SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *is_shown = write!(io::stderr(), "\r\x1b[K{line}").is_ok();
}

/// `tarsier: 120 of 546 MB, 87 MB/s, 5 s left`.
fn line(done: u64, total: u64, elapsed: Duration) -> String {
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001);
    let mut line = format!("tarsier: {}, {:.0} MB/s", amount(done, total), rate / 1e6);
    // A log that is read again, or grows, is longer than it was.
    if done > 0 && done <= total {
        let left_s = (total - done) as f64 / rate;
        line.push_str(&match left_s {
            left_s if left_s < 100.0 => format!(", {left_s:.0} s left"),
            left_s => format!(", {:.0} min left", left_s / 60.0),
        });
    }
    line
}

fn amount(done: u64, total: u64) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    if done <= total {
        format!("{:.0} of {:.0} MB", megabytes(done), megabytes(total))
    } else {
        format!("{:.0} MB", megabytes(done))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_amount_rate_and_time_left() {
        let second = Duration::from_secs(2);
        assert_eq!(
            line(100_000_000, 400_000_000, second),
            "tarsier: 100 of 400 MB, 50 MB/s, 6 s left"
        );
        assert_eq!(
            line(1_000_000, 2_000_000_000, second),
            "tarsier: 1 of 2000 MB, 0 MB/s, 67 min left"
        );
        // The length of standard input is not known.
        assert_eq!(line(8_000_000, 0, second), "tarsier: 8 MB, 4 MB/s");
    }
}
