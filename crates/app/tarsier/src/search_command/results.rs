//! Takes the events of a log: prints those asked for, and notes them in the checkpoint.

use super::asked::{OfAll, OfEvents, SearchArgs, Seen, Taken};
use super::checkpoint::{Checkpoint, Decision};
use super::options::{OutputOptions, SearchOptions};
use super::printer::Printer;
use super::users;
use crate::shown;
use anyhow::Result;
use cli::messages::report;
use query::{
    Assembler, Batch, Dialect, Event, EventView, Interpreter, Matcher, PieceEvents, TimeRange,
};
use std::io::{self, Write};
use std::ops::ControlFlow;

/// Bytes of output that are written at once.
const OUTPUT_BYTES: usize = 1 << 16;

/// Takes events, and prints those that are asked for.
pub(super) struct Results {
    pub(super) matcher: Matcher,
    dialect: Dialect,
    printer: Printer,
    output: OutputOptions,
    pub(super) asked: SearchArgs,
    pub(super) checkpoint: Option<Checkpoint>,
    /// Range of time of events, if the records are not limited to it.
    pub(super) range: Option<TimeRange>,
    /// End with the first event that is printed.
    just_one: bool,
    /// Write each event at once.
    pub(super) line_buffered: bool,
    out: Vec<u8>,
    is_found: bool,
    /// Number of events that were printed before the log is read again.
    printed: u64,
    /// Exit status with which a checkpoint ends the search.
    ended: Option<u8>,
}

impl Results {
    /// Takes the filter out of `options`.
    pub(super) fn new(options: &mut SearchOptions, dialect: Dialect, asked: SearchArgs) -> Results {
        let filter = std::mem::take(&mut options.filter);
        let mut matcher = Matcher::new(filter, dialect, users::user_name);
        asked.add_texts(&mut matcher);
        Results {
            printer: printer(options.output, dialect, &matcher),
            output: options.output,
            matcher,
            dialect,
            asked,
            checkpoint: None,
            range: None,
            just_one: options.just_one,
            line_buffered: options.output.line_buffered,
            out: Vec::new(),
            is_found: false,
            printed: 0,
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
            let is_match = self.is_inside(&event) && self.matcher.matches(&event);
            let decision = match &mut self.checkpoint {
                Some(checkpoint) if is_match || checkpoint.is_about_all() => {
                    checkpoint.decide(&event)
                }
                _ => Decision::Print,
            };
            if let Decision::End(status) = decision {
                self.ended = Some(status);
                return Ok(ControlFlow::Break(()));
            }
            let is_printed = self.print(&event, is_match && decision == Decision::Print)?;
            let is_compat = self.dialect.is_compat();
            let is_last = self.just_one && (is_printed || (is_match && is_compat));
            // ausearch does not note the event at which --just-one ends.
            if !is_last || !is_compat {
                if let Some(checkpoint) = &mut self.checkpoint {
                    checkpoint.note(&event);
                }
            }
            if is_last {
                return Ok(ControlFlow::Break(()));
            }
            assembler.recycle(event);
        }

        Ok(ControlFlow::Continue(()))
    }

    /// Whether an event is in the range of time, if that has to be asked of events: a checkpoint's own event may be
    /// outside.
    fn is_inside(&self, event: &Event) -> bool {
        self.range
            .is_none_or(|range| range.contains(event.key().sec))
    }

    /// Prints an event if it is asked for; `is_match` tells what ausearch's options say. Returns whether it was printed.
    fn print(&mut self, event: &Event, is_match: bool) -> io::Result<bool> {
        let start = self.out.len();
        let taken = self.asked.event(event, is_match, &mut self.out);
        self.put_taken(event, taken, start)
    }

    /// Ends the printing of an event, whose text begins at `start`. Returns whether it was printed.
    fn put_taken(&mut self, event: &Event, taken: Taken, start: usize) -> io::Result<bool> {
        let messages = match taken {
            Taken::No => return Ok(false),
            Taken::Print => self.printer.print(event, self.dialect, &mut self.out),
            Taken::Printed => Vec::new(),
        };

        self.is_found = true;
        if self.printed > 0 {
            self.printed -= 1;
            self.out.truncate(start);
            return Ok(true);
        }

        messages.iter().for_each(|message| report!("{message}"));
        if self.out.len() >= OUTPUT_BYTES || self.line_buffered {
            self.flush()?;
        }

        Ok(true)
    }

    /// Does for a thread what [`Results::take`] does. `None` if it cannot be said of an event alone whether and how it is
    /// printed.
    pub(super) fn worker(&self) -> Option<Worker> {
        if self.just_one || self.checkpoint.is_some() || self.dialect.is_compat() {
            return None;
        }
        let mut printer = printer(self.output, self.dialect, &self.matcher);
        printer.begin(&mut Vec::new());
        Some(Worker {
            matcher: self.matcher.clone(),
            asked: self.asked.of_events()?,
            printer,
        })
    }

