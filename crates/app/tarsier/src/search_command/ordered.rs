//! Searches logs whose records stand together, as those of nearly all do, with all processors and without the state machine.

use super::logs::Input;
use super::pieces::Failed;
use super::results::{Results, Worker};
use super::texts::{texts, threads_for, Feeder, LogText, Next};
use crate::interrupt::is_interrupted;
use anyhow::{Context, Result};
use cli::messages::report;
use query::report::runs::{Extent, NotOrdered, Part, Reading};
use query::{Event, EventView, InOrder, PieceEvents, Sink};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};

/// Pieces for each thread that are read before the output of the first of them is written.
const AHEAD: usize = 4;

/// Outcome of a search without the state machine.
pub(super) enum Outcome {
    /// All events were looked at.
    Done,
    /// The state machine has to read the logs from the beginning. So many events have been printed.
    Again(u64),
}

/// Searches all files.
///
/// # Errors
/// A log cannot be read, or the output not written.
pub(super) fn read(results: &mut Results, input: &Input, reading: Reading) -> Result<Outcome> {
    let Some(texts) = texts(input, reading.dialect)? else {
        return Ok(Outcome::Again(0));
    };
    let threads = threads_for(&texts);
    let workers = (0..threads).map(|_| results.worker());
    let Some(workers) = workers.collect::<Option<Vec<Worker>>>() else {
        return Ok(Outcome::Again(0));
    };

    let mut order = InOrder::new(reading.timeout_s);
    let workers = workers.into_iter().map(|worker| (worker, Event::default()));
    let mut workers: Vec<_> = workers.collect();
    let look = |(worker, event): &mut (Worker, Event), _, text: &[u8], part: &mut Part| {
        let mut found = PieceEvents::default();
        let each = |view: EventView<'_>| worker.event(view, event, &mut found);
        let extent = part.events(text, reading, each)?;
        Ok((found, extent))
    };
    let read = each_piece(&texts, reading, &mut workers, look, |found| {
        Ok(order.add(found, results)?)
    })?;
    if read.is_none() {
        return Ok(Outcome::Again(order.count()));
    }

    order.end(results)?;
    Ok(Outcome::Done)
}

/// Gives the pieces of all logs to threads. `look` makes something of the number and the text of a piece, for which it has
/// the state of its thread; `take` takes it, in the order of the log. Returns the times of the log; `None` if the events of
/// a piece cannot be told from those of others: all has to be read again then, from the beginning and otherwise.
///
/// # Errors
/// A log cannot be read, or the error of `take`.
pub(crate) fn each_piece<W: Send, T: Send>(
    texts: &[LogText],
    reading: Reading,
    workers: &mut [W],
    look: impl Fn(&mut W, usize, &[u8], &mut Part) -> Result<(T, Extent), NotOrdered> + Sync,
    take: impl FnMut(T) -> Result<()>,
) -> Result<Option<Extent>> {
    let queue = Queue::new(texts, workers.len());
    std::thread::scope(|scope| {
        let (queue, look) = (&queue, &look);
        // Whatever ends this function ends the threads.
        let _guard = Guard(queue);
        for worker in workers {
            scope.spawn(move || {
                let _guard = Guard(queue);
                work(queue, worker, reading, look);
            });
        }
        gather(queue, reading, take)
    })
}

/// Takes what the threads find, in the order of the log.
fn gather<T>(
    queue: &Queue<'_, T>,
    reading: Reading,
    mut take: impl FnMut(T) -> Result<()>,
) -> Result<Option<Extent>> {
    let mut extent = Extent::default();
    for number in 0.. {
        if is_interrupted() {
            break;
        }
        let (found, next) = match queue.take(number) {
            PieceOutcome::Searched(Ok(searched)) => searched,
            PieceOutcome::Searched(Err(Failed::Io(error))) => {
                return Err(error).context("cannot read the log");
            }
            PieceOutcome::Searched(Err(Failed::NotOrdered)) | PieceOutcome::Nothing => {
                return Ok(None)
            }
            PieceOutcome::End => break,
        };

        // A piece is in order by itself; whether it belongs behind the others shows only here.
        if extent.append(next, reading.dialect).is_err() {
            return Ok(None);
        }
        take(found)?;
    }

    Ok(Some(extent))
}

