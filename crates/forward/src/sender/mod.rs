//! The loop: make a batch, make the intent durable, send, note the acknowledgement.

mod dead_letter;
mod hold;
mod linker;
mod trouble;
mod waiting;

pub use trouble::Next;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::{make, Batch, Kind, Made, Recipe, Want};
use crate::config::{self, Config, SinkKind};
use crate::cursor::{Cursor, CursorFile, Gap, Pending};
use crate::metrics::{self, Metrics};
use crate::position::{Position, Series};
use crate::sink::{self, Receipt, Sink, SinkError};
use crate::spool::{Files, Spool};
use linker::Linker;
use trouble::Trouble;
use waiting::{Pace, Waiting};

const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(30);
/// Where the system has its name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
const SECOND: Duration = Duration::from_secs(1);

/// What signals ask for.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// End.
    pub stop: Arc<AtomicBool>,
    /// Read the configuration again, and go on if suspended.
    pub reload: Arc<AtomicBool>,
    /// Go on if suspended.
    pub resume: Arc<AtomicBool>,
}

/// What a step of the loop came to.
enum Step {
    Sent,
    Idle(Duration),
    Failed(String),
}

/// The sender of one configuration.
pub struct Sender {
    path: PathBuf,
    config: Config,
    recipe: Recipe,
    sink: Box<dyn Sink>,
    linker: Linker,
    file: CursorFile,
    cursor: Cursor,
    series: Series,
    /// The cursor in memory is ahead of that on disk.
    is_dirty: bool,
    /// The pending batch was sent at least once.
    is_repeated: bool,
    messages_max: usize,
    pace: Pace,
    waiting: Waiting,
    trouble: Trouble,
    metrics: Metrics,
    failing_since: Option<Instant>,
    retry_after: Duration,
    has_acted: bool,
    is_over: bool,
    is_suspended: bool,
    next_report: Instant,
}

/// The name of this host at the far side.
pub fn host_name(config: &Config) -> String {
    config.host.clone().unwrap_or_else(|| {
        let name = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
        let is_fine = |c: char| c.is_ascii_alphanumeric() || "._-:".contains(c);
        let text = name.trim();
        text.chars()
            .map(|c| if is_fine(c) { c } else { '_' })
            .collect()
    })
}

impl Sender {
    /// Opens spool, cursor and sink of the configuration at `path`. Connects to nothing.
    ///
    /// # Errors
    /// One of them cannot be opened.
    pub fn open(path: &Path, config: Config) -> anyhow::Result<Sender> {
        let host = host_name(&config);
        let dir = config.spool_dir();
        let mut spool = Spool::open(&dir, &config.log_file)?;
        let (mut file, mut cursor) = CursorFile::open(&dir.join("cursor"))?;
        let series = match cursor.series {
            Some(series) => series,
            None => new_series()?,
        };
        cursor.series = Some(series);
        adopt_sink(&mut cursor, &config);
        file.save(&cursor)?;
        spool.sync_dir()?;
        spool.reserve(hold::waiting_from(&cursor).file);
        let sink = sink::open(&config, &host)?;
        let is_repeated = cursor.pending.is_some();
        Ok(Sender {
            path: path.to_owned(),
            recipe: Recipe::new(&config, &host),
            sink,
            linker: Linker::start(spool, config.start),
            file,
            cursor,
            series,
            is_dirty: false,
            is_repeated,
            messages_max: usize::MAX,
            pace: Pace::new(&config),
            waiting: Waiting::new(&config.log_file),
            trouble: Trouble::default(),
            metrics: Metrics::default(),
            failing_since: None,
            retry_after: RETRY_FIRST,
            has_acted: false,
            is_over: false,
            is_suspended: false,
            next_report: Instant::now(),
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
                self.is_suspended = false;
                self.reload();
            }
            if asked.resume.swap(false, Ordering::Relaxed) {
                self.is_suspended = false;
            }
            let (files, error) = self.linker.files();
            if let Some(error) = error {
                self.say(&error.to_string());
            }
            let mut next = self.keep_house(&files)?;
            let wait = match self.is_suspended {
                true => SECOND,
                false => match self.step(&files)? {
                    Step::Sent => Duration::ZERO,
                    Step::Idle(wait) => wait,
                    Step::Failed(why) => {
                        let (wait, then) = self.failed(&why);
                        next = if next == Next::GoOn { then } else { next };
                        wait
                    }
                },
            };
            match next {
                Next::GoOn => {}
                Next::Suspend => self.is_suspended = true,
                Next::Single | Next::Halt => return Ok(next),
            }
            if wait > Duration::ZERO {
                self.save_if_dirty()?;
                self.wait(wait, asked)?;
            }
        }
        self.save_if_dirty()?;
        self.report(&self.linker.files().0);
        Ok(Next::GoOn)
    }