    /// What looks at events in a thread for a question about all of them; `None` if there is no such question.
    pub(super) fn watcher(&self) -> Option<Watcher> {
        if self.just_one || self.checkpoint.is_some() || self.dialect.is_compat() {
            return None;
        }
        Some(Watcher {
            matcher: self.matcher.clone(),
            asked: self.asked.of_all()?,
            event: Event::default(),
        })
    }

    /// Takes the events of a batch, of which a watcher has `seen` what has to be known.
    pub(super) fn put_seen(&mut self, seen: Vec<Option<Seen>>, batch: &Batch) -> io::Result<()> {
        let mut event = Event::default();
        for (view, seen) in batch.events().zip(seen) {
            let Some(seen) = seen else {
                continue;
            };
            event.set(view);
            let start = self.out.len();
            let taken = self.asked.seen(&event, &seen, &mut self.out);
            self.put_taken(&event, taken, start)?;
        }
        Ok(())
    }

    /// Writes events that a worker has printed, except those that were printed before the log was read again.
    pub(super) fn put_events(&mut self, printed: Printed, _: &Batch) -> io::Result<()> {
        let again = self.printed.min(printed.ends.len() as u64) as usize;
        self.printed -= again as u64;
        let start = match again {
            0 => 0,
            again => printed.ends[again - 1],
        };
        let messages = printed.messages.iter().filter(|(of, _)| *of >= again);
        messages.for_each(|(_, message)| report!("{message}"));

        if printed.text[start..].is_empty() {
            Ok(())
        } else {
            self.put(&printed.text[start..])
        }
    }

    /// Writes events that a worker has printed.
    pub(super) fn put(&mut self, text: &[u8]) -> io::Result<()> {
        self.is_found = true;
        if self.asked.is_printed_by_format() {
            self.printer.begin(&mut self.out);
        }
        if text.len() < OUTPUT_BYTES {
            self.out.extend_from_slice(text);
        }
        if self.out.len() >= OUTPUT_BYTES || self.line_buffered || text.len() >= OUTPUT_BYTES {
            self.flush()?;
        }

        if text.len() < OUTPUT_BYTES {
            Ok(())
        } else {
            shown::write(text)
        }
    }

    /// Notes that the log is read again, after `printed` events have been printed.
    pub(super) fn read_again(&mut self, printed: u64) {
        self.printed = printed;
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        shown::write(&self.out)?;
        self.out.clear();
        io::stdout().flush()
    }
}

fn printer(output: OutputOptions, dialect: Dialect, matcher: &Matcher) -> Printer {
    let interpreter = Interpreter::new(dialect, output.escape, users::names());
    Printer::new(output, matcher.is_by_name(), interpreter)
}

/// Looks at events in a thread, for a question about all of them.
pub(super) struct Watcher {
    matcher: Matcher,
    asked: OfAll,
    event: Event,
}

impl Watcher {
    /// What has to be known of each event of a batch.
    pub(super) fn batch(&mut self, batch: &Batch) -> Vec<Option<Seen>> {
        let see = |view| {
            let is_match = self.matcher.matches_view(view);
            self.event.set(view);
            self.asked.see(&self.event, is_match)
        };
        batch.events().map(see).collect()
    }
}

/// Events of a batch that are printed.
#[derive(Default)]
pub(super) struct Printed {
    text: Vec<u8>,
    /// Where the text of each event ends.
    ends: Vec<usize>,
    /// Messages for standard error, with the number of their event.
    messages: Vec<(usize, String)>,
}

/// Finds and prints events for one thread.
pub(super) struct Worker {
    matcher: Matcher,
    asked: OfEvents,
    printer: Printer,
}

impl Worker {
    /// Takes the next event of a piece. `event` is memory that is used again.
    pub(super) fn event(
        &mut self,
        view: EventView<'_>,
        event: &mut Event,
        found: &mut PieceEvents,
    ) {
        match self.print(view, event, &mut found.text) {
            Some(messages) => found.print(view.time(), messages),
            None => found.pass(view.time()),
        }
    }

    /// Prints what is found in a batch.
    pub(super) fn batch(&mut self, batch: &Batch) -> Printed {
        let (mut printed, mut event) = (Printed::default(), Event::default());
        for view in batch.events() {
            if let Some(messages) = self.print(view, &mut event, &mut printed.text) {
                let number = printed.ends.len();
                let messages = messages.into_iter().map(|message| (number, message));
                printed.messages.extend(messages);
                printed.ends.push(printed.text.len());
            }
        }
        printed
    }

    /// Appends an event if it is asked for. Returns messages for standard error, `None` if it is not printed.
    fn print(
        &mut self,
        view: EventView<'_>,
        event: &mut Event,
        out: &mut Vec<u8>,
    ) -> Option<Vec<String>> {
        if !self.matcher.matches_view(view) {
            return None;
        }
        event.set(view);
        match self.asked.event(event, out) {
            Taken::No => None,
            Taken::Print => Some(self.printer.print(event, Dialect::Own, out)),
            Taken::Printed => Some(Vec::new()),
        }
    }
}
