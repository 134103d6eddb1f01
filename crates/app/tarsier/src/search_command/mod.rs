//! `tarsier search`: finds events in logs by ausearch's options.

mod asked;
mod checkpoint;
mod conditions;
mod follow;
mod index;
pub(crate) mod index_file;
mod json;
pub(crate) mod logs;
mod options;
pub(crate) mod ordered;
pub(crate) mod pieces;
pub(crate) mod pipeline;
mod printer;
mod results;
mod scan;
pub(crate) mod texts;
pub(crate) mod users;

use crate::dialect;
use crate::progress::Progress;
use anyhow::Result;
use asked::SearchArgs;
use checkpoint::Checkpoint;
use cli::messages::report;
use cli::search::SEARCH_USAGE;
use logs::{Defaults, Input, ReadEnd, ReadStep, Source};
use options::{Format, SearchExit, SearchOptions};
use ordered::Outcome;
use query::report::runs::Reading;
use query::time::{use_environment, Locale};
use query::{Assembler, Batch, Dialect};
use results::{Results, Watcher, Worker};
use std::ffi::OsString;
use std::io::{self, Write};

/// Exit status if nothing was found, and for errors.
const NOTHING: u8 = 1;

/// Carries out `args`, the words after `tarsier search`. Returns ausearch's exit status.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    let (dialect, args) = dialect::take(args);
    run_as(dialect, args)
}

/// Carries out ausearch's options `args` in the dialect. Returns ausearch's exit status.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run_as(dialect: Dialect, args: Vec<OsString>) -> Result<u8> {
    let words = dialect::words(args)?;
    use_environment(if dialect.is_compat() || has_meanings(&words) {
        Locale::of(dialect)
    } else {
        Locale::Dates
    });
    if words.is_empty() {
        io::stdout().write_all(SEARCH_USAGE.as_bytes())?;
        return Ok(NOTHING);
    }

    let (mut asked, words) = match SearchArgs::take(&words, dialect) {
        Ok(taken) => taken,
        Err(message) => {
            report!("{message}");
            return Ok(NOTHING);
        }
    };

    match SearchOptions::parse(&words, dialect) {
        Ok(mut options) => {
            if let Err(message) = asked.complete(&mut options) {
                report!("{message}");
                return Ok(NOTHING);
            }
            Search::new(options, dialect, asked).run()
        }
        Err(SearchExit::Help) => {
            io::stdout().write_all(SEARCH_USAGE.as_bytes())?;
            Ok(0)
        }
        Err(SearchExit::Version) => {
            match dialect {
                Dialect::Compat => writeln!(io::stdout(), "ausearch version 4.0.2")?,
                Dialect::Own => writeln!(io::stdout(), "tarsier {}", env!("CARGO_PKG_VERSION"))?,
            }
            Ok(0)
        }
        Err(SearchExit::Fail(message)) => {
            report!("{message}");
            Ok(NOTHING)
        }
        Err(SearchExit::FailWith(text)) => {
            let _ = io::stderr().write_all(text.as_bytes());
            Ok(NOTHING)
        }
    }
}

/// Whether a search by these options may compile an expression, or print the meaning of values.
fn has_meanings(words: &[String]) -> bool {
    const OPTIONS: [&str; 6] = [
        "--interpret",
        "--format",
        "--where",
        "--timeline",
        "--tree",
        "--touched",
    ];
    let begins = |word: &String| OPTIONS.iter().any(|option| word.starts_with(option));
    words.iter().any(|word| word == "-i" || begins(word))
}

struct Search {
    options: SearchOptions,
    dialect: Dialect,
    results: Results,
    /// Number of the log that was read last.
    source: usize,
    /// Whether the end of a log could not be read.
    is_damaged: bool,
}

impl Search {
    fn new(mut options: SearchOptions, dialect: Dialect, asked: SearchArgs) -> Search {
        Search {
            results: Results::new(&mut options, dialect, asked),
            options,
            dialect,
            source: 0,
            is_damaged: false,
        }
    }

