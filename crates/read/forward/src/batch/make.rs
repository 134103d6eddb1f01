//! Makes the batch that begins at a place in the log.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::MakeError;
use super::selection::{Choice, Selection};
use super::source::Source;
use super::{Batch, Kind, Message, Recipe};
use crate::cursor::Cursor;
use crate::events::{EventLines, Events};
use crate::format::{format, Format, LogEvent, Place, Stamp};
use crate::mark::{Mark, Marks};
use crate::position::{Position, Series};
use crate::spool::Files;

/// Longest event, in bytes. A longer one is cut into several.
const EVENT_BYTES_MAX: u64 = 16 << 20;

/// Request for a batch.
#[derive(Clone, Copy, Debug)]
pub struct Want {
    /// Bytes after which a batch ends.
    pub bytes_max: usize,
    /// Largest number of messages.
    pub messages_max: usize,
    /// The end of a batch that is made again.
    pub until: Option<Position>,
    /// Time for which the log has not grown.
    pub quiet: Duration,
}

/// An event that the format refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// End of the event.
    pub at: Position,
    /// Reason for the refusal.
    pub reason: String,
    /// Lines of the event.
    pub lines: Vec<u8>,
}

/// A batch, and how far the log was read for it.
#[derive(Clone, Debug)]
pub struct Made {
    /// The batch; `None` if everything up to `to` was filtered.
    pub batch: Option<Batch>,
    /// Position at which reading goes on.
    pub to: Position,
    /// Marks of its end, and of the beginning of its last event, which a daemon may cut off.
    pub marks: Vec<Mark>,
    /// Number of events that were kept back since the last message.
    pub filtered: u64,
    /// Events for the dead-letter file.
    pub refused: Vec<Refusal>,
}

/// Makes the batch that begins at `cursor.read`; `None` if there is nothing to send yet.
///
/// # Errors
/// A file cannot be read.
pub fn make(
    spool: &Files,
    cursor: &Cursor,
    series: Series,
    recipe: &Recipe,
    want: Want,
) -> Result<Option<Made>, MakeError> {
    let Some(format) = format(&recipe.format) else {
        return Err(MakeError::Lost {
            path: spool.dir().to_owned(),
            to: cursor.read,
            reason: format!("this program has no format {:?}", recipe.format),
        });
    };

    let mut maker = Maker {
        spool,
        series,
        recipe,
        want,
        format,
        selection: Selection::new(recipe),
        messages: Vec::new(),
        bytes: Vec::new(),
        refused: Vec::new(),
        known: &cursor.marks,
        marks: Vec::new(),
        from: cursor.acked,
        at: cursor.read,
        filtered: cursor.filtered,
    };

    if let Some(gap) = &cursor.gap {
        maker.at = gap.to;
        maker.gap(gap.events, &gap.cause);
    }
    maker.fill()?;

    Ok(maker.finish(cursor))
}

struct Maker<'a> {
    spool: &'a Files,
    series: Series,
    recipe: &'a Recipe,
    want: Want,
    format: Box<dyn Format>,
    selection: Selection,
    messages: Vec<Message>,
    bytes: Vec<u8>,
    refused: Vec<Refusal>,
    /// Marks of what was read before.
    known: &'a Marks,
    /// Marks of what is read now.
    marks: Vec<Mark>,
    /// End of the last message.
    from: Position,
    /// Position up to which the log has been read.
    at: Position,
    filtered: u64,
}

