//! `tarsier search`: finds events in logs by ausearch's options.

mod asked;
pub(crate) mod ausyscall;
mod checkpoint;
mod follow;
mod index;
pub(crate) mod index_file;
mod json;
pub(crate) mod logs;
mod options;
mod printer;
mod progress;
mod scan;
pub(crate) mod users;

use crate::dialect;
use anyhow::Result;
use asked::{Asked, Taken};
use checkpoint::{Checkpoint, Decision};
use cli::search::SEARCH_USAGE;
use daemon::stderr::say;
use logs::{Input, Source};
use options::{Format, Instead, Options};
use printer::Printer;
use progress::Progress;
use query::{Assembler, Dialect, Event, Interpreter, Lines, Matcher};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Exit status if nothing was found, and for errors.
const NOTHING: u8 = 1;
/// Bytes of output that are written at once.
const OUTPUT_BYTES: usize = 1 << 16;

/// Whether the program was called by ausearch's name.
pub(crate) fn is_ausearch(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new("ausearch"))
}

/// Carries out `args`, the words after `ausearch` or `tarsier search`. Returns ausearch's exit status.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(crate) fn run(args: Vec<OsString>) -> Result<u8> {
    query::time::use_environment();
    let words = dialect::words(args)?;
    let (dialect, words) = match dialect::take(&words, "search", "ausearch") {
        Ok(taken) => taken,
        Err(message) => {
            say!("{message}");
            return Ok(NOTHING);
        }
    };
    if words.is_empty() {
        io::stdout().write_all(SEARCH_USAGE.as_bytes())?;
        return Ok(NOTHING);
    }
    let (asked, words) = match Asked::take(words, dialect) {
        Ok(taken) => taken,
        Err(message) => {
            say!("{message}");
            return Ok(NOTHING);
        }
    };
    match Options::parse(&words, dialect) {
        Ok(mut options) => {
            asked.complete(&mut options);
            Search::new(options, dialect, asked).run()
        }
        Err(Instead::Help) => {
            io::stdout().write_all(SEARCH_USAGE.as_bytes())?;
            Ok(0)
        }
        Err(Instead::Version) => {
            match dialect {
                Dialect::Three => writeln!(io::stdout(), "ausearch version 3.0.9")?,
                Dialect::Four => writeln!(io::stdout(), "ausearch version 4.0.2")?,
                Dialect::Own => writeln!(io::stdout(), "tarsier {}", env!("CARGO_PKG_VERSION"))?,
            }
            Ok(0)
        }
        Err(Instead::Fail(message)) => {
            say!("{message}");
            Ok(NOTHING)
        }
    }
}

/// Gives a line of a log to `assembler`; one of `log_format = JSON` as the records that it was made from.
fn add(assembler: &mut Assembler, line: &[u8], dialect: Dialect) {
    if line.first() != Some(&b'{') || dialect.is_peer() {
        assembler.add(line);
        return;
    }
    let mut records = Vec::new();
    query::json_lines(line, &mut records);
    for record in records.split_inclusive(|byte| *byte == b'\n') {
        assembler.add(record);
    }
}

struct Search {
    matcher: Matcher,
    options: Options,
    dialect: Dialect,
    printer: Printer,
    asked: Asked,
    progress: Progress,
    checkpoint: Option<Checkpoint>,
    out: Vec<u8>,
    is_found: bool,
    /// Number of the log that was read last.
    source: usize,
    /// Exit status with which a checkpoint ends the search.
    ended: Option<u8>,
}

impl Search {
    fn new(mut options: Options, dialect: Dialect, asked: Asked) -> Search {
        let filter = std::mem::take(&mut options.filter);
        let matcher = Matcher::new(filter, dialect, users::user_name);
        let interpreter = Interpreter::new(dialect, options.escape, users::names());
        let printer = Printer::new(
            options.format,
            options.extra,
            options.is_debug,
            matcher.is_by_name(),
            interpreter,
        );
        Search {
            matcher,
            options,
            dialect,
            printer,
            asked,
            progress: Progress::new(None),
            checkpoint: None,
            out: Vec::new(),
            is_found: false,
            source: 0,
            ended: None,
        }
    }

    fn run(mut self) -> Result<u8> {
        let defaults = logs::defaults(self.dialect)?;
        let timeout_s = self.options.timeout_s.unwrap_or(defaults.timeout_s);
        if let Some(path) = self.options.checkpoint.clone() {
            let is_time_only = self.options.is_checkpoint_time;
            match Checkpoint::load(path, is_time_only, self.dialect) {
                Ok(checkpoint) => self.checkpoint = Some(checkpoint),
                Err(status) => return Ok(status),
            }
        }
        let mut input = match Input::find(
            self.options.input.as_deref(),
            self.options.use_logs,
            &defaults,
            self.dialect,
        ) {
            Ok(input) => input,
            Err(message) => {
                say!("{message}");
                return Ok(NOTHING);
            }
        };
        if let Some(checkpoint) = &self.checkpoint {
            if let Err(status) = input.since(checkpoint) {
                return Ok(status);
            }
        }
        if self.asked.build_index {
            return index::build_all(&input);
        }
        self.progress = Progress::new(Some(&input));
        if let Some(status) = self.search(&input, timeout_s)? {
            return Ok(status);
        }
        self.progress.end();
        self.is_found |= self.asked.end(&mut self.out);
        self.flush()?;
        if let Some(status) = self.ended {
            return Ok(status);
        }
        if let Some(status) = self.save(&input) {
            return Ok(status);
        }
        if self.is_found {
            return Ok(0);
        }
        if self.options.format != Format::Raw {
            say!("<no matches>");
        }
        Ok(NOTHING)
    }

