//! Finds the ranges of a host's log that arrived, and those that did not.

use super::stored::Stored;
use crate::batch::Kind;
use crate::position::{Position, Series};

/// Reason why a range is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// No message has it.
    Missing,
    /// The sender says that it left it out: number of events.
    Dropped(u64),
}

/// A range that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hole {
    /// Beginning of the range.
    pub from: Position,
    /// End of the range.
    pub to: Position,
    /// Reason why the range is not there.
    pub why: Why,
}

/// Messages of one series that arrived.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Beginning of the first message.
    pub from: Position,
    /// End of the last message.
    pub to: Position,
    /// Number of events that arrived.
    pub events: u64,
    /// Number of events that the host's filters kept back, or that it counted with others like them.
    pub filtered: u64,
    /// Number of messages that arrived more than once, the same each time.
    pub repeated: u64,
    /// Ranges that are not there, in order.
    pub holes: Vec<Hole>,
    /// Messages that contradict each other, as text.
    pub contradictions: Vec<String>,
    /// The messages in order, each once.
    pub messages: Vec<Stored>,
    /// Messages about ranges that others have already, cut elsewhere: a replay in larger or smaller batches.
    pub overlaps: Vec<Stored>,
}

/// Sorts messages by series and position. Series come in the order of their numbers.
pub fn sort(mut stored: Vec<Stored>) -> Vec<(Series, Ranges)> {
    stored.sort_by_key(|message| {
        let headers = message.headers;
        (
            headers.series,
            headers.from,
            headers.to,
            message.source,
            message.at,
        )
    });

    let mut all: Vec<(Series, Ranges)> = Vec::new();
    for message in stored {
        let series = message.headers.series;
        if all.last().is_none_or(|(last, _)| *last != series) {
            let from = message.headers.from;
            let ranges = Ranges {
                from,
                to: from,
                ..Ranges::default()
            };
            all.push((series, ranges));
        }
        if let Some((_, ranges)) = all.last_mut() {
            ranges.add(message);
        }
    }

    all
}

impl Ranges {
    fn add(&mut self, message: Stored) {
        let headers = message.headers;
        if headers.from < self.to && (headers.to <= self.to || headers.kind == Kind::Gap) {
            return self.again(message);
        }

        if headers.from > self.to {
            self.holes.push(Hole {
                from: self.to,
                to: headers.from,
                why: Why::Missing,
            });
        }

        let dropped = match headers.kind {
            Kind::Gap => Some(headers.events),
            Kind::Event | Kind::Seal | Kind::Repeats => {
                Some(headers.missing).filter(|missing| *missing > 0)
            }
        };
        if headers.kind == Kind::Event {
            self.events += headers.events;
        }
        self.holes.extend(dropped.map(|events| Hole {
            from: headers.from,
            to: headers.to,
            why: Why::Dropped(events),
        }));
        self.filtered += headers.filtered;
        self.to = headers.to;

        self.messages.push(message);
    }

    /// A message about a range that others have already: one of them again, a contradiction, or cut elsewhere.
    fn again(&mut self, message: Stored) {
        let headers = message.headers;
        let place = (headers.from, headers.to);
        let found = self
            .messages
            .binary_search_by_key(&place, |known| (known.headers.from, known.headers.to));
        let known = found.ok().map(|place| self.messages[place]);

        match known {
            _ if headers.kind == Kind::Gap => self.repeated += 1,
            Some(known) if known.hash == message.hash && known.headers == headers => {
                self.repeated += 1;
            }
            Some(_) => self.contradictions.push(format!(
                "two different messages for the range from {} to {}",
                headers.from, headers.to
            )),
            None => {
                self.repeated += 1;
                self.overlaps.push(message);
            }
        }
    }
}
