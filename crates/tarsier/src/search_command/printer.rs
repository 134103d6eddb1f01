//! Prints found events.

use super::options::{Format, OutputOptions};
use daemon::stderr::say;
use query::{Columns, Dialect, Event, Interpreted, Interpreter, Sentences};

/// Prints events in one format.
pub(crate) struct Printer {
    how: How,
    interpreter: Interpreter,
}

enum How {
    Raw,
    Default,
    Interpreted(Interpreted),
    Columns(Columns),
    Sentences(Sentences),
}

impl Printer {
    pub(crate) fn new(
        options: OutputOptions,
        is_by_name: bool,
        interpreter: Interpreter,
    ) -> Printer {
        let how = match options.format {
            Format::Raw => How::Raw,
            Format::Default => How::Default,
            Format::Interpret => How::Interpreted(Interpreted::new(is_by_name)),
            Format::Csv => How::Columns(Columns::new(options.extra)),
            Format::Text => How::Sentences(Sentences {
                is_debug: options.is_debug,
            }),
        };
        Printer { how, interpreter }
    }

    /// Appends an event.
    pub(crate) fn print(&mut self, event: &Event, dialect: Dialect, out: &mut Vec<u8>) {
        let interpreter = &self.interpreter;
        match &mut self.how {
            How::Raw => query::write_raw(event, dialect, out),
            How::Default => query::write_default(event, interpreter.escape(), out),
            How::Interpreted(format) => {
                for _ in 0..format.write(event, interpreter, out) {
                    say!("can't find time stamp");
                }
            }
            How::Sentences(format) => format.write(event, interpreter, out),
            How::Columns(format) => {
                for kind in format.write(event, interpreter, out) {
                    say!("error normalizing {kind}");
                }
            }
        }
    }
}