impl Maker<'_> {
    /// Reads text of one file, or else seal of it, after going on to the next file if nothing is
    /// left of this one. A gap is a batch of its own: some sinks send a batch as one message, which has one kind.
    fn fill(&mut self) -> Result<(), MakeError> {
        loop {
            if self.want.until.is_none() && !self.messages.is_empty() {
                return Ok(());
            }
            let Some(number) = self.spool.from(self.at.file.max(1)) else {
                return Ok(());
            };
            if number != self.at.file {
                self.enter(number);
            }
            if self.want.until.is_some_and(|to| self.at >= to) {
                return Ok(());
            }
            let is_last = self.want.until.is_some_and(|to| to.file == number);
            if self.text(number, is_last)? || self.seal(number, is_last) {
                return Ok(());
            }
            let next = self.spool.from(number + 1);
            match next {
                Some(next) if !is_last => self.enter(next),
                _ => return Ok(()),
            }
        }
    }

    /// Goes to the beginning of a file.
    fn enter(&mut self, number: u64) {
        self.at = Position {
            file: number,
            ..Position::default()
        };
        if self.spool.has_gap_before(number) {
            self.gap(0, "files-missing");
        }
    }

    /// Takes events of a file. True if there were any.
    fn text(&mut self, number: u64, is_last: bool) -> Result<bool, MakeError> {
        let source = Source::open(self.spool, number)?;
        let end = match self.want.until {
            Some(to) if is_last => to.offset,
            _ => source.size(),
        };
        if source.size() < end.max(self.at.offset) {
            return Err(source.changed(end.max(self.at.offset)));
        }
        if self.at.offset >= end {
            return Ok(false);
        }

        source.sync()?;
        let is_finished = self.spool.newest() != Some(number);
        let mut wanted = self.want.bytes_max as u64;
        loop {
            let to = match self.want.until {
                Some(_) => end,
                None => end.min(self.at.offset.saturating_add(wanted)),
            };
            let text = source.read(self.at.offset, to, self.known)?;
            let is_all = to == end;
            let is_whole = is_all && (is_finished || self.want.until.is_some());
            if let Some(last) = self.events(text.wanted(), is_all, is_whole) {
                self.marks = vec![text.mark(last), text.mark(self.at.offset)];
                return Ok(true);
            }
            if is_all || wanted >= EVENT_BYTES_MAX {
                return Ok(false);
            }
            wanted *= 4;
        }
    }

    /// Takes the events of `text` that are complete. Returns where the last of them begins in the file.
    fn events(&mut self, text: &[u8], is_all: bool, is_whole: bool) -> Option<u64> {
        let base = self.at;
        let mut taken = Vec::new();
        let mut sent = 0;
        let mut events = if is_whole {
            Events::of_whole(text)
        } else {
            Events::new(text)
        }
        .peekable();

        while let Some(event) = events.next() {
            let is_last = events.peek().is_none();
            let is_done = is_whole
                || !is_last
                || (is_all && self.want.quiet >= event.settles_after())
                || event.lines.len() as u64 >= EVENT_BYTES_MAX / 2;
            if !is_done {
                break;
            }
            let fate = self.event(base, event, taken.len());
            taken.push((event, fate));
            sent += usize::from(matches!(fate, Fate::Sent(..) | Fate::Refused));
            let is_full = self.bytes.len() >= self.want.bytes_max || sent >= self.want.messages_max;
            if is_full && self.want.until.is_none() {
                break;
            }
        }

        for (number, (event, fate)) in taken.iter().enumerate() {
            let start = base.offset + event.start as u64;
            self.at.offset = start + event.lines.len() as u64;
            self.tell(event, *fate, number, base);
        }

        let last = taken.last();
        last.map(|(event, _)| base.offset + event.start as u64)
    }

    /// Formats an event, unless it is filtered or like an earlier one. `number`: its number among those taken.
    fn event(&mut self, base: Position, event: EventLines<'_>, number: usize) -> Fate {
        let at = Position {
            offset: base.offset + event.start as u64,
            ..base
        };
        match self.selection.choose(event.lines, number, at) {
            Choice::Send => self.formatted(base, event),
            Choice::Filter => Fate::Filtered,
            Choice::Count => Fate::Counted,
        }
    }

    fn formatted(&mut self, base: Position, event: EventLines<'_>) -> Fate {
        let begin = self.bytes.len();
        let given = LogEvent {
            lines: event.lines,
            place: Some(Place {
                series: self.series.0,
                file: base.file,
                start: base.offset + event.start as u64,
            }),
            host: &self.recipe.host,
            stamp: event.stamp,
        };

        match self.format.event(&given, &mut self.bytes) {
            Ok(()) => Fate::Sent(begin, self.bytes.len()),
            Err(refused) => {
                self.bytes.truncate(begin);
                self.refused.push(Refusal {
                    at: Position {
                        offset: base.offset + (event.start + event.lines.len()) as u64,
                        ..base
                    },
                    reason: refused.0,
                    lines: event.lines.to_vec(),
                });
                Fate::Refused
            }
        }
    }

    /// Makes the message of an event that ends at `self.at`, or counts it.
    fn tell(&mut self, event: &EventLines<'_>, fate: Fate, number: usize, base: Position) {
        match fate {
            Fate::Filtered => self.filtered += 1,
            Fate::Sent(begin, end) => self.message(Kind::Event, 1, ms(event.stamp), (begin, end)),
            Fate::Refused => self.gap(1, "refused-by-format"),
            Fate::Counted => match self.selection.group_ending_at(number) {
                // A count is no shorter than the event itself.
                Some(group) if group.events == 1 => {
                    let fate = self.formatted(base, *event);
                    self.tell(event, fate, number, base);
                }
                Some(group) => {
                    self.filtered += 1;
                    self.own_record(
                        Kind::Repeats,
                        group.events,
                        &format!("op=forward-repeats first={}", group.first),
                        "res=success",
                    );
                }
                None => self.filtered += 1,
            },
        }
    }

    /// Takes bytes of a seal. True if there were any.
    fn seal(&mut self, number: u64, is_last: bool) -> bool {
        if !self.format.carries_seals() || !self.messages.is_empty() {
            return false;
        }

        let size = self.spool.seal_size(number);
        let end = match self.want.until {
            Some(to) if is_last => to.seal.min(size),
            _ => size.min(self.at.seal + self.want.bytes_max as u64),
        };
        if self.at.seal >= end {
            return false;
        }

        let mut seal = vec![0; (end - self.at.seal) as usize];
        let read = File::open(self.spool.seal_path(number)).and_then(|file| {
            rustix::fs::fdatasync(&file)?;
            file.read_exact_at(&mut seal, self.at.seal)
        });

        // A seal that cannot be read is missing at the destination, where that is seen.
        if read.is_err() {
            return false;
        }

        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&seal);
        self.at.seal = end;
        self.message(Kind::Seal, 0, now_ms(), (begin, self.bytes.len()));
        true
    }

    /// Says at the destination what is missing from the last message to here.
    fn gap(&mut self, events: u64, cause: &str) {
        let end = format!("cause={cause} res=failed");
        self.own_record(Kind::Gap, events, "op=forward-gap", &end);
    }

    /// Adds a message with a record of this program's own, about events from the last message to here.
    fn own_record(&mut self, kind: Kind, events: u64, what: &str, end: &str) {
        let now = now_ms();
        let line = format!(
            "type=DAEMON_ERR msg=audit({}.{:03}:0): {what} series={} from={} to={} events={events} {end}\n",
            now / 1000,
            now % 1000,
            self.series,
            self.from,
            self.at,
        );

        let begin = self.bytes.len();
        let event = LogEvent {
            lines: line.as_bytes(),
            place: Some(Place {
                series: self.series.0,
                file: self.at.file,
                start: self.at.offset,
            }),
            host: &self.recipe.host,
            stamp: Stamp {
                sec: now / 1000,
                msec: (now % 1000) as u32,
                serial: 0,
            },
        };

        if self.format.event(&event, &mut self.bytes).is_err() {
            self.bytes.truncate(begin);
            self.bytes.extend_from_slice(line.trim_end().as_bytes());
        }
        self.message(kind, events, now, (begin, self.bytes.len()));
    }

    fn message(&mut self, kind: Kind, events: u64, time_ms: u64, body: (usize, usize)) {
        self.messages.push(Message {
            kind,
            from: self.from,
            to: self.at,
            events,
            filtered: std::mem::take(&mut self.filtered),
            time_ms,
            body,
        });
        self.from = self.at;
    }

    fn finish(mut self, cursor: &Cursor) -> Option<Made> {
        if let Some(last) = self.messages.last_mut() {
            last.to = self.at;
            last.filtered += std::mem::take(&mut self.filtered);
        } else if self.filtered == cursor.filtered {
            // A step to an empty file is not worth a write.
            return None;
        }

        let batch = (!self.messages.is_empty()).then(|| Batch {
            series: self.series,
            host: self.recipe.host.clone(),
            content_type: self.format.content_type(),
            messages: self.messages,
            bytes: self.bytes,
        });

        Some(Made {
            batch,
            to: self.at,
            marks: self.marks,
            filtered: self.filtered,
            refused: self.refused,
        })
    }
}

/// Fate of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Filtered,
    /// The body of its message: the first byte in the batch's bytes, and the byte after the last.
    Sent(usize, usize),
    Refused,
    /// The event is like an earlier one.
    Counted,
}

fn ms(stamp: Stamp) -> u64 {
    stamp.sec.saturating_mul(1000) + u64::from(stamp.msec)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_millis() as u64)
}
