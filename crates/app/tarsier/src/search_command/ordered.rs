//! Searches plain files whose records stand together, as nearly all do, with all processors and without the state machine.

use super::logs::Input;
use super::pieces::{pieces, plain_files, processors, Failed, Piece};
use super::results::{Results, Worker};
use crate::interrupt::is_interrupted;
use anyhow::{Context, Result};
use cli::messages::report;
use query::report::runs::{Extent, Part, Reading};
use query::{Event, EventView, InOrder, PieceEvents, Sink};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};

/// Bytes of a piece, few enough for a processor's second cache.
const PIECE_BYTES: u64 = 1 << 19;
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
    let Some(files) = plain_files(input)? else {
        return Ok(Outcome::Again(0));
    };
    let pieces = pieces(&files, PIECE_BYTES);
    let threads = processors().min(pieces.len());
    let workers = (0..threads).map(|_| results.worker());
    let Some(workers) = workers.collect::<Option<Vec<Worker>>>() else {
        return Ok(Outcome::Again(0));
    };

    let queue = Queue::new(&pieces, threads);
    std::thread::scope(|scope| {
        let queue = &queue;
        // Whatever ends this function ends the threads.
        let _guard = Guard(queue);
        for worker in workers {
            scope.spawn(move || {
                let _guard = Guard(queue);
                work(queue, worker, reading);
            });
        }
        gather(results, queue, reading)
    })
}

/// Writes what the threads find, in the order of the log.
fn gather(results: &mut Results, queue: &Queue<'_>, reading: Reading) -> Result<Outcome> {
    let mut order = InOrder::new(reading.timeout_s);
    let mut extent = Extent::default();
    for number in 0..queue.pieces.len() {
        if is_interrupted() {
            break;
        }
        let (found, next) = match queue.take(number) {
            Some(Ok(searched)) => searched,
            Some(Err(Failed::Io(error))) => return Err(error).context("cannot read the log"),
            Some(Err(Failed::NotOrdered)) | None => return Ok(Outcome::Again(order.count())),
        };

        // A piece is in order by itself; whether it belongs behind the others shows only here.
        if extent.append(next, reading.dialect).is_err() {
            return Ok(Outcome::Again(order.count()));
        }
        order.add(found, results)?;
    }

    order.end(results)?;
    Ok(Outcome::Done)
}

impl Sink for Results {
    fn text(&mut self, text: &[u8]) -> io::Result<()> {
        self.put(text)
    }

    fn message(&mut self, message: &str) {
        report!("{message}");
    }
}

type Searched = Result<(PieceEvents, Extent), Failed>;

/// The pieces of the logs, and what was found in some of them.
struct Queue<'p> {
    pieces: &'p [Piece<'p>],
    state: Mutex<State>,
    changed: Condvar,
    /// Pieces that are read before the output of the first of them is written.
    ahead: usize,
}

#[derive(Default)]
struct State {
    /// Number of the piece that is searched next.
    next: usize,
    /// Number of pieces whose output was taken.
    taken: usize,
    done: BTreeMap<usize, Searched>,
    is_over: bool,
}

impl<'p> Queue<'p> {
    fn new(pieces: &'p [Piece<'p>], threads: usize) -> Queue<'p> {
        Queue {
            pieces,
            state: Mutex::default(),
            changed: Condvar::new(),
            ahead: AHEAD * threads,
        }
    }

    /// The next piece to search, and its number.
    fn next(&self) -> Option<(usize, Piece<'p>)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);

        // Results that wait for their turn take memory: whoever is far ahead waits.
        let must_wait =
            |state: &mut State| !state.is_over && state.next >= state.taken + self.ahead;
        let waited = self.changed.wait_while(state, must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);

        let number = state.next;
        if state.is_over {
            return None;
        }
        let piece = self.pieces.get(number)?;
        state.next += 1;
        Some((number, *piece))
    }

    fn put(&self, number: usize, searched: Searched) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done.insert(number, searched);
        self.changed.notify_all();
    }

    /// Waits for the result of a piece, and takes it. `None`: the search is over.
    fn take(&self, number: usize) -> Option<Searched> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let must_wait = |state: &mut State| !state.is_over && !state.done.contains_key(&number);
        let waited = self.changed.wait_while(state, must_wait);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.taken = number + 1;
        self.changed.notify_all();
        state.done.remove(&number)
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        self.changed.notify_all();
    }
}

/// Ends the search if a thread panics, so that nobody waits for it, and when nothing is taken any more.
struct Guard<'q>(&'q Queue<'q>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_done = state.next >= self.0.pieces.len();
        drop(state);
        if std::thread::panicking() || !is_done {
            self.0.end();
        }
    }
}

/// Searches pieces until there is none left.
fn work(queue: &Queue<'_>, mut worker: Worker, reading: Reading) {
    let (mut part, mut event, mut buffer) = (Part::default(), Event::default(), Vec::new());
    while let Some((number, piece)) = queue.next() {
        let mut search = || {
            let text = piece.read(&mut buffer, reading)?;
            let mut found = PieceEvents::default();
            let each = |view: EventView<'_>| worker.event(view, &mut event, &mut found);
            let extent = part.events(text, reading, each)?;
            Ok((found, extent))
        };
        queue.put(number, search());
    }
}
