//! Progress of a sender: the cursor, and how much of it is on the disk.

use std::io;

use super::hold;
use crate::batch::{Batch, Kind, Made, Recipe};
use crate::config::{Config, SinkKind};
use crate::cursor::{Cursor, CursorError, CursorFile, Gap, Pending, SinkState};
use crate::position::{Position, Series};
use crate::spool::Files;

/// Key of the sink's state that says which sink it is of.
const SINK: &str = "of";

/// The cursor in memory, its file, and how they differ.
pub(super) struct Progress {
    file: CursorFile,
    cursor: Cursor,
    series: Series,
    /// The cursor in memory is ahead of that on disk.
    is_dirty: bool,
    /// The pending batch was sent at least once.
    is_repeated: bool,
}

/// Links of the spool that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// First file that is needed.
    pub(super) from: u64,
    /// Files after the first and before the second number are not needed.
    pub(super) not_between: (u64, u64),
}

impl Progress {
    /// Opens the cursor in the spool of `config`, or begins one.
    pub(super) fn open(config: &Config) -> anyhow::Result<Progress> {
        let (mut file, mut cursor) = CursorFile::open(&config.spool_dir().join("cursor"))?;
        let series = match cursor.series {
            Some(series) => series,
            None => new_series()?,
        };
        cursor.series = Some(series);
        adopt(&mut cursor, config);
        file.save(&cursor)?;

        let is_repeated = cursor.pending.is_some();
        Ok(Progress {
            file,
            cursor,
            series,
            is_dirty: false,
            is_repeated,
        })
    }