impl Sink for Results {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.put(text)
    }

    fn message(&mut self, message: &str) {
        report!("{message}");
    }
}

/// What was made of a piece, and its times.
type Searched<T> = Result<(T, Extent), Failed>;

/// What was made of a piece, if there is one.
enum PieceOutcome<T> {
    Searched(Searched<T>),
    /// There was none behind the last one.
    End,
    /// The search was given up.
    Nothing,
}

/// The pieces of the logs, and what was found in some of them.
struct Queue<'p, T> {
    /// Whoever takes a piece of a compressed log reads it, while others wait. Locked before `state`.
    feeder: Mutex<Feeder<'p>>,
    state: Mutex<State<T>>,
    changed: Condvar,
    /// Pieces that are read before the output of the first of them is written.
    ahead: usize,
}

struct State<T> {
    /// Number of the piece that is searched next.
    next: usize,
    /// Number of all pieces, once it is known.
    count: Option<usize>,
    /// Number of pieces whose output was taken.
    taken: usize,
    done: BTreeMap<usize, Searched<T>>,
    is_over: bool,
}

impl<'p, T> Queue<'p, T> {
    fn new(texts: &'p [LogText], threads: usize) -> Queue<'p, T> {
        Queue {
            feeder: Mutex::new(Feeder::new(texts)),
            state: Mutex::new(State {
                next: 0,
                count: None,
                taken: 0,
                done: BTreeMap::new(),
                is_over: false,
            }),
            changed: Condvar::new(),
            ahead: AHEAD * threads,
        }
    }

    /// The next piece to search, and its number.
    fn next(
        &self,
        buffer: &mut Vec<u8>,
        reading: Reading,
    ) -> Option<(usize, Result<Next<'p>, Failed>)> {
        let mut feeder = self.feeder.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);

        // Results that wait for their turn take memory: whoever is far ahead waits.
        let must_wait =
            |state: &mut State<T>| !state.is_over && state.next >= state.taken + self.ahead;
        let waited = self.changed.wait_while(state, must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);

        let number = state.next;
        if state.is_over || state.count.is_some() {
            return None;
        }
        state.next += 1;
        drop(state);

        let next = feeder.next(buffer, reading);
        if next.is_none() {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.count = Some(number);
            self.changed.notify_all();
        }
        next.map(|next| (number, next))
    }

    fn put(&self, number: usize, searched: Searched<T>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done.insert(number, searched);
        self.changed.notify_all();
    }

    /// Waits for the result of a piece, and takes it.
    fn take(&self, number: usize) -> PieceOutcome<T> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |state: &mut State<T>| {
            !state.is_over && state.count != Some(number) && !state.done.contains_key(&number)
        };
        let waited = self.changed.wait_while(state, must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);

        state.taken = number + 1;
        self.changed.notify_all();
        match state.done.remove(&number) {
            Some(searched) => PieceOutcome::Searched(searched),
            None if state.count == Some(number) => PieceOutcome::End,
            None => PieceOutcome::Nothing,
        }
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        self.changed.notify_all();
    }
}

/// Ends the search if a thread panics, so that nobody waits for it, and when nothing is taken any more.
struct Guard<'q, T>(&'q Queue<'q, T>);

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_done = state.count.is_some();
        drop(state);
        if std::thread::panicking() || !is_done {
            self.0.end();
        }
    }
}

/// Looks at pieces until there is none left.
fn work<W, T>(
    queue: &Queue<'_, T>,
    worker: &mut W,
    reading: Reading,
    look: impl Fn(&mut W, usize, &[u8], &mut Part) -> Result<(T, Extent), NotOrdered>,
) {
    let (mut part, mut buffer) = (Part::default(), Vec::new());
    while let Some((number, next)) = queue.next(&mut buffer, reading) {
        let text = next.and_then(|next| match next {
            Next::Piece(piece) => piece.read(&mut buffer, reading),
            Next::Read => Ok(&buffer[..]),
        });
        let found = text.and_then(|text| Ok(look(worker, number, text, &mut part)?));
        queue.put(number, found);
    }
}