    /// Seconds after which an event is complete. Who follows a log, or comes back for the rest of it, does not wait for
    /// late records.
    fn timeout_s(&self, defaults: &Defaults) -> u64 {
        let is_whole = !self.results.asked.reading.follow && self.options.checkpoint.is_none();
        let usual_s = if is_whole {
            defaults.whole_s
        } else {
            defaults.timeout_s
        };
        self.options.timeout_s.unwrap_or(usual_s)
    }

    fn run(mut self) -> Result<u8> {
        let defaults = logs::defaults(self.dialect)?;
        let timeout_s = self.timeout_s(&defaults);
        if let Some(path) = self.options.checkpoint.clone() {
            let is_time_only = self.options.is_checkpoint_time;
            match Checkpoint::load(path, is_time_only, self.dialect) {
                Ok(checkpoint) => {
                    if checkpoint.is_about_all() {
                        self.results.range = Some(std::mem::take(&mut self.options.range));
                    }
                    self.results.checkpoint = Some(checkpoint);
                }
                Err(status) => return Ok(status),
            }
        }

        let mut input = match Input::find(
            &self.options.inputs,
            self.options.use_logs,
            &defaults,
            self.dialect,
        ) {
            Ok(input) => input,
            Err(message) => {
                report!("{message}");
                return Ok(NOTHING);
            }
        };

        if let Some(checkpoint) = &self.results.checkpoint {
            if let Err(status) = input.since(checkpoint) {
                return Ok(status);
            }
        }

        if self.results.asked.reading.build_index {
            return index::build_all(&input);
        }

        let is_watched = !self.dialect.is_compat() && !self.results.asked.reading.follow;
        let progress = is_watched.then(|| Progress::of(&input)).transpose()?;
        if let Some(status) = self.search(&input, timeout_s)? {
            return Ok(status);
        }

        let is_found = self.results.end()?;
        if let Some(status) = progress.and_then(Progress::end) {
            return Ok(status);
        }

        let missing = self
            .results
            .checkpoint
            .as_ref()
            .and_then(Checkpoint::missing);
        if let Some(status) = self.results.ended().or(missing) {
            return Ok(status);
        }

        if let Some(status) = self.save(&input) {
            return Ok(status);
        }
        if self.is_damaged {
            return Ok(NOTHING);
        }
        if is_found {
            return Ok(0);
        }

        if self.options.output.format != Format::Raw {
            report!("<no matches>");
        }

        Ok(NOTHING)
    }

    /// Writes the checkpoint. Returns the exit status if that fails.
    fn save(&self, input: &Input) -> Option<u8> {
        let checkpoint = self.results.checkpoint.as_ref()?;
        match &input.sources[self.source] {
            Source::File(path) => checkpoint.save(path),
            Source::Stdin | Source::Member { .. } => {
                eprint!("Warning - checkpointing stdin is not supported");
                None
            }
        }
    }

    /// Searches all files, several times if the question needs it. Returns the exit status if one cannot be opened.
    fn search(&mut self, input: &Input, timeout_s: u64) -> Result<Option<u8>> {
        loop {
            let mut assembler = Assembler::new(self.dialect, timeout_s, self.options.range);
            if self.results.asked.reading.follow {
                let start_s = self.options.range.start_s;
                follow::follow(&mut self.results, input, &mut assembler, start_s, timeout_s)?;
            } else if (self.has_to_read_all() || !self.read_by_blocks(input, &mut assembler)?)
                && !self.read_in_order(input, timeout_s)?
            {
                let status = if self.results.worker().is_some() {
                    let put = Results::put_events;
                    self.read_in_parallel(input, timeout_s, Results::worker, Worker::batch, put)?
                } else if self.results.watcher().is_some() {
                    let put = Results::put_seen;
                    self.read_in_parallel(input, timeout_s, Results::watcher, Watcher::batch, put)?
                } else {
                    self.read(input, &mut assembler)?
                };
                if status.is_some() {
                    return Ok(status);
                }
            }
            if !self.results.asked.reads_again() {
                return Ok(None);
            }
        }
    }

    /// Whether every event has to be read, even one that cannot match.
    fn has_to_read_all(&self) -> bool {
        self.dialect.is_compat() || self.results.checkpoint.is_some()
    }