    /// Sends what there is and waits for its acknowledgement; true if everything is at the far
    /// side.
    ///
    /// # Errors
    /// The spool or the cursor cannot be used any more.
    fn step(&mut self, files: &Files) -> anyhow::Result<Step> {
        let limits = self.sink.limits();
        let (recipe, until) = match &self.cursor.pending {
            Some(pending) => {
                let recipe = Recipe::from_text(&pending.recipe);
                (
                    recipe.unwrap_or_else(|| self.recipe.clone()),
                    Some(pending.to),
                )
            }
            None => match self.pace.ready(&self.cursor, files, limits.bytes) {
                Some(wait) => return Ok(Step::Idle(wait)),
                None => (self.recipe.clone(), None),
            },
        };
        let before = self.cursor.sink.clone();
        let prepared = self.sink.prepare(&mut self.cursor.sink);
        self.is_dirty |= self.cursor.sink != before;
        if let Err(error) = prepared {
            return Ok(Step::Failed(error.to_string()));
        }
        let want = Want {
            bytes_max: limits.bytes,
            messages_max: limits.messages.min(self.messages_max),
            until,
            is_settled: self.pace.is_settled(),
        };
        let made = make(files, &self.cursor, self.series, &recipe, want)?;
        let Some(made) = made else {
            return Ok(Step::Idle(self.pace.idle()));
        };
        self.pace.taken();
        let Some(batch) = &made.batch else {
            self.metrics.filtered += made.filtered - self.cursor.filtered;
            self.cursor.read = made.to;
            self.cursor.filtered = made.filtered;
            self.is_dirty = true;
            return Ok(Step::Sent);
        };
        if self.cursor.pending.is_none() {
            self.cursor.pending = Some(Pending {
                to: made.to,
                recipe: recipe.to_text(),
            });
            self.is_dirty = true;
        }
        self.save_if_dirty()?;
        let mut state = self.cursor.sink.clone();
        let sent = self.sink.send(batch, &mut state, self.is_repeated);
        let was_repeated = std::mem::replace(&mut self.is_repeated, true);
        if self.cursor.sink != state {
            self.cursor.sink = state;
            self.is_dirty = true;
        }
        match sent {
            Ok(receipt) => self.acknowledged(&made, batch, receipt),
            Err(SinkError::Refused(why)) => self.refused(&made, batch, &why),
            Err(SinkError::Disagreement(why)) if self.cursor.sink.is_empty() => {
                self.metrics.doubtful += u64::from(was_repeated);
                adopt_sink(&mut self.cursor, &self.config);
                Ok(Step::Failed(why))
            }
            Err(error) => Ok(Step::Failed(error.to_string())),
        }
    }

    fn acknowledged(
        &mut self,
        made: &Made,
        batch: &Batch,
        receipt: Receipt,
    ) -> anyhow::Result<Step> {
        dead_letter::write(&self.config.spool_dir(), &made.refused)?;
        self.metrics.is_up = true;
        self.metrics.error.clear();
        self.metrics.refused += made.refused.len() as u64 + receipt.refused;
        self.metrics.repeated += u64::from(receipt.was_there);
        self.metrics.batches += 1;
        self.metrics.events += batch.events();
        self.metrics.filtered += batch.filtered() - self.cursor.filtered.min(batch.filtered());
        if made.to.file == self.cursor.read.file {
            self.metrics.bytes += made.to.offset - self.cursor.read.offset;
        } else {
            self.metrics.bytes += made.to.offset;
        }
        self.cursor.events += batch.events();
        self.cursor.acked = made.to;
        self.cursor.read = made.to;
        self.cursor.filtered = 0;
        self.cursor.gap = self.cursor.gap_after.take();
        self.cursor.pending = None;
        self.is_repeated = false;
        self.is_dirty = true;
        self.messages_max = self.messages_max.saturating_mul(2);
        self.failing_since = None;
        self.retry_after = RETRY_FIRST;
        self.has_acted = false;
        Ok(Step::Sent)
    }

