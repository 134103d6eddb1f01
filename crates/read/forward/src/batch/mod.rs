//! Batches: a range of the log and what of it is sent.
//!
//! A batch is a function of where it begins, where it ends and the [`Recipe`], so that a batch
//! whose fate is not known is made again, the same.

mod error;
mod make;
mod selection;
mod source;

pub use error::MakeError;
pub use make::{make, Made, Refusal, Want};

use crate::config::{Config, Words};
use crate::position::{Position, Series};

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An event.
    Event,
    /// Bytes of the log's seal.
    Seal,
    /// Word of events that are not sent.
    Gap,
    /// Word of events that are like an earlier one of the batch, and are not sent.
    Repeats,
}

impl Kind {
    /// Name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Event => "event",
            Kind::Seal => "seal",
            Kind::Gap => "gap",
            Kind::Repeats => "repeats",
        }
    }
}

/// One message: a Kafka record, a line, a log record of OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Kind of the content.
    pub kind: Kind,
    /// End of the message before it.
    pub from: Position,
    /// End of the message: everything up to here was sent, filtered or counted.
    pub to: Position,
    /// Number of events in it; of a gap or repeats, number of events that it stands for.
    pub events: u64,
    /// Number of events from `from` to `to` that the filters kept back, or that repeats count.
    pub filtered: u64,
    /// Time of the event, in milliseconds since 1970.
    pub time_ms: u64,
    /// First byte in the batch's bytes, and the byte after the last.
    pub body: (usize, usize),
}

/// Messages that are sent and acknowledged together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Series of the positions.
    pub series: Series,
    /// Name of the host.
    pub host: String,
    /// Media type of the messages.
    pub content_type: &'static str,
    /// At least one message, in order.
    pub messages: Vec<Message>,
    /// Bodies of the messages.
    pub bytes: Vec<u8>,
}

impl Batch {
    /// The body of a message.
    pub fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.body.0..message.body.1]
    }

    /// Beginning of the batch.
    pub fn from(&self) -> Position {
        self.messages
            .first()
            .map_or_else(Position::default, |m| m.from)
    }

    /// End of the batch.
    pub fn to(&self) -> Position {
        self.messages
            .last()
            .map_or_else(Position::default, |m| m.to)
    }

    /// Number of events that arrive with the batch.
    pub fn events(&self) -> u64 {
        let is_event = |m: &&Message| m.kind == Kind::Event;
        self.messages
            .iter()
            .filter(is_event)
            .map(|m| m.events)
            .sum()
    }

    /// Number of events that the filters kept back.
    pub fn filtered(&self) -> u64 {
        self.messages.iter().map(|m| m.filtered).sum()
    }
}

/// The settings that decide what a batch consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Name of the format.
    pub format: String,
    /// Name of the host.
    pub host: String,
    /// Keys that are sent.
    pub keys: Words,
    /// Types that are sent.
    pub types: Words,
    /// Keys of events that are aggregated; none if it says nothing.
    pub aggregate: Words,
}

impl Recipe {
    /// The settings of a configuration.
    pub fn new(config: &Config, host: &str) -> Recipe {
        Recipe {
            format: config.format_name().to_owned(),
            host: host.to_owned(),
            keys: config.filter_keys.clone(),
            types: config.filter_types.clone(),
            aggregate: config.aggregate_keys.clone(),
        }
    }

    /// One line, for the cursor.
    pub fn to_text(&self) -> String {
        let list = |words: &Words| {
            let excluded = words.exclude.iter().map(|word| format!("!{word}"));
            let all: Vec<String> = words.include.iter().cloned().chain(excluded).collect();
            all.join(",")
        };
        let (keys, types) = (list(&self.keys), list(&self.types));
        let aggregate = list(&self.aggregate);
        format!(
            "{}\t{}\t{keys}\t{types}\t{aggregate}",
            self.format, self.host
        )
    }

    /// Reads [`Recipe::to_text`]; `None` for any other text.
    pub fn from_text(text: &str) -> Option<Recipe> {
        let mut parts = text.split('\t');
        let (format, host) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let words = |text: &str| {
            let mut words = Words::default();
            for word in text.split(',').filter(|word| !word.is_empty()) {
                match word.strip_prefix('!') {
                    Some(word) => words.exclude.push(word.to_owned()),
                    None => words.include.push(word.to_owned()),
                }
            }
            words
        };

        Some(Recipe {
            format,
            host,
            keys: words(parts.next()?),
            types: words(parts.next()?),
            // Cursors of versions that did not aggregate lack it.
            aggregate: words(parts.next().unwrap_or_default()),
        })
    }
}

#[cfg(test)]
mod tests;