    pub(super) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    pub(super) fn series(&self) -> Series {
        self.series
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// Whether the pending batch may have arrived already.
    pub(super) fn is_repeated(&self) -> bool {
        self.is_repeated
    }

    /// Makes the cursor durable. True if there was something to write.
    pub(super) fn save(&mut self) -> Result<bool, CursorError> {
        if !self.is_dirty {
            return Ok(false);
        }
        self.file.save(&self.cursor)?;
        self.is_dirty = false;
        Ok(true)
    }

    /// The batch to make again: its settings and its end.
    pub(super) fn pending(&self) -> Option<(Option<Recipe>, Position)> {
        let pending = self.cursor.pending.as_ref()?;
        Some((Recipe::from_text(&pending.recipe), pending.to))
    }

    /// Lets `change` work on the sink's state.
    pub(super) fn with_state<T>(&mut self, change: impl FnOnce(&mut SinkState) -> T) -> T {
        let before = self.cursor.sink.clone();
        let result = change(&mut self.cursor.sink);
        self.is_dirty |= self.cursor.sink != before;
        result
    }

    /// Notes that everything up to `made.to` was filtered. Returns how many events that is.
    pub(super) fn filtered(&mut self, made: &Made) -> u64 {
        self.mark(made);
        let more = made.filtered - self.cursor.filtered;
        self.cursor.read = made.to;
        self.cursor.filtered = made.filtered;
        self.is_dirty = true;
        more
    }

    /// The batch is about to be sent.
    pub(super) fn intend(&mut self, made: &Made, recipe: &Recipe) {
        if self.cursor.pending.is_none() {
            self.cursor.pending = Some(Pending {
                to: made.to,
                recipe: recipe.to_text(),
            });
            self.mark(made);
            self.is_dirty = true;
        }
    }

    fn mark(&mut self, made: &Made) {
        for mark in &made.marks {
            self.cursor.marks.add(mark.clone());
        }
    }

    /// Handles a change of file `number`, whose text that was read is not in it any more: sending goes on at `to`, and
    /// `events` are given up. A pending batch cannot be made again. True if there was one: it may have arrived.
    pub(super) fn log_changed(&mut self, number: u64, to: Position, events: u64) -> bool {
        let cursor = &mut self.cursor;
        cursor.marks.renumber(number, to.offset, to.file);
        let later = cursor.gap_after.take().filter(|gap| gap.to > to);
        let given_up = [&cursor.gap, &later];
        let before: u64 = given_up.into_iter().flatten().map(|gap| gap.events).sum();
        cursor.gap = Some(Gap {
            to: later.map_or(to, |gap| gap.to),
            events: before + events,
            cause: "log-changed".into(),
        });

        let was_pending = cursor.pending.is_some();
        self.settled();
        was_pending
    }

    /// The pending batch is on its way. True if it was before.
    pub(super) fn sent(&mut self) -> bool {
        std::mem::replace(&mut self.is_repeated, true)
    }

    /// The pending batch has arrived. Returns the bytes of the log and the filtered events that it adds.
    pub(super) fn acknowledged(&mut self, made: &Made, batch: &Batch) -> (u64, u64) {
        let filtered = batch.filtered() - self.cursor.filtered.min(batch.filtered());
        let bytes = if made.to.file == self.cursor.read.file {
            made.to.offset - self.cursor.read.offset
        } else {
            made.to.offset
        };
        self.cursor.events += batch.events();
        self.cursor.acked = made.to;
        self.cursor.read = made.to;
        self.cursor.filtered = 0;
        self.cursor.gap = self.cursor.gap_after.take();
        self.settled();
        (bytes, filtered)
    }

    /// The destination has refused the pending batch, which will be made anew.
    pub(super) fn refused(&mut self) {
        self.cursor.gap = self.cursor.gap_after.take().or(self.cursor.gap.take());
        self.settled();
    }

    /// The only message of a batch was refused and put aside: a gap takes its place.
    pub(super) fn put_aside(&mut self, kind: Kind, events: u64, to: Position) {
        if kind == Kind::Gap {
            // Word of a gap is refused, too: it is only in the dead-letter file.
            self.cursor.gap = None;
            self.cursor.read = to;
        } else {
            self.cursor.gap = Some(Gap {
                to,
                events,
                cause: "refused-by-sink".into(),
            });
        }

        self.is_dirty = true;
    }

    /// `events` of the batch that ends at `to`, just acknowledged, are not at the destination: a gap says so.
    pub(super) fn missing(&mut self, events: u64, to: Position) {
        let later = self.cursor.gap.take();
        self.cursor.gap = Some(Gap {
            to: later.as_ref().map_or(to, |gap| gap.to),
            events: events + later.map_or(0, |gap| gap.events),
            cause: "refused-by-sink".into(),
        });
        self.is_dirty = true;
    }

    fn settled(&mut self) {
        self.cursor.pending = None;
        self.is_repeated = false;
        self.is_dirty = true;
    }

    /// The sink's state is void: it begins anew.
    pub(super) fn forget_state(&mut self, config: &Config) {
        adopt(&mut self.cursor, config);
        self.is_dirty = true;
    }

    /// Takes over another configuration: another sink begins with an empty state.
    pub(super) fn adopt(&mut self, config: &Config) {
        if adopt(&mut self.cursor, config) {
            self.is_dirty = true;
            self.is_repeated = false;
        }
    }

    /// Gives up the oldest files, until `hold_bytes` wait. Returns the number of events in them.
    pub(super) fn give_up(&mut self, files: &Files, hold_bytes: u64) -> io::Result<u64> {
        let given_up = hold::give_up(&mut self.cursor, files, hold_bytes)?;
        self.is_dirty |= given_up > 0;
        Ok(given_up)
    }

    /// Links that the cursor needs.
    pub(super) fn needed(&self) -> Needed {
        let cursor = &self.cursor;
        Needed {
            from: match (&cursor.pending, &cursor.gap) {
                (None, Some(gap)) => gap.to.file,
                _ => cursor.read.file,
            },
            not_between: match (&cursor.pending, &cursor.gap_after) {
                (Some(pending), Some(gap)) => (pending.to.file, gap.to.file),
                _ => (0, 0),
            },
        }
    }

    /// Beginning of the log's part that is not acknowledged.
    pub(super) fn unsent_from(&self) -> Position {
        match self.cursor.pending {
            Some(_) => self.cursor.read,
            None => hold::waiting_from(&self.cursor).max(self.cursor.acked),
        }
    }
}

/// Notes which sink the state is of. Another sink begins with an empty state. True if it is another.
fn adopt(cursor: &mut Cursor, config: &Config) -> bool {
    let name = match config.sink {
        SinkKind::Kafka => format!("kafka:{}", config.topic),
        SinkKind::Nats => format!("nats:{}", config.subject),
        SinkKind::Otlp => format!("otlp:{}", config.server.join(",")),
        SinkKind::File => format!("file:{}", config.path.display()),
        SinkKind::Stdout => "stdout".into(),
    };
    if cursor.sink.get(SINK) == Some(&name) {
        return false;
    }

    cursor.sink.clear();
    cursor.sink.insert(SINK.into(), name);
    true
}

/// A name for a series that nothing else has.
pub(crate) fn new_series() -> anyhow::Result<Series> {
    let mut bytes = [0; 8];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .map_err(|_| anyhow::anyhow!("no random bytes for the name of the series"))?;
    Ok(Series(u64::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Message;

    fn at(file: u64, offset: u64) -> Position {
        Position {
            file,
            offset,
            seal: 0,
        }
    }

    fn opened(dir: &tempfile::TempDir) -> (Config, Progress) {
        let config = Config {
            log_file: dir.path().join("audit.log"),
            spool: Some(dir.path().to_owned()),
            ..Config::unset()
        };
        let progress = Progress::open(&config).expect("a cursor");
        (config, progress)
    }

    /// A batch of one event up to `to`.
    fn made(progress: &Progress, to: Position) -> (Made, Batch) {
        let message = Message {
            kind: Kind::Event,
            from: progress.cursor.acked,
            to,
            events: 1,
            filtered: 2,
            time_ms: 0,
            body: (0, 0),
        };
        let batch = Batch {
            series: progress.series,
            host: "h".into(),
            content_type: "text/plain",
            messages: vec![message],
            bytes: Vec::new(),
        };
        let made = Made {
            batch: None,
            to,
            marks: Vec::new(),
            filtered: 0,
            refused: Vec::new(),
        };
        (made, batch)
    }

    fn recipe() -> Recipe {
        Recipe::new(&Config::unset(), "h")
    }

    #[test]
    fn what_was_intended_outlives_the_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let (_, mut progress) = opened(&dir);
        let series = progress.series();
        assert!(!progress.is_repeated() && !progress.save().expect("save"));
        let (first, _) = made(&progress, at(1, 500));
        progress.intend(&first, &recipe());
        progress.with_state(|state| state.insert("sequence".into(), "7".into()));
        assert!(progress.save().expect("save") && !progress.is_dirty());
        drop(progress);
        let (_, progress) = opened(&dir);
        assert_eq!(progress.pending(), Some((Some(recipe()), at(1, 500))));
        assert_eq!(progress.series(), series);
        assert!(progress.is_repeated(), "it may have arrived");
        assert_eq!(progress.cursor().sink["sequence"], "7");
    }

    #[test]
    fn an_acknowledgement_moves_the_cursor_and_a_refusal_leaves_a_gap() {
        let dir = tempfile::tempdir().expect("a directory");
        let (_, mut progress) = opened(&dir);
        let (first, batch) = made(&progress, at(1, 500));
        progress.intend(&first, &recipe());
        assert!(!progress.sent() && progress.sent());
        assert_eq!(progress.acknowledged(&first, &batch), (500, 2));
        assert_eq!(
            (progress.unsent_from(), progress.pending()),
            (at(1, 500), None)
        );
        let (second, _) = made(&progress, at(2, 90));
        progress.intend(&second, &recipe());
        progress.refused();
        progress.put_aside(Kind::Event, 1, at(2, 90));
        let gap = progress.cursor().gap.clone().expect("a gap");
        assert_eq!((gap.to, gap.events), (at(2, 90), 1));
        assert_eq!(progress.needed().from, 2);
    }

    #[test]
    fn another_sink_begins_with_an_empty_state() {
        let dir = tempfile::tempdir().expect("a directory");
        let (mut config, mut progress) = opened(&dir);
        progress.with_state(|state| state.insert("sequence".into(), "7".into()));
        progress.adopt(&config);
        assert!(progress.cursor().sink.contains_key("sequence"));
        config.sink = SinkKind::Kafka;
        progress.adopt(&config);
        assert!(!progress.cursor().sink.contains_key("sequence") && progress.is_dirty());
    }
}