    /// The far side will not take the batch: halves are tried, and a single message is put aside.
    fn refused(&mut self, made: &Made, batch: &Batch, why: &str) -> anyhow::Result<Step> {
        self.is_repeated = false;
        self.is_dirty = true;
        self.cursor.pending = None;
        self.cursor.gap = self.cursor.gap_after.take().or(self.cursor.gap.take());
        if batch.messages.len() > 1 {
            self.messages_max = batch.messages.len() / 2;
            return Ok(Step::Sent);
        }
        let message = &batch.messages[0];
        dead_letter::write_one(&self.config.spool_dir(), made.to, why, batch.body(message))?;
        self.metrics.refused += 1;
        let events = if message.kind == Kind::Event { 1 } else { 0 };
        if message.kind == Kind::Gap {
            // Word of a gap is refused, too: it is only in the dead-letter file.
            self.cursor.gap = None;
            self.cursor.read = made.to;
        } else {
            self.cursor.gap = Some(Gap {
                to: made.to,
                events,
                cause: "refused-by-sink".into(),
            });
        }
        Ok(Step::Sent)
    }

    fn failed(&mut self, why: &str) -> (Duration, Next) {
        self.metrics.retries += 1;
        self.metrics.is_up = false;
        if self.metrics.error != why {
            self.say(why);
            self.metrics.error = why.to_owned();
        }
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        let mut next = Next::GoOn;
        if since.elapsed() >= self.config.network_failure_after && !self.has_acted {
            self.has_acted = true;
            let text = format!(
                "nothing could be sent for {} s: {why}; events wait in the log",
                since.elapsed().as_secs()
            );
            next = self.trouble.act(&self.config.network_failure_action, &text);
        }
        let wait = jittered(self.retry_after);
        self.retry_after = (self.retry_after * 2).min(RETRY_MOST);
        (wait, next)
    }

    /// What is done between attempts: links that are not needed are removed, and `hold` is kept.
    fn keep_house(&mut self, files: &Files) -> anyhow::Result<Next> {
        if Instant::now() < self.next_report {
            return Ok(Next::GoOn);
        }
        self.next_report = Instant::now() + SECOND;
        self.trouble.reap();
        let waiting = files.bytes_after(hold::waiting_from(&self.cursor));
        let mut next = Next::GoOn;
        if waiting > self.config.hold_bytes {
            let given_up = hold::give_up(&mut self.cursor, files, self.config.hold_bytes)?;
            if given_up > 0 {
                self.metrics.dropped_hold += given_up;
                self.is_dirty = true;
                self.save_if_dirty()?;
            }
            if !self.is_over {
                self.is_over = true;
                let hold = self.config.hold_bytes;
                let text = format!(
                    "more than hold = {hold} bytes wait to be sent; {given_up} events were given \
                     up, and the far side is told"
                );
                next = self.trouble.act(&self.config.overflow_action, &text);
            }
        } else if waiting < self.config.hold_bytes / 10 * 9 {
            self.is_over = false;
        }
        if !self.is_dirty {
            self.release()?;
        }
        self.report(files);
        Ok(next)
    }

    fn save_if_dirty(&mut self) -> anyhow::Result<()> {
        if self.is_dirty {
            self.file.save(&self.cursor)?;
            self.is_dirty = false;
            self.release()?;
        }
        Ok(())
    }

    /// Removes links of files that are not needed by what is durable in the cursor.
    fn release(&mut self) -> anyhow::Result<()> {
        let cursor = &self.cursor;
        let needed = match (&cursor.pending, &cursor.gap) {
            (None, Some(gap)) => gap.to.file,
            _ => cursor.read.file,
        };
        let (kept, given_up) = match (&cursor.pending, &cursor.gap_after) {
            (Some(pending), Some(gap)) => (pending.to.file, gap.to.file),
            _ => (0, 0),
        };
        self.linker.with(|spool| {
            spool.release(needed)?;
            spool.remove_between(kept, given_up)
        })?;
        Ok(())
    }

