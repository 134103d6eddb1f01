//! `tarsier search`: finds events in logs by ausearch's options.

mod asked;
mod follow;
mod index;
pub(crate) mod index_file;
mod json;
pub(crate) mod logs;
mod options;
mod progress;
mod scan;
mod users;

use anyhow::Result;
use asked::{Asked, Taken};
use cli::search::SEARCH_USAGE;
use daemon::stderr::say;
use logs::Input;
use options::{Format, Instead, Options};
use progress::Progress;
use query::{Assembler, Dialect, Lines, Matcher};
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
    asked: Asked,
    progress: Progress,
    out: Vec<u8>,
    is_found: bool,
}

impl Search {
    fn new(mut options: Options, dialect: Dialect, asked: Asked) -> Search {
        let filter = std::mem::take(&mut options.filter);
        Search {
            matcher: Matcher::new(filter, dialect, users::user_name),
            options,
            dialect,
            asked,
            progress: Progress::new(None),
            out: Vec::new(),
            is_found: false,
        }
    }

    fn run(mut self) -> Result<u8> {
        let defaults = logs::defaults(self.dialect)?;
        let timeout_s = self.options.timeout_s.unwrap_or(defaults.timeout_s);
        let input = match Input::find(
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
        if self.is_found {
            return Ok(0);
        }
        if self.options.format != Format::Raw {
            say!("<no matches>");
        }
        Ok(NOTHING)
    }

    /// Searches all files, as often as the question needs. Returns the exit status if one cannot be opened.
    fn search(&mut self, input: &Input, timeout_s: u64) -> Result<Option<u8>> {
        loop {
            let mut assembler = Assembler::new(self.dialect, timeout_s, self.options.range);
            if self.asked.follow {
                self.follow(input, &mut assembler, timeout_s)?;
            } else if self.dialect.is_peer() || !self.read_by_blocks(input, &mut assembler)? {
                if let Some(status) = self.read(input, &mut assembler)? {
                    return Ok(Some(status));
                }
            }
            if !self.asked.reads_again() {
                return Ok(None);
            }
        }
    }

    /// Reads all files. Returns the exit status if one cannot be opened.
    fn read(&mut self, input: &Input, assembler: &mut Assembler) -> Result<Option<u8>> {
        let last = input.sources.len() - 1;
        for (number, source) in input.sources.iter().enumerate() {
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
                assembler.add(line);
                if self.events(assembler)?.is_break() {
                    return Ok(None);
                }
                self.say_bad_times(assembler);
            }
            if number == last {
                assembler.finish();
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
            let is_match = self.matcher.matches(&event);
            let taken = self.asked.event(&event, is_match, &mut self.out);
            if !matches!(taken, Taken::No) {
                self.is_found = true;
                match self.options.format {
                    _ if matches!(taken, Taken::Printed) => {}
                    Format::Raw => query::write_raw(&event, self.dialect, &mut self.out),
                    Format::Default => query::write_default(&event, &mut self.out),
                }
                if self.out.len() >= OUTPUT_BYTES || self.options.line_buffered {
                    self.flush()?;
                }
                if self.options.just_one {
                    return Ok(ControlFlow::Break(()));
                }
            }
            assembler.recycle(event);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&self.out)?;
        self.out.clear();
        stdout.flush()
    }
}