    /// Writes the checkpoint. Returns the exit status if that fails.
    fn save(&self, input: &Input) -> Option<u8> {
        let checkpoint = self.checkpoint.as_ref()?;
        match &input.sources[self.source] {
            Source::File(path) => checkpoint.save(path),
            Source::Stdin => {
                eprint!("Warning - checkpointing stdin is not supported");
                None
            }
        }
    }

    /// Searches all files, as often as the question needs. Returns the exit status if one cannot be opened.
    fn search(&mut self, input: &Input, timeout_s: u64) -> Result<Option<u8>> {
        loop {
            let mut assembler = Assembler::new(self.dialect, timeout_s, self.options.range);
            if self.asked.follow {
                self.follow(input, &mut assembler, timeout_s)?;
            } else if self.has_to_read_all() || !self.read_by_blocks(input, &mut assembler)? {
                if let Some(status) = self.read(input, &mut assembler)? {
                    return Ok(Some(status));
                }
            }
            if !self.asked.reads_again() {
                return Ok(None);
            }
        }
    }

    /// Whether each event counts, also if it is not asked for.
    fn has_to_read_all(&self) -> bool {
        self.dialect.is_peer() || self.checkpoint.is_some()
    }

    /// Reads all files. Returns the exit status if one cannot be opened.
    fn read(&mut self, input: &Input, assembler: &mut Assembler) -> Result<Option<u8>> {
        let last = input.sources.len() - 1;
        for (number, source) in input.sources.iter().enumerate() {
            self.source = number;
            let text = match source.open(self.dialect)? {
                Ok(text) => text,
                Err(message) => {
                    self.flush()?;
                    say!("{message}");
                    return Ok(Some(NOTHING));
                }
            };
            let mut lines = Lines::new(text, self.dialect.line_bytes_max());
            while let Some(line) = lines.next_line().map_err(|error| source.error(error))? {
                self.progress.add(line.len() as u64);
                add(assembler, line, self.dialect);
                if self.events(assembler)?.is_break() {
                    return Ok(None);
                }
                self.say_bad_times(assembler);
            }
            if number == last {
                match (&self.checkpoint, self.dialect) {
                    (None, _) => assembler.finish(),
                    // The next search tells events that may go on.
                    (Some(_), Dialect::Three) => {}
                    (Some(_), _) => assembler.finish_ended(),
                }
                if self.events(assembler)?.is_break() {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    fn say_bad_times(&mut self, assembler: &mut Assembler) {
        for text in assembler.take_bad_times() {
            let text = String::from_utf8_lossy(&text).into_owned();
            say!("Error extracting time stamp ({text})");
        }
    }

    /// Prints the complete events that match and are new. Breaks off after the first with `--just-one`, and if the
    /// checkpoint cannot be right.
    fn events(&mut self, assembler: &mut Assembler) -> Result<ControlFlow<()>> {
        while let Some(event) = assembler.pop() {
            let is_match = self.matcher.matches(&event);
            let decision = match &mut self.checkpoint {
                Some(checkpoint) if is_match => checkpoint.decide(&event),
                _ => Decision::Print,
            };
            if let Decision::End(status) = decision {
                self.ended = Some(status);
                return Ok(ControlFlow::Break(()));
            }
            let is_printed = self.print(&event, is_match && decision == Decision::Print)?;
            let is_peer = self.dialect.is_peer();
            let is_last = self.options.just_one && (is_printed || (is_match && is_peer));
            if let Some(checkpoint) = self.checkpoint.as_mut().filter(|_| !is_last || !is_peer) {
                checkpoint.note(&event);
            }
            if is_last {
                return Ok(ControlFlow::Break(()));
            }
            assembler.recycle(event);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Prints an event if it is asked for; `is_match` tells what ausearch's options say. Returns whether it was.
    fn print(&mut self, event: &Event, is_match: bool) -> io::Result<bool> {
        match self.asked.event(event, is_match, &mut self.out) {
            Taken::No => return Ok(false),
            Taken::Print => self.printer.print(event, self.dialect, &mut self.out),
            Taken::Printed => {}
        }
        self.is_found = true;
        if self.out.len() >= OUTPUT_BYTES || self.options.line_buffered {
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&self.out)?;
        self.out.clear();
        stdout.flush()
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
            Source::Stdin => None,
        };
        let files: Vec<_> = self.sources.iter().filter_map(is_file).collect();
        let first = checkpoint.first_log(&files)?;
        self.sources.drain(..first);
        Ok(())
    }
}
