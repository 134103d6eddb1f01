//! The loop: make a batch, make the intent durable, send, note the acknowledgement.

mod dead_letter;
mod hold;
mod linker;
mod progress;
mod report;
mod restart;
mod retry;
mod target;
mod trouble;
mod waiting;

pub(crate) use progress::new_series;
pub use target::host_name;
pub use trouble::Next;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::{make, Batch, Made, MakeError, Want};
use crate::config::{self, Config};
use crate::position::Position;
use crate::sink::{Receipt, SinkError};
use crate::spool::{Files, Spool};
use hold::Hold;
use linker::Linker;
use progress::Progress;
use report::Report;
use retry::Retry;
use target::Target;
use trouble::Trouble;
use waiting::{Pace, Waiting};

const SECOND: Duration = Duration::from_secs(1);

/// Requests that signals make.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// End.
    pub stop: Arc<AtomicBool>,
    /// Read the configuration again, and go on if suspended.
    pub reload: Arc<AtomicBool>,
    /// Go on if suspended.
    pub resume: Arc<AtomicBool>,
}

/// Result of a step of the loop.
enum Step {
    Sent,
    Idle(Duration),
    /// Nothing arrived, and why; the least time until the next attempt.
    Failed(String, Duration),
}

impl Step {
    fn failed(error: &SinkError) -> Step {
        let pause = match error {
            SinkError::RetryAfter { pause, .. } => *pause,
            _ => Duration::ZERO,
        };
        Step::Failed(error.to_string(), pause)
    }
}

/// The sender of one configuration.
pub struct Sender {
    path: PathBuf,
    config: Config,
    linker: Linker,
    progress: Progress,
    target: Target,
    pace: Pace,
    waiting: Waiting,
    retry: Retry,
    hold: Hold,
    trouble: Trouble,
    report: Report,
}

