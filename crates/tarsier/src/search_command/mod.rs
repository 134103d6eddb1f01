//! `tarsier search`: finds events in logs by ausearch's options.

pub(crate) mod ausyscall;
mod checkpoint;
pub(crate) mod logs;
mod options;
mod printer;
mod users;

use anyhow::Result;
use checkpoint::{Checkpoint, Decision};
use cli::search::SEARCH_USAGE;
use daemon::stderr::say;
use logs::{Input, Source};
use options::{Format, Instead, Options};
use printer::Printer;
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
    let words = words(args)?;
    let (dialect, words) = match take_dialect(&words) {
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
    match Options::parse(words, dialect) {
        Ok(options) => Search::new(options, dialect).run(),
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

fn words(args: Vec<OsString>) -> Result<Vec<String>> {
    args.into_iter()
        .map(|word| {
            word.into_string()
                .map_err(|word| anyhow::anyhow!("{}: not UTF-8", word.to_string_lossy()))
        })
        .collect()
}

/// Takes `--dialect 3` from the beginning.
fn take_dialect(words: &[String]) -> Result<(Dialect, &[String]), String> {
    match words {
        [option, rest @ ..] if option == "--dialect" => match rest {
            [version, rest @ ..] if version == "3" => Ok((Dialect::Three, rest)),
            [version, rest @ ..] if version == "4" => Ok((Dialect::Four, rest)),
            _ => Err(
                "tarsier: search: --dialect: expected 3 or 4, for ausearch 3.0.9 or 4.0.2"
                    .to_owned(),
            ),
        },
        _ => Ok((Dialect::Own, words)),
    }
}

struct Search {
    matcher: Matcher,
    options: Options,
    dialect: Dialect,
    printer: Printer,
    checkpoint: Option<Checkpoint>,
    out: Vec<u8>,
    is_found: bool,
    /// Number of the log that was read last.
    source: usize,
    /// Exit status with which a checkpoint ends the search.
    ended: Option<u8>,
}

impl Search {
    fn new(mut options: Options, dialect: Dialect) -> Search {
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
        let has_all = self.dialect.is_peer() || self.checkpoint.is_some();
        if has_all || input.may_match(&self.matcher)? {
            let mut assembler = Assembler::new(self.dialect, timeout_s, self.options.range);
            if let Some(status) = self.read(&input, &mut assembler)? {
                return Ok(status);
            }
        }
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

    /// Searches all files. Returns the exit status if one cannot be opened.
    fn read(&mut self, input: &Input, assembler: &mut Assembler) -> Result<Option<u8>> {
        let last = input.sources.len() - 1;
        let mut converted = Vec::new();
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
                if line.first() == Some(&b'{') && self.dialect == Dialect::Own {
                    converted.clear();
                    query::json_lines(line, &mut converted);
                    for line in converted.split_inclusive(|byte| *byte == b'\n') {
                        assembler.add(line);
                    }
                } else {
                    assembler.add(line);
                }
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

    /// Prints the complete events that match. Breaks off after the first with `--just-one`.
    fn events(&mut self, assembler: &mut Assembler) -> Result<ControlFlow<()>> {
        while let Some(event) = assembler.pop() {
            if self.matcher.matches(&event) && self.found(&event)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if let Some(checkpoint) = &mut self.checkpoint {
                checkpoint.note(&event);
            }
            assembler.recycle(event);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Prints an event that matches, if it is new. Breaks off after the first with `--just-one`, and if the checkpoint
    /// cannot be right.
    fn found(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        let decision = match &mut self.checkpoint {
            Some(checkpoint) => checkpoint.decide(event),
            None => Decision::Print,
        };
        match decision {
            Decision::Print => {
                self.is_found = true;
                self.printer.print(event, self.dialect, &mut self.out);
                if self.out.len() >= OUTPUT_BYTES || self.options.line_buffered {
                    self.flush()?;
                }
            }
            Decision::Skip => {}
            Decision::End(status) => {
                self.ended = Some(status);
                return Ok(ControlFlow::Break(()));
            }
        }
        let is_last =
            self.options.just_one && (self.dialect.is_peer() || decision == Decision::Print);
        if !is_last {
            return Ok(ControlFlow::Continue(()));
        }
        if let Some(checkpoint) = self.checkpoint.as_mut().filter(|_| !self.dialect.is_peer()) {
            checkpoint.note(event);
        }
        Ok(ControlFlow::Break(()))
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

    /// Whether the text that every matching event has occurs in any source. Compressed files and standard input are not
    /// read for that.
    fn may_match(&self, matcher: &Matcher) -> Result<bool> {
        let Some(overlap) = matcher.overlap_bytes() else {
            return Ok(true);
        };
        for source in &self.sources {
            let may_match = match source {
                Source::File(path) => {
                    logs::plain_file_has(path, overlap, |text| matcher.may_match(text))?
                }
                Source::Stdin => true,
            };
            if may_match {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