    fn report(&mut self, files: &Files) {
        let from = hold::waiting_from(&self.cursor).max(self.cursor.acked);
        let from = if self.cursor.pending.is_some() {
            self.cursor.read
        } else {
            from
        };
        self.metrics.lag_bytes = files.bytes_after(from);
        let mean = self.metrics.bytes / self.metrics.events.max(1);
        self.metrics.lag_events = self.metrics.lag_bytes / mean.max(200);
        self.metrics.lag_seconds = match self.metrics.lag_bytes {
            0 => 0.0,
            _ => waiting::age_s(files, from),
        };
        self.metrics.files_missed = self.linker.gaps();
        let text = self.metrics.to_text(&self.cursor);
        let status = self.config.spool_dir().join("status.prom");
        for path in [Some(&status), self.config.metrics_file.as_ref()]
            .into_iter()
            .flatten()
        {
            if let Err(error) = metrics::replace(path, &text) {
                self.say(&format!(
                    "{}: cannot write metrics: {error}",
                    path.display()
                ));
            }
        }
    }

    /// Waits for the log to grow, a signal, or the end of `wait`.
    fn wait(&mut self, wait: Duration, asked: &Asked) -> anyhow::Result<()> {
        let end = Instant::now() + wait;
        let is_asked = || {
            [&asked.stop, &asked.reload, &asked.resume]
                .iter()
                .any(|flag| flag.load(Ordering::Relaxed))
        };
        let is_retrying = self.failing_since.is_some() || self.is_suspended;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || is_asked() {
                return Ok(());
            }
            let did_grow = self.waiting.for_growth(left.min(SECOND), is_retrying);
            if did_grow && !is_retrying && wait > self.config.linger {
                return Ok(());
            }
            if is_retrying && Instant::now() >= self.next_report {
                let (files, _) = self.linker.files();
                if self.keep_house(&files)? != Next::GoOn {
                    return Ok(());
                }
            }
        }
    }

    /// Reads the configuration again. With an error, the old one stays.
    fn reload(&mut self) {
        match self.try_reload() {
            Ok(()) => self.say("configuration read again"),
            Err(error) => self.say(&format!("{error:#}; the earlier configuration stays")),
        }
    }

    fn try_reload(&mut self) -> anyhow::Result<()> {
        let config = config::load(&self.path)?;
        if config.log_file != self.config.log_file || config.spool_dir() != self.config.spool_dir()
        {
            anyhow::bail!("log_file and spool cannot change while it runs; restart it");
        }
        let host = host_name(&config);
        self.sink = sink::open(&config, &host)?;
        self.recipe = Recipe::new(&config, &host);
        if adopt_sink(&mut self.cursor, &config) {
            self.is_dirty = true;
            self.is_repeated = false;
        }
        self.pace = Pace::new(&config);
        self.config = config;
        self.retry_after = RETRY_FIRST;
        Ok(())
    }

    fn say(&self, text: &str) {
        eprintln!("tarsier-forward: {text}");
    }
}

/// Notes which sink the state is of. Another sink begins with an empty state. True if it is another.
fn adopt_sink(cursor: &mut Cursor, config: &Config) -> bool {
    const NAME: &str = "of";
    let name = match config.sink {
        SinkKind::Kafka => format!("kafka:{}", config.topic),
        SinkKind::Nats => format!("nats:{}", config.subject),
        SinkKind::Otlp => format!("otlp:{}", config.server.join(",")),
        SinkKind::File => format!("file:{}", config.path.display()),
        SinkKind::Stdout => "stdout".into(),
    };
    if cursor.sink.get(NAME) == Some(&name) {
        return false;
    }
    cursor.sink.clear();
    cursor.sink.insert(NAME.into(), name);
    true
}

/// A name for a series that nothing else has.
pub(crate) fn new_series() -> anyhow::Result<Series> {
    let mut bytes = [0; 8];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| anyhow::anyhow!("no random bytes for the name of the series"))?;
    Ok(Series(u64::from_le_bytes(bytes)))
}

/// Between half and the whole of `wait`: senders do not come back all at once.
fn jittered(wait: Duration) -> Duration {
    let mut byte = [0; 1];
    let _ = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut byte);
    wait / 2 + wait * u32::from(byte[0]) / 512
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