impl Sender {
    /// Opens spool, cursor and sink of the configuration at `path`. Connects to nothing.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub fn open(path: &Path, config: Config) -> anyhow::Result<Sender> {
        let mut spool = Spool::open(&config.spool_dir(), &config.log_file)?;
        let progress = Progress::open(&config)?;
        spool.sync_dir()?;
        spool.reserve(hold::waiting_from(progress.cursor()).file);
        Ok(Sender {
            path: path.to_owned(),
            target: Target::open(&config)?,
            linker: Linker::start(spool, config.start),
            progress,
            pace: Pace::new(&config),
            waiting: Waiting::new(&config.log_file),
            retry: Retry::default(),
            hold: Hold::default(),
            trouble: Trouble::default(),
            report: Report::new(),
            config,
        })
    }

    /// Sends until it is asked to stop or trouble ends it.
    ///
    /// # Errors
    /// The spool or the cursor cannot be used any more.
    pub fn run(&mut self, asked: &Asked) -> anyhow::Result<Next> {
        while !asked.stop.load(Ordering::Relaxed) {
            if asked.reload.swap(false, Ordering::Relaxed) {
                self.trouble.resume();
                self.reload();
            }
            if asked.resume.swap(false, Ordering::Relaxed) {
                self.trouble.resume();
            }
            let (files, error) = self.linker.files();
            if let Some(error) = error {
                say(&error.to_string());
            }
            let mut next = self.keep_house(&files)?;
            let wait = if self.trouble.is_suspended() {
                SECOND
            } else {
                match self.step(&files)? {
                    Step::Sent => Duration::ZERO,
                    Step::Idle(wait) => wait,
                    Step::Failed(why, pause) => {
                        let (wait, then) = self.failed(&why, pause);
                        next = if next == Next::GoOn { then } else { next };
                        wait
                    }
                }
            };
            if wait > Duration::ZERO && next == Next::GoOn {
                // Nothing is sent now, so there is time for what a restart begins from.
                self.save()?;
                next = self.wait(wait, asked)?;
            }
            if next != Next::GoOn {
                return Ok(next);
            }
        }

        self.save()?;
        self.tell(&self.linker.files().0);
        Ok(Next::GoOn)
    }

    /// Sends what there is and waits for its acknowledgement.
    ///
    /// # Errors
    /// The spool or the cursor cannot be used any more.
    fn step(&mut self, files: &Files) -> anyhow::Result<Step> {
        let limits = self.target.limits();
        let (recipe, until) = match self.progress.pending() {
            Some((recipe, to)) => (
                recipe.unwrap_or_else(|| self.target.recipe().clone()),
                Some(to),
            ),
            None => {
                let cursor = self.progress.cursor();
                match self.pace.ready(cursor, files, limits.bytes) {
                    Some(wait) => return Ok(Step::Idle(wait)),
                    None => (self.target.recipe().clone(), None),
                }
            }
        };

        let sink = &mut self.target.sink;
        let prepared = self.progress.with_state(|state| sink.prepare(state));
        if let Err(error) = prepared {
            return Ok(Step::failed(&error));
        }

        let want = Want {
            bytes_max: limits.bytes,
            messages_max: limits.messages,
            until,
            quiet: self.pace.quiet(),
        };
        let (cursor, series) = (self.progress.cursor(), self.progress.series());
        let made = match make(files, cursor, series, &recipe, want) {
            Err(MakeError::Changed { path, file, offset }) => {
                return self.log_changed(files, &path, file, offset);
            }
            made => made?,
        };
        let Some(made) = made else {
            return Ok(Step::Idle(self.pace.idle()));
        };

        self.pace.taken();
        let Some(batch) = &made.batch else {
            self.report.metrics.kept.filtered += self.progress.filtered(&made);
            return Ok(Step::Sent);
        };

        self.progress.intend(&made, &recipe);
        self.save()?;
        self.send(&made, batch)
    }

    fn send(&mut self, made: &Made, batch: &Batch) -> anyhow::Result<Step> {
        let (sink, is_repeated) = (&mut self.target.sink, self.progress.is_repeated());
        let sent = self
            .progress
            .with_state(|state| sink.send(batch, state, is_repeated));
        let was_repeated = self.progress.sent();

        match sent {
            Ok(receipt) => self.acknowledged(made, batch, receipt),
            Err(SinkError::Refused(why)) => self.refused(made, batch, &why),
            Err(SinkError::Disagreement(why)) if self.progress.cursor().sink.is_empty() => {
                self.report.metrics.sent.doubtful += u64::from(was_repeated);
                self.progress.forget_state(&self.config);
                Ok(Step::Failed(why, Duration::ZERO))
            }
            Err(error) => Ok(Step::failed(&error)),
        }
    }

    fn acknowledged(
        &mut self,
        made: &Made,
        batch: &Batch,
        receipt: Receipt,
    ) -> anyhow::Result<Step> {
        let spool = self.config.spool_dir();
        dead_letter::write(&spool, &made.refused)?;

        // Part of a batch was refused, and the destination does not say which: all of it is kept here, and a gap tells how
        // many events are missing. To send it again would store the others twice.
        let remark = receipt.remark.as_deref().unwrap_or("no reason given");
        if receipt.refused > 0 {
            let why = format!(
                "the server refused {} of these {}: {remark}",
                receipt.refused,
                batch.messages.len()
            );
            let bodies: Vec<&[u8]> = batch
                .messages
                .iter()
                .map(|message| batch.body(message))
                .collect();
            dead_letter::write_one(&spool, made.to, &why, &bodies.join(&b'\n'))?;
            say(&format!(
                "{why}; they are in {}",
                spool.join("dead-letter").display()
            ));
        } else if let Some(remark) = &receipt.remark {
            say(&format!(
                "the server took everything, with a remark: {remark}"
            ));
        }

        let (bytes, filtered) = self.progress.acknowledged(made, batch);
        // Word of a gap that is refused is no gap again.
        if receipt.refused > 0 && batch.events() > 0 {
            self.progress
                .missing(receipt.refused.min(batch.events()), made.to);
        }

        let metrics = &mut self.report.metrics;
        metrics.attempts.succeeded();
        metrics.kept.refused += made.refused.len() as u64 + receipt.refused;
        metrics.kept.filtered += filtered;
        metrics.sent.repeated += u64::from(receipt.was_there);
        metrics.sent.batches += 1;
        metrics.sent.events += batch.events().saturating_sub(receipt.refused);
        metrics.sent.bytes += bytes;
        self.target.took_all();
        self.retry.succeeded();

        Ok(Step::Sent)
    }

    /// The destination will not take the batch: halves are tried, and a single message is put aside.
    fn refused(&mut self, made: &Made, batch: &Batch, why: &str) -> anyhow::Result<Step> {
        self.progress.refused();
        if let [message] = &batch.messages[..] {
            dead_letter::write_one(&self.config.spool_dir(), made.to, why, batch.body(message))?;
            self.report.metrics.kept.refused += 1;
            self.progress
                .put_aside(message.kind, message.events, made.to);
        } else {
            self.target.refused(batch.messages.len());
        }
        Ok(Step::Sent)
    }

    /// Handles a file whose text before byte `noticed`, which was read already, has changed.
    fn log_changed(
        &mut self,
        files: &Files,
        path: &Path,
        number: u64,
        noticed: u64,
    ) -> anyhow::Result<Step> {
        let cursor = self.progress.cursor();
        let restart = self
            .linker
            .with(|spool| restart::after_change(spool, files, cursor, number))?;
        let was_pending = self
            .progress
            .log_changed(number, restart.to, restart.given_up);
        if was_pending {
            self.progress.forget_state(&self.config);
            self.report.metrics.sent.doubtful += 1;
        }
        self.report.metrics.kept.log_changed += 1;
        self.save()?;
        say(&format!(
            "{}: the log was cut or rewritten: what was sent up to byte {noticed} is not in it any more; sending goes on \
             at {}, and the far side is told. Let the daemon rotate the log, and see `tarsier verify`",
            path.display(),
            self.progress.cursor().next(),
        ));

        Ok(Step::Sent)
    }

    fn failed(&mut self, why: &str, pause: Duration) -> (Duration, Next) {
        if self.report.metrics.attempts.failed(why) {
            say(why);
        }
        let now = Instant::now();
        let wait = self.retry.failed(now).max(pause);
        let outage = self.retry.outage(self.config.network_failure_after, now);
        let next = outage.map_or(Next::GoOn, |lasted| {
            let text = format!(
                "nothing could be sent for {} s: {why}; events wait in the log",
                lasted.as_secs()
            );
            self.trouble.act(&self.config.network_failure_action, &text)
        });

        (wait, next)
    }

    /// Does the work between attempts: removes links that are not needed, and keeps to `hold`.
    fn keep_house(&mut self, files: &Files) -> anyhow::Result<Next> {
        if !self.report.is_due() {
            return Ok(Next::GoOn);
        }

        self.report.postpone();
        self.trouble.reap();
        let hold_bytes = self.config.hold_bytes;
        let waiting = files.bytes_after(hold::waiting_from(self.progress.cursor()));
        let mut given_up = 0;
        if waiting > hold_bytes {
            given_up = self.progress.give_up(files, hold_bytes)?;
            self.report.metrics.kept.dropped_hold += given_up;
            if given_up > 0 {
                self.save()?;
            }
        }

        let mut next = Next::GoOn;
        if self.hold.is_newly_over(waiting, hold_bytes) {
            let text = format!(
                "more than hold = {hold_bytes} bytes wait to be sent; {given_up} events were given \
                 up, and the far side is told"
            );
            next = self.trouble.act(&self.config.overflow_action, &text);
        }

        if !self.progress.is_dirty() {
            self.release()?;
        }
        self.tell(files);
        Ok(next)
    }

    fn save(&mut self) -> anyhow::Result<()> {
        if self.progress.save()? {
            self.release()?;
        }
        Ok(())
    }

    /// Removes links of files that are not needed by what is durable in the cursor.
    fn release(&mut self) -> anyhow::Result<()> {
        let needed = self.progress.needed();
        let (after, before) = needed.not_between;
        self.linker.with(|spool| {
            spool.release(needed.from)?;
            spool.remove_between(after, before)
        })?;
        Ok(())
    }

    /// Writes metrics.
    fn tell(&mut self, files: &Files) {
        self.report.metrics.kept.files_missed = self.linker.gaps();
        for error in self.report.write(&self.config, &self.progress, files) {
            say(&error);
        }
    }

    /// Waits for the log to grow, a signal, or the end of `wait`.
    fn wait(&mut self, wait: Duration, asked: &Asked) -> anyhow::Result<Next> {
        let end = Instant::now() + wait;
        let is_asked = || {
            [&asked.stop, &asked.reload, &asked.resume]
                .iter()
                .any(|flag| flag.load(Ordering::Relaxed))
        };
        let is_retrying = self.retry.is_failing() || self.trouble.is_suspended();

        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || is_asked() {
                return Ok(Next::GoOn);
            }
            let did_grow = self.waiting.for_growth(left.min(SECOND), is_retrying);
            if did_grow && !is_retrying && wait > self.config.linger {
                return Ok(Next::GoOn);
            }
            if is_retrying && self.report.is_due() {
                let (files, _) = self.linker.files();
                let next = self.keep_house(&files)?;
                if next != Next::GoOn {
                    return Ok(next);
                }
            }
        }
    }

    /// Reads the configuration again. With an error, the old one stays.
    fn reload(&mut self) {
        match self.try_reload() {
            Ok(()) => say("configuration read again"),
            Err(error) => say(&format!("{error:#}; the earlier configuration stays")),
        }
    }

    fn try_reload(&mut self) -> anyhow::Result<()> {
        let config = config::load(&self.path)?;
        if config.log_file != self.config.log_file || config.spool_dir() != self.config.spool_dir()
        {
            anyhow::bail!("log_file and spool cannot change while it runs; restart it");
        }
        self.target = Target::open(&config)?;
        self.progress.adopt(&config);
        self.pace = Pace::new(&config);
        self.config = config;
        self.retry.hurry();
        Ok(())
    }
}

fn say(text: &str) {
    eprintln!("tarsier-forward: {text}");
}

/// The position after everything, for tests and `replay`.
pub fn end_of(files: &Files) -> Position {
    files
        .newest()
        .map_or_else(Position::default, |file| Position {
            file,
            offset: files.size(file),
            seal: files.seal_size(file),
        })
}
