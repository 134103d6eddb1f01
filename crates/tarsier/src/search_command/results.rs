//! What is done with the events of a log: those asked for are printed, and the checkpoint notes them.

use super::asked::{Asked, Taken};
use super::checkpoint::{Checkpoint, Decision};
use super::options::SearchOptions;
use super::printer::Printer;
use super::users;
use anyhow::Result;
use query::{Assembler, Dialect, Event, Interpreter, Matcher};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Bytes of output that are written at once.
const OUTPUT_BYTES: usize = 1 << 16;

/// Takes events, and prints those that are asked for.
pub(super) struct Results {
    pub(super) matcher: Matcher,
    dialect: Dialect,
    printer: Printer,
    pub(super) asked: Asked,
    pub(super) checkpoint: Option<Checkpoint>,
    /// End with the first event that is printed.
    just_one: bool,
    /// Write each event at once.
    pub(super) line_buffered: bool,
    out: Vec<u8>,
    is_found: bool,
    /// Exit status with which a checkpoint ends the search.
    ended: Option<u8>,
}

impl Results {
    /// Takes the filter out of `options`.
    pub(super) fn new(options: &mut SearchOptions, dialect: Dialect, asked: Asked) -> Results {
        let filter = std::mem::take(&mut options.filter);
        let matcher = Matcher::new(filter, dialect, users::user_name);
        let interpreter = Interpreter::new(dialect, options.output.escape, users::names());
        Results {
            printer: Printer::new(options.output, matcher.is_by_name(), interpreter),
            matcher,
            dialect,
            asked,
            checkpoint: None,
            just_one: options.just_one,
            line_buffered: options.output.line_buffered,
            out: Vec::new(),
            is_found: false,
            ended: None,
        }
    }

    /// Writes what ends the output. Returns whether anything was found.
    pub(super) fn end(&mut self) -> io::Result<bool> {
        self.is_found |= self.asked.end(&mut self.out);
        self.flush()?;
        Ok(self.is_found)
    }

    /// The exit status with which the checkpoint has ended the search, if it has.
    pub(super) fn ended(&self) -> Option<u8> {
        self.ended
    }

    /// Prints the complete events that match and are new. Breaks after the first with `--just-one`, and if the
    /// checkpoint turns out to be wrong.
    pub(super) fn take(&mut self, assembler: &mut Assembler) -> Result<ControlFlow<()>> {
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
            let is_last = self.just_one && (is_printed || (is_match && is_peer));
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

    /// Prints an event if it is asked for; `is_match` tells what ausearch's options say. Returns whether it was printed.
    fn print(&mut self, event: &Event, is_match: bool) -> io::Result<bool> {
        match self.asked.event(event, is_match, &mut self.out) {
            Taken::No => return Ok(false),
            Taken::Print => self.printer.print(event, self.dialect, &mut self.out),
            Taken::Printed => {}
        }
        self.is_found = true;
        if self.out.len() >= OUTPUT_BYTES || self.line_buffered {
            self.flush()?;
        }
        Ok(true)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(&self.out)?;
        self.out.clear();
        stdout.flush()
    }
}
