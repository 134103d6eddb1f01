//! The order in which found events come out, without the state machine: an event comes out, in the order of times, when
//! an event begins that is the timeout later. [`crate::Assembler`] does the same with events and their records.

use crate::assemble::since_s;
use crate::Dialect;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// Limit of the text of events that wait; beyond it, the earliest come out. Only a log with hundreds of thousands of
/// records in two seconds reaches it.
const HELD_BYTES_MAX: usize = 96 << 20;

/// Second, millisecond and serial of an event.
type Time = (u64, u32, u64);

/// Events found in a piece of a log.
#[derive(Default)]
pub struct PieceEvents {
    /// Texts of the events, one after the other.
    pub text: Vec<u8>,
    /// Events in the order in which they begin.
    begins: Vec<Begin>,
    /// Messages for standard error, with the number of their event in `begins`.
    messages: Vec<(usize, String)>,
}

/// The beginning of an event.
struct Begin {
    time: Time,
    /// End of the event's text, if it is printed.
    end: Option<usize>,
}

impl PieceEvents {
    /// Adds an event that is not printed, by its second, millisecond and serial.
    pub fn pass(&mut self, time: Time) {
        // It only says how late it is.
        let is_known = self
            .begins
            .last()
            .is_some_and(|last| last.end.is_none() && last.time.0 == time.0);
        if !is_known {
            self.begins.push(Begin { time, end: None });
        }
    }

    /// Adds an event whose text was appended. `messages` are for standard error.
    pub fn print(&mut self, time: Time, messages: Vec<String>) {
        let number = self.begins.len();
        self.messages
            .extend(messages.into_iter().map(|text| (number, text)));
        self.begins.push(Begin {
            time,
            end: Some(self.text.len()),
        });
    }
}

/// An event that waits for those that may come before it.
struct Held {
    time: Time,
    /// Second from which the timeout counts.
    since_s: u64,
    text: Rc<Vec<u8>>,
    place: Range<usize>,
    messages: Vec<String>,
}

/// Events that may still come after others.
pub struct InOrder {
    timeout_s: u64,
    held: VecDeque<Held>,
    held_bytes: usize,
    count: u64,
    /// Second of the event that began last.
    last_s: u64,
}

/// Destination of events. Texts of neighbouring events come in one piece.
pub trait Sink {
    /// Takes the text of one or several events.
    ///
    /// # Errors
    /// The text cannot be written.
    fn text(&mut self, text: &[u8]) -> io::Result<()>;

    /// Takes a message about an event.
    fn message(&mut self, message: &str);
}

impl InOrder {
    /// `timeout_s` is `end_of_event_timeout` of auditd.conf(5).
    pub fn new(timeout_s: u64) -> InOrder {
        InOrder {
            timeout_s,
            held: VecDeque::new(),
            held_bytes: 0,
            count: 0,
            last_s: 0,
        }
    }

    /// Number of events that have come out.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes the next piece of the log, and gives out what comes before all that may follow.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn add(&mut self, found: PieceEvents, sink: &mut impl Sink) -> io::Result<()> {
        let text = Rc::new(found.text);
        let mut messages = found.messages.into_iter().peekable();
        let mut start = 0;
        for (number, begin) in found.begins.into_iter().enumerate() {
            let since_s = since_s(begin.time.0, self.last_s, self.timeout_s, Dialect::Own);
            self.last_s = begin.time.0;
            if let Some(end) = begin.end {
                let mut own = Vec::new();
                while let Some((_, message)) = messages.next_if(|(of, _)| *of == number) {
                    own.push(message);
                }
                self.hold(Held {
                    time: begin.time,
                    since_s,
                    text: Rc::clone(&text),
                    place: start..end,
                    messages: own,
                });
                start = end;
            }
            // An event that is not printed, too, shows by its time which earlier ones are whole.
            if let Some(limit) = begin.time.0.checked_sub(self.timeout_s) {
                self.give(sink, |held, _| held.since_s <= limit)?;
            }
        }

        // Memory is bounded.
        self.give(sink, |_, held_bytes| held_bytes > HELD_BYTES_MAX)
    }

    /// Gives out what is left at the end of the log.
    ///
    /// # Errors
    /// The errors of the sink.
    pub fn end(&mut self, sink: &mut impl Sink) -> io::Result<()> {
        self.give(sink, |_, _| true)
    }

    /// Puts an event behind those that do not come out later.
    fn hold(&mut self, held: Held) {
        let after = self
            .held
            .iter()
            .rev()
            .take_while(|other| (other.since_s, other.time) > (held.since_s, held.time));
        let at = self.held.len() - after.count();
        self.held_bytes += held.place.len();
        self.held.insert(at, held);
    }

    /// Gives out the earliest events while they are due, by the event and the bytes of all that wait.
    fn give(
        &mut self,
        sink: &mut impl Sink,
        is_due: impl Fn(&Held, usize) -> bool,
    ) -> io::Result<()> {
        let mut now: Option<(Rc<Vec<u8>>, Range<usize>)> = None;
        while let Some(held) = self.held.pop_front() {
            if !is_due(&held, self.held_bytes) {
                self.held.push_front(held);
                break;
            }
            self.count += 1;
            self.held_bytes -= held.place.len();

            // Texts that stand together in a piece are written at once.
            match &mut now {
                Some((text, place))
                    if place.end == held.place.start && Rc::ptr_eq(text, &held.text) =>
                {
                    place.end = held.place.end;
                }
                _ => {
                    if let Some((text, place)) = now.take() {
                        sink.text(&text[place])?;
                    }
                    now = Some((held.text, held.place));
                }
            }
            held.messages
                .iter()
                .for_each(|message| sink.message(message));
        }

        match now {
            Some((text, place)) => sink.text(&text[place]),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sink for Vec<u8> {
        fn text(&mut self, text: &[u8]) -> io::Result<()> {
            self.extend_from_slice(text);
            Ok(())
        }

        fn message(&mut self, _: &str) {}
    }

    fn found(times: &[(u64, &str)]) -> PieceEvents {
        let mut found = PieceEvents::default();
        for (sec, text) in times {
            match *text {
                "" => found.pass((*sec, 0, 0)),
                text => {
                    found.text.extend_from_slice(text.as_bytes());
                    found.print((*sec, 0, 0), Vec::new());
                }
            }
        }
        found
    }

    #[test]
    fn an_event_waits_until_one_begins_that_is_the_timeout_later() {
        let (mut order, mut out) = (InOrder::new(2), Vec::new());
        let mut add = |out: &mut Vec<u8>, times: &[(u64, &str)]| {
            order.add(found(times), out).expect("memory is written");
            order.count
        };
        assert_eq!(add(&mut out, &[(10, "b"), (9, "a"), (11, "d")]), 1);
        assert_eq!(add(&mut out, &[(10, "c"), (12, "")]), 3);
        // Late: it takes its turn as an event of the time at which it came.
        assert_eq!(add(&mut out, &[(8, "e"), (12, "f")]), 3);
        order.end(&mut out).expect("memory is written");
        assert_eq!(out, b"abcdef");
    }
}
