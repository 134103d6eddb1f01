//! Prints found events.

use super::options::{Format, OutputOptions};
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

    /// Appends what comes before the first event, unless it was written.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        if let How::Columns(format) = &mut self.how {
            format.begin(out);
        }
    }

    /// Appends an event. Returns messages for standard error.
    pub(crate) fn print(
        &mut self,
        event: &Event,
        dialect: Dialect,
        out: &mut Vec<u8>,
    ) -> Vec<String> {
        let interpreter = &self.interpreter;
        match &mut self.how {
            How::Raw => query::write_raw(event, dialect, out),
            How::Default => query::write_default(event, interpreter.escape(), out),
            How::Interpreted(format) => {
                let count = format.write(event, interpreter, out);
                return vec!["can't find time stamp".to_owned(); count];
            }
            How::Sentences(format) => format.write(event, interpreter, out),
            How::Columns(format) => {
                let kinds = format.write(event, interpreter, out).into_iter();
                return kinds
                    .map(|kind| format!("error normalizing {kind}"))
                    .collect();
            }
        }

        Vec::new()
    }
}