    /// Reads the blocks that may hold an event that matches. False if all has to be read instead.
    fn read_by_blocks(&mut self, input: &Input, assembler: &mut Assembler) -> Result<bool> {
        let range = self.options.range;
        index::read_by_blocks(&mut self.results, input, assembler, range)
    }

    /// Reads logs whose records stand together. False if the state machine has to read them.
    fn read_in_order(&mut self, input: &Input, timeout_s: u64) -> Result<bool> {
        let reading = Reading {
            dialect: self.dialect,
            timeout_s,
            range: self.options.range,
        };

        match ordered::read(&mut self.results, input, reading)? {
            Outcome::Done => Ok(true),
            Outcome::Again(printed) => {
                self.results.read_again(printed);
                Ok(false)
            }
        }
    }

    /// Reads all files with several threads: each looks at events with a `worker`, and `put` takes what it made of them,
    /// in order. Returns the exit status if a file cannot be opened.
    fn read_in_parallel<W: Send, T: Send + Default>(
        &mut self,
        input: &Input,
        timeout_s: u64,
        worker: impl Fn(&Results) -> Option<W>,
        work: impl Fn(&mut W, &Batch) -> T + Sync,
        put: impl Fn(&mut Results, T, &Batch) -> io::Result<()>,
    ) -> Result<Option<u8>> {
        let assembler = Assembler::new(self.dialect, timeout_s, self.options.range);
        let workers = std::iter::from_fn(|| worker(&self.results));
        let workers: Vec<W> = workers.take(pieces::processors()).collect();
        let mut workers = workers.into_iter();
        let results = &mut self.results;
        let finished = pipeline::run(
            input,
            assembler,
            || workers.next(),
            |worker, batch| worker.as_mut().map(|worker| work(worker, batch)),
            |made, batch| Ok(put(results, made.unwrap_or_default(), batch)?),
        )?;

        self.ended(finished.end)
    }

    /// Reads all files. Returns the exit status if one cannot be opened.
    fn read(&mut self, input: &Input, assembler: &mut Assembler) -> Result<Option<u8>> {
        let end = input.read(assembler, |assembler, step| {
            match step {
                ReadStep::Line => {}
                ReadStep::End {
                    number, is_last, ..
                } => {
                    self.source = number;
                    if is_last {
                        self.finish(assembler);
                    }
                }
            }
            let taken = self.results.take(assembler)?;
            self.say_bad_times(assembler);
            Ok(taken)
        })?;

        self.ended(end)
    }

    /// The exit status, after the message, if a log could not be read at all.
    fn ended(&mut self, end: ReadEnd) -> Result<Option<u8>> {
        match end {
            ReadEnd::Done => Ok(None),
            ReadEnd::Damaged => {
                self.is_damaged = true;
                Ok(None)
            }
            ReadEnd::Refused(message) => {
                self.results.flush()?;
                report!("{message}");
                Ok(Some(NOTHING))
            }
        }
    }

    /// Completes the events at the end of the last log.
    fn finish(&self, assembler: &mut Assembler) {
        match (&self.results.checkpoint, self.dialect) {
            (None, _) => assembler.finish(),
            // The next search tells events that may go on.
            (Some(_), _) => assembler.finish_ended(),
        }
    }

    fn say_bad_times(&mut self, assembler: &mut Assembler) {
        for text in assembler.take_bad_times() {
            let text = String::from_utf8_lossy(&text).into_owned();
            report!("Error extracting time stamp ({text})");
        }
    }
}

impl Input {
    /// Leaves out the logs of a set before the one where the last search ended.
    fn since(&mut self, checkpoint: &Checkpoint) -> Result<(), u8> {
        if !self.is_set {
            return Ok(());
        }
        let is_file = |source: &Source| match source {
            Source::File(path) => Some(path.clone()),
            Source::Stdin | Source::Member { .. } => None,
        };
        let files: Vec<_> = self.sources.iter().filter_map(is_file).collect();
        let first = checkpoint.first_log(&files)?;
        self.sources.drain(..first);
        Ok(())
    }
}
